"""What has to be known to build a model: one `[models.NAME]` table of the configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ...machines.limits import Price
from ...workflows.settings import ModelSettings, Provider, Thinking, ToolDialect


@dataclass(frozen=True, slots=True)
class ModelConfig:
    """One model; `openai` means any server that speaks chat completions.

    `api_key_env` names an environment variable, never the key itself. `model` is the name that the
    server knows; for `local` a name of the catalogue or the path of a GGUF file. `script` is the
    file of a scripted model. `context_window` and `max_tokens` count tokens; none leaves it to the
    server. `timeout` is in seconds. Without a `price` nothing is said of cost.
    """

    name: str
    provider: Provider
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
    return {name: _config(name, one) for name, one in models.items()}


def _config(name: str, one: ModelSettings) -> ModelConfig:
    settings: dict[str, Any] = dict(one)
    settings["price"] = Price(**dict(one.price)) if one.price else None
    return ModelConfig(name, **settings)
