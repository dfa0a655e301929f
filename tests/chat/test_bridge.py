"""Rooms and sessions: everything that no platform does by itself, on a platform in memory."""

import asyncio
import json
import sqlite3
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from blackbox.conftest import Serve
from support.chat_platform import Server, ServerPlatform
from support.driver import Place
from support.model_server import Door, Hang, Text, Tools
from support.notes_server import NOTES
from support.patience import seconds

import steersman
from steersman.gateway.chat.bridge import ChatGateway
from steersman.gateway.chat.gateway_store import GatewayStore, OutboxMessage
from steersman.gateway.chat.platform import Gap, NotSent, Outgoing, Said, SentFile
from steersman.gateway.chat.room import Room, RoomOptions
from steersman.gateway.chat.room_inbox import NOT_HERE
from steersman.gateway.chat.room_session import LiveAnswer
from steersman.gateway.commands.registry import DECLARED
from steersman.gateway.events.contract import Event
from steersman.gateway.host.router import EventBus
from steersman.machines.errors import ConfigError

PEOPLE = """
[people]
ann = { memory = "@ann", may = ["speak", "steer", "stop", "approve"] }
bo = { memory = "@bo" }
"""
ROOM: dict[str, dict[str, Any]] = {"#dev": {}}


class Desk:
    """A place with a configuration, and the server of a platform; gateways come and go."""

    def __init__(self, place: Place, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> None:
        self.place, self.server, self._serve = place, Server(), serve
        for name, value in place.environ.items():
            monkeypatch.setenv(name, value)
        monkeypatch.chdir(place.folder)

    def answers(self, *behaviours: Any, rest: str = "") -> Any:
        """Let the model answer so."""
        return self._serve(*behaviours, rest=f"{PEOPLE}{rest}")

    @asynccontextmanager
    async def gateway(self, rooms: Any = None, **limits: Any) -> AsyncGenerator[Server]:
        """Run a gateway of the server; at the end it is cut off wherever it is."""
        platform = ServerPlatform(self.server, **limits)
        gateway = ChatGateway("memory", lambda own, names: platform)
        async with steersman.open(self.place.home) as home:
            task = asyncio.create_task(gateway(home, {"rooms": rooms or ROOM}))
            try:
                yield self.server
            finally:
                task.cancel()
                with suppress(asyncio.CancelledError):
                    await task
                assert platform.is_closed


@pytest.fixture
def desk(place: Place, serve: Serve, monkeypatch: pytest.MonkeyPatch) -> Desk:
    """A place to work from."""
    return Desk(place, serve, monkeypatch)


async def test_in_the_teams_room(desk: Desk) -> None:
    """Ann's message runs, Bo's waits as #2 and may not stop hers, Ann steers, each is answered once."""
    door = Door()
    model = desk.answers(Text("On it.", door=door), Text("With tabs."), Text("Bo's answer."))
    async with desk.gateway() as server:
        await server.say("@ann", "steers: refactor the parser")
        await asyncio.to_thread(model.wait_requests, 1)
        await server.say("@bo", "what is the zod syntax for optional again?")
        await server.seen('📥 Queued #2: "what is the zod')
        _, receipt = server.find("Queued #2")
        assert (receipt.mentions, receipt.to) == ("@bo", "p2")
        await server.say("@bo", "stop")
        await server.seen("it is ann's, and you do not have the right `stop`")
        await server.say("@ann", "!steer use tabs")
        await server.seen("Steering with #3")
        door.open()
        await server.seen("With tabs.")
        await server.seen("Bo's answer.")
        assert sum("answer" in text for text in server.texts) == 1
        assert server.find("With tabs.")[1].mentions == "@ann"
        assert server.find("Bo's answer.")[1].to == "p2"
    said = [request.body["messages"] for request in model.requests]
    assert "refactor the parser" in said[0][-1]["content"]
    assert "steers:" not in said[0][-1]["content"]
    assert "[New message from bo]" in str(said[-1])


async def test_a_stranger_is_refused_once(desk: Desk) -> None:
    """Whoever is in no line of [people] is told so, once, and the session hears nothing."""
    model = desk.answers(Text("Hello."))
    async with desk.gateway() as server:
        for _ in range(3):
            await server.say("@eve", "stop", name="ann")
        await server.say("@ann", "hello")
        await server.seen("Hello.")
        assert sum("I do not know you" in text for text in server.texts) == 1
    assert len(model.requests) == 1


async def test_what_waits_is_changed_by_replies_edits_and_deletions(desk: Desk) -> None:
    """A reply changes, removes or steers what it answers; so do an edit and a deletion of it."""
    door = Door()
    model = desk.answers(Text("One.", door=door), Text("Two."), Text("Three."))
    async with desk.gateway() as server:
        await server.say("@ann", "begin")
        await asyncio.to_thread(model.wait_requests, 1)
        for text in ("second", "third", "fourth"):
            await server.say("@bo", text)
        await server.seen("Queued #4")
        receipt, _ = server.find("Queued #2")
        await server.say("@bo", "second, but better", to=receipt)
        await server.seen("#2")
        await server.say("@bo", "third, edited", replaces="p3")
        await server.remove("@ann", "p4")  # it is not hers
        await server.remove("@bo", "p4")
        await server.say("@bo", "!queue list")
        await server.seen("#2 [PENDING]")
        _, sent = server.find("#2 [PENDING]")
        listed = sent.text
        assert "second, but better" in listed
        assert "fourth" not in listed
        await server.say("@ann", "too late", replaces="p1")
        await server.seen("at work already")
        door.open()
        await server.seen("Three.")
    said = str(model.requests[-1].body["messages"])
    assert "second, but better" in said
    assert "third, edited" in said
    assert "fourth" not in said


async def test_the_last_message_is_sent_again(desk: Desk) -> None:
    """The room goes along to the session that goes on, and is told of that from then on."""
    model = desk.answers(Text("Blue."), Text("Red."))
    async with desk.gateway() as server:
        await server.say("@ann", "which colour has the sky")
        await server.seen("Blue.")
        await server.say("@ann", "!edit-last which colour has a rose")
        await server.seen("Red.")
        await server.say("@ann", "and the next rose?")
        await server.seen("Red.", times=2)
        assert not any("elsewhere" in text for text in server.texts)
    async with desk.gateway():
        await server.say("@ann", "and another rose?")
        await server.seen("Red.", times=3)
    assert "sky" not in str(model.requests[-1].body["messages"])


async def test_a_question_is_answered_by_a_button_of_whoever_may(desk: Desk) -> None:
    """Bo has not the right to approve, Ann has; what is consented to is shown with what hides."""
    desk.answers(
        Tools([{"tool": "shell", "arguments": {"command": "echo \u202eran > out"}}]),
        Text("It ran."),
    )
    async with desk.gateway(has_choices=True) as server:
        await server.say("@ann", "run it")
        await server.seen("May I run `shell`?")
        message, asked = server.find("May I run")
        assert asked.choices == ("allow", "always", "deny")
        assert "\\u202eran" in asked.text
        await server.choose("@bo", message, "allow")
        await server.seen("you do not have the right `approve`")
        assert not (desk.place.folder / "out").exists()
        await server.choose("@ann", message, "allow")
        await server.seen("It ran.")
    assert (desk.place.folder / "out").exists()


async def test_a_form_of_a_server_is_filled_in_by_a_reply(desk: Desk) -> None:
    """The room is told what each field takes; what does not fit is refused, and may be mended."""
    pytest.importorskip("mcp", reason="the extra is not installed")
    command = json.dumps([sys.executable, str(NOTES)])
    rules = '[permissions]\nrules = [{ tool = "mcp__*", do = "allow" }]\n'
    rest = f"\n[mcp.notes]\ncommand = {command}\nwait = {seconds(60)}\n{rules}"
    call = {"tool": "mcp__notes__file_note", "arguments": {"name": "milk"}}
    model = desk.answers(Tools([call]), Text("Filed."), rest=rest)
    async with desk.gateway(has_choices=True) as server:
        await server.say("@ann", "file it")
        await server.seen("folder: one of home, work")
        message, asked = server.find("Where does milk go?")
        assert asked.choices == ("deny",)
        await server.say("@ann", 'answer {"folder": "car"}', to=message)
        await server.seen("`folder` has to be one of home, work")
        await server.say("@ann", 'answer {"folder": "home"}', to=message)
        await server.seen("Filed.")
    assert "filed milk in home, 1 times" in str(model.requests[-1].body["messages"])


async def test_a_reply_is_an_answer_as_it_was_written(desk: Desk) -> None:
    """An apostrophe in an answer to a question, or in a changed message, is no quotation mark."""
    model = desk.answers(
        Tools([{"tool": "shell", "arguments": {"command": "echo ran > out"}}]), Text("I don't.")
    )
    async with desk.gateway() as server:
        await server.say("@ann", "run it")
        await server.seen("May I run `shell`?")
        message, _ = server.find("Answer with")
        await server.say("@ann", "don't do it", to=message)
        await server.seen("`don't` is no answer")
        await server.say("@ann", "deny it isn't safe", to=message)
        await server.seen("I don't.")
    assert "it isn't safe" in str(model.requests[-1].body["messages"])
    assert not (desk.place.folder / "out").exists()


async def test_a_thread_is_a_side_talk(desk: Desk) -> None:
    """What is said in a thread does not disturb the work, and is answered there."""
    door = Door()
    model = desk.answers(
        Text("The work.", door=door, match="begin"), Text("Zod is slower.", match="faster")
    )
    async with desk.gateway() as server:
        await server.say("@ann", "begin")
        await asyncio.to_thread(model.wait_requests, 1)
        await server.say("@bo", "which is faster, zod or yup?", thread="t1")
        await server.seen("Zod is slower.")
        assert server.find("Zod is slower.")[1].thread == "t1"
        door.open()
        await server.seen("The work.")


async def test_an_answer_is_shown_while_it_is_written(desk: Desk) -> None:
    """Where messages can be changed, one message grows into the answer."""
    door = Door()
    model = desk.answers(Text("The first half, ", door=door))
    async with desk.gateway(can_edit=True) as server:
        await server.say("@ann", "begin")
        await asyncio.to_thread(model.wait_requests, 1)
        await server.seen("The first half")
        door.open()
        await server.until(lambda: server.typing[-1:] == [False])
        await server.seen("The first half,")
        assert len([text for text in server.texts if "half" in text]) == 1


async def test_an_answer_that_streams_when_a_gateway_comes_back_is_shown_from_its_beginning(
    desk: Desk,
) -> None:
    """The turn runs on before the room follows it again: nothing of its answer is missing."""
    door = Door()
    model = desk.answers(Hang(), Text("The first half, ", door=door))
    rooms = {"#dev": {"on_restart": "resume"}}
    async with desk.gateway(rooms, can_edit=True) as server:
        await server.say("@ann", "begin")
        await asyncio.to_thread(model.wait_requests, 1)
    async with desk.gateway(rooms, can_edit=True):
        await server.seen("The first half,")
        door.open()
        await server.until(lambda: server.typing[-1:] == [False])
        assert len([text for text in server.texts if "half" in text]) == 1


@pytest.mark.parametrize("joins", range(4))
async def test_a_room_that_follows_a_turn_later_shows_its_answer(
    tmp_path: Path, joins: int
) -> None:
    """Wherever it joins, also behind the turn's beginning: what was streamed comes as one piece."""
    events: list[dict[str, Any]] = [{"type": "turn_started", "seq": 5}]
    events += [{"type": "text", "seq": None, "delta": piece} for piece in ("One ", "and ", "two.")]
    bus, store = EventBus(), GatewayStore(tmp_path / "memory.sqlite")
    await store.open()
    platform, home = ServerPlatform(Server(), can_edit=True), cast("Any", None)
    room = Room("memory", home, platform, store, {}, "#dev", RoomOptions())
    live = LiveAnswer(room, "s")
    at = {"session": "s", "turn": "t1", "time": ""}
    for event in events[:joins]:
        bus.publish(cast("Event", event | at))
    leave = bus.follow("s", live.update)
    for event in events[joins:]:
        bus.publish(cast("Event", event | at))
    leave()
    await room.posted.wait()
    outgoing = await store.next_outgoing("#dev")
    await live.aclose()
    await store.aclose()
    assert outgoing is not None
    assert outgoing.message.outgoing.text == "One and two."


async def test_long_answers_come_in_parts(desk: Desk) -> None:
    """Every part is within the limits, and no word is lost."""
    words = " ".join(f"word{number}" for number in range(200))
    desk.answers(Text(f"{words}\n```python\nprint(1)\n```"))
    async with desk.gateway(characters=300) as server:
        await server.say("@ann", "at length")
        await server.seen("print(1)")
        assert all(len(text) <= 300 for text in server.texts)
        assert "word0 " in server.texts[0]
        assert " ".join(server.texts).count("word") == 200


async def test_nothing_is_lost_or_doubled_over_restarts(desk: Desk) -> None:
    """What came while the gateway was away is heard, what came twice counts once, answers come once."""
    desk.answers(*(Text(f"Answer {number}.") for number in range(1, 5)))
    async with desk.gateway() as server:
        await server.say("@ann", "one")
        await server.seen("Answer 1.")
    await server.say("@ann", "two")
    server.events.append(server.events[0])  # delivered again
    async with desk.gateway():
        await server.seen("Answer 2.")
        await server.say("@bo", "three")
        await server.seen("Answer 3.")
    async with desk.gateway():
        await server.say("@bo", "four")
        await server.seen("Answer 4.")
    answers = [text for text in server.texts if text.startswith("Answer")]
    assert answers == [f"Answer {number}." for number in range(1, 5)]


@pytest.mark.parametrize("is_idempotent", [True, False])
@pytest.mark.parametrize("arrives", [True, False])
async def test_a_broken_connection_neither_loses_nor_doubles(
    desk: Desk, is_idempotent: bool, arrives: bool
) -> None:
    """With keys a message is sent again; without, people are told, and can have it said again."""
    desk.answers(Text("The answer."))
    server = desk.server
    server.faults = [(NotSent("slow down", seconds=0.01), False), (OSError("cut"), arrives)]
    async with desk.gateway(is_idempotent=is_idempotent):
        await server.say("@ann", "ask")
        if is_idempotent:
            await server.seen("The answer.")
        else:
            await server.seen("`!again` says it again")
            assert server.texts.count("The answer.") == int(arrives)
            await server.say("@ann", "!again")
            await server.seen("The answer.", 1 + int(arrives))
        assert server.texts.count("The answer.") == (1 if is_idempotent else 1 + int(arrives))


async def test_no_room_runs_a_command_of_ones_own(desk: Desk) -> None:
    """`!COMMAND` is a message there, and `!shell` is refused, also of those who may approve."""
    model = desk.answers(Text("Well."))
    async with desk.gateway() as server:
        await server.say("@ann", "!touch stolen")
        await server.seen("Well.")
        await server.say("@ann", "!shell touch stolen")
        await server.seen("for the person at the machine")
    assert "!touch stolen" in model.requests[0].prompt
    assert not list(desk.place.folder.rglob("stolen"))


async def test_a_message_that_cannot_be_sent_does_not_hold_up_the_next(desk: Desk) -> None:
    """A mistake of the platform with one message is logged, and does not end the gateway."""
    desk.answers(Text("The first."), Text("The second."))
    server = desk.server
    server.faults = [(ValueError("planted"), False)]
    async with desk.gateway(is_idempotent=True):
        await server.say("@ann", "one")
        await server.say("@ann", "two")
        await server.seen("The second.")
        assert server.faults == []


async def test_a_gap_is_said(desk: Desk) -> None:
    """Where the platform keeps nothing, people learn since when they were not heard."""
    desk.answers(Text("x"))
    async with desk.gateway() as server:
        await server.do(Gap(room="#dev", since=0.0))
        await server.seen("what was said here since 00:00:00 UTC I did not hear")


async def test_files_come_with_a_message(desk: Desk) -> None:
    """A text is read by the agent; anything else is named."""
    model = desk.answers(Text("Read."))
    async with desk.gateway() as server:
        files = (
            SentFile(name="a.txt", size=3, text="abc"),
            SentFile(name="b.png", size=9),
        )
        await server.say("@ann", "look", files=files)
        await server.seen("Read.")
    said = model.requests[0].body["messages"][-1]["content"]
    assert "`a.txt` holds:\n```\nabc\n```" in said
    assert "[`b.png`, 9 bytes" in said


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("!exit", "for a terminal"),
        ("!export x.md", "you do not have the right `approve`"),
        ("!goal x --gate 'rm -rf /'", "you do not have the right"),
        ("!busy interrupt", "you do not have the right `approve`"),
    ],
)
async def test_commands_of_somebody_with_the_usual_rights(desk: Desk, line: str, said: str) -> None:
    """What only looks is answered; what touches files or settings is refused."""
    desk.answers(Text("x"))
    async with desk.gateway() as server:
        await server.say("@bo", line)
        await server.seen(said)


async def test_of_all_commands_people_give_those_that_are_theirs(desk: Desk) -> None:
    """A stranger none, and who may speak none that needs `approve`; each is answered, none runs."""
    model = desk.answers(Text("Hello."))
    beyond = [name for name, one in DECLARED.items() if not one.is_shared and name not in NOT_HERE]
    async with desk.gateway() as server:
        for name in DECLARED:
            await server.say("@eve", f"!{name} touch stolen")
        for name in beyond:
            needed = [one for one in DECLARED[name].parameters if one.is_needed]
            given = ["7" if one.type is int else "stolen" for one in needed]
            said = await server.say("@bo", " ".join((f"!{name}", *given)))
            await server.until(lambda said=said: said in {one.to for one in server.shown.values()})
            (answer,) = (one.text for one in server.shown.values() if one.to == said)
            assert "you do not have the right `approve`" in answer, name
        assert sum("I do not know you" in text for text in server.texts) == 1
        await server.say("@bo", "hello")
        await server.seen("Hello.")
    assert len(beyond) > 10
    assert len(model.requests) == 1
    assert "stolen" not in str(model.requests[0].body)
    assert not list(desk.place.folder.rglob("stolen"))


async def test_help_lists_what_a_room_has(desk: Desk) -> None:
    """With its marks and its own commands, and without those of a terminal."""
    desk.answers(Text("x"))
    async with desk.gateway() as server:
        await server.say("@bo", "!help")
        await server.seen("!queue")
        said = server.find("!queue")[1].text
        await server.say("@bo", "!help quit")
        await server.seen("No command or group")
    assert "!more says" in said
    assert not {"!exit", "!detach", "!new", "!resume"} & {*said.split()}
    assert "lists the keys" not in said


async def test_only_what_is_addressed_is_heard_where_a_room_says_so(desk: Desk) -> None:
    """People can talk to each other in a room of that kind, also about what the gateway is called."""
    model = desk.answers(Text("Yes?"), Text("And?"), Text("Well."))
    async with desk.gateway({"#dev": {"only_addressed": True}}) as server:
        await server.say("@bo", "did you see the game?")
        await server.say("@bo", "steers are cows in this game")
        await server.say("@bo", "@steers hello")
        await server.seen("Yes?")
        await server.say("@bo", "go on", to=server.find("Yes?")[0])
        await server.seen("And?")
        await server.say("@bo", "what else?", is_addressed=True)
        await server.seen("Well.")
    assert model.requests[0].body["messages"][-1]["content"].endswith("] hello")
    assert "game" not in str(model.requests[-1].body)


@pytest.mark.parametrize(
    ("said", "heard"),
    [
        ("steers are cows", "steers are cows"),
        ("@steersman is a nick", "@steersman is a nick"),
        ("Steers, are you there?", "are you there?"),
        ("@steers: go", "go"),
    ],
)
async def test_a_name_is_an_address_with_its_mark(desk: Desk, said: str, heard: str) -> None:
    """A first word that is the gateway's name is a word, unless it ends in a colon or a comma."""
    model = desk.answers(Text("Yes?"))
    async with desk.gateway() as server:
        await server.say("@ann", said)
        await server.seen("Yes?")
    content = model.requests[0].body["messages"][-1]["content"]
    assert content.removeprefix("[New message from ann] ") == heard


async def test_a_subagent_asks_the_room(desk: Desk) -> None:
    """Its question comes with its name, and is answered there; a late button does nothing."""
    asks = Tools([{"tool": "shell", "arguments": {"command": "echo ran > out"}}], match="Count")
    task = {"task": "Count the stars.", "name": "counter"}
    delegates = Tools([{"tool": "delegate", "arguments": task}], match="build")
    desk.answers(delegates, asks, Text("Counted.", match="Count"), Text("All is well."))
    async with desk.gateway(has_choices=True) as server:
        await server.say("@ann", "build it")
        await server.seen("counter asks: May I run `shell`?")
        message, asked = server.find("counter asks")
        assert asked.choices == ("allow", "always", "deny")
        await server.choose("@bo", message, "allow")
        await server.seen("you do not have the right `approve`")
        assert not (desk.place.folder / "out").exists()
        await server.say("@ann", "yes", to=message)
        await server.seen("All is well.")
        await server.seen(": allowed.")
        await server.choose("@ann", message, "deny")
        await server.seen("not open any more")
    assert (desk.place.folder / "out").exists()


async def test_a_long_text_is_cut_until_somebody_asks_for_the_rest(desk: Desk) -> None:
    """On a platform of lines, so many come; `!more` says the next ones, and all of them come once."""
    desk.answers(Text("\n".join(f"line {number}" for number in range(10))))
    async with desk.gateway({"#dev": {"parts": 4}}, lines=1) as server:
        await server.say("@ann", "at length")
        await server.seen("6 more lines: `!more` says the next 4.")
        assert not any("line 4" in text for text in server.texts)
        await server.say("@bo", "!more")
        await server.seen("2 more lines: `!more` says the next 2.")
        await server.say("@bo", "!more")
        await server.seen("line 9")
        await server.say("@bo", "!more")
        await server.seen("There is no more.")
    lines = [text for text in server.texts if text.startswith("line")]
    assert lines == [f"line {number}" for number in range(10)]


async def test_a_fault_is_answered_and_the_next_message_is_dealt_with(desk: Desk) -> None:
    """A folder that was lost is named to who says something; when it is there again, all goes on."""
    model = desk.answers(Text("One."), Text("Two."))
    folder = desk.place.folder / "work"
    rooms = {"#dev": {"folder": str(folder)}}
    server = desk.server
    folder.mkdir()
    async with desk.gateway(rooms):
        await server.say("@ann", "one")
        await server.seen("One.")
        await server.say("@ann", "!finalize")
        await server.seen("finalized")
        folder.rmdir()
        await server.say("@ann", "lost")
        await server.seen("That failed: `" + str(folder))
    async with desk.gateway(rooms):
        await server.say("@ann", "still lost")
        await server.seen("That failed", 2)
        folder.mkdir()
        await server.say("@ann", "two")
        await server.seen("Two.")
    assert [request.prompt[-5:] for request in model.requests] == ["] one", "] two"]


async def test_a_mistake_in_a_platform_is_named(desk: Desk) -> None:
    """The error of its own code ends the gateway as it is, so that its author finds it."""
    desk.answers(Text("x"))

    class Broken(ServerPlatform):
        """It knows no place."""

        async def inbound(self, memory: Any) -> AsyncGenerator[Any]:
            """Fail."""
            raise KeyError(memory.get("place"))
            yield

    gateway = ChatGateway("memory", lambda own, names: Broken(Server()))
    async with steersman.open(desk.place.home) as home:
        with pytest.raises(KeyError):
            await gateway(home, {"rooms": ROOM})


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "it has no rooms"),
        ({"rooms": {"#dev": {"agnet": "x"}}}, "`agnet`: there is no such key"),
        ({"rooms": {"#dev": {"folder": "/nowhere"}}}, "no folder `/nowhere`"),
    ],
)
async def test_mistakes_of_the_table(desk: Desk, settings: dict[str, Any], said: str) -> None:
    """Each is named with the gateway and the room."""
    desk.answers(Text("x"))
    gateway = ChatGateway("memory", lambda own, names: ServerPlatform(Server()))
    async with steersman.open(desk.place.home) as home:
        for use in (gateway(home, settings), gateway.check(settings)):
            with pytest.raises(ConfigError, match="gateway `memory`") as fault:
                await use
            assert said in fault.value.message


async def test_a_name_that_nobody_can_have_is_a_mistake(desk: Desk) -> None:
    """It is in no message: the person would never be heard, and nobody would know why."""
    desk.answers(Text("x"))

    class Strict(ServerPlatform):
        """Its names begin with a mark."""

        def sender_of(self, name: str) -> str:
            """Refuse a name without it."""
            raise ValueError(f"{name} has no mark")

    gateway = ChatGateway("memory", lambda own, names: Strict(Server()))
    async with steersman.open(desk.place.home) as home:
        with pytest.raises(ConfigError, match="`@ann` is no name on `memory`: @ann has no mark"):
            await gateway(home, {"rooms": ROOM})


@pytest.mark.parametrize("on_restart", ["wait", "resume"])
async def test_a_room_learns_what_becomes_of_its_queue(desk: Desk, on_restart: str) -> None:
    """What waited is announced with the room's own commands, or it runs, and is announced so."""
    model = desk.answers(Hang(), Text("Second."), Text("Third."))
    rooms = {"#dev": {"on_restart": on_restart}}
    async with desk.gateway(rooms) as server:
        await server.say("@ann", "one")
        await asyncio.to_thread(model.wait_requests, 1)
        await server.say("@ann", "two")
        await server.seen("#2")
    async with desk.gateway(rooms):
        if on_restart == "wait":
            await server.seen("not auto-resuming")
            await server.seen("`!queue resume` to continue")
            await server.say("@ann", "!queue resume")
        else:
            await server.seen("from previous session (resuming)")
        await server.seen("Third.")


async def test_a_damaged_row_of_a_store_holds_no_other_up(tmp_path: Path) -> None:
    """What people said behind it is dealt with, and what waits to be sent behind it is sent."""
    store = GatewayStore(tmp_path / "irc.sqlite")
    await store.open()
    for key in ("one", "two"):
        said = Said(id=key, room="room", sender="ann", text=key)
        await store.receive("room", key, said)
        await store.write(OutboxMessage(outgoing=Outgoing(key=key, room="room", text=key)))
    with sqlite3.connect(tmp_path / "irc.sqlite") as connection:
        for table in ("inbox", "outbox"):
            connection.execute(f"UPDATE {table} SET data = 'x' WHERE id = 1")
    connection.close()
    received, outgoing = await store.next_received("room"), await store.next_outgoing("room")
    await store.aclose()
    assert received is not None
    assert outgoing is not None
    assert (received.id, outgoing.message.outgoing.key) == (2, "two")
