"""A session in one's own program: messages, receipts, outcomes, events, and what is refused."""

import asyncio
import base64
import re
import threading
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from library.isolated_tools import photograph
from library.lab import Asked, first, started, until
from support.coroutines import run
from support.patience import seconds

import steersman
from steersman.machines.errors import UsageError
from steersman.testing import ScriptedAnswer, ScriptedModel, calls, memory_home


class Held(Asked):
    """A scripted model whose answers wait until they are let go."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(*answers)
        self.go = asyncio.Semaphore(0)
        self.asked = asyncio.Semaphore(0)

    async def answer(self, request: Any, listener: Any) -> Any:
        """Wait, and answer."""
        self.asked.release()
        await self.go.acquire()
        return await super().answer(request, listener)


def echo(*answers: Any) -> steersman.Agent:
    """Return an agent that answers by a script."""
    return steersman.Agent(model=Asked(*answers))


# Messages -----------------------------------------------------------------------------------------


async def test_a_message_has_a_receipt_and_an_outcome() -> None:
    """The receipt says what the message was taken as, the outcome what became of it."""
    async with started(Asked("Sunny.")) as session:
        receipt = await session.say("Rome?", user="ann")
        assert (receipt.id, receipt.number, receipt.taken_as) == ("m1", 1, "turn")
        assert (receipt.rule, receipt.ack) == ("run", None)
        assert repr(receipt) == "Receipt(id='m1', number=1, taken_as='turn')"
        outcome = await receipt.done()
        assert (outcome.status, outcome.turn, outcome.text) == ("done", "t1", "Sunny.")
        assert outcome.usage.output > 0
        assert outcome.usage.tokens == outcome.usage.input + outcome.usage.output
        assert repr(outcome) == "Outcome(status='done', turn='t1', text='Sunny.')"
        assert (await receipt.done()).text == "Sunny."


async def test_a_message_that_was_never_sent_has_no_outcome() -> None:
    """Who asks for it learns that at once."""
    async with started(Asked()) as session:
        with pytest.raises(UsageError, match="no message `m99` is known"):
            await session.outcome("m99")


async def test_messages_are_queued_steered_and_interrupt() -> None:
    """`how` decides; each message has an outcome of its own, which later ones do not touch."""
    model = Held("One.", "Two.", "Three.", "Four.")
    async with started(model) as session:
        running = await session.say("first")
        await model.asked.acquire()
        queued = await session.say("second", "queue")
        steered = await session.steer("and this")
        assert [one.taken_as for one in (running, queued, steered)] == [
            "turn",
            "queue",
            "steer",
        ]
        states = [item["state"] for item in session.queue()["items"]]
        assert states == ["running", "pending", "pending"]
        model.go.release()  # the answer, after which the steer goes on with the turn
        await model.asked.acquire()
        model.go.release()
        assert (await steered.done()).status == "steered"
        await model.asked.acquire()
        stopping = await session.say("rather this", "interrupt")
        assert stopping.taken_as == "interrupt"
        assert (await queued.done()).status == "interrupted"
        await model.asked.acquire()
        model.go.release()
        model.go.release()
        assert (await running.done()).text == "Two."
        assert model.requests[1].messages[-1].text.endswith("and this")


async def test_words_mean_what_they_do_in_a_chat() -> None:
    """Without `how` the word `stop` stops; a slash at the beginning means nothing."""
    model = Held("One.")
    async with started(model) as session:
        receipt = await session.say("/help me")
        await model.asked.acquire()
        stop = await session.say("Stop!")
        assert stop.taken_as == "interrupt"
        assert stop.ack
        assert (await receipt.done()).status == "interrupted"
        assert (await stop.done()).status == "done"


async def test_the_outcome_of_each_of_many_messages_is_kept() -> None:
    """Also when later turns have begun, and when the session itself has forgotten the message."""
    async with started(Asked(*(f"Answer {n}." for n in range(70)))) as session:
        receipts = [await session.say("0", "queue")]
        for number in range(1, 70):
            receipts.append(await session.say(str(number), "queue"))
            if number % 5 == 0:
                await receipts[-1].done()
        await receipts[-1].done()
        texts = [(await receipt.done()).text for receipt in receipts]
        assert texts == [f"Answer {n}." for n in range(70)]


async def test_an_idempotency_key_makes_a_message_one(tmp_path: Path) -> None:
    """Sent twice, twice at once, or again after a restart, it is taken once."""
    async with steersman.open(tmp_path) as runtime:
        session = await runtime.start(echo())
        twice = await asyncio.gather(*(session.say("x", "queue", key="a") for _ in range(2)))
        assert [receipt.id for receipt in twice] == ["m1", "m1"]
        assert (await session.say("x", key="a")).id == "m1"
        await twice[0].done()
    async with steersman.open(tmp_path) as runtime:
        session = await runtime.resume(session.id, agent=echo())
        again = await session.say("x", key="a")
        assert again.id == "m1"
        outcome = await again.done()
        assert (outcome.status, outcome.text) == ("done", "Done.")


async def test_a_model_that_fails_is_an_outcome_with_its_reason() -> None:
    """An error of the script, of Python, or an answer that is none: the turn has failed."""

    class Broken(ScriptedModel):
        """Raises."""

        async def answer(self, request: Any, listener: Any) -> Any:
            raise ValueError("out of order")

    class Mute(ScriptedModel):
        """Returns nothing."""

        async def answer(self, request: Any, listener: Any) -> Any:
            return None

    models = {
        "no more words": ScriptedModel([ScriptedAnswer(error="no more words")]),
        "ValueError: out of order": Broken([]),
        "returned a NoneType": Mute([]),
    }
    async with memory_home() as runtime:
        for words, model in models.items():
            session = await runtime.start(steersman.Agent(model=model))
            outcome = await session.ask("x")
            assert (outcome.status, outcome.text) == ("failed", "")
            assert words in outcome.reason
            assert words in repr(outcome)


async def test_a_model_is_asked_on_the_loop_of_the_program() -> None:
    """Its connections belong there; an interrupt cancels it at once."""
    seen: list[asyncio.AbstractEventLoop] = []

    class Slow(ScriptedModel):
        """Waits to be cancelled."""

        async def answer(self, request: Any, listener: Any) -> Any:
            seen.append(asyncio.get_running_loop())
            listener.on_text("Well")
            try:
                return await asyncio.Event().wait()
            finally:
                seen.append(asyncio.get_running_loop())

    async with started(Slow([])) as session:
        events = session.events()
        await anext(events)  # what happens from here on is live
        receipt = await session.say("x")
        assert (await until(events, "text")).delta == "Well"
        await session.stop()
        outcome = await receipt.done()
        assert (outcome.status, outcome.text) == ("interrupted", "Well")
        await first(session, "stopped")
    assert seen == [asyncio.get_running_loop()] * 2


# What is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "arguments", "words"),
    [
        ("say", ("",), "there is nothing in it"),
        ("say", (" \n",), "there is nothing in it"),
        ("say", (3,), "a message is a text, not 3"),
        ("say", ("x", "sideways"), "how: 'sideways' is none of 'queue', 'steer', 'interrupt'"),
        ("ask", ("",), "there is nothing in it"),
        ("revert", ("all",), "scope: 'all' is none of 'turn', 'last', 'undo'"),
        ("resume_queue", (7,), "No queued item #7"),
        ("answer", ("q1", "allow"), "no question `q1` is open"),
        ("answer", ("q1", "yes"), "choice: 'yes' is none of 'allow', 'always', 'change'"),
        ("goal", (" ",), "a goal needs a text"),
    ],
)
async def test_what_makes_no_sense_is_refused(name: str, arguments: Any, words: str) -> None:
    """Each method says what is wrong, and changes nothing."""
    async with started(Asked()) as session:
        with pytest.raises(steersman.SteersmanError) as caught:
            await getattr(session, name)(*arguments)
        assert words in str(caught.value)
        assert session.queue()["items"] == []
        assert (await session.ask("x")).text == "Done."


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"gates": ["pytest -q"]}, "the gate 'pytest -q' is a text"),
        ({"max_turns": "many"}, "`turns` cannot be 'many'"),
        ({"max_turns": 0}, "at least 1 turn"),
    ],
)
async def test_a_goal_that_cannot_be_is_refused(options: Any, words: str) -> None:
    """Gates and budgets are read before anything runs."""
    async with started(Asked()) as session:
        with pytest.raises(steersman.UsageError) as caught:
            await session.goal("x", **options)
        assert words in str(caught.value)


@pytest.mark.parametrize("how", ["close", "finalize", "home"])
async def test_a_session_that_was_left_says_so(how: str) -> None:
    """Every method, at once, and with the next step; only its end can be asked for again."""
    reason = "session_finalized" if how == "finalize" else "session_left"
    over = r"was left|is finalized"

    async def refuses(session: steersman.SessionHandle) -> None:
        assert not session.is_open
        for said in (session.say("x"), session.ask("x"), session.steer("x")):
            with pytest.raises(steersman.Rejected) as caught:
                await said
            assert (caught.value.reason, bool(caught.value.hint)) == (reason, True)
        answered = session.answer("q1", "allow")
        for order in (
            session.stop(),
            session.revert(),
            session.resume_queue(),
            session.goal("x"),
            answered,
        ):
            with pytest.raises(steersman.UsageError, match=over):
                await order
        for look in (session.queue, session.inspect):
            with pytest.raises(steersman.UsageError, match=over):
                look()
        await session.close()
        await session.finalize()

    async with started(Asked()) as session:
        await session.ask("x")
        if how != "home":
            await getattr(session, how)()
            await refuses(session)
            kinds = [event.type async for event in session.events()]
            assert kinds[-1] in ("session_suspended", "session_finalized")
    await refuses(session)
    with pytest.raises(steersman.UsageError, match="its journal is closed"):
        await anext(session.events())


async def test_whoever_waits_when_a_session_is_left_is_told() -> None:
    """The message waits in the queue, and the error names the next step."""
    model = Held()
    async with started(model) as session:
        await session.say("x")
        await model.asked.acquire()
        waits = asyncio.create_task((await session.say("y", "queue")).done())
        await asyncio.sleep(0)
        await session.close()
        with pytest.raises(steersman.SteersmanError, match="left before the message was done"):
            await waits


# Stop, revert, goals, questions -------------------------------------------------------------------


async def test_a_stop_holds_what_waits_and_resume_queue_runs_it() -> None:
    """A question that comes after the stop is not held up."""
    model = Held("Between.", "One.", "Two.")
    async with started(model) as session:
        running = await session.say("first")
        await model.asked.acquire()
        waiting = await session.say("second", "queue")
        assert (await session.stop())["interrupted"] == "t1"
        assert (await running.done()).status == "interrupted"
        assert session.queue()["state"] == "held"
        for _ in range(3):
            model.go.release()
        assert (await session.ask("in between")).text == "Between."
        await session.resume_queue()
        assert (await waiting.done()).text == "Two."
        assert (await running.done()).text == "One."


async def test_a_resumed_message_is_not_over_while_its_stopped_tool_still_ends() -> None:
    """A tool that blocks a thread cannot be ended: what is resumed begins when it returns."""
    begun, gate = threading.Event(), threading.Event()

    @steersman.tool
    def block() -> str:
        """Block."""
        begun.set()
        gate.wait(seconds(30))
        return "ok"

    async with started(ScriptedModel([calls("block"), "end"]), block) as session:
        running = await session.say("work")
        await asyncio.to_thread(begun.wait)
        await session.stop()
        assert (await running.done()).status == "interrupted"
        assert (await session.resume_queue())["restored"] == 1
        again = asyncio.create_task(running.done())
        await asyncio.sleep(0)
        assert not again.done()
        gate.set()
        assert (await again).text == "end"


async def test_revert_restores_what_a_tool_changed(tmp_path: Path) -> None:
    """A tool that declares itself as mutating is reverted as a built-in one."""
    notes = tmp_path / "notes.txt"
    notes.write_text("before")

    @steersman.tool(mutating=True)
    def rewrite(ctx: steersman.Context) -> None:
        """Rewrite the notes."""
        (ctx.folder / "notes.txt").write_text("after")

    async with started(Asked(calls("rewrite"), "Done."), rewrite, folder=tmp_path) as session:
        await session.ask("go")
        assert notes.read_text() == "after"
        assert (await session.revert())["restored"] == ["notes.txt"]
        assert notes.read_text() == "before"
        assert (await session.revert("undo"))["restored"] == ["notes.txt"]
        assert notes.read_text() == "after"


async def test_a_goal_goes_on_until_its_judge_is_content(tmp_path: Path) -> None:
    """The gate fails until the second turn has made the file."""
    done = tmp_path / "done"

    @steersman.tool(mutating=True)
    def finish() -> None:
        """Finish."""
        done.touch()

    model = Asked(
        "Not yet.", calls("finish"), "Finished.", '{"verdict": "done", "reason": "it is there"}'
    )
    async with memory_home(yes=True) as runtime:
        session = await runtime.start(steersman.Agent(model=model, tools=[finish]), folder=tmp_path)
        made = await session.goal("make it", gates=[["test", "-e", "done"]], max_turns=5)
        assert made["state"] == "active"
        reached = await first(session, "goal", state="achieved")
        assert reached.detail == "it is there"
        assert done.exists()


async def test_a_subagent_asks_in_the_same_stream() -> None:
    """Its question comes live, with the session that it is beneath, and is answered like any other."""
    ran: list[str] = []

    @steersman.tool
    def pay(amount: int) -> str:
        """Pay."""
        ran.append(f"paid {amount}")
        return "paid"

    delegate = calls("delegate", task="pay the invoice", agent="assistant")
    model = Asked(delegate, calls("pay", amount=3), "Paid.", "Done.")
    async with steersman.open("memory:") as runtime:
        agent = steersman.Agent(
            model=model,
            tools=["delegate", pay],
            permissions={"pay": "ask", "delegate": "allow"},
        )
        session = await runtime.start(agent)
        events = session.events()
        await anext(events)  # what happens from here on is live
        receipt = await session.say("go")
        question = await until(events, "question")
        assert (question.tool, question.seq, question.get("parent")) == (
            "pay",
            None,
            session.id,
        )
        await session.answer(question.id, "allow")
        assert (await until(events, "answered", id=question.id)).choice == "allow"
        assert (await receipt.done()).text == "Done."
        assert ran == ["paid 3"]


@pytest.mark.parametrize(("choice", "has_run"), [("allow", True), ("deny", False)])
async def test_a_question_is_an_event_that_the_program_answers(choice: Any, has_run: bool) -> None:
    """The tool runs if it is allowed; the model reads why it did not."""
    ran: list[str] = []

    @steersman.tool
    def pay(amount: int) -> str:
        """Pay."""
        ran.append("paid")
        return "paid"

    model = Asked(calls("pay", amount=3), "Done.")
    async with steersman.open("memory:") as runtime:
        agent = steersman.Agent(model=model, tools=[pay], permissions={"pay": "ask"})
        session = await runtime.start(agent)
        receipt = await session.say("go")
        question = await first(session, "question")
        assert (question.tool, question.arguments) == ("pay", {"amount": 3})
        await session.answer(question.id, choice, "too much")
        assert (await receipt.done()).text == "Done."
        with pytest.raises(steersman.UsageError, match="no question"):
            await session.answer(question.id, choice)
    assert bool(ran) == has_run
    assert has_run or "too much" in model.results[0]


@pytest.mark.parametrize(("yes", "has_run"), [(True, True), (False, False)])
async def test_a_home_without_people_answers_itself(yes: bool, has_run: bool) -> None:
    """What would be asked about is denied, or with `yes` allowed."""
    ran: list[str] = []

    @steersman.tool
    def pay() -> None:
        """Pay."""
        ran.append("paid")

    async with memory_home(yes=yes) as runtime:
        model = Asked(calls("pay"), "Done.")
        agent = steersman.Agent(model=model, tools=[pay], permissions={"pay": "ask"})
        assert (await (await runtime.start(agent)).ask("go")).status == "done"
    assert bool(ran) == has_run


async def test_the_last_message_is_sent_again_in_a_session_that_is_taken_up() -> None:
    """The reply names the session, whose handle `resume` returns; the old one is kept."""
    async with memory_home() as runtime:
        session = await runtime.start(echo("Blue.", "Red.", "Well."))
        await session.ask("which colour has the sky?")
        reply = await session.enter("/edit-last which colour has a rose?")
        assert isinstance(reply, steersman.Reply)
        assert not session.is_open
        other = await runtime.resume(reply.data["session"])
        assert (await other.outcome(reply.data["id"])).text == "Red."
        assert (await other.ask("and so?")).text == "Well."
        assert await runtime.resume(session.id) is not session


# Events -------------------------------------------------------------------------------------------


def test_events_come_from_the_journal_and_then_live() -> None:
    """In order, each journalled one exactly once, until the session is left."""

    async def scene() -> None:
        async with started(Asked()) as session:
            await session.ask("before")
            seen: list[steersman.Event] = []
            reading = asyncio.create_task(collect(session, seen))
            await session.ask("after")
            await session.close()
            await reading
            numbers = [event.seq for event in seen if event.seq is not None]
            assert numbers == sorted(numbers)
            assert [event.text for event in seen if event.type == "accepted"] == ["before", "after"]
            assert seen[-1].type == "session_suspended"
            begun = next(event for event in seen if event.type == "accepted")
            assert (begun["id"], begun.taken_as, begun["as"]) == ("m1", "turn", "turn")
            assert begun.get("nothing", 3) == 3
            assert begun.session == session.id
            assert begun.time.endswith("Z")
            assert repr(begun).startswith("Event({")
            with pytest.raises(AttributeError, match="`accepted` event has no field `nothing`"):
                begun.nothing  # noqa: B018
            ended = [event async for event in session.events(after=begun.seq or 0)]
            assert all(event.seq is None or event.seq > (begun.seq or 0) for event in ended)

    async def collect(session: steersman.SessionHandle, into: list[steersman.Event]) -> None:
        async for event in session.events():
            into.append(event)

    run(scene())


async def test_a_reader_that_falls_behind_misses_nothing() -> None:
    """More events come than are kept for it: it reads the rest from the journal."""
    count = 6_000

    @steersman.tool
    def work(ctx: steersman.Context) -> None:
        """Tell of much progress."""
        for done in range(1, count + 1):
            ctx.progress(done, count)

    async with started(Asked(calls("work"), calls("work"), "Done."), work) as session:
        events = session.events()
        assert (await anext(events)).type == "session_started"
        await session.ask("go")
        await session.close()
        rest = [event async for event in events]
        numbers = [event.seq for event in rest if event.type == "progress"]
        assert len(numbers) == len(set(numbers))
        assert numbers == sorted(numbers, key=lambda number: number or 0)
        assert rest[-1].type == "session_suspended"
        assert [event.done for event in rest if event.type == "progress"][-1] == count


async def test_a_reader_misses_no_text_of_a_turn_that_runs_while_it_reads_the_journal() -> None:
    """What comes after its first event is live, whatever the journal holds meanwhile."""
    async with started(Asked("Good day.")) as session:
        events = session.events()
        assert (await anext(events)).type == "session_started"
        await session.ask("go")
        await session.close()
        rest = [event async for event in events]
        kinds = [event.type for event in rest]
        assert "".join(event.delta for event in rest if event.type == "text") == "Good day."
        assert kinds.index("accepted") < kinds.index("text") < kinds.index("turn_ended")


def test_a_reader_that_joins_a_streaming_answer_has_all_of_it() -> None:
    """At whatever piece it joins; what it has of the journal is what one from the start has."""
    pieces = ["Good ", "day", ".\n", "How ", "are you?"]

    async def scene() -> None:
        model = Piecemeal(pieces)
        async with started(model) as session:
            reading = [await joined(session)]
            await session.say("go")
            for _ in pieces:
                await model.next_piece()
                reading.append(await joined(session))
            model.end()
            await first(session, "turn_ended")
            await session.close()
            seen = [[event async for event in events] for events in reading]
            for events in seen:
                assert whole_text(events) == "".join(pieces)
            numbered = [[event.seq for event in events if event.seq] for events in seen]
            assert all(numbers == numbered[0] for numbers in numbered)

    async def joined(session: steersman.SessionHandle) -> AsyncIterator[steersman.Event]:
        events = session.events()
        assert (await anext(events)).type == "session_started"
        return events

    def whole_text(events: list[steersman.Event]) -> str:
        text = ""
        for event in events:
            if event.type == "text":
                text = event.delta if event.get("so_far") else text + event.delta
        return text

    run(scene())


class Piecemeal(ScriptedModel):
    """A model whose answer comes in pieces, each when it is asked for."""

    def __init__(self, pieces: list[str]) -> None:
        super().__init__(["".join(pieces)])
        self._pieces, self._is_wanted, self._came = (
            pieces,
            asyncio.Queue[bool](),
            asyncio.Queue[bool](),
        )

    async def next_piece(self) -> None:
        """Send the next piece."""
        self._is_wanted.put_nowait(True)
        await self._came.get()

    def end(self) -> None:
        """End the answer."""
        self._is_wanted.put_nowait(False)

    async def answer(
        self, request: steersman.ModelRequest, listener: steersman.AnswerListener
    ) -> steersman.ModelAnswer:
        """Answer piece by piece."""
        for piece in self._pieces:
            await self._is_wanted.get()
            listener.on_text(piece)
            self._came.put_nowait(True)
        await self._is_wanted.get()
        return steersman.ModelAnswer(text="".join(self._pieces))


async def test_a_session_is_used_from_other_loops() -> None:
    """A thread with a loop of its own may ask and read, as may several at once."""
    async with started(Asked()) as session:
        answers: list[str] = []

        def ask() -> None:
            answers.append(run(session.ask("x")).text)

        threads = [threading.Thread(target=ask) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            await asyncio.to_thread(thread.join)
        assert answers == ["Done."] * 3


# Pictures -----------------------------------------------------------------------------------------

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Looking(Asked):
    """A scripted model that takes pictures."""

    takes_pictures = True


@steersman.tool
def here() -> steersman.Picture:
    """Take a picture."""
    return steersman.picture(PIXEL)


@pytest.mark.parametrize(("model", "count"), [(Looking, 1), (Asked, 0)])
async def test_pictures_of_people_and_tools_reach_a_model_that_takes_them(
    tmp_path: Path, model: type[Asked], count: int
) -> None:
    """Given with a message or returned by a tool, in this process or another; else a line says so."""
    data = base64.b64encode(PIXEL).decode()
    (tmp_path / "shot.png").write_bytes(PIXEL)
    script = model(calls("here"), calls("photograph", content=data), "A pixel.")
    async with started(script, here, photograph, folder=tmp_path) as session:
        receipt = await session.say("what is it?", images=[tmp_path / "shot.png"])
        assert (await receipt.done()).text == "A pixel."
    said = [message for message in script.requests[-1].messages if message.role in ("user", "tool")]
    assert [len(one.pictures) for one in said] == [count] * 3
    assert {picture.data for message in said for picture in message.pictures} <= {data}
    line = "[a picture, image/png, 70 bytes]"
    assert said[1].text.startswith(line)
    assert said[2].text.startswith(f"here it is\n{line}")
    assert ("not shown" in said[1].text) == (count == 0)
    assert ("Not attached: picture 1" in said[0].text) == (count == 0)


@pytest.mark.parametrize(
    ("images", "why"),
    [
        ([b"no picture"], "PNG, JPEG, GIF and WebP are known"),
        ([PIXEL + b"\0" * 2_000_000], "2.0 MB at most"),
        ([PIXEL] * 9, "brings 8 at most"),
        (["/nowhere.png"], "can't be read"),
        ("/nowhere.png", "not a list"),
    ],
)
async def test_what_is_no_picture_is_refused_before_it_is_said(images: Any, why: str) -> None:
    """Nothing of the message is kept."""
    async with started(Looking()) as session:
        with pytest.raises(steersman.SteersmanError, match=re.escape(why)):
            await session.say("look", images=images)
        assert session.queue()["items"] == []
