"""Which model a chat uses, and why: one rule a line, the first that holds.

1. the flag `--model`
2. the agent's own `model` in the configuration, else the only model that is configured
3. a key in the environment: Anthropic, OpenAI, OpenRouter
4. a server that answers on loopback: ollama, llama.cpp
5. the embedded model: one whose weights are here, else the largest that this machine has room for
"""

import socket
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ...machines.errors import ConfigError
from ...machines.json_shape import parse_json
from ...machines.policy import Price
from ...machines.value import Value
from ...workflows.paths import Paths
from ...workflows.providers import EMBEDDED, PROVIDERS, SERVERS, SERVICES, Service
from .embedded.weights import Usual, catalogue, usual_here
from .model import AnswerListener, Model, ModelAnswer, ModelRequest, WrappedModel
from .provider import ModelConfig, provider_of
from .repeating import RepeatingModel


class MeteredModel(WrappedModel):
    """A model with settings that its server does not know: its price, the size of its window.

    It adds the cost to the usage of the answers. `window` counts tokens; 0 leaves it to the inner model.
    """

    def __init__(self, inner: Model, price: Price | None = None, window: int = 0) -> None:
        super().__init__(inner)
        self._price = price or Price()
        self._window = window

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Ask the inner model. Raises `ModelError`."""
        answer = await self.inner.answer(request, listener)
        usage = replace(answer.usage, cost=self._price.cost(answer.usage))
        return replace(answer, usage=usage)

    async def window(self) -> int:
        """Return what is configured, else the window of the inner model."""
        return self._window or await self.inner.window()


_KNOCK = 0.05  # seconds that a local port gets to accept
_LISTEN = 0.5  # seconds that an open port gets to name its models


class Choice(Value):
    """The chosen model; `why` completes the sentence `uses NAME because …`.

    `is_named`: a person named it, so that it is no news.
    """

    name: str
    config: ModelConfig
    why: str
    is_named: bool = False

    @property
    def line(self) -> str:
        """The one line that people see."""
        config = self.config
        at = f" at {config.base_url}" if config.base_url else ""
        what = "" if config.model in ("", self.name) else f" ({config.model}{at})"
        return f"model {self.name}{what}: {self.why}"


def choose(
    config_models: Mapping[str, ModelConfig],
    agent_model: str,
    flag: str,
    environ: Mapping[str, str],
    probe: Callable[[int], str | None],
    chosen: str = "",
    embedded: Callable[[Path], Usual] = usual_here,
) -> Choice:
    """Return the model of a chat. `probe` names the first model served on a port of loopback.

    `embedded` returns the usual embedded model, given the cache folder. `flag`, `agent_model` and
    `chosen`, what a person chose in the session, may be empty. Raises `ConfigError` for an unknown name.
    """
    usual = partial(embedded, Paths.of(environ).cache)
    if flag:
        config = _named(flag, config_models, usual)
        return Choice(name=flag, config=config, why="asked for with `--model`", is_named=True)
    if chosen:
        config = _named(chosen, config_models, usual)
        return Choice(name=chosen, config=config, why="the model of this session", is_named=True)
    if agent_model:
        config = _named(agent_model, config_models, usual, "`model` of the agent: ")
        why = "the agent's `model` in the configuration"
        return Choice(name=agent_model, config=config, why=why, is_named=True)
    if len(config_models) == 1:
        (config,) = config_models.values()
        why = "the only model in the configuration"
        return Choice(name=config.name, config=config, why=why, is_named=True)
    for service in SERVICES:
        if environ.get(service.api_key_env):
            return Choice(
                name=service.name, config=_hosted(service), why=f"`{service.api_key_env}` is set"
            )
    for name, port in SERVERS.items():
        model = probe(port)
        if model is not None:
            served = ModelConfig(
                name=name, provider="openai", base_url=f"http://127.0.0.1:{port}/v1", model=model
            )
            return Choice(name=name, config=served, why=f"{name} answers on port {port}")
    unnamed = next(iter(config_models), "")
    why = "no other model is configured or running"
    if unnamed:
        why = f'no agent has `model = "{unnamed}"`, and no other model is running'
    found = usual()
    name = found.entry.name
    why = f"{why}; {found.why}"
    return Choice(name=name, config=_embedded(name), why=why)


def probe_loopback(port: int) -> str | None:
    """Name the first model that a server on this port of 127.0.0.1 offers; none without an answer.

    A closed port costs well under a millisecond.
    """
    import http.client  # for a port that is open, which few have

    try:
        with socket.create_connection(("127.0.0.1", port), _KNOCK):
            pass
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_LISTEN)
        try:
            connection.request("GET", "/v1/models")
            data: Any = parse_json(connection.getresponse().read(1 << 20))
        finally:
            connection.close()
        return str(data["data"][0]["id"])
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        return None  # closed, or not a model server, or one without a model


def _named(
    name: str,
    config_models: Mapping[str, ModelConfig],
    usual: Callable[[], Usual],
    place: str = "",
) -> ModelConfig:
    if name in config_models:
        return config_models[name]
    if name in _embedded_names():
        return _embedded(name)
    if name in ("embedded", EMBEDDED):
        return _embedded(usual().entry.name)
    service_name, colon, model = name.partition(":")
    for service in SERVICES:
        if colon and service.name == service_name:
            return _hosted(replace(service, model=model))
    for server, port in SERVERS.items():
        if colon and server == service_name:
            return ModelConfig(
                name=name, provider="openai", base_url=f"http://127.0.0.1:{port}/v1", model=model
            )
    if service_name in PROVIDERS.entry_points.by_name:
        return ModelConfig(name=name, provider=service_name, model=model)
    import difflib

    known = known_names(config_models)
    near = difflib.get_close_matches(name, known, 1)
    raise ConfigError(
        f"{place}no model is called `{name}`",
        f"did you mean `{near[0]}`?" if near else f"known are: {', '.join(known)}",
    )


def known_names(config_models: Mapping[str, ModelConfig]) -> list[str]:
    """List every name that a model can be chosen by; `MODEL` is the server's own name for one."""
    servers = (
        *(service.name for service in SERVICES),
        *SERVERS,
        *PROVIDERS.entry_points.by_name,
    )
    embedded = (
        name for name in (*_embedded_names(), "embedded", EMBEDDED) if name not in config_models
    )
    return [*config_models, *embedded, *(f"{server}:MODEL" for server in servers)]


COMPATIBLE = "compatible"
"""In a setup: any other server with chat completions, at an address that the person gives."""


def beginnings() -> dict[str, ModelConfig]:
    """Return what a setup can begin with, by name; what is missing, the person has to give."""
    near = {
        name: ModelConfig(name=name, provider="openai", base_url=f"http://127.0.0.1:{port}/v1")
        for name, port in SERVERS.items()
    }
    return {
        **{service.name: _hosted(service) for service in SERVICES},
        **near,
        COMPATIBLE: ModelConfig(name=COMPATIBLE, provider="openai"),
        EMBEDDED: _embedded(""),
    }


def check(config: ModelConfig, cache: Path) -> None:
    """Raise `ModelError` if this machine lacks something that a model needs."""
    provider_of(config).check(config, cache)


def model_named(name: str, config_models: Mapping[str, ModelConfig], cache: Path) -> ModelConfig:
    """Return the model that a name of `known_names` means. Raises `ConfigError`."""
    return _named(name, config_models, partial(usual_here, cache))


def _hosted(service: Service) -> ModelConfig:
    return ModelConfig(
        name=service.name,
        provider=service.provider,
        base_url=service.base_url,
        api_key_env=service.api_key_env,
        model=service.model,
    )


def _embedded_names() -> tuple[str, ...]:
    return tuple(entry.name for entry in catalogue())


def _embedded(name: str) -> ModelConfig:
    return ModelConfig(name=name, provider=EMBEDDED, model=name, tool_dialect="json")


def build(config: ModelConfig, cache: Path, environ: Mapping[str, str]) -> Model:
    """Make the model that a configuration describes; nothing is connected or started yet.

    `cache` is the cache folder, in whose `models/` fetched weights lie. Raises `ConfigError`.
    """
    model: Model = RepeatingModel(provider_of(config).build(config, cache, environ))
    window = config.context_window or 0
    return MeteredModel(model, config.price, window) if config.price or window else model
