"""A model that answers by a script file, for tests and examples.

The script is TOML (or JSON of the same shape)::

    [[answer]]
    match = "notes"                 # regular expression, searched in the newest user message
    text = "I will read it."
    delay = 0.5                     # seconds before the first piece; `inf` never answers
    chunk_delay = 0.05              # seconds before each further piece
    usage = { input = 120, output = 9 }
    [[answer.tool_calls]]
    tool = "read"
    arguments = { path = "notes.txt" }

    [[answer]]
    match = "notes"                 # the same pattern again: the next model call of the same turn
    text = "It says hello."

    [[answer]]                      # no `match`: these are used in order, the last one repeats
    text = "Hello."

    [[answer]]
    error = "the model is out of order"

Several answers that match form a sequence: the first answers the user message, the second the model
call after the tools that the first asked for, and so on; the last repeats. The place in the
sequence is read from the conversation, so that it is the same after a restart.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from ...machines.conversation import ToolRequest, Usage
from ...machines.errors import ConfigError, ModelError
from ...machines.json_shape import is_array, parse_json
from ...machines.value import Value
from ...workflows.foreign_file import parse_toml, read_text
from .loose_json import table
from .model import AnswerListener, Model, ModelAnswer, ModelRequest
from .provider import ModelConfig, Provider, ReachResult

_AT_ONCE = 100  # pieces that are passed on before others have their turn on the loop


class ScriptedAnswer(Value):
    """One answer of a script; `tool_calls` are (tool, arguments), delays are seconds."""

    text: str = ""
    match: str = ""
    tool_calls: tuple[tuple[str, dict[str, Any]], ...] = ()
    delay: float = 0.0
    chunk_delay: float = 0.0
    error: str = ""
    usage: Usage | None = None


class ScriptedModel(Model):
    """Replays `answers`, of which a text says just that; `sleep` is handed in, for tests."""

    def __init__(
        self,
        answers: Sequence[ScriptedAnswer | str],
        name: str = "scripted",
        sleep: Callable[[float], Awaitable[object]] = asyncio.sleep,
    ) -> None:
        self.name = name
        script = [
            ScriptedAnswer(text=answer) if isinstance(answer, str) else answer for answer in answers
        ]
        self._matching = [answer for answer in script if answer.match]
        self._ordered = [answer for answer in script if not answer.match]
        self._next = 0
        self._sleep = sleep

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Stream the answer that the script has for this request. Raises `ModelError`."""
        scripted = self._choose(request)
        if scripted.delay:
            await self._sleep(scripted.delay)
        for number, piece in enumerate(re.findall(r"\s*\S+\s*|\s+", scripted.text)):
            if number and scripted.chunk_delay:
                await self._sleep(scripted.chunk_delay)
            listener.on_text(piece)
            if number % _AT_ONCE == _AT_ONCE - 1:
                await asyncio.sleep(0)
        if scripted.error:
            raise ModelError(scripted.error, "the script wants this error")
        calls = tuple(
            ToolRequest(call=f"{request.call_prefix}{number}", tool=tool, arguments=arguments)
            for number, (tool, arguments) in enumerate(scripted.tool_calls, 1)
        )
        # Four characters count as a token, so that a script without `usage` still costs something.
        said = len(request.system) + sum(len(message.text) for message in request.messages)
        return ModelAnswer(
            text=scripted.text,
            tool_calls=calls,
            usage=scripted.usage or Usage(input=said // 4 + 1, output=len(scripted.text) // 4 + 1),
            stop_reason="tools" if calls else "stop",
        )

    def _choose(self, request: ModelRequest) -> ScriptedAnswer:
        roles = [message.role for message in reversed(request.messages)]
        newest = roles.index("user") if "user" in roles else len(roles)
        prompt = request.messages[-1 - newest].text if newest < len(roles) else ""
        answered = roles[:newest].count("assistant")
        fitting = [answer for answer in self._matching if re.search(answer.match, prompt)]
        if fitting:
            return fitting[min(answered, len(fitting) - 1)]
        if not self._ordered:
            raise ModelError(
                f"the script has no answer for `{prompt[:80]}`",
                "add an `[[answer]]` without `match`, or with one that fits",
            )
        chosen = self._ordered[min(self._next, len(self._ordered) - 1)]
        self._next += 1
        return chosen


class ScriptedProvider(Provider):
    """Makes models from script files; see `Provider`."""

    def build(self, config: ModelConfig, cache: Path, environ: Mapping[str, str]) -> ScriptedModel:
        """Read the script now. Raises `ConfigError`."""
        return ScriptedModel(load_script(Path(config.script)), config.name)

    def reach(self, config: ModelConfig, environ: Mapping[str, str], seconds: float) -> ReachResult:
        """Return whether the script exists."""
        if Path(config.script).is_file():
            return ReachResult("ok")
        return ReachResult("bad", hint=f"there is no file `{config.script}`")


PROVIDER = ScriptedProvider()


def load_script(path: Path) -> tuple[ScriptedAnswer, ...]:
    """Read a script file, TOML or (by its suffix) JSON. Raises `ConfigError`."""
    kind = "JSON" if path.suffix == ".json" else "TOML"
    try:
        text = read_text(path)
        data: Any = parse_json(text) if kind == "JSON" else parse_toml(text)
    except OSError as error:
        raise ConfigError(
            f"the script `{path}` cannot be read: {error.strerror or error}",
            "correct `script` of the model",
            file=str(path),
        ) from error
    except ValueError as error:
        message = f"the script is no {kind}: {error}"
        raise ConfigError(message, "correct the file", file=str(path)) from error
    entries: object = table(data).get("answer")
    if not is_array(entries):
        hint = "write at least one `[[answer]]`"
        raise ConfigError("the script has no answers", hint, file=str(path))
    return tuple(_answer(entry, f"answer {at}", path) for at, entry in enumerate(entries, 1))


_KINDS: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("text", "match", "error"), (str,)),
    **dict.fromkeys(("delay", "chunk_delay"), (int, float)),
    **{"tool_calls": (list,), "usage": (dict,)},
}


def _answer(entry: object, place: str, path: Path) -> ScriptedAnswer:
    def wrong(what: str, hint: str) -> ConfigError:
        return ConfigError(f"{place}: {what}", hint, file=str(path))

    given = dict(table(entry))
    if not given:
        raise wrong("is no table, or an empty one", "write `[[answer]]` and at least a `text`")
    for key, value in given.items():
        if key not in _KINDS:
            raise wrong(f"unknown key `{key}`", f"known are {', '.join(sorted(_KINDS))}")
        if not isinstance(value, _KINDS[key]) or isinstance(value, bool):
            raise wrong(f"`{key}` is of the wrong type", "see the documentation of scripted models")
    try:
        re.compile(given.get("match", ""))
        given["tool_calls"] = tuple(_call(call) for call in given.get("tool_calls", ()))
        if "usage" in given:
            given["usage"] = Usage(**given["usage"])
    except (re.error, TypeError, KeyError, ValueError) as error:
        raise wrong(f"{error}", "correct `match`, `tool_calls` or `usage`") from error
    return ScriptedAnswer(**given)


def _call(call: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if set(call) - {"tool", "arguments"}:
        raise ValueError("a tool call has `tool` and `arguments`, nothing else")
    return str(call["tool"]), dict(call.get("arguments", {}))
