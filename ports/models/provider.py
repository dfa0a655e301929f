"""The seam to providers of models: the configuration of a model, and the provider that builds it.

`workflows/providers.py` lists the providers and says how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

from ...machines.policy import Price
from ...machines.value import Value
from ...workflows.providers import PROVIDERS
from ...workflows.settings import ModelSettings, Thinking, ToolDialect
from .model import Model


class ModelConfig(Value):
    """One model; `provider` is a name of `PROVIDERS`.

    `api_key_env` names an environment variable, never the key itself. `model` is the name that the
    server knows; for `local` a name of the catalogue or the path of a GGUF file. `script` is the
    file of a scripted model. `context_window` and `max_tokens` count tokens; none leaves it to the
    server. `timeout` is in seconds. Without a `price` the cost is not computed.
    """

    name: str
    provider: str
    base_url: str = ""
    api_key_env: str = ""
    model: str = ""
    tool_dialect: ToolDialect = "native"
    script: str = ""
    context_window: int | None = None
    temperature: float | None = None
    max_tokens: int | None = None
    thinking: Thinking | None = None
    timeout: float | None = None
    price: Price | None = None


def model_configs(models: Mapping[str, ModelSettings]) -> dict[str, ModelConfig]:
    """Return the configured models, by name, as the model ports know them."""
    return {name: _config(name, settings) for name, settings in models.items()}


def _config(name: str, settings: ModelSettings) -> ModelConfig:
    values: dict[str, Any] = dict(settings)
    values["price"] = Price(**dict(settings.price)) if settings.price else None
    return ModelConfig(name=name, **values)


class ReachResult(NamedTuple):
    """Whether a model can be reached; `text` is added to the model's line, `hint` is the next step."""

    status: Literal["ok", "warn", "bad"]
    text: str = ""
    hint: str = ""


class Provider(Protocol):
    """Builds the models of one kind, and checks whether a model can be reached."""

    def offers(self) -> tuple[str, ...]:
        """Return the names of models that need no configuration, the default first; mostly none."""
        ...

    def build(self, config: ModelConfig, cache: Path, environ: Mapping[str, str]) -> Model:
        """Make a model; nothing is connected or started yet. Raises `ConfigError`.

        `cache` is the cache folder of this program, `environ` has the keys.
        """
        ...

    def check(self, config: ModelConfig, cache: Path) -> None:
        """Raise `ModelError` if this machine lacks something that the model needs. Returns at once."""
        ...

    def reach(self, config: ModelConfig, environ: Mapping[str, str], seconds: float) -> ReachResult:
        """Check whether a model can be reached, without a request to it. Blocks for `seconds`."""
        ...


def provider_of(config: ModelConfig) -> Provider:
    """Return the provider of a model; its module is imported now, if it was not yet."""
    provider: Provider = PROVIDERS.load(config.provider)
    return provider
