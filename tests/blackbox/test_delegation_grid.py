"""Delegation, the whole grid: each way to be delegating against each thing that a person can do.

Two tables say it: `TALK`, after which everybody lives, and `CANCELS`, after which no process is left.
All that a scene is told in one program start stands in one test.
"""

import signal
from collections.abc import Generator, Iterable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import pytest
from support.driver import Chat, Gate, Place, wait_gone
from support.model_server import Behaviour, ModelServer, Recorded, Text, Tools, shell
from support.nightly import daily

PARENT, AGENT = "build report", "report"


@dataclass(frozen=True)
class Scene:
    """Whom the agent delegates to; `workers` run a command each until a test lets them go on.

    `aside`: the agent goes on itself, with a command of its own. `waiting` begin when there is room.
    `through`: who hears a steer that names nobody; `named`: who hears one for the last child.
    """

    calls: Sequence[dict[str, Any]]
    workers: tuple[str, ...]
    aside: bool = False
    waiting: tuple[str, ...] = ()
    through: tuple[str, ...] = ()
    named: str = ""
    rest: str = ""

    @property
    def names(self) -> list[str]:
        """Who the agent's own children are."""
        return [call["name"] for call in self.calls]


def kid(name: str, task: str = "", **more: Any) -> dict[str, Any]:
    """Arguments of `delegate`."""
    return {"task": task or f"count {name}", "name": name, **more}


BOB = {"tool": "delegate", "arguments": kid("bob")}
SCENES = {
    "one": Scene([kid("kid")], ("kid",), through=("kid",), named="kid"),
    "two": Scene([kid("ann"), kid("bob")], ("ann", "bob"), through=("ann", "bob"), named="bob"),
    "nested": Scene([kid("boss", "lead kid")], ("kid",), through=("kid",), named="kid"),
    "full": Scene(
        [kid("ann"), kid("bob")],
        ("ann",),
        waiting=("bob",),
        through=("ann", "bob"),
        named="bob",
        rest='[delegation]\nmax_children = 1\nwhen_full = "wait"',
    ),
    "background": Scene(
        [kid("kid", background=True)], ("kid", "own"), aside=True, through=(AGENT,), named="kid"
    ),
}


class Stage:
    """A scene, played by a model that reads the conversation and remembers nothing."""

    def __init__(self, place: Place, scene: Scene) -> None:
        self.place, self.scene = place, scene
        self.gates = {
            worker: Gate(place.folder, worker) for worker in (*scene.workers, *scene.waiting)
        }
        self.server = ModelServer(self.answer)
        place.configure(self.server.base_url, rest=scene.rest)

    def answer(self, request: Recorded) -> Behaviour:
        """Do what the newest task says, then say that it is done."""
        said = request.body["messages"]
        start = max(at for at, one in enumerate(said) if _is_task(one))
        verb, _, name = said[start]["content"].partition(" ")
        step = sum(message["role"] == "assistant" for message in said[start:])
        match verb, step:
            case "build", 0:
                return Tools([{"tool": "delegate", "arguments": call} for call in self.scene.calls])
            case "build", 1 if self.scene.aside:
                return self._work("own")
            case "lead", 0:
                return Tools([{"tool": "delegate", "arguments": kid(name)}])
            case "count", 0:
                return self._work(name)
            case _:
                return Text(f"The end of: {verb} {name}")

    def _work(self, name: str) -> Tools:
        command = f"sleep 600 & {self.gates[name].command}"
        return shell(command)

    def begin(self, chat: Chat) -> dict[str, int]:
        """Let the agent delegate; return the process ids of those at work."""
        chat.send({"text": PARENT, "as": "auto"})
        return {worker: self.gates[worker].wait() for worker in self.scene.workers}

    def heard(self, text: str) -> set[str]:
        """Say in whose requests a message is this text, or is it labelled: by their tasks."""
        found: set[str] = set()
        for request in self.server.requests:
            texts = [
                message["content"]
                for message in request.body["messages"]
                if message["role"] == "user"
            ]
            if any(text in one.split("\n") for one in texts):
                found.add(texts[0].partition(" ")[2])
        return found

    def close(self) -> None:
        """End what is left."""
        self.place.close()
        self.server.close()
        for gate in self.gates.values():
            gate.close()


def _is_task(message: dict[str, Any]) -> bool:
    return message["role"] == "user" and message["content"].startswith(
        ("build ", "lead ", "count ")
    )


@contextmanager
def playing(place: Place, name: str) -> Generator[Stage]:
    """Set a scene."""
    stage = Stage(place, SCENES[name])
    try:
        yield stage
    finally:
        stage.close()


class Said(NamedTuple):
    """Talk, in a busy mode: how it is taken (`ack`) while the agent waits, and while it does not.

    `reaches`: whoever works, the child named, or the agent; there as a steer or as a turn.
    """

    mode: str
    text: str
    waiting: str
    aside: str
    reaches: str


TALK = (
    Said("steer", "prefer tabs", "steered_child", "steered", "through"),
    Said("steer", "the cancel button is broken", "word_steered", "word_steered", "through"),
    Said("queue", "/steer slowly", "steered_child", "steered", "through"),
    Said("queue", "/steer @{child} only you", "steered_child", "steered_child", "named"),
    Said("queue", "/steer @parent and then", "steered", "steered", "agent"),
    Said("queue", "what is next?", "queued", "queued", "turn"),
    Said("queue", "stop, use zod instead", "word_queued", "word_queued", "turn"),
    Said("interrupt", "make the exit code 2 instead", "word_queued", "", "turn"),
    Said("interrupt", "how is it going?", "subagent_working", "", "turn"),
)
"""An empty `aside` stops the turn, and has a test of its own."""


@pytest.mark.parametrize("name", SCENES)
def test_talk_cancels_no_child(place: Place, name: str) -> None:
    """Whatever is said, everybody lives, is done, and each text is where it was announced to be."""
    with playing(place, name) as stage:
        scene = stage.scene
        chat = place.chat("--yes")
        pids = stage.begin(chat).values()
        for row in TALK:
            if ack := row.aside if scene.aside else row.waiting:
                talk(chat, row, scene, ack)
        assert wait_gone(pids, 0.0) == list(pids)
        for gate in stage.gates.values():
            gate.open()
        for _ in scene.names:
            assert chat.wait("child_ended", session=chat.session)["status"] == "completed"
        assert chat.close() == 0
        assert not chat.seen("interrupting")
        assert not place.processes()
        for row in TALK:
            if row.aside or not scene.aside:
                assert stage.heard(heard_as(row)) == who_hears(row, scene), row.text
        assert_behind_results(stage)


def talk(chat: Chat, row: Said, scene: Scene, ack: str) -> None:
    """Say it, and look at the receipt."""
    assert chat.ask(f"/busy {row.mode}")["ok"]
    chat.send(row.text.format(child=scene.names[-1]))
    accepted = chat.wait(
        "accepted", session=chat.session, **{"as": ("queue", "steer").__contains__}
    )
    assert accepted["ack"] == ack, row
    told = accepted.get("children", [])
    is_through = row.reaches == "through" and not scene.aside
    assert told == (scene.names if is_through else scene.names[-1:] * (row.reaches == "named"))


def heard_as(row: Said) -> str:
    """Return how a model sees it: a steer says who it is from."""
    text = row.text.removeprefix("/steer ")
    text = text.partition(" ")[2] if text.startswith("@") else text
    return text if row.reaches == "turn" else f"[New message from user] {text}"


def who_hears(row: Said, scene: Scene) -> set[str]:
    """Return the tasks of those whose requests hold it."""
    match row.reaches:
        case "through":
            return set(scene.through)
        case "named":
            return {scene.named}
        case _:
            return {AGENT}


def assert_behind_results(stage: Stage) -> None:
    """What is for the agent comes right behind the results it waited for, before its answer."""
    for request in stage.server.requests:
        said = request.body["messages"]
        texts = [str(message["content"]).split("\n") for message in said]
        for at, lines in enumerate(texts):
            if "[New message from user] and then" in lines:
                assert said[at - 1]["role"] == "tool"


@pytest.mark.parametrize("text", ["make the exit code 2 instead", "how is it going?"])
def test_talk_stops_a_turn_alone(place: Place, text: str) -> None:
    """In mode interrupt it stops an agent that works itself, and runs next; its child lives on."""
    with playing(place, "background") as stage:
        chat = place.chat("--yes")
        pids = stage.begin(chat)
        assert chat.ask("/busy interrupt")["ok"]
        accepted = chat.causes(text, "accepted", **{"as": "interrupt"})
        assert accepted["ack"] == ("word_interrupts" if "exit" in text else "interrupting")
        stopped = chat.wait("stopped", session=chat.session)
        assert pids["own"] in stopped["killed"]
        chat.wait("turn_ended", status="completed", session=chat.session)
        assert wait_gone([pids["kid"]], 0.0) == [pids["kid"]]
        stage.gates["kid"].open()
        assert chat.wait("child_ended")["status"] == "completed"
        assert chat.close() == 0
        assert stage.heard(text) == {AGENT}


@pytest.mark.parametrize("name", daily("full", "nested", of=SCENES))
def test_a_cancel_leaves_no_process(place: Place, name: str) -> None:
    """By word, command, name, crash or Ctrl-C: who it reaches is dead with all it started."""
    with playing(place, name) as stage:
        chat = place.chat("--yes")
        for said in ("please just stop", "/stop"):
            pids = stage.begin(chat)
            chat.send(said)
            ended = [chat.wait("child_ended", session=chat.session) for _ in stage.scene.names]
            assert {(event["status"], event.get("resumable")) for event in ended} == {
                ("cancelled", True)
            }
            stopped = chat.wait("stopped", session=chat.session)
            assert set(pids.values()) <= set(stopped["killed"])
            assert (stopped["survivors"], stage.place.left()) == ([], [])
        stop_by_name(stage, chat)
        first = end_for_good(stage, chat)
        again = crash(stage, chat)
        asked = stage.server.requests
        pids = stage.begin(again)
        assert again.signal(signal.SIGINT) == 130
        assert not wait_gone(pids.values(), 0.0)
        assert not place.processes()
        assert not {first} & {event["session"] for event in again.events}
        assert all("user" in {said["role"] for said in one.body["messages"]} for one in asked)


def stop_by_name(stage: Stage, chat: Chat) -> None:
    """End one after another with `/agents stop`: each alone; the agent goes on with what they had."""
    pids = stage.begin(chat)
    for name in reversed(stage.scene.names):
        chat.send(f"/agents stop {name}")
        called = partial(is_called, name=name)
        ended = chat.wait("child_ended", session=chat.session, name=called)
        assert (ended["status"], "resumable" in ended) == ("cancelled", False)
        others = [pid for one, pid in pids.items() if one != name and name != "boss"]
        assert wait_gone(others, 0.0) == others
        pids = {one: pid for one, pid in pids.items() if pid in others}
    if stage.scene.aside:
        stage.gates["own"].open()
    chat.wait("turn_ended", status="completed", session=chat.session)
    assert stage.place.left() == []


def is_called(found: str, name: str) -> bool:
    """Whether a child has this name; where an interrupted one bears it still, with a number."""
    return found.partition("-")[0] == name


def end_for_good(stage: Stage, chat: Chat) -> str:
    """Let `/new` end a session in the middle of its work; return which one that was."""
    first, pids = chat.session, stage.begin(chat)
    assert chat.ask("/new --yes")["ok"]
    assert not wait_gone(pids.values(), 0.0)
    assert stage.place.left() == []
    ended = {event["session"] for event in chat.seen("session_finalized")}
    assert first in ended
    return first


def crash(stage: Stage, chat: Chat) -> Chat:
    """Kill the program at work, and resume the session: nothing runs without a command."""
    pids = stage.begin(chat)
    chat.kill()
    assert not wait_gone([*pids.values(), *stage.place.processes()])
    asked = len(stage.server.requests)
    again = stage.place.chat("--yes", "--continue")
    again.wait("recovered")
    agents: Iterable[dict[str, Any]] = again.ask("/agents")["data"]["agents"]
    assert {(agent["state"]) for agent in agents} == {"interrupted"}
    assert len(stage.server.requests) == asked
    assert stage.place.left() == []
    return again


def test_two_children_do_not_write_to_one_file(place: Place, serve: Any, gate: Gate) -> None:
    """The second session's error names the file's owner; its turn continues, and so does the parent."""

    def write(content: str, match: str) -> Tools:
        call = {"tool": "write", "arguments": {"path": "notes.txt", "content": content}}
        return Tools([call], match=match)

    server = serve(
        Tools([{"tool": "delegate", "arguments": kid("ann")}, BOB], match="build"),
        shell("read word < wait.go", match="bob"),
        write("from ann", "ann"),
        Tools([gate.call], match="ann"),
        write("from bob", "bob"),
        Text("Somebody has it.", match="bob"),
        Text("Written.", match="ann"),
        write("from the parent", "build"),
        Text("All done."),
    )
    wait = Gate(place.folder, "wait")
    try:
        chat = place.at_work(gate, "build")
        wait.open()
        chat.wait("tool_ended", status="failed", tool="write")
        assert (place.folder / "notes.txt").read_text() == "from ann"
        gate.open()
        chat.wait("turn_ended", status="completed", session=chat.session)
        assert chat.close() == 0
    finally:
        wait.close()
    said = [message for asked in server.requests for message in asked.body["messages"]]
    assert any("subagent `ann` is changing" in str(message["content"]) for message in said)
    assert (place.folder / "notes.txt").read_text() == "from the parent"


def test_a_steer_names_a_child_of_a_child(place: Place) -> None:
    """`@boss/kid` goes to the child of the child alone, and its receipt comes back all the way."""
    with playing(place, "nested") as stage:
        chat = place.chat("--yes")
        stage.begin(chat)
        chat.send("/steer @boss/nobody hello")
        assert chat.wait("requeued", session=chat.session)["why"] == "boss ended first"
        chat.send("/steer @boss/kid only you")
        accepted = chat.wait("accepted", session=chat.session, **{"as": "steer"})
        assert (accepted["ack"], accepted["children"]) == ("steered_child", ["boss"])
        chat.wait("accepted", parent=f"{chat.session}-1", **{"as": "steer"})
        for gate in stage.gates.values():
            gate.open()
        assert chat.wait("steered", session=chat.session, child="boss")["id"] == accepted["id"]
        assert chat.wait("child_ended", session=chat.session)["status"] == "completed"
        assert chat.close() == 0
        assert stage.heard("[New message from user] only you") == {"kid"}
