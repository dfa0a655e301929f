"""Which model a chat uses, and why: one rule a line, the first that holds.

1. the flag `--model`
2. the agent's own `model` in the configuration
3. a key in the environment: Anthropic, OpenAI, OpenRouter
4. a server that answers on loopback: ollama, llama.cpp
5. the embedded model
"""

import difflib
import http.client
import json
import socket
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from ...machines.errors import ConfigError
from ...machines.limits import Price
from ...workflows.settings import Provider
from .anthropic import AnthropicModel
from .catalogue import EMBEDDED, catalogue, entry_named
from .chat import ChatModel
from .dialect import JsonDialect
from .endpoint import Patience
from .fetch import fetched
from .local import LocalModel
from .model import Model, ModelAnswer, ModelRequest, unheard
from .scripted import ScriptedModel, load_script
from .settings import ModelConfig

# A model of which more is configured than its server tells: what it costs, how much it can look at


class MeteredModel:
    """Asks the model beneath, and adds the cost to the usage of its answers.

    `window` counts tokens; 0 leaves it to the model.
    """

    def __init__(self, inner: Model, price: Price | None = None, window: int = 0) -> None:
        self._inner = inner
        self._price = price or Price()
        self._window = window
        self.name = inner.name

    async def answer(
        self,
        request: ModelRequest,
        on_text: Callable[[str], None],
        on_notice: Callable[[str], None],
        on_thought: Callable[[str], None] = unheard,
    ) -> ModelAnswer:
        """Ask the model beneath. Raises `ModelError`."""
        answer = await self._inner.answer(request, on_text, on_notice, on_thought)
        usage = replace(answer.usage, cost=self._price.cost(answer.usage))
        return replace(answer, usage=usage)

    async def window(self) -> int:
        """Say what is configured, else what the model beneath says."""
        return self._window or await self._inner.window()

    async def aclose(self) -> None:
        """Close the model beneath. Idempotent."""
        await self._inner.aclose()


_KNOCK = 0.05  # seconds that a local port gets to accept
_LISTEN = 0.5  # seconds that an open port gets to name its models


@dataclass(frozen=True, slots=True)
class Choice:
    """The chosen model; `why` completes the sentence `uses NAME because …`."""

    name: str
    config: ModelConfig
    why: str

    @property
    def line(self) -> str:
        """The one line that people see."""
        config = self.config
        at = f" at {config.base_url}" if config.base_url else ""
        what = "" if config.model in ("", self.name) else f" ({config.model}{at})"
        return f"model {self.name}{what}: {self.why}"


def _hosted(name: str, base_url: str, model: str) -> ModelConfig:
    provider: Provider = "anthropic" if name == "anthropic" else "openai"
    return ModelConfig(name, provider, base_url, f"{name.upper()}_API_KEY", model)


_HOSTED = (
    _hosted("anthropic", "https://api.anthropic.com", "claude-sonnet-4-5"),
    _hosted("openai", "https://api.openai.com/v1", "gpt-5-mini"),
    _hosted("openrouter", "https://openrouter.ai/api/v1", "openrouter/auto"),
)
_SERVERS = (("ollama", 11434), ("llama.cpp", 8080))


def choose(
    config_models: Mapping[str, ModelConfig],
    agent_model: str,
    flag: str,
    environ: Mapping[str, str],
    probe: Callable[[int], str | None],
    chosen: str = "",
) -> Choice:
    """Return the model of a chat. `probe` names the first model served on a port of loopback.

    `flag`, `agent_model` and `chosen`, what a person chose in the session, may be empty. Raises
    `ConfigError` for a name that means nothing.
    """
    if flag:
        return Choice(flag, _named(flag, config_models, "--model"), "asked for with `--model`")
    if chosen:
        return Choice(chosen, _named(chosen, config_models, "/model"), "chosen with `/model`")
    if agent_model:
        config = _named(agent_model, config_models, "`model` of the agent")
        return Choice(agent_model, config, "the agent's `model` in the configuration")
    for config in _HOSTED:
        if environ.get(config.api_key_env):
            return Choice(config.name, config, f"`{config.api_key_env}` is set")
    for name, port in _SERVERS:
        model = probe(port)
        if model is not None:
            served = ModelConfig(name, "openai", f"http://127.0.0.1:{port}/v1", model=model)
            return Choice(name, served, f"{name} answers on port {port}")
    unnamed = next(iter(config_models), "")
    why = "no other model is configured or running"
    if unnamed:
        why = f'no agent has `model = "{unnamed}"`, and no other model is running'
    return Choice(EMBEDDED, _embedded(EMBEDDED), why)


def probe_loopback(port: int) -> str | None:
    """Name the first model that a server on this port of 127.0.0.1 offers; none if nobody answers.

    A closed port costs well under a millisecond.
    """
    try:
        with socket.create_connection(("127.0.0.1", port), _KNOCK):
            pass
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=_LISTEN)
        try:
            connection.request("GET", "/v1/models")
            data: Any = json.loads(connection.getresponse().read(1 << 20))
        finally:
            connection.close()
        return str(data["data"][0]["id"])
    except (OSError, http.client.HTTPException, ValueError, LookupError, TypeError):
        return None  # closed, or not a model server, or one without a model


def _named(name: str, config_models: Mapping[str, ModelConfig], place: str) -> ModelConfig:
    if name in config_models:
        return config_models[name]
    if entry_named(name):
        return _embedded(name)
    if name in ("embedded", "local"):
        return _embedded(EMBEDDED)
    provider, colon, model = name.partition(":")
    for config in _HOSTED:
        if colon and config.name == provider:
            return _hosted(provider, config.base_url, model)
    for server, port in _SERVERS:
        if colon and server == provider:
            return ModelConfig(name, "openai", f"http://127.0.0.1:{port}/v1", model=model)
    known = [*config_models, *(entry.name for entry in catalogue()), "embedded"]
    near = difflib.get_close_matches(name, known, 1)
    known += [f"{one}:MODEL" for one in (*(config.name for config in _HOSTED), "ollama")]
    raise ConfigError(
        f"{place}: no model is called `{name}`",
        f"did you mean `{near[0]}`?" if near else f"known are: {', '.join(known)}",
    )


def _embedded(name: str) -> ModelConfig:
    return ModelConfig(name, "local", model=name, tool_dialect="json")


def build(config: ModelConfig, cache: Path, environ: Mapping[str, str]) -> Model:
    """Make the model that a configuration describes; nothing is connected or started yet.

    `cache` is the cache folder, in whose `models/` fetched weights lie. Raises `ConfigError`.
    """
    model = _bare(config, cache, environ)
    window = config.context_window or 0
    return MeteredModel(model, config.price, window) if config.price or window else model


def _bare(config: ModelConfig, cache: Path, environ: Mapping[str, str]) -> Model:
    match config.provider:
        case "local":
            return _local(config, cache)
        case "scripted":
            return ScriptedModel(load_script(Path(config.script)), config.name)
        case "anthropic":
            model = _served(AnthropicModel, config.base_url or _HOSTED[0].base_url, config, environ)
        case "openai":
            model = _served(ChatModel, config.base_url, config, environ)
    return JsonDialect(model) if config.tool_dialect == "json" else model


def _served(
    kind: type[AnthropicModel] | type[ChatModel],
    base_url: str,
    config: ModelConfig,
    environ: Mapping[str, str],
) -> Model:
    return kind(
        base_url,
        config.model,
        name=config.name,
        key=environ.get(config.api_key_env, ""),
        key_env=config.api_key_env,
        temperature=config.temperature,
        max_tokens=config.max_tokens,
        thinking=config.thinking or "",
        patience=Patience(silence=config.timeout) if config.timeout else None,
    )


def _local(config: ModelConfig, cache: Path) -> LocalModel:
    """The embedded model: a name of the catalogue, or the path of a GGUF file."""
    name = config.model or EMBEDDED
    entry = entry_named(name)
    weights = fetched(entry, cache) if entry else Path(name).expanduser()
    if entry is None and not name.endswith(".gguf"):
        known = ", ".join(one.name for one in catalogue())
        raise ConfigError(
            f"model `{config.name}`: `{name}` is neither in the catalogue nor a GGUF file",
            f"known are: {known}",
        )
    return LocalModel(
        weights,
        model=entry.name if entry else Path(name).stem,
        name=config.name if config.name != name else "",
        window=config.context_window or (entry.window if entry else 8192),
        is_tiny=entry.is_tiny if entry else False,
        temperature=config.temperature,
        max_tokens=config.max_tokens,
    )
