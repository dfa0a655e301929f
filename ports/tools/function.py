"""Tools that are Python functions: the decorator `steersman.tool`, and how such a function runs.

The schema that the model sees is made by pydantic of the function's annotations; the description is its
docstring. A plain function runs in a thread, a coroutine function on the asyncio loop of the program
that brought it: neither ever runs on the loop of the actors, so one that blocks delays no other call.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from copy import copy
from functools import cache, partial, update_wrapper
from inspect import Parameter
from pathlib import Path
from typing import (
    Any,
    Generic,
    NamedTuple,
    ParamSpec,
    TypeVar,
    cast,
    get_args,
    get_type_hints,
    overload,
)

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUserError
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaWarningKind

from ...machines import protocol as m
from ...machines.conversation import Picture, ToolSchema
from ...machines.errors import ToolError, UsageError
from ...machines.json_shape import parse_json
from ...machines.pattern import lazy_pattern
from ...workflows.document import is_list, is_table
from ..picture import PICTURES, decoded, line_of
from ..process.own_python import file_command
from ..process.process import Processes, ProcessResult, ProcessSpec
from . import calling
from .shell import STATUS, ProcessRun, ending, finished
from .text import readable
from .thread_tool import StopFlag, ToolStopped, failed
from .tool import TaskRun, Tool, ToolContext, ToolResources, ToolRun, kept_ends

P = ParamSpec("P")
R = TypeVar("R")

NAME = lazy_pattern(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
"""A name that every model's API accepts."""
GRACE = 2.0
"""Seconds that a function may take to return after a stop, before its call is given up."""
_LONGEST_ERROR = 2000  # characters

_running: ContextVar[str] = ContextVar("session whose tool runs", default="")


def running_session() -> str:
    """Return the id of the session whose tool the caller is; empty outside of tools."""
    return _running.get()


class Context:
    """What a tool's function may know of its call, and say about it; thread-safe.

    A parameter annotated with this class is filled in by the runtime; the model does not see it.
    """

    def __init__(
        self, call: ToolContext, stop: StopFlag, report: Callable[[m.ToolProgressed], None]
    ) -> None:
        self._call, self._stop, self._report = call, stop, report

    @property
    def call_id(self) -> str:
        """The call's id, unique in its session: a key by which an effect is made only once."""
        return self._call.call

    @property
    def session_id(self) -> str:
        """The id of the session that calls."""
        return self._call.session

    @property
    def folder(self) -> Path:
        """The folder in which the session works."""
        return self._call.folder

    @property
    def cancelled(self) -> bool:
        """Whether the call is to stop. A coroutine is cancelled besides."""
        return self._stop.is_set()

    def check(self) -> None:
        """End the call here if it is to stop: for a plain function, between two pieces of its work."""
        self._stop.check()

    def progress(self, done: int, total: int, unit: str = "", note: str = "") -> None:
        """Say how far the call is: `done` of `total` units. It is journalled, and shown to people."""
        if not 0 <= done <= total or total < 1:
            raise ValueError(f"progress of {done} of {total}: give 0 <= done <= total, total > 0")
        self._report(
            m.ToolProgressed(call=self._call.call, done=done, total=total, unit=unit, note=note)
        )


class FunctionTool(Generic[P, R]):
    """A function that models may call; see `Tool`. Called by a program, it is the function as it was."""

    def __init__(
        self,
        function: Callable[P, R],
        *,
        name: str = "",
        mutating: bool = False,
        isolated: bool = False,
        timeout: float | None = None,
        outcome: Callable[..., Any] | None = None,
    ) -> None:
        self.function = function
        self.is_mutating = mutating
        self.is_idempotent = False
        self.timeout = timeout
        self._loop: asyncio.AbstractEventLoop | None = None
        self._processes: Processes | None = None
        self._grace = GRACE
        self.schema, self._arguments, self._context_name = _declared(function, name)
        if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"tool `{self.name}`: timeout is a number of seconds above 0, not {timeout!r}"
            )
        self._place = _place_of(function, self.name) if isolated else ""
        self._outcome = _asked(outcome, function, self.name, timeout) if outcome else None
        update_wrapper(self, function)

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function."""
        return self.function(*args, **kwargs)

    @property
    def name(self) -> str:
        """The name by which models call it."""
        return self.schema.name

    def on(
        self, loop: asyncio.AbstractEventLoop | None, resources: ToolResources
    ) -> FunctionTool[P, R]:
        """Return the tool with the loop on which its coroutines run, and what its calls need."""
        bound = copy(self)
        bound._loop = loop
        bound._processes, bound._grace = resources.processes, resources.grace
        return bound

    def fault(self, arguments: dict[str, Any]) -> str:
        """Return the fault of the arguments; empty if there is none."""
        try:
            self._arguments.model_validate(arguments)
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            place = ".".join(str(part) for part in first["loc"])
            if first["type"] == "missing":
                return f"`{place}` is missing"
            if first["type"] == "extra_forbidden":
                known = "`, `".join(self.schema.parameters["properties"])
                return f"`{place}` is not an argument of this tool; known are `{known}`"
            return f"`{place}`: {first['msg']}"
        return ""

    def start(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun:
        """Start the function."""
        if self._place and not self.fault(arguments):
            return self._start_apart(arguments, context)
        return FunctionRun(self, arguments, context)

    def look_up(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun | None:
        """Start the function that tells what became of a call; none if there is none."""
        if self._outcome is None:
            return None
        asked = copy(self._outcome)
        asked._loop = self._loop
        return FunctionRun(asked, arguments, context)

    def _given(self, arguments: dict[str, Any], about: Context) -> dict[str, Any]:
        """Return what the function is called with."""
        values = self._arguments.model_validate(arguments)
        fields = type(values).model_fields
        given = {str(field.alias): getattr(values, name) for name, field in fields.items()}
        return {**given, self._context_name: about} if self._context_name else given

    # In a process of its own ----------------------------------------------------------------------

    def _start_apart(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun:
        """Start the function in a process that is killed, and proven dead, where it does not return."""
        assert self._processes is not None, "the tool was given to no agent"
        about = {"call": context.call, "session": context.session, "folder": str(context.folder)}
        asked = {
            "call": self._place,
            "with": arguments,
            "folder": str(Path(self._place).parent) if ".py:" in self._place else sys.path[0],
            "path": sys.path,
            "about": about,
        }
        spec = ProcessSpec(
            argv=file_command(calling.__file__),
            cwd=Path.cwd(),
            environment=dict(os.environ),  # it is a part of the program that brought it
            timeout=self.timeout,
            grace=self._grace,
            keep=_LONGEST // 2,
            stdin=json.dumps(asked).encode(),
            keep_errors=_ERRORS,
        )
        ended = partial(_of_process, timeout=self.timeout, context=context)
        return ProcessRun(self._processes.spawn, spec, ended, _Notes(context).read)

    def called_apart(
        self,
        arguments: dict[str, Any],
        about: dict[str, str],
        note: Callable[[Any], None],
        fail: Callable[[str], None],
    ) -> Any:
        """Call the function in the process that was started for it, and return what JSON has.

        `fail` ends the process with the reason why there is no result.
        """
        folder, call, session = Path(about["folder"]), about["call"], about["session"]
        context = ToolContext(folder=folder, call=call, session=session, spill_folder=folder)

        def report(said: m.ToolProgressed) -> None:
            note([said.done, said.total, said.unit, said.note])

        _running.set(session)
        try:
            given = self._given(arguments, Context(context, StopFlag(), report))
            result = cast("Any", self.function)(**given)
            if inspect.isawaitable(result):
                result = asyncio.run(_awaited(result))
            returned = _returned(result, self.name)
        except ToolError as error:
            fail(error.message)
        else:
            shown = [[made.media_type, made.data] for made in returned.pictures]
            return {"text": returned.text.decode(), "pictures": shown}

    def begin(self, arguments: dict[str, Any], about: Context) -> Work:
        """Begin a call where it belongs; what it ends with is the text of its result."""
        given = self._given(arguments, about)

        def call() -> Any:
            _running.set(about.session_id)
            return cast("Any", self.function)(**given)

        work = Work(call, partial(_returned, name=self.name), self._loop or _own_loop())
        if inspect.iscoroutinefunction(self.function):
            work.start(call)
        else:  # the thread does not keep the program from ending
            threading.Thread(target=work.run, name="steersman-tool", daemon=True).start()
        return work


def bound(tool: Tool, loop: asyncio.AbstractEventLoop | None, resources: ToolResources) -> Tool:
    """Give a tool that is a function what its calls need; any other has that."""
    if isinstance(tool, FunctionTool):
        return cast("FunctionTool[..., Any]", tool).on(loop, resources)
    return tool


class FunctionRun(TaskRun):
    """One call of a function; see `ToolRun`. There is no process.

    The result of a function that does not return after a stop is that it does not.
    """

    pid = 0

    def __init__(
        self, tool: FunctionTool[Any, Any], arguments: dict[str, Any], context: ToolContext
    ) -> None:
        self._tool, self._context = tool, context
        self._stop, self._stopped = StopFlag(), asyncio.Event()
        self._task = asyncio.create_task(self._run(arguments))

    def stop(self) -> None:
        """Ask the function to end: a coroutine is cancelled, a plain function asks its context."""
        self._stopped.set()

    async def _run(self, arguments: dict[str, Any]) -> m.ToolResult:
        if fault := self._tool.fault(arguments):
            return failed(ToolError(fault))
        if self._stopped.is_set():
            return m.ToolResult(status="killed", text="Stopped before it started.")
        loop = asyncio.get_running_loop()

        def report(said: m.ToolProgressed) -> None:
            if self._context.tell is not None:
                loop.call_soon_threadsafe(self._context.tell, said)

        work = self._tool.begin(arguments, Context(self._context, self._stop, report))
        stop = asyncio.ensure_future(self._stopped.wait())
        timeout = self._tool.timeout
        await asyncio.wait((work.ended, stop), timeout=timeout, return_when=asyncio.FIRST_COMPLETED)
        stop.cancel()
        if work.ended.done():
            return await self._told(work)
        self._stop.set()
        work.cancel()
        await asyncio.wait((work.ended,), timeout=GRACE)
        is_stopped = self._stopped.is_set()
        text = "[interrupted]" if is_stopped else f"[timed out after {timeout:g} s and was stopped]"
        if not work.ended.done():
            text += (
                f" [`{self._tool.name}` has not returned within {GRACE:g} s of that, and may still be "
                "at work: what it does from now on is not known]"
            )
        return m.ToolResult(status="killed" if is_stopped else "timed_out", text=text)

    async def _told(self, work: Work) -> m.ToolResult:
        """Return what the function returned, or raised, as the model reads it."""
        error = work.ended.exception()
        if isinstance(error, ToolError):
            return failed(error)
        if isinstance(error, ToolStopped | asyncio.CancelledError):
            return m.ToolResult(status="killed", text="Stopped before it was done.")
        if error is not None:
            text = f"{type(error).__name__}: {error}".rstrip(": ")
            cut = text if len(text) <= _LONGEST_ERROR else f"{text[:_LONGEST_ERROR]}…"
            return failed(ToolError(cut))
        return await asyncio.to_thread(_result, work.ended.result(), self._context)


class Returned(NamedTuple):
    """What a function returned, as the model gets it."""

    text: bytes
    pictures: tuple[Picture, ...] = ()


def _returned(value: Any, name: str) -> Returned:
    """Take what a function returned: pictures, alone or in a list, and the rest. Raises `ToolError`."""
    is_many = isinstance(value, list | tuple)
    parts = list(cast("Sequence[Any]", value)) if is_many else [value]
    pictures = tuple(part for part in parts if isinstance(part, Picture))
    if not pictures:
        return Returned(_text_of(value, name))
    if len(pictures) > PICTURES:
        raise ToolError(f"`{name}` returned {len(pictures)} pictures: {PICTURES} are the most")
    for made in pictures:
        decoded(made.data)
    lines = [
        line_of(part).encode() if isinstance(part, Picture) else _text_of(part, name)
        for part in parts
    ]
    return Returned(b"\n".join(lines), pictures)


def _text_of(value: Any, name: str) -> bytes:
    """Return what a function returned as the model reads it. Raises `ToolError`."""
    if value is None:
        return b"Done."
    try:
        return value.encode() if isinstance(value, str) else _ANYTHING.dump_json(value)
    except (ValueError, RecursionError) as error:
        kind = f"`{type(value).__name__}`"
        why = f"`{name}` returned a {kind}, which JSON does not have: {error}"
        raise ToolError(why) from error


def _result(returned: Returned, context: ToolContext) -> m.ToolResult:
    """Return a result; of a long one its ends, with all of it in a file."""
    text, spilled = kept_ends(returned.text, context)
    size, pictures = len(returned.text), returned.pictures
    return m.ToolResult(status="ok", text=text, bytes=size, spilled=spilled, pictures=pictures)


# Functions in a process of their own --------------------------------------------------------------

_ANYTHING = TypeAdapter[Any](Any, config=ConfigDict(ser_json_inf_nan="strings"))
_ERRORS = 4096  # bytes of the end of standard error that a failure shows
_LONGEST = 8 << 20  # bytes of a result


class _Notes:
    """Passes on the progress that an isolated function writes before its result."""

    def __init__(self, context: ToolContext) -> None:
        self._about = Context(context, StopFlag(), context.tell or (lambda said: None))
        self._line = ""

    def read(self, text: str) -> None:
        """Take in what was written next."""
        *lines, self._line = (self._line + text).split("\n")
        for line in lines:
            if line.startswith(calling.NOTE):
                self._about.progress(*json.loads(line[1:]))
        if not self._line.startswith(calling.NOTE):
            self._line = ""


def _of_process(
    result: ProcessResult, *, timeout: float | None, context: ToolContext
) -> m.ToolResult:
    """Return the result of an isolated function, as of any other."""
    written = readable(result.head + result.tail).split("\n")
    text = "\n".join(line for line in written if not line.startswith(calling.NOTE))
    status = STATUS.get(result.status) or ("ok" if result.exit_code == 0 else "failed")
    if status == "ok":
        try:
            value = parse_json(text)
            pictures = (Picture(media_type=kind, data=data) for kind, data in value["pictures"])
            returned = Returned(value["text"].encode("utf-8", "replace"), tuple(pictures))
        except (ValueError, LookupError, TypeError):
            status, text = "failed", "its process ended before the function returned"
        else:
            return _result(returned, context)
    if status == "failed":
        reason = f"Error: {text}" if text else readable(result.errors).strip()[-_ERRORS:]
    else:
        reason = ending(result, timeout or 0.0)
    return finished(result, reason or ending(result, 0.0), status)


async def _awaited(result: Any) -> Any:
    return await result


def _place_of(function: Callable[..., Any], name: str) -> str:
    """Return where another process finds a function. Raises `UsageError`."""
    place, module = getattr(function, "__qualname__", ""), sys.modules.get(function.__module__)
    file = getattr(module, "__file__", None)
    if "<" in place or "." in place or file is None:
        raise UsageError(
            f"tool `{name}`: an isolated function is looked up by its name in another process",
            "define it at the top level of a module or of a program's file",
        )
    name = function.__module__
    return f"{os.path.abspath(file) if name == '__main__' else name}:{place}"


# Where functions run ------------------------------------------------------------------------------


class Work:
    """A call on its way: `ended` is a future of the runtime's loop.

    `call` makes the result, or what has to be awaited for it on `loop`, that of the program's coroutines.
    """

    def __init__(
        self,
        call: Callable[[], Any],
        take: Callable[[Any], Returned],
        loop: asyncio.AbstractEventLoop,
    ) -> None:
        self._call, self._take, self._loop = call, take, loop
        self._runtime = asyncio.get_running_loop()
        self._task: asyncio.Task[Returned] | None = None
        self.ended: asyncio.Future[Returned] = self._runtime.create_future()

    def run(self) -> None:
        """Call the function, in a thread of its own; what it returns may have to be awaited."""
        try:
            value = self._call()
            if inspect.isawaitable(value):
                self.start(lambda: value)
                return
            returned = self._take(value)
        except BaseException as error:
            self._settle(None, error)
        else:
            self._settle(returned, None)

    def start(self, made: Callable[[], Any]) -> None:
        """Await what is made, in a task of the other loop."""

        async def work() -> Returned:
            try:
                return self._take(await made())
            except SystemExit as error:  # it would end the loop, and the program with it
                raise ToolError(f"SystemExit: {error}") from error

        def over(task: asyncio.Task[Returned]) -> None:
            error = asyncio.CancelledError() if task.cancelled() else task.exception()
            self._settle(None if error else task.result(), error)

        def begin() -> None:
            self._task = self._loop.create_task(work())
            self._task.add_done_callback(over)

        try:
            self._loop.call_soon_threadsafe(begin)
        except RuntimeError:
            why = "the event loop of the program that brought the tool is closed"
            self._settle(None, ToolError(why))

    def cancel(self) -> None:
        """Ask the task to end; a function in a thread asks its context."""
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(lambda: self._task and self._task.cancel())

    def _settle(self, value: Returned | None, error: BaseException | None) -> None:
        """Set the result, from any thread."""

        def settle() -> None:
            if isinstance(error, StopIteration):  # which no future carries
                self.ended.set_exception(ToolError("StopIteration"))
            elif error is not None:
                self.ended.set_exception(error)
            else:
                self.ended.set_result(cast("Returned", value))
            if error is not None:
                self.ended.exception()  # no caller may be left to look at it

        if not self._runtime.is_closed():
            self._runtime.call_soon_threadsafe(settle)


@cache
def _own_loop() -> asyncio.AbstractEventLoop:
    """Return the loop of coroutines whose program has none: of tools that are plug-ins."""
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, name="steersman-tools", daemon=True).start()
    return loop


# What the model sees of a function ----------------------------------------------------------------


def _asked(
    outcome: Callable[..., Any], function: Callable[..., Any], name: str, timeout: float | None
) -> FunctionTool[..., Any]:
    """Make a tool of what tells the outcome of calls of `function`. Raises `UsageError`."""
    taken, given = (list(inspect.signature(one).parameters) for one in (outcome, function))
    if taken != given:
        raise UsageError(
            f"tool `{name}`: `outcome` takes ({', '.join(taken)}), and the tool ({', '.join(given)})",
            "give both the same parameters: it is asked with those of the call",
        )
    return FunctionTool(outcome, name=name, timeout=timeout)


@overload
def tool(function: Callable[P, R], /) -> FunctionTool[P, R]: ...


@overload
def tool(
    *,
    name: str = "",
    mutating: bool = False,
    isolated: bool = False,
    timeout: float | None = None,
    outcome: Callable[..., Any] | None = None,
) -> Callable[[Callable[P, R]], FunctionTool[P, R]]: ...


def tool(
    function: Callable[P, R] | None = None,
    /,
    *,
    name: str = "",
    mutating: bool = False,
    isolated: bool = False,
    timeout: float | None = None,
    outcome: Callable[..., Any] | None = None,
) -> FunctionTool[P, R] | Callable[[Callable[P, R]], FunctionTool[P, R]]:
    """Make a function a tool that models may call; it stays callable as before.

    The model sees the parameters with their types and defaults, and the docstring; a line of its
    section `Args:` describes a parameter, as `Annotated[str, pydantic.Field(description=...)]` does.
    A parameter of the type `Context` is filled in by the runtime. What the function returns is sent as
    text, or as JSON, and a `Picture`, alone or in a list, as what it shows; an exception is an error
    that the model reads.

    `name` stands for the function's own. `mutating`: it may change files in the session's folder, so
    it runs alone, and its changes can be reverted. `isolated`: each call runs in a process of its own,
    which is killed and proven dead where it does not return after a stop; the function has to be at the
    top level of its module, and what a program does has to stand behind `if __name__ == "__main__":`.
    `timeout` is in seconds.

    `outcome` is a function with the same parameters that is asked what became of a call if the program
    died while it ran. What it returns is told to the model; if it raises, the outcome stays unknown.

    Raises `UsageError` for a parameter that has no type, or one that no JSON schema expresses, and for
    an `outcome` with other parameters.
    """

    def decorate(function: Callable[P, R]) -> FunctionTool[P, R]:
        return FunctionTool(
            function,
            name=name,
            mutating=mutating,
            isolated=isolated,
            timeout=timeout,
            outcome=outcome,
        )

    return decorate if function is None else decorate(function)


def _declared(function: Callable[..., Any], name: str) -> tuple[ToolSchema, type[BaseModel], str]:
    """Return the schema of a function, the model of its arguments, and the name of its context."""
    if isinstance(function, type) or not callable(function):  # pyright: ignore[reportUnnecessaryComparison]
        raise UsageError(f"{function!r} cannot be a tool", "decorate a function: @steersman.tool")
    name = name or getattr(function, "__name__", "")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise UsageError(
            f"tool `{name}` yields, and a model reads one result",
            "return a list, and say how far it is by ctx.progress(...)",
        )
    if not NAME.fullmatch(name):
        raise UsageError(
            f"`{name}` cannot be the name of a tool",
            "letters, digits, - and _, at most 64, a letter first: @steersman.tool(name=...)",
        )
    described = _described(inspect.getdoc(function) or "")
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError) as error:
        raise UsageError(
            f"tool `{name}`: its annotations cannot be read: {error}",
            "name types that are defined at the module's top level",
        ) from error
    fields: dict[str, Any] = {}
    context = ""
    kinds = (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD, Parameter.POSITIONAL_ONLY)
    for number, parameter in enumerate(inspect.signature(function).parameters.values()):
        hint = hints.get(parameter.name)
        if hint is Context or Context in get_args(hint):
            context = parameter.name
            continue
        if parameter.kind in kinds:
            raise UsageError(
                f"tool `{name}`: parameter `{parameter}` cannot be given by name",
                "a model gives every argument by its name",
            )
        if parameter.name not in hints:
            is_method = number == 0 and parameter.name in ("self", "cls")
            raise UsageError(
                f"tool `{name}`: parameter `{parameter.name}` has no type",
                f"make a tool of the method of an object: tool(thing.{name})"
                if is_method
                else f"write for example `{parameter.name}: str`",
            )
        default = ... if parameter.default is parameter.empty else parameter.default
        about = described.get(parameter.name)
        # Without one, that of the annotation stands.
        text: dict[str, Any] = {"description": about} if about else {}
        field = Field(default=default, alias=parameter.name, **text)
        fields[f"argument_{number}"] = (hints[parameter.name], field)
    try:
        arguments = create_model(name, __config__=ConfigDict(extra="forbid"), **fields)
        schema = arguments.model_json_schema(schema_generator=_Schema)
    except PydanticUserError as error:
        raise UsageError(
            f"tool `{name}`: a parameter has a type that no JSON schema expresses: "
            + str(error).splitlines()[0],
            "use str, int, float, bool, list, dict, Literal, dataclasses or pydantic models",
        ) from error
    parameters = {key: _untitled(part) for key, part in schema.items() if key != "title"}
    parameters.setdefault("properties", {})
    parameters.setdefault("required", [])
    declared = ToolSchema(name=name, description=described[""], parameters=parameters)
    return declared, arguments, context


class _Schema(GenerateJsonSchema):
    """Leaves out a default that JSON does not have, and warns of nothing."""

    ignored_warning_kinds: set[JsonSchemaWarningKind] = {"non-serializable-default"}  # noqa: RUF012


def _described(text: str) -> dict[str, str]:
    """Split a docstring: what it says of each parameter in `Args:`, and at the empty name the rest."""
    lines = text.splitlines()
    start = next((at for at, line in enumerate(lines) if line.strip() in _SECTION), len(lines))
    described: dict[str, str] = {}
    name = ""
    end = start + 1
    for line in lines[start + 1 :]:
        if line.strip() and not line[:1].isspace():
            break
        end += 1
        if found := _PARAMETER.fullmatch(line):
            name = found[1]
            described[name] = found[2].strip()
        elif name and line.strip():
            described[name] += f" {line.strip()}"
    rest = (lines[:start], lines[end:])
    described[""] = "\n\n".join(filter(None, ("\n".join(part).strip() for part in rest)))
    return described


_SECTION = ("Args:", "Arguments:", "Parameters:")
_PARAMETER = lazy_pattern(r"\s+\**(\w+)\s*(?:\([^)]*\))?:\s*(.*)")


def _untitled(part: Any) -> Any:
    """Take the titles out of a schema: pydantic makes them of the names, and they cost tokens."""
    if is_list(part):
        return [_untitled(one) for one in part]
    if not is_table(part):
        return part
    kept: dict[str, Any] = {}
    for key, value in part.items():
        if key in ("properties", "$defs") and is_table(value):
            kept[key] = {name: _untitled(one) for name, one in value.items()}
        elif key != "title":
            kept[key] = _untitled(value)
    return kept
