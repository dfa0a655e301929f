"""Delegation: talk never stops a child, a cancel always does, and nothing that it had is lost."""

import signal
import time
from collections.abc import Callable, Generator
from typing import Any

import pytest
from support.driver import Chat, Event, Gate, Place, wait_gone
from support.model_server import Behaviour, Door, ModelServer, Text, Tools
from support.until import until

from steersman.gateway.views.saved_queues import announce

PARENT, KID = "build the report", "count the stars"


def delegate(*calls: dict[str, Any], match: str = PARENT) -> Tools:
    """Answer with calls of the tool `delegate`."""
    return Tools([{"tool": "delegate", "arguments": call} for call in calls], match=match)


def shell(command: str, match: str = KID, text: str = "") -> Tools:
    """Answer with one shell command."""
    return Tools([{"tool": "shell", "arguments": {"command": command}}], text=text, match=match)


@pytest.fixture
def gates(place: Place) -> Generator[Callable[[str], Gate]]:
    """Make gates by name."""
    made: list[Gate] = []

    def make(name: str) -> Gate:
        made.append(Gate(place.folder, name))
        return made[-1]

    yield make
    for one in made:
        one.close()


@pytest.fixture
def family(place: Place, serve, gate: Gate) -> Callable[..., tuple[Chat, ModelServer, int]]:
    """Start a chat whose agent waits for `kid`, which runs a command until the gate opens."""

    def start(*then: Behaviour, top: str = "", kid: dict[str, Any] | None = None, said: str = ""):
        call = {"task": KID, "name": "kid", **(kid or {})}
        server = serve(
            delegate(call),
            shell(f"sleep 600 & {gate.command}; echo 42", text=said),
            *then,
            Text("All is well."),
            top=top,
        )
        chat = place.chat("--yes")
        chat.send(PARENT)
        return chat, server, gate.wait()

    return start


def of(chat: Chat, *kinds: str) -> list[Event]:
    """Return the events of the session itself, not of its children."""
    return [event for event in chat.seen(*kinds) if "parent" not in event]


def results(server: ModelServer, request: int) -> list[str]:
    """Return what the tool calls of a request's conversation gave."""
    return [
        message["content"]
        for message in server.requests[request].body["messages"]
        if message["role"] == "tool"
    ]


def test_a_child_gives_its_result_to_the_call(place: Place, family, gate: Gate) -> None:
    """The parent waits, and its next request holds the child's last word as the call's result."""
    chat, server, _ = family(Text("There are 42.", match="42"))
    gate.open()
    ended = chat.wait("child_ended")
    assert (ended["name"], ended["status"]) == ("kid", "completed")
    chat.wait("turn_ended", status="completed", session=chat.session)
    assert chat.close() == 0
    assert "All is well." in results(server, 3)[0]
    assert not place.processes()
    assert "'completed'" in str(place.stored(chat.session))


@pytest.mark.parametrize("said", ["/stop", "please just stop"])
def test_a_stop_reaches_parent_and_child(place: Place, family, said: str) -> None:
    """Parent, child, and every process of both are dead, and an event lists them."""
    chat, server, pid = family()
    asked = len(server.requests)
    ended = chat.causes(said, "child_ended")
    assert ended["status"] == "cancelled"
    stopped = chat.wait("stopped", session=chat.session)
    assert pid in stopped["killed"]
    assert not stopped["survivors"]
    assert not wait_gone([pid], 0.0)
    assert chat.close() == 0
    assert len(server.requests) == asked
    assert not place.processes()


def test_a_child_of_a_child_is_stopped_by_its_name(place: Place, serve, gate: Gate) -> None:
    """`/agents stop NAME` finds it wherever it is in the tree; those above it go on."""
    serve(
        delegate({"task": "lead kid", "name": "boss"}),
        delegate({"task": KID, "name": "kid"}, match="lead kid"),
        shell(f"sleep 600 & {gate.command}"),
        Text("All is well."),
    )
    chat = place.chat("--yes")
    chat.send(PARENT)
    pid = gate.wait()
    agents = chat.ask("/agents")["data"]["agents"]
    assert [(agent["path"], agent["depth"]) for agent in agents] == [("boss", 0), ("boss/kid", 1)]
    assert chat.ask("/agents stop kid")["ok"]
    assert chat.wait("child_ended", name="boss")["status"] == "completed"
    chat.wait("turn_ended", status="completed", session=chat.session)
    assert not wait_gone([pid], 0.0)
    assert [event["status"] for event in chat.seen("child_ended", name="kid")] == ["cancelled"]


def test_a_word_in_talk_spares_the_child(family, gate: Gate) -> None:
    """An interrupt word in a message that says more is talk while a child works."""
    chat, _, _ = family()
    assert chat.ask("/busy interrupt")["ok"]
    accepted = chat.causes("make the exit code 2 instead", "accepted", **{"as": "queue"})
    assert (accepted["matched"], accepted["ack"]) == ("exit", "word_queued")
    gate.open()
    assert chat.wait("child_ended")["status"] == "completed"
    chat.wait("turn_started", number=2)
    assert chat.close() == 0


def test_a_background_child_outlives_the_turn(place: Place, family, gate: Gate) -> None:
    """The parent goes on at once; the result is offered when nothing runs, and runs when kept."""
    chat, server, _ = family(Text("Off it goes.", match=PARENT), kid={"background": True})
    chat.wait("turn_ended", status="completed", session=chat.session)
    gate.open()
    chat.wait("child_ended", status="completed")
    items = chat.wait("queue", items=lambda items: bool(items), session=chat.session)["items"]
    assert [(item["state"], item["text"]) for item in items] == [("offered", "All is well.")]
    assert chat.ask("/queue keep")["ok"]
    chat.wait("turn_ended", status="completed", session=chat.session)
    assert chat.close() == 0
    said = server.requests[-1].body["messages"][-1]["content"]
    assert said == "[Result from kid] All is well."
    assert not place.processes()


def test_stop_reaches_a_background_child(family) -> None:
    """With no turn running, a stop still ends every child in the background."""
    chat, _, pid = family(Text("Off it goes.", match=PARENT), kid={"background": True})
    chat.wait("turn_ended", status="completed", session=chat.session)
    assert chat.ask("/stop")["data"]["children"] == ["kid"]
    stopped = chat.wait("stopped", session=chat.session)
    assert pid in stopped["killed"]
    assert not wait_gone([pid], 0.0)


def test_a_child_in_the_background_goes_on_when_told(family, gate: Gate) -> None:
    """What a stop interrupted beside the turns goes on with `/queue resume`, with its result."""
    chat, _, _ = family(Text("Off it goes.", match=PARENT), kid={"background": True})
    chat.wait("turn_ended", status="completed", session=chat.session)
    chat.send("/stop")
    chat.wait("stopped", session=chat.session)
    resumed = chat.ask("/queue resume")
    assert chat.wait("child_ended", status="completed")["name"] == "kid"
    assert resumed["data"]["children"] == ["kid"]
    assert "kid goes on" in resumed["text"]


def test_after_a_crash_parent_and_child_go_on(place: Place, family, gate: Gate) -> None:
    """Kill -9 leaves nothing running; the child is interrupted, and goes on with its parent."""
    chat, server, pid = family()
    session = chat.session
    chat.kill()
    assert not wait_gone([pid, *place.processes()])
    asked = len(server.requests)
    again = place.chat("--yes", "--resume", session)
    assert again.wait("recovered")["unknown"] == []  # the call of the child goes on with it
    agents = again.ask("/agents")["data"]["agents"]
    assert [(agent["name"], agent["state"]) for agent in agents] == [("kid", "interrupted")]
    assert len(server.requests) == asked
    resumed = again.causes("/queue resume", "child_started")
    assert (resumed["resumed"], resumed["id"]) == (True, agents[0]["id"])
    assert again.wait("child_ended")["status"] == "completed"
    again.wait("turn_ended", status="completed", session=session)
    assert again.close() == 0
    said = server.requests[-1].body["messages"]
    assert "[Result from kid] All is well." in said[-1]["content"]
    (of_call,) = (one["content"] for one in said if one["role"] == "tool")
    assert of_call.startswith(
        "[The program died while this subagent worked. It goes on when you do"
    )


def test_leaving_stops_children_too(place: Place, family) -> None:
    """SIGTERM suspends parent and child; the child can be resumed."""
    chat, _, pid = family()
    assert chat.signal(signal.SIGTERM) == 143
    assert not wait_gone([pid], 0.0)
    assert not place.processes()
    again = place.chat("--resume", chat.session)
    again.wait("recovered")
    assert again.ask("/agents")["data"]["agents"][0]["state"] == "interrupted"


def test_new_finalizes_children(place: Place, family) -> None:
    """`/new` finalizes the session with all beneath it."""
    chat, _, pid = family()
    first = chat.session
    assert chat.ask("/new")["ok"]
    assert not wait_gone([pid], 0.0)
    assert chat.close() == 0
    finalized = [event["session"] for event in chat.seen("session_finalized")]
    assert finalized == [f"{first}-1", first]


def test_a_stopped_side_talk_is_not_offered(place: Place, serve, gate: Gate) -> None:
    """Its end is an event, it is listed as interrupted, and resuming the queue continues it."""
    door = Door()
    zod = Text("Zod.", match="faster", times=0, door=door)
    serve(shell(gate.command, match=PARENT), zod, Text("Done."))
    chat = place.at_work(gate, PARENT)
    chat.causes("/smalltalk which is faster?", "child_started", relation="side_talk")
    assert chat.ask("/stop")["ok"]
    ended = chat.wait("side_talk_ended")
    assert (ended["status"], ended["resumable"], ended["number"]) == ("cancelled", True, 2)
    assert "#2 [INTERRUPTED]: which is faster?" in chat.ask("/queue")["text"]
    door.open()
    assert chat.ask("/queue resume")["ok"]
    assert chat.wait("side_talk_ended")["text"] == "Zod."
    assert chat.ask("/queue pop 2")["ok"]
    gate.open()


def test_a_child_asks_and_is_answered(place: Place, serve, gate: Gate) -> None:
    """A child's question is answered by its id; while it is open, its parent waits for a person, too."""
    serve(
        delegate({"task": KID, "name": "kid"}),
        shell("echo hello > greeting.txt"),
        Text("Done."),
    )
    chat = place.chat()
    question = chat.causes(PARENT, "question")
    assert question["parent"] == chat.session
    listed = place.data("sessions", "list")["sessions"]
    shown = place.data("sessions", "show", "last")["session"]
    for session in (next(row for row in listed if row["id"] == chat.session), shown):
        assert (session["state"], session["needs"]) == ("waiting", "1 question")
    chat.answer(question, "allow")
    chat.wait("child_ended", status="completed")
    chat.wait("turn_ended", status="completed", session=chat.session)
    assert chat.close() == 0
    assert (place.folder / "greeting.txt").read_text() == "hello\n"


def test_an_agent_dismisses_its_own_subagent(place: Place, serve, gate: Gate) -> None:
    """The agent ends a helper of its own with a tool: its command dies, and what it had comes back."""
    door, end = Door(), Door()
    server = serve(
        delegate({"task": KID, "name": "kid", "background": True}),
        shell(f"sleep 600 & {gate.command}; echo 42", text="I have seen 7 so far."),
        Tools([{"tool": "dismiss", "arguments": {"name": "other"}}], match=PARENT, door=door),
        Tools([{"tool": "dismiss", "arguments": {"name": "kid"}}], match=PARENT),
        Text("I go on without.", match=PARENT, door=end),
        Text("All is well."),
    )
    chat = place.chat("--yes")
    chat.send(PARENT)
    pid = gate.wait()
    door.open()
    ended = chat.wait("child_ended")
    assert (ended["name"], ended["status"]) == ("kid", "cancelled")
    assert wait_gone([pid], 2.0) == []
    end.open()
    chat.wait("turn_ended", status="completed", session=chat.session)
    assert chat.close() == 0
    assert not place.processes()
    said = [message["content"] or "" for message in server.requests[-1].body["messages"]]
    assert any("No subagent `other` works" in one for one in said)
    assert said[-1].startswith("[Result from kid]")
    assert "I have seen 7 so far." in said[-1]


@pytest.mark.parametrize("leaves", ["exit", "kill"])
def test_a_child_that_was_cut_off_is_announced(place: Place, family, leaves: str) -> None:
    """What worked in the background, when no turn ran, is named by the next start, and goes on."""
    chat, _, _ = family(Text("Off it goes.", match=PARENT), kid={"background": True})
    chat.wait("turn_ended", status="completed", session=chat.session)
    if leaves == "kill":
        chat.kill()
    else:
        chat.send("/exit")
        assert chat.ended() == 0
    rows = place.data("sessions", "list")["sessions"]
    assert [row["interrupted"] for row in rows if row["parent"] is None] == [1]
    again = place.chat("--yes")
    (saved,) = again.wait("saved_queues")["saved"]
    assert (saved["items"], saved["children"]) == ([], ["kid"])
    assert again.ask("/queue resume")["text"] == "kid goes on."
    again.wait("child_ended", status="completed")


@pytest.mark.parametrize("leaves", ["exit", "kill"])
def test_an_answer_that_waits_for_a_decision_is_announced(
    place: Place, family, gate: Gate, leaves: str
) -> None:
    """The next start names it, and says what can be done with it: it runs by no resume."""
    chat, _, _ = family(Text("Off it goes.", match=PARENT), kid={"background": True})
    chat.wait("turn_ended", status="completed", session=chat.session)
    gate.open()
    chat.wait("queue", items=lambda items: bool(items), session=chat.session)
    if leaves == "kill":
        chat.kill()
    else:
        assert chat.close() == 0
    of = f"--session {chat.session}"
    assert place.run("queue", "list", "last").stdout.splitlines() == [
        "#1 [OFFERED] from kid: All is well.",
        f"`steersman queue keep 1 {of}` makes #1 a message, `steersman queue pop 1 {of}` drops it.",
    ]
    again = place.chat("--yes")
    (saved,) = again.wait("saved_queues")["saved"]
    assert [item["state"] for item in saved["items"]] == ["offered"]
    assert "`/queue keep` to let the answer wait" in announce(saved, time.time())
    way = "`/queue steer 1` hands #1 over, `keep` or `pop` decides otherwise."
    assert again.ask("/queue")["text"].splitlines()[1:] == [
        "#1 [OFFERED] from kid: All is well.",
        way,
    ]
    assert again.ask("/queue resume")["text"] == way
    assert again.ask("/queue keep")["ok"]
    again.wait("turn_ended", status="completed")


def test_a_stopped_child_of_the_background_is_counted(place: Place, family) -> None:
    """The queue event says that something can go on, here and to a second client; a resume ends that."""
    chat, _, _ = family(Text("Off it goes.", match=PARENT), kid={"background": True})
    chat.wait("turn_ended", status="completed", session=chat.session)
    assert chat.ask("/queue")["text"] == "The queue is empty."
    chat.send("/stop")
    chat.wait("child_ended", session=chat.session)
    assert chat.wait("queue", session=chat.session)["resumable"] == 1
    assert chat.ask("/queue")["text"] == "Nothing waits. `/queue resume` goes on with kid."
    assert chat.ask("/queue resume")["text"] == "kid goes on."
    assert "resumable" not in [event for event in of(chat, "queue") if "items" in event][-1]


def test_a_stopped_child_of_the_background_is_listed_with_what_is_held(
    place: Place, family
) -> None:
    """In every list of what waits, as what goes on when the queue is resumed."""
    chat, _, _ = family(Text("Off it goes.", match=PARENT), kid={"background": True})
    chat.wait("turn_ended", status="completed", session=chat.session)
    chat.kill()
    session, kid = chat.session, "[INTERRUPTED] subagent kid"
    alone = place.run("queue", "list", session).stdout.splitlines()
    assert (alone[0], "/queue resume" in alone[1]) == (kid, True)
    assert place.data("queue", "list", session)["children"] == ["kid"]
    assert place.run("send", session, "and the moon").returncode == 0
    message = "#1 [PENDING]: and the moon"
    assert place.run("queue", "list", session).stdout.splitlines()[:2] == [message, kid]
    again = place.chat("--yes", "--resume", session)
    again.wait("recovered")
    held = "Held. /queue resume runs them."
    assert again.ask("/queue")["text"].splitlines() == [message, kid, held]
    assert again.ask("/queue restore")["text"].splitlines()[:2] == [message, kid]
    assert "kid goes on." in again.ask("/queue resume")["text"]


def test_a_stopped_child_of_the_background_is_discarded(place: Place, family) -> None:
    """With all that is saved: no later resume brings it back, and nobody is asked about its result."""
    chat, _, _ = family(Text("Off it goes.", match=PARENT), kid={"background": True})
    chat.wait("turn_ended", status="completed", session=chat.session)
    chat.send("/stop")
    chat.wait("child_ended", session=chat.session)
    assert chat.ask("/queue discard")["text"] == "Discarded the stopped kid."
    assert chat.ask("/queue resume")["text"] == "Nothing waits."
    assert chat.ask("/queue")["text"] == "The queue is empty."


def test_a_stopped_child_that_is_ended_gives_what_it_had(place: Place, family) -> None:
    """It was stopped to go on, and then ended: its parent has the part that it had said."""
    off = Text("Off it goes.", match=PARENT)
    chat, _, _ = family(off, kid={"background": True}, said="I see 40 so far.")
    chat.wait("turn_ended", status="completed", session=chat.session)
    chat.send("/stop")
    chat.wait("stopped", session=chat.session)
    assert chat.ask("/agents stop kid")["ok"]
    until(lambda: "What it had: I see 40 so far." in chat.ask("/queue")["text"])


def test_a_child_of_a_turn_that_was_taken_back_stays_stopped(
    place: Place, serve, gate: Gate
) -> None:
    """Its files are gone on purpose: no resume brings it back, and none says so, until that is undone."""
    serve(
        delegate({"task": KID, "name": "kid", "background": True}),
        shell(f"echo kid > made.txt; sleep 600 & {gate.command}"),
        Text("Off it goes.", match=PARENT),
        Text("All is well."),
    )
    chat = place.at_work(gate, PARENT)
    chat.wait("turn_ended", status="completed", session=chat.session)
    chat.send("/stop")
    chat.wait("child_ended", session=chat.session)
    assert chat.wait("queue", session=chat.session)["children"] == ["kid"]
    assert chat.ask("/revert")["data"]["restored"] == ["made.txt"]
    chat.wait("reverted")
    assert chat.wait("queue").keys().isdisjoint({"resumable", "children"})
    assert chat.ask("/queue resume")["text"] == "Nothing waits."
    assert chat.ask("/queue")["text"] == "The queue is empty."
    assert chat.ask("/revert undo")["ok"]
    chat.wait("reverted")
    assert chat.wait("queue")["resumable"] == 1
    assert chat.ask("/queue resume")["text"] == "kid goes on."


@pytest.mark.nightly
def test_what_is_said_to_a_subagent_is_told_once_to_whoever_is_attached(
    place: Place, family, gate: Gate
) -> None:
    """By whom it was said; the subagent's own receipt of it tells nothing more."""
    chat, _, _ = family(Text("Noted."))
    ann = place.attach("last", "--user", "ann")
    ann.wait("session_started")
    chat.send({"text": "look closely", "as": "steer"})
    ann.send({"text": "and quickly", "as": "steer"})
    until(lambda: len(of(chat, "accepted")) == 3, "both messages")
    gate.open()
    ann.wait("turn_ended", status="completed", session=chat.session)
    told = [event["text"] for event in ann.seen("notice") if "look" in event["text"]]
    assert told == ["user: look closely"]
    assert not [event for event in ann.seen("notice") if "quickly" in event["text"]]
    assert ann.close() == chat.close() == 0


def test_a_stop_of_two_in_the_background_leaves_both_to_be_resumed(
    place: Place, serve, gate: Gate
) -> None:
    """One whose own turn is over waits for the one that works for it, and is interrupted with that."""
    serve(
        delegate({"task": "boss's task", "name": "boss", "background": True}),
        delegate({"task": KID, "name": "kid", "background": True}, match="boss's task"),
        shell(gate.command, match=KID),
        Text("Off they go.", times=0),
    )
    chat = place.chat("--yes")
    chat.send(PARENT)
    pid = gate.wait()
    until(lambda: len(chat.seen("turn_ended")) == 2)
    stopped = chat.causes("/stop", "stopped", session=chat.session)
    assert pid in stopped["killed"]
    agents = chat.ask("/agents")["data"]["agents"]
    assert [(agent["path"], agent["state"]) for agent in agents] == [
        ("boss", "interrupted"),
        ("boss/kid", "interrupted"),
    ]
    gate.open()
    assert chat.ask("/queue resume")["data"]["children"] == ["boss"]
    ended = {chat.wait("child_ended", status="completed")["name"] for _ in range(2)}
    assert ended == {"boss", "kid"}
