"""Which model a chat uses, and why: one rule a line, the first that holds.

1. the flag `--model`
2. the agent's own `model` in the configuration, else the only model that is configured
3. a key in the environment: Anthropic, OpenAI, OpenRouter
4. a server that answers on loopback: ollama, llama.cpp
5. the embedded model: one whose weights are here, else the largest that this machine has room for
"""

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import asdict, replace

from ...machines.errors import ConfigError
from ...machines.policy import Price
from ...machines.value import Value
from ...workflows.paths import Paths
from ...workflows.problem import did_you_mean
from ...workflows.providers import EMBEDDED, PROVIDERS, SERVERS, SERVICES, Service
from .capacity import listed_here
from .model import AnswerListener, Model, ModelAnswer, ModelRequest, WrappedModel
from .provider import ModelConfig, provider_of
from .retry import RepeatingModel
from .weights import Usual, catalogue, entry_named, usual_here


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
    cache = Paths.of(environ).cache
    only = next(iter(config_models)) if len(config_models) == 1 else ""
    for name, why, place in (
        (flag, "asked for with `--model`", ""),
        (chosen, "the model of this session", ""),
        (agent_model, "the agent's `model` in the configuration", "`model` of the agent: "),
        (only, "the only model in the configuration", ""),
    ):
        if name:
            config = model_named(name, config_models, cache, place, embedded)
            return Choice(name=name, config=config, why=why, is_named=True)
    for service in SERVICES:
        if environ.get(service.api_key_env):
            why = f"`{service.api_key_env}` is set"
            return Choice(name=service.name, config=_hosted(service), why=why)
    for name, port in SERVERS.items():
        if (model := probe(port)) is not None:
            config = _local(name, port, model)
            return Choice(name=name, config=config, why=f"{name} answers on port {port}")
    why = "no other model is configured or running"
    if unnamed := next(iter(config_models), ""):
        why = f'no agent has `model = "{unnamed}"`, and no other model is running'
    found = embedded(cache)
    config = _embedded(found.entry.name)
    return Choice(name=config.name, config=config, why=f"{why}; {found.why}")


def probe_loopback(port: int) -> str | None:
    """Name the first model that a server on this port of 127.0.0.1 offers; none without an answer."""
    listed = listed_here("127.0.0.1", port, "/v1/models")
    return next((str(entry["id"]) for entry in listed if entry.get("id")), None)


def model_named(
    name: str,
    config_models: Mapping[str, ModelConfig],
    cache: Path,
    place: str = "",
    embedded: Callable[[Path], Usual] = usual_here,
) -> ModelConfig:
    """Return the model that a name of `known_names` means. Raises `ConfigError`.

    `place` is where the name is written, as the beginning of a sentence; `embedded` as in `choose`.
    """
    if name in config_models:
        return config_models[name]
    if entry_named(name) is not None:
        return _embedded(name)
    if name in ("embedded", EMBEDDED):
        return _embedded(embedded(cache).entry.name)
    server, colon, model = name.partition(":")
    for service in SERVICES:
        if colon and service.name == server:
            return _hosted(replace(service, model=model))
    if colon and server in SERVERS:
        return _local(name, SERVERS[server], model)
    if server in PROVIDERS.entry_points.by_name:
        return ModelConfig(name=name, provider=server, model=model)
    known = known_names(config_models)
    hint = did_you_mean(name, known) or f"known are: {', '.join(known)}"
    raise ConfigError(f"{place}no model is called `{name}`", hint)


def known_names(config_models: Mapping[str, ModelConfig]) -> list[str]:
    """List every name that a model can be chosen by; `MODEL` is the server's own name for one."""
    embedded = (*(entry.name for entry in catalogue()), "embedded", EMBEDDED)
    services = (service.name for service in SERVICES)
    servers = (*services, *SERVERS, *PROVIDERS.entry_points.by_name)
    return [
        *config_models,
        *(name for name in embedded if name not in config_models),
        *(f"{server}:MODEL" for server in servers),
    ]


COMPATIBLE = "compatible"
"""In a setup: any other server with chat completions, at an address that the person gives."""


def beginnings() -> dict[str, ModelConfig]:
    """Return what a setup can begin with, by name; what is missing, the person has to give."""
    return {
        **{service.name: _hosted(service) for service in SERVICES},
        **{name: _local(name, port) for name, port in SERVERS.items()},
        COMPATIBLE: ModelConfig(name=COMPATIBLE, provider="openai"),
        EMBEDDED: _embedded(""),
    }


def _hosted(service: Service) -> ModelConfig:
    return ModelConfig(**asdict(service), api_key_env=service.api_key_env)


def _local(name: str, port: int, model: str = "") -> ModelConfig:
    base_url = f"http://127.0.0.1:{port}/v1"
    return ModelConfig(name=name, provider="openai", base_url=base_url, model=model)


def _embedded(name: str) -> ModelConfig:
    return ModelConfig(name=name, provider=EMBEDDED, model=name, tool_dialect="json")


def build(config: ModelConfig, cache: Path, environ: Mapping[str, str]) -> Model:
    """Make the model that a configuration describes; nothing is connected or started yet.

    `cache` is the cache folder, in whose `models/` fetched weights lie. Raises `ConfigError`.
    """
    model: Model = RepeatingModel(provider_of(config).build(config, cache, environ))
    window = config.context_window or 0
    return MeteredModel(model, config.price, window) if config.price or window else model
