"""The embedded model: a real one that needs no key and no network; a child process serves it."""

from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec.structs import replace

from ...machines.conversation import ChatMessage
from ...machines.errors import ConfigError, ModelError
from ...ports.models.dialect import JsonDialect
from ...ports.models.model import AnswerListener, Model, ModelAnswer, ModelRequest
from ...ports.models.provider import ModelConfig, ReachResult
from ...ports.models.weights import catalogue, entry_named, has_engine, usual_here, weights_of
from ...ports.models.wire import without_pictures
from ...workflows.extras import how_to_install
from .child import ChildSettings, ModelProcess, claim, release

_MAX_TOKENS = 1200
_TEMPERATURE = 0.0
_CHARACTERS = 3  # of a token, on the safe side: English has four, code three
_LEFT_OUT = "\n[… {} characters left out …]\n"


class EmbeddedModel:
    """A model from a GGUF file; `weights` finds it, none if it has not been fetched yet.

    `model` is its name, `name` that of its configuration. `window` counts tokens. `prompts` is the folder
    of the instructions that it has read before. It knows no tools: `JsonDialect` gives it some.
    """

    def __init__(
        self,
        weights: Callable[[], Path | None],
        *,
        model: str,
        prompts: Path,
        name: str = "",
        window: int = 8192,
        temperature: float | None = None,
        max_tokens: int | None = None,
    ) -> None:
        self.name = f"{name} ({model}, embedded)" if name else f"{model} (embedded)"
        self._model = model
        self._weights = weights
        self._prompts = prompts
        self._window = window
        self._temperature = _TEMPERATURE if temperature is None else temperature
        self._max_tokens = max_tokens or _MAX_TOKENS
        self._child: ModelProcess | None = None

    @property
    def pid(self) -> int:
        """The id of the process that serves it; 0 if there is none."""
        return self._child.pid if self._child else 0

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Start the child if need be, and answer. Raises `ModelError`."""
        if self._child is None:
            weights = _checked(self._model, self._weights())  # perhaps fetched since
            settings = ChildSettings(
                model=self._model, weights=weights, window=self._window, prompts=self._prompts
            )
            self._child = claim(settings, self)
        most = request.max_tokens or self._max_tokens
        request = replace(
            request,
            temperature=self._temperature if request.temperature is None else request.temperature,
            max_tokens=min(self._max_tokens, most),
        )
        return await self._child.answer(fit(request, self._window), listener)

    async def window(self) -> int:
        """Return the window in tokens."""
        return self._window

    async def aclose(self) -> None:
        """End the child process if no other model uses it. Idempotent."""
        child, self._child = self._child, None
        if child:
            await release(child, self)


def fit(request: ModelRequest, window: int) -> ModelRequest:
    """Return the request with its instructions and as many of the newest messages as fit `window`.

    `window` is in tokens. The first message kept is a user message; a single message that is too long
    keeps its head and its tail.
    """
    answer = request.max_tokens or window // 4
    room = max(600, (window - answer) * _CHARACTERS - len(request.system))
    kept: list[ChatMessage] = []
    for message in reversed(list(without_pictures(request.messages))):
        if kept and len(message.text) > room:
            break
        if len(text := message.text) > room:
            half = max(1, (room - len(_LEFT_OUT) - 8) // 2)
            left_out = _LEFT_OUT.format(len(text) - 2 * half)
            message = replace(message, text=text[:half] + left_out + text[-half:])
        kept.append(message)
        room -= len(kept[-1].text) + 4 * _CHARACTERS
    kept.reverse()
    while len(kept) > 1 and kept[0].role != "user":
        del kept[0]
    return replace(request, messages=tuple(kept))


def _checked(model: str, weights: Path | None) -> Path:
    """Return the weights of a model. Raises `ModelError` if they, or the engine, are not here."""
    if not has_engine():
        raise ModelError(
            "the embedded model needs the package `xllamacpp`, which is not installed",
            how_to_install("local"),
        )
    if weights is None or not weights.is_file():
        place = f" (no file `{weights}`)" if weights else ""
        raise ModelError(
            f"the weights of the embedded model `{model}` are not here{place}",
            f"run `steersman models fetch {model}`; `steersman setup` chooses another model",
        )
    return weights


class EmbeddedProvider:
    """Makes models of the catalogue, and of GGUF files; see `Provider`."""

    def build(self, config: ModelConfig, cache: Path, environ: Mapping[str, str]) -> Model:
        """Make a model of a name in the catalogue, or of the path of a GGUF file."""
        name = _name(config, cache)
        entry = entry_named(name)
        if entry is None and not name.endswith(".gguf"):
            raise ConfigError(
                f"model `{config.name}`: `{name}` is neither in the catalogue nor a GGUF file",
                f"known are: {', '.join(entry.name for entry in catalogue())}",
            )
        model = EmbeddedModel(
            lambda: weights_of(name, cache),
            model=entry.name if entry else Path(name).stem,
            prompts=cache / "models" / "prompts",
            name=config.name if config.name != name else "",
            window=config.context_window or (entry.window if entry else 8192),
            temperature=config.temperature,
            max_tokens=config.max_tokens,
        )
        return JsonDialect(model)

    def check(self, config: ModelConfig, cache: Path) -> None:
        """Raise `ModelError` if the weights or the engine are not here."""
        name = _name(config, cache)
        _checked(name, weights_of(name, cache))

    def reach(self, config: ModelConfig, environ: Mapping[str, str], seconds: float) -> ReachResult:
        """Return whether the engine is installed."""
        if not has_engine():
            return ReachResult("warn", hint=how_to_install("local"))
        return ReachResult("ok")


def _name(config: ModelConfig, cache: Path) -> str:
    """Return what a configuration names, or the usual model of this machine."""
    return config.model or usual_here(cache).entry.name


PROVIDER = EmbeddedProvider()
