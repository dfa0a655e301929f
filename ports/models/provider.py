"""The seam to providers of models: the configuration of a model, and the provider that builds it.

`workflows/providers.py` lists the providers and says how to add one.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple, Protocol

from msgspec.structs import asdict

from ...machines.errors import PlugInError
from ...machines.policy import Price
from ...machines.value import Value
from ...workflows.plugins import PlugIn
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
    images: bool | None = None
    price: Price | None = None


def takes_pictures(config: ModelConfig) -> bool:
    """Whether a model is known to take pictures: as configured, else the APIs of which all models do."""
    if config.images is not None:
        return config.images
    if config.tool_dialect == "json":
        return False
    is_openai = config.provider == "openai" and "api.openai.com" in config.base_url
    return config.provider == "anthropic" or is_openai


def model_configs(models: Mapping[str, ModelSettings]) -> dict[str, ModelConfig]:
    """Return the configured models, by name, as the model ports know them."""
    found: dict[str, ModelConfig] = {}
    for name, settings in models.items():
        values = asdict(settings)
        values["price"] = Price(**asdict(settings.price)) if settings.price else None
        found[name] = ModelConfig(name=name, **values)
    return found


class ReachResult(NamedTuple):
    """Whether a model can be reached; `text` is added to the model's line, `hint` is the next step."""

    status: Literal["ok", "warn", "bad"]
    text: str = ""
    hint: str = ""


class Provider(Protocol):
    """Builds the models of one kind, and checks whether a model can be reached."""

    def build(self, config: ModelConfig, cache: Path, environ: Mapping[str, str]) -> Model:
        """Make a model; nothing is connected or started yet. Raises `ConfigError`.

        `cache` is the cache folder of this program, `environ` has the keys.
        """
        ...

    def check(self, config: ModelConfig, cache: Path) -> None:
        """Raise `ModelError` if this machine lacks something that the model needs. Returns at once."""
        return

    def reach(self, config: ModelConfig, environ: Mapping[str, str], seconds: float) -> ReachResult:
        """Check whether a model can be reached, without a request to it. Blocks for `seconds`."""
        ...


def provider_of(config: ModelConfig) -> Provider:
    """Return the provider of a model; its module is imported now if it is built in."""
    if config.provider not in PROVIDERS.built_in:
        return InstalledProvider(PROVIDERS.entry_points.by_name[config.provider])
    provider: Provider = PROVIDERS.load(config.provider)
    return provider


class InstalledProvider:
    """A provider that is a plug-in: a function that makes a model of a `ModelConfig`; see `Provider`."""

    def __init__(self, plug_in: PlugIn) -> None:
        self._plug_in = plug_in

    def build(self, config: ModelConfig, cache: Path, environ: Mapping[str, str]) -> Model:
        """Make a model. Raises `PlugInError`."""
        make = PROVIDERS.load(self._plug_in.name)
        with self._plug_in.guarded():
            model = make(config)
        missing = [name for name in _MODEL if not hasattr(model, name)]
        if missing:
            kind = type(model).__name__
            raise self._plug_in.error(f"it made a `{kind}`, which has no `{missing[0]}`")
        made: Model = model
        return made

    def check(self, config: ModelConfig, cache: Path) -> None:
        """Raise `PlugInError` if the function cannot be imported."""
        PROVIDERS.load(self._plug_in.name)

    def reach(self, config: ModelConfig, environ: Mapping[str, str], seconds: float) -> ReachResult:
        """Check whether the function can be imported; nothing more is known of it."""
        try:
            PROVIDERS.load(self._plug_in.name)
        except PlugInError as error:
            return ReachResult("bad", error.fault, error.hint)
        return ReachResult("ok", f"of {self._plug_in.origin}, whose server is not tried")


_MODEL = ("name", "answer", "window", "aclose")
