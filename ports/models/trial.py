"""Tests what a model can do: stream, call tools, follow a schema, be cancelled, report its window.

A few small requests, one after the other, each with a time limit, so that a stalled stream is found as
well. A failure is reported together with what the program does instead.
"""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable

from msgspec.structs import replace

from ...machines.conversation import ChatMessage, ToolSchema
from ...machines.errors import ModelError
from ...machines.json_shape import parse_json
from ...machines.value import Value
from .loose_json import table
from .model import AnswerListener, Model, ModelAnswer, ModelRequest

_SYSTEM = "You are being tested. Do exactly what is asked."
_WORD = {"type": "string", "description": "The word."}
_TOOL = ToolSchema(
    name="report",
    description="Report a word.",
    parameters={"type": "object", "properties": {"word": _WORD}, "required": ["word"]},
)
_FORM = {
    "type": "object",
    "properties": {"colour": {"type": "string", "enum": ["red", "green"]}},
    "required": ["colour"],
    "additionalProperties": False,
}
_AS_JSON = (
    'set `tool_dialect = "json"`: tools are then asked for as JSON, which any model can write'
)
_SMALL = (
    'set `profile = "small"` of the agent: it writes whole files and calls no tools; '
    "or take a larger model"
)
_AT_ONCE = 1.0  # seconds in which a stream has to end when it is cut off

Notice = Callable[[str], None]


class Trial(Value):
    """The result for one ability: `then` says what the program does if it does not work."""

    name: str
    is_good: bool
    text: str
    then: str = ""


def _trial(name: str, works: str, fails: str = "", then: str = "") -> Trial:
    """Return the result in the words for what works; without any, in those for what does not."""
    if works:
        return Trial(name=name, is_good=True, text=works)
    return Trial(name=name, is_good=False, text=fails, then=then)


async def try_out(
    model: Model, seconds: float, on_notice: Notice, *, is_json: bool = False
) -> AsyncGenerator[Trial, None]:
    """Yield the result for each ability; each request may take `seconds`.

    `is_json`: the model already writes its tool calls as JSON. Raises `ModelError` if the model does not
    answer at all.
    """
    pieces: list[str] = []
    began = time.monotonic()
    prompt = "Say the word ready, and call the tool `report` with word = ready."
    refusal = ""
    try:
        answer = await _ask(model, _request(prompt, _TOOL), seconds, on_notice, pieces.append)
    except ModelError as error:
        refusal = error.message
        answer = await say_ready(model, seconds, on_notice, pieces.append)
    text = " ".join(answer.text.split())[:60]
    words = f"`{text}`" if text else "(only a tool call)"
    yield _trial("answer", f"{words} in {time.monotonic() - began:.1f} s")
    then = "answers appear when they are whole; a steer waits for that"
    seen = len([piece for piece in pieces if piece])
    works = f"works ({seen} pieces)" if seen > 1 else ""
    yield _trial("streaming", works, "not seen: one piece or none", then)
    yield _tools(answer, refusal, _SMALL if is_json else _AS_JSON)
    yield _usage(answer)
    yield await _form(model, seconds, on_notice)
    yield await _cancel(model, seconds, on_notice)
    then = (
        "older turns are summed up when the server refuses; set `context_window` to have it earlier"
    )
    window = await model.window()
    yield _trial("window", f"{window:,} tokens" if window else "", "not known", then)


async def say_ready(
    model: Model, seconds: float, on_notice: Notice, on_text: Notice = lambda piece: None
) -> ModelAnswer:
    """Make the smallest request: one word. Raises `ModelError`."""
    return await _ask(model, _request("Say the word ready."), seconds, on_notice, on_text)


def _request(prompt: str, *tools: ToolSchema) -> ModelRequest:
    return ModelRequest(
        system=_SYSTEM, messages=(ChatMessage(role="user", text=prompt),), tools=tools
    )


async def _ask(
    model: Model, request: ModelRequest, seconds: float, on_notice: Notice, on_text: Notice
) -> ModelAnswer:
    try:
        async with asyncio.timeout(seconds):
            return await model.answer(request, AnswerListener(on_text=on_text, on_notice=on_notice))
    except TimeoutError:
        raise ModelError(
            f"{model.name} did not finish a short answer within {seconds:g} seconds",
            "check the server, try a smaller model, or give it more with `--timeout`",
        ) from None


def _tools(answer: ModelAnswer, refusal: str, then: str) -> Trial:
    if refusal:
        return _trial("tools", "", f"refused by the server: {refusal}", then)
    if not answer.tool_calls:
        return _trial("tools", "", "not called", f"if it never calls any, {then}")
    fault = answer.tool_calls[0].fault
    return _trial("tools", "" if fault else "works", f"called wrongly: {fault}", then)


def _usage(answer: ModelAnswer) -> Trial:
    usage = answer.usage
    if answer.is_estimated or not usage.tokens:
        then = "tokens are estimated from the text, and limits with them"
        return _trial("usage", "", "not reported by the server", then)
    cached = f", {usage.cache_read} from the cache" if usage.cache_read else ""
    return _trial("usage", f"works ({usage.input} tokens in, {usage.output} out{cached})")


async def _form(model: Model, seconds: float, on_notice: Notice) -> Trial:
    then = "verdicts are read from free text; an unreadable one counts as `continue`"
    request = replace(_request("Is grass red or green? Answer as JSON."), response_schema=_FORM)
    try:
        answer = await _ask(model, request, seconds, on_notice, lambda piece: None)
        value = parse_json(answer.text)
    except ModelError as error:
        return _trial("form", "", f"refused: {error.message}", then)
    except ValueError:
        return _trial("form", "", "not kept: the answer is no JSON", then)
    is_kept = table(value).get("colour") in ("red", "green")
    return _trial("form", "works" if is_kept else "", "not kept", then)


async def _cancel(model: Model, seconds: float, on_notice: Notice) -> Trial:
    has_begun = asyncio.Event()
    request = _request("Count from 1 to 500 in words, one number a line.")
    listener = AnswerListener(on_text=lambda piece: has_begun.set(), on_notice=on_notice)
    task = asyncio.create_task(model.answer(request, listener))
    waiting = asyncio.create_task(has_begun.wait())
    await asyncio.wait({task, waiting}, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    if task.done():
        await asyncio.gather(task, return_exceptions=True)
        return _trial("cancel", "not needed: the answer came in one piece")
    began = time.monotonic()
    task.cancel()
    await asyncio.wait({task}, timeout=seconds)
    took = time.monotonic() - began
    if task.done() and took < _AT_ONCE:
        what = "cut off in" if has_begun.is_set() else "given up before its first word in"
        return _trial("cancel", f"works ({what} {took * 1000:.0f} ms)")
    return _trial("cancel", "", f"took {took:.1f} s", "a stop takes effect when the call has ended")
