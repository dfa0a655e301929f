"""Functions as tools: what the model sees of them, and what becomes of everything that they can do."""

import asyncio
import functools
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from library.lab import Asked, first, played, result_of, started
from pydantic import BaseModel, Field
from support.coroutines import run
from support.patience import seconds

import steersman
from steersman.testing import ScriptedAnswer, calls, memory_home

# What the model sees ------------------------------------------------------------------------------


@dataclass
class Place:
    """A place."""

    name: str
    height: float = 0.0


def test_the_schema_is_made_of_annotations_and_docstring() -> None:
    """Types, defaults and descriptions are in the schema; the context is not."""

    @steersman.tool
    def find(  # noqa: D417 - what the schema says of the others is not from here
        place: Place,
        kind: Literal["hut", "peak"],
        ctx: steersman.Context,
        near: list[str] | None = None,
        limit: Annotated[int, Field(description="how many", ge=1)] = 5,
    ) -> list[str]:
        """Find what is near a place.

        Args:
            place: where to look
            kind: what is
                looked for

        The nearest comes first.
        """
        return [place.name, kind, ctx.call_id]

    assert find.name == "find"
    assert find.schema.description == "Find what is near a place.\n\nThe nearest comes first."
    parameters = find.schema.parameters
    assert parameters["required"] == ["place", "kind"]
    assert sorted(parameters["properties"]) == ["kind", "limit", "near", "place"]
    assert parameters["properties"]["kind"] == {
        "description": "what is looked for",
        "enum": ["hut", "peak"],
        "type": "string",
    }
    assert parameters["properties"]["limit"]["minimum"] == 1
    assert parameters["properties"]["limit"]["description"] == "how many"
    assert parameters["additionalProperties"] is False
    assert "title" not in str(parameters)


def test_a_tool_is_still_the_function() -> None:
    """A program calls it as before, and reads its name and docstring."""

    @steersman.tool(name="add_up", mutating=True, timeout=3)
    def add(first: int, second: int = 2) -> int:
        """Add."""
        return first + second

    assert add(1) == 3
    assert (add.name, add.__name__, add.__doc__) == ("add_up", "add", "Add.")
    assert add.is_mutating


class Opaque:
    """What no JSON schema expresses."""


def without_types(city):  # type: ignore[no-untyped-def]
    """Have no types."""


def of_opaque(thing: Opaque) -> str:
    """Take what cannot be sent."""
    return ""


def of_functions(thing: Callable[[int], int]) -> str:
    """Take a function."""
    return ""


def of_unknown(thing: "Nowhere") -> str:  # type: ignore[name-defined]  # noqa: F821
    """Take what is not defined."""
    return ""


def of_any_number(*things: int) -> str:
    """Take any number."""
    return ""


def of_any_name(**things: int) -> str:
    """Take any name."""
    return ""


def of_positions(thing: int, /) -> str:
    """Take a position."""
    return ""


def pieces(count: int) -> Iterator[int]:
    """Yield."""
    yield count


async def later_pieces(count: int) -> AsyncIterator[int]:
    """Yield later."""
    yield count


class Box:
    """Something with a method."""

    def open(self, wide: int) -> str:
        """Open it."""
        return "open" * wide


@pytest.mark.parametrize(
    ("function", "words", "hint"),
    [
        (without_types, "parameter `city` has no type", "`city: str`"),
        (of_opaque, "no JSON schema expresses", "use str, int"),
        (of_functions, "no JSON schema expresses", "use str, int"),
        (of_unknown, "cannot be read: name 'Nowhere' is not defined", "top level"),
        (of_any_number, "`*things: int` cannot be given by name", "by its name"),
        (of_any_name, "`**things: int` cannot be given by name", "by its name"),
        (of_positions, "cannot be given by name", "by its name"),
        (pieces, "`pieces` yields", "return a list"),
        (later_pieces, "`later_pieces` yields", "return a list"),
        (Box.open, "parameter `self` has no type", "tool(thing.open)"),
        (Box, "cannot be a tool", "decorate a function"),
        ("weather", "'weather' cannot be a tool", "decorate a function"),
        (lambda: 1, "`<lambda>` cannot be the name of a tool", "name="),
    ],
)
def test_what_cannot_be_a_tool_is_refused_when_it_is_declared(
    function: Any, words: str, hint: str
) -> None:
    """The decorator raises, says why, and what to write instead."""
    with pytest.raises(steersman.UsageError) as caught:
        steersman.tool(function)
    assert words in caught.value.message
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"name": "a b"}, "`a b` cannot be the name"),
        ({"timeout": 0}, "seconds above 0, not 0"),
        ({"timeout": "3"}, "seconds above 0, not '3'"),
        ({"isolated": True}, "looked up by its name in another process"),
    ],
)
def test_options_that_make_no_sense_are_refused(options: Any, words: str) -> None:
    """A name, a time limit and isolation are checked with the declaration."""

    def inner() -> str:
        """Be a function in a function."""
        return ""

    with pytest.raises(steersman.UsageError, match=words):
        steersman.tool(**options)(inner)


# What it returns and raises -----------------------------------------------------------------------


class Report(BaseModel):
    """What a tool may return."""

    city: str
    warm: bool


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("sunny", "sunny"),
        ("", ""),
        (None, "Done."),
        (3, "3"),
        ([1, {"a": None}], '[1,{"a":null}]'),
        (Report(city="Rome", warm=True), '{"city":"Rome","warm":true}'),
        (Place("hut"), '{"name":"hut","height":0.0}'),
        (float("nan"), '"NaN"'),
    ],
)
def test_a_result_is_a_text_or_json(value: Any, text: str) -> None:
    """Texts are sent as they are, everything else as JSON, nothing as `Done.`."""

    @steersman.tool
    def give() -> Any:
        """Give."""
        return value

    assert result_of(give) == text


def circle() -> list[Any]:
    """Make a list that holds itself."""
    made: list[Any] = []
    made.append(made)
    return made


@pytest.mark.parametrize("is_async", [False, True])
@pytest.mark.parametrize("value", [object(), circle(), "a\udc80b", b"\xff"])
def test_a_result_that_is_no_json_is_an_error_that_the_model_reads(
    value: Any, is_async: bool
) -> None:
    """It says which tool returned what; the turn goes on."""

    @steersman.tool
    def give() -> Any:
        """Give."""
        return value

    @steersman.tool
    async def give_later() -> Any:
        """Give."""
        return value

    tool: Any = give_later if is_async else give
    kind = type(value).__name__
    assert result_of(tool).startswith(
        f"Error: `{tool.name}` returned a `{kind}`, which JSON does not have:"
    )


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (steersman.ToolError("no such city"), "Error: no such city"),
        (ValueError("no good"), "Error: ValueError: no good"),
        (KeyError(), "Error: KeyError"),
        (StopIteration(3), "Error: StopIteration"),
        (SystemExit(3), "Error: SystemExit: 3"),
        (ValueError("x" * 9000), f"Error: ValueError: {'x' * 1988}…"),
    ],
)
@pytest.mark.parametrize("is_async", [False, True])
def test_what_a_tool_raises_is_an_error_that_the_model_reads(
    error: BaseException, text: str, is_async: bool
) -> None:
    """Neither the turn nor the program ends of it, not even of `sys.exit()`."""

    @steersman.tool
    def fail() -> None:
        """Fail."""
        raise error

    @steersman.tool
    async def fail_later() -> None:
        """Fail."""
        raise error

    result = result_of(fail_later if is_async else fail)
    assert result == (
        "Error: RuntimeError: coroutine raised StopIteration"
        if is_async and isinstance(error, StopIteration)
        else text
    )


async def test_wrong_arguments_are_refused_before_the_function_runs() -> None:
    """The model reads what is wrong with them, and may call again."""
    ran: list[str] = []

    @steersman.tool
    def weather(city: str) -> str:
        """Tell the weather of a city."""
        ran.append(city)
        return "sunny"

    model = Asked(calls("weather", town="Rome"), calls("weather", city=3), calls("wetter"), "Done.")
    async with started(model, weather) as session:
        assert (await session.ask("go")).status == "done"
    assert ran == []
    assert model.results == [
        "[weather was not run: `city` is missing]",
        "[weather was not run: `city`: Input should be a valid string]",
        "[wetter was not run: there is no tool `wetter`; there are weather]",
    ]


def test_arguments_come_as_what_they_are_annotated_with() -> None:
    """A dataclass is one, in a plain function and in a coroutine function."""

    @steersman.tool
    async def climb(place: Place, times: int = 2) -> str:
        """Climb."""
        assert isinstance(place, Place)
        return f"{place.name} {place.height} {times}"

    assert result_of(climb, place={"name": "K2", "height": 8611}) == "K2 8611.0 2"


def test_a_long_result_is_kept_in_a_file(tmp_path: Any) -> None:
    """The model reads both ends of it, and the name of the file."""

    @steersman.tool
    def count() -> str:
        """Count."""
        return "begin" + "x" * 100_000 + "end"

    result = result_of(count)
    assert result.startswith("begin")
    assert result.endswith("end")
    assert len(result) < 20_000


def test_what_a_tool_prints_is_not_its_result(capsys: pytest.CaptureFixture[str]) -> None:
    """It goes where the program prints."""

    @steersman.tool
    def speak() -> str:
        """Speak."""
        print("spoken aloud")
        return "written"

    assert result_of(speak) == "written"
    assert capsys.readouterr().out == "spoken aloud\n"


# What it knows of its call ------------------------------------------------------------------------


@pytest.mark.parametrize("is_optional", [False, True])
async def test_a_context_knows_the_call_and_tells_of_it(tmp_path: Any, is_optional: bool) -> None:
    """Call, session and folder are there; progress is an event."""
    seen: list[Any] = []

    @steersman.tool
    def work(ctx: steersman.Context) -> str:
        """Work."""
        ctx.check()
        ctx.progress(1, 2, "files", "half")
        seen.extend([ctx.call_id, ctx.session_id, ctx.folder, ctx.cancelled])
        return "worked"

    @steersman.tool(name="work")
    def perhaps(ctx: steersman.Context | None = None) -> str:
        """Work."""
        assert ctx is not None
        return work(ctx)

    model = Asked(calls("work"), "Done.")
    async with started(model, perhaps if is_optional else work, folder=tmp_path) as session:
        assert (await session.ask("go")).status == "done"
        assert seen == ["t1.s1.c1", session.id, tmp_path, False]
        made = await first(session, "progress")
        assert (made.done, made.total, made.unit) == (1, 2, "files")
    assert model.requests[0].tools[0].parameters["properties"] == {}


def test_progress_that_makes_no_sense_is_an_error_of_the_tool() -> None:
    """More than all of it cannot be done."""

    @steersman.tool
    def work(ctx: steersman.Context) -> None:
        """Work."""
        ctx.progress(3, 2)

    assert "progress of 3 of 2" in result_of(work)


# Where it runs, and how it is stopped -------------------------------------------------------------


async def test_a_coroutine_runs_on_the_loop_of_the_program_and_a_function_beside_it() -> None:
    """So that connections of the program work in one, and the other may block."""
    seen: dict[str, object] = {}

    @steersman.tool
    async def on_loop() -> None:
        """Run."""
        seen["async"] = asyncio.get_running_loop()

    @steersman.tool
    def in_thread() -> None:
        """Run."""
        seen["sync"] = threading.current_thread()

    @steersman.tool
    @functools.wraps(on_loop.function)
    def wrapped() -> Any:
        seen["wrapped"] = threading.current_thread()
        return on_loop.function()

    loop, thread = asyncio.get_running_loop(), threading.current_thread()
    for tool in (on_loop, in_thread):
        assert (await played(tool))[1] == "Done."
    assert seen["async"] is loop
    assert seen["sync"] is not thread
    seen.clear()
    wrapped.schema = type(wrapped.schema)(
        name="wrapped", description="", parameters=wrapped.schema.parameters
    )
    assert (await played(wrapped))[1] == "Done."
    assert seen["async"] is loop


@pytest.mark.parametrize("is_async", [False, True])
async def test_a_tool_that_is_stopped_ends(is_async: bool) -> None:
    """A coroutine is cancelled, a function asks its context; the turn is interrupted at once."""
    ended: list[str] = []
    begun = threading.Event()

    @steersman.tool
    async def wait() -> None:
        """Wait."""
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append("async")

    @steersman.tool(name="wait")
    def poll(ctx: steersman.Context) -> None:
        """Wait."""
        begun.set()
        try:
            while True:
                ctx.check()
        finally:
            ended.append("sync")

    model = Asked(calls("wait"), "Done.", "Again.")
    tool = wait if is_async else poll
    async with started(model, tool) as session:
        receipt = await session.say("go")
        await asyncio.to_thread(begun.wait, seconds(20))
        await session.stop()
        outcome = await receipt.done()
        assert (outcome.status, outcome.text, outcome.reason) == ("interrupted", "", "stop")
        await first(session, "stopped", turn="t1")
        assert ended == ["async" if is_async else "sync"]
        assert (await session.ask("again")).text == "Done."
    assert session.is_open is False
    assert model.results == ["[interrupted]"]


@pytest.mark.parametrize("kind", ["function", "coroutine", "wrapped coroutine"])
def test_a_tool_that_does_not_end_holds_up_nobody(kind: str) -> None:
    """Its time limit is kept, and the model reads that it may still be at work.

    A coroutine function that blocks the program's own loop blocks no session of the program, either.
    """
    release = threading.Event()

    @steersman.tool(timeout=0.05)
    def block() -> None:
        """Block."""
        release.wait(seconds(30))

    @steersman.tool(name="block", timeout=0.05)
    async def block_loop() -> None:
        """Block the program's loop, as `time.sleep` does."""
        release.wait(seconds(30))

    @steersman.tool(name="block", timeout=0.05)
    def block_wrapped() -> Any:
        """Return the coroutine, as a decorator may."""
        return block_loop()

    asked = threading.Event()

    class Watched(Asked):
        """Lets the tool go when the model is asked about its result."""

        async def answer(self, request: Any, listener: Any) -> Any:
            if request.messages[-1].role == "tool":
                asked.set()
            return await super().answer(request, listener)

    async def scene() -> None:
        model = Watched(calls("block"), "Done.")
        tools = {"function": block, "coroutine": block_loop, "wrapped coroutine": block_wrapped}
        tool: Any = tools[kind]
        async with started(model, tool) as session:
            follow = threading.Thread(target=let_go, args=(session,))
            follow.start()
            assert (await session.ask("go")).text == "Done."
            await asyncio.to_thread(follow.join)
        assert model.results[0] == (
            "[timed out after 0.05 s and was stopped] [`block` has not returned within 2 s of that, "
            "and may still be at work: what it does from now on is not known]"
        )

    def let_go(session: steersman.SessionHandle) -> None:
        """Wait on another loop until the call is over, then let the function return."""

        async def over() -> None:
            await first(session, "tool_ended")

        run(over())
        release.set()

    run(scene())


async def test_a_home_is_left_although_a_tool_does_not_return() -> None:
    """Leaving waits for the grace of a call, and no longer; nothing that was said is lost."""
    release = threading.Event()

    @steersman.tool
    def block() -> None:
        """Block."""
        release.wait(seconds(30))

    async with started(Asked(calls("block"), "Done."), block) as session:
        receipt = await session.say("go")
        await first(session, "tool_started")
    assert (await receipt.done()).status == "interrupted"
    release.set()


async def test_a_tool_learns_what_became_of_a_message_in_a_home_that_was_left() -> None:
    """The home is closed; nobody asks it whether the tool's own session belongs to it."""
    found: list[str] = []

    @steersman.tool
    async def work() -> None:
        """Work."""
        async with started(Asked("Four.")) as session:
            receipt = await session.say("Two and two?")
            await receipt.done()
        found.append((await receipt.done()).text)

    assert (await played(work))[1] == "Done."
    assert found == ["Four."]


async def test_a_mutating_tool_runs_alone() -> None:
    """Calls of one answer run side by side, except one that changes files."""
    meet = threading.Barrier(2, timeout=seconds(20))
    running: list[str] = []

    @steersman.tool
    def look(number: int) -> str:
        """Look."""
        meet.wait()
        return "met"

    @steersman.tool(mutating=True)
    def change(number: int) -> list[str]:
        """Change."""
        running.append(f"begin {number}")
        running.append(f"end {number}")
        return running

    both = tuple((name, {"number": number}) for name in ("look", "change") for number in (1, 2))
    model = Asked(ScriptedAnswer(tool_calls=both), "Done.")
    async with started(model, look, change) as session:
        assert (await session.ask("go")).status == "done"
    assert model.results[:2] == ["met", "met"]
    assert running == ["begin 1", "end 1", "begin 2", "end 2"]


# A tool that speaks to its own session ------------------------------------------------------------


def scene_of_own(act: Callable[[steersman.SessionHandle], Any]) -> tuple[str, str]:
    """Have a tool act on its own session; return the status of its turn, and what it returned."""
    here: list[steersman.SessionHandle] = []

    @steersman.tool
    async def act_here() -> str:
        """Act."""
        return str(await act(here[0]))

    async def scene() -> tuple[str, str]:
        model = Asked(calls("act_here"), "Done.")
        async with started(model, act_here) as session:
            here.append(session)
            status = (await session.ask("go")).status
            return status, "".join(model.results)

    return run(scene())


@pytest.mark.parametrize("how", ["queue", "steer"])
def test_a_tool_may_say_something_to_its_own_session(how: Any) -> None:
    """It is accepted; nothing waits for anything."""
    status, result = scene_of_own(lambda session: session.say("also this", how))
    assert status == "done"
    assert f"taken_as='{how}'" in result


def test_a_tool_cannot_wait_for_its_own_session() -> None:
    """It would wait for ever: an error says so, and the message is there all the same."""
    status, result = scene_of_own(lambda session: session.ask("also this"))
    assert status == "done"
    assert "a tool cannot wait for its own session, whose turn waits for the tool" in result


def test_a_tool_may_look_at_its_own_session() -> None:
    """Queue and state are read without waiting for the turn."""

    async def look(session: steersman.SessionHandle) -> str:
        return f"{len(session.queue()['items'])} {session.inspect()['id'] == session.id}"

    assert scene_of_own(look) == ("done", "1 True")


@pytest.mark.parametrize("name", ["stop", "close", "finalize"])
def test_a_tool_may_end_its_own_turn(name: str) -> None:
    """The turn is interrupted, and so the tool."""
    status, result = scene_of_own(lambda session: getattr(session, name)())
    assert status == "interrupted"
    assert result == ""


async def test_a_tool_of_a_subagent_cannot_wait_for_the_session_above() -> None:
    """That waits for the subagent, and so for the tool."""
    here: list[steersman.SessionHandle] = []

    @steersman.tool
    async def report() -> str:
        """Report to the session above."""
        return str(await here[0].ask("more"))

    child = [calls("report"), "The child is done."]
    model = Asked(
        ScriptedAnswer(tool_calls=(("delegate", {"task": "report", "agent": "assistant"}),)),
        *child,
        "Done.",
    )
    async with memory_home(yes=True) as runtime:
        agent = steersman.Agent(model=model, tools=["delegate", report])
        session = await runtime.start(agent)
        here.append(session)
        assert (await session.ask("go")).status == "done"
    seen = [
        message.text
        for request in model.requests
        for message in request.messages
        if message.role == "tool"
    ]
    assert any("a tool cannot wait for its own session" in text for text in seen), seen
