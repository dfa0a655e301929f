"""The library reaches a session that another program has open, as the commands do."""

import asyncio
from typing import Any

import pytest
from support.driver import Gate, Place
from support.model_server import Text, Tools, shell

import steersman


async def test_a_program_takes_part_in_a_session_of_another_one(
    place: Place, serve: Any, gate: Gate
) -> None:
    """It says, steers, stops and follows; each thing is done there, and told once and in order."""
    serve(
        *(Text("Hello."), Tools([gate.call])),
        *(Text("There are four."), Text("Later.")),
    )
    chat = place.chat("--yes")
    async with steersman.open(place.home) as runtime:
        session = await runtime.session(chat.session[:6])
        assert session.is_open
        with pytest.raises(steersman.UsageError, match="another program"):
            await session.say("hi", user=steersman.Person(name="eve", may=()))
        events: list[Any] = []
        is_seen = asyncio.Event()

        async def follow() -> None:
            async for event in session.events():
                events.append(event)
                is_seen.set()

        following = asyncio.create_task(follow())
        assert (await session.ask("hello", user="ann")).text == "Hello."
        counting = await session.say("count the stars")
        await asyncio.to_thread(gate.wait)
        assert session.inspect()["state"] == "busy"
        steered = await session.steer("only the bright ones")
        assert (await session.say("and then?", "queue")).taken_as == "queue"
        waiting = [item["text"] for item in session.queue()["items"]]
        assert waiting == ["count the stars", "only the bright ones", "and then?"]
        gate.open()
        assert (await counting.done()).text == "There are four."
        assert (await steered.done()).status == "steered"
        with pytest.raises(steersman.Rejected):
            await session.say(" ")
        while not any(event.type == "answer" and event.text == "Later." for event in events):
            is_seen.clear()
            await is_seen.wait()
        assert (await session.enter("/usage")).ok
        await session.finalize()
        await following
        assert not session.is_open
    numbers = [event.seq for event in events if event.seq is not None]
    assert numbers == sorted(numbers)
    assert events[-1].type == "session_finalized"
    told = [repr(event) for event in events if event.seq is not None]
    assert len(told) == len(set(told))
    assert set(numbers) >= {event["seq"] for event in chat.events if event["seq"] is not None}
    said = [event.text for event in events if event.type == "answer"]
    assert said == ["Hello.", "There are four.", "Later."]


async def test_an_answer_and_a_stop_reach_another_program(place: Place, serve: Any) -> None:
    """A question is answered there; a session that nobody has open is to be resumed."""
    serve(shell("touch ran"), Text("Done."))
    chat = place.chat("go")
    question = chat.wait("question")["id"]
    async with steersman.open(place.home) as runtime:
        session = await runtime.session(chat.session)
        with pytest.raises(steersman.UsageError):
            await session.answer("q-9", "allow")
        await session.answer(question, "allow", user="ann")
        await asyncio.to_thread(chat.wait, "turn_ended")
        assert not (await session.stop())["interrupted"]
        assert await asyncio.to_thread(chat.close) == 0
        with pytest.raises(steersman.UsageError, match="no program"):
            await runtime.session(chat.session)
    assert (place.folder / "ran").exists()


async def test_a_message_outlives_the_program_that_had_the_session(
    place: Place, serve: Any
) -> None:
    """Who waits learns that the program was killed; what was accepted waits in the queue."""
    serve(shell("sleep 600"))
    chat = place.chat("--yes", "work")
    chat.wait("tool_started")
    async with steersman.open(place.home) as runtime:
        session = await runtime.session(chat.session)
        receipt = await session.say("and the tests", "queue", key="k1")
        waiting = asyncio.create_task(receipt.done())
        await asyncio.sleep(0)
        await asyncio.to_thread(chat.kill)
        with pytest.raises(steersman.UnknownSession, match="left before"):
            await waiting
        (listed,) = runtime.sessions()
        assert (listed.state, listed.waiting) == ("crashed", 1)


async def test_a_handle_of_a_closed_home_posts_nothing(place: Place, serve: Any) -> None:
    """It says that it was closed, and no message reaches the other program with that."""
    server = serve(Text("Hello."))
    chat = place.chat()
    async with steersman.open(place.home) as runtime:
        session = await runtime.session(chat.session)
    assert not session.is_open
    for act in (lambda: session.say("late"), session.stop, lambda: session.goal("late")):
        with pytest.raises(steersman.SteersmanError, match="closed"):
            await act()
    for look in (session.queue, session.inspect):
        with pytest.raises(steersman.UsageError, match="was closed here"):
            look()
    assert await asyncio.to_thread(chat.close) == 0
    assert server.requests == []
