"""The same acts, through every interface, on a session here, elsewhere and nobody's: the same entries.

`chat --json` is what the others are compared with, act by act. What an interface does not offer is in
`APART`; what a session refuses that no program has open in `OFFLINE` and `REFUSED`: it is said in words.
"""

import base64
import json
import os
import re
import shutil
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, closing
from itertools import zip_longest
from pathlib import Path
from typing import Any, NamedTuple

import apsw
import pytest
from support.driver import Place
from support.model_server import ModelServer
from support.patience import seconds

from .agent import Agent, call, says, uses
from .interfaces import INTERFACES, KEYED, Interface, Said
from .journals import Entry

PAUSE = 0.01
"""Seconds between two looks at a journal, which tells nobody that it grows."""


class Act(NamedTuple):
    """What is done, and the kind of the last entry that comes of it, the so many-th of its kind.

    `child` is the kind of the last entry in a subagent's journal, where that has one of it.
    A text that begins with `open` opens a door of the model instead.
    """

    name: str
    text: str
    ends: str = ""
    by: str = "auto"
    key: str = ""
    child: str = ""
    times: int = 1


HELD = (
    Act("queue", "six", "queued", by="queue"),
    Act("twice", "once only", "queued", by="queue", key="k1"),
    Act("file", "read @notes.txt", "queued", by="queue"),
    Act("picture", "look @dot.png", "queued", by="queue"),
    Act("edit", "/queue edit 3 two, but better", "edited"),
    Act("add", "/queue add five", "queued"),  # by whoever edits the last: each their own
    Act("edit the last", "/edit-last seven @notes.txt", "edited"),
    Act("move", "/queue move 4 2", "moved"),
    Act("withdraw", "/queue pop 5", "withdrawn"),
    Act("withdraw the last", "/queue pop", "withdrawn"),
    Act("hold", "/queue hold"),
    Act("rename", "/rename the move", "session_renamed"),
    Act("mode", "/mode edits", "policy_changed"),
    Act("mode back", "/mode ask", "policy_changed"),
    Act("model", "/model other", "policy_changed"),
    Act("busy", "/busy queue", "policy_changed"),
    Act("busy back", "/busy steer", "policy_changed"),
    Act("queue on", "/queue on", "policy_changed"),
    Act("queue off", "/queue off", "policy_changed"),
    Act("routes", "/routes use steersman", "policy_changed"),
    Act("limits", "/limits more", "limits_granted"),
    Act("allow", "/permissions allow shell ls", "allowance_given"),
    Act("forget", "/permissions forget 1", "allowance_forgotten"),
    Act("export", "/queue export q.toml"),
    Act("discard", "/queue discard", "queue_released"),
    Act("import", "/queue import q.toml", "queue_held"),
    Act("clear", "/queue clear", "queue_released"),
    Act("dry run", "/revert --dry-run", "reverted"),
    Act("revert", "/revert last", "reverted"),
    Act("revert undo", "/revert undo", "reverted"),
    Act("nothing to stop", "/stop", "stop_noted"),
)
"""In a session in which nothing runs, and something is held."""
LIVE = (
    Act("goal", "/goal all tests pass", "model_called"),
    Act("goal pause", "/goal pause", "goal_paused"),
    Act("goal next", "/goal next and the docs", "goal_set"),
    Act("its turn ends", "open goal", "turn_ended"),
    Act("goal resume", "/goal resume", "model_called"),
    Act("goal clear", "/goal clear", "goal_cleared"),
    Act("its next turn ends", "open go on", "turn_ended"),
    Act("clear what is next", "/goal clear", "goal_cleared"),
    Act("compact", "/compact the names", "turn_ended"),
    Act("say", "tidy up", "model_called"),
    Act("steer", "use tabs", "queued", by="steer"),
    Act("undo", "/undo", "requeued"),
    Act("steer as command", "/steer use spaces", "queued"),
    Act("steer from queue", "/queue steer 2", "steer_addressed"),
    Act("side talk", "/smalltalk how far?", "offer_answered"),
    Act("keep", "/queue keep", "kept"),
    Act("say more", "anything else?", "queued"),
    Act("words", "stop, look at b instead", "model_called"),
    Act("bare word", "stop", "stopped"),
    Act("clear again", "/queue clear", "queue_released"),
    Act("begin", "tidy up", "model_called"),
    Act("interrupt", "look at b", "model_called", by="interrupt"),
    Act("later", "later", "queued", by="queue"),
    Act("stop", "/stop", "stopped"),
    Act("resume one", "/queue resume 2", "model_called"),
    Act("b is done, and later", "open b", "turn_ended", times=2),
    Act("ask 1", "ask 1", "question_asked"),
    Act("allow once", "/answer QUESTION allow", "turn_ended"),
    Act("ask 2", "ask 2", "question_asked"),
    Act("always", "/answer QUESTION always", "turn_ended"),
    Act("ask 3", "ask 3", "question_asked"),
    Act("deny", "/answer QUESTION deny too risky", "turn_ended"),
    Act("delegate", "send kid", "child_started", child="model_called"),
    Act("steer a child", "/steer @kid hurry", "queued"),
    Act("kid is done", "open kid", "turn_ended"),
    Act("delegate again", "send lad", "child_started", child="model_called"),
    Act("wrap up", "/agents wrap-up lad", child="queued"),
    Act("lad is done", "open lad", "turn_ended"),
    Act("delegate once more", "send son", "child_started", child="model_called"),
    Act("stop a child", "/agents stop son", "turn_ended"),
    Act("finalize", "/finalize", "session_finalized"),
)
"""While turns run."""
VARIES = {
    "client_id": "drawn by an interface, so that a message sent twice is taken once",
    "user": "who is elsewhere than the session is named",
    "utterance": "counts what a program was told, also what it knew already",
    "seconds": "how long the turns of a goal took",
    "tokens": "an estimate of what the model is sent, with the time of day in it",
}
"""Fields that differ, and why."""

SIGNED = re.compile(r"^\[New message from \S+\] ")
"""What the model is told of a message whose sender is not the person of the session."""
CONFIG = """
[permissions]
rules = [{{ tool = "edit", do = "allow" }}, {{ tool = "shell", do = "ask" }}]
[models.other]
provider = "openai"
base_url = "{url}"
model = "other-model"
images = true
[agents.judge]
model = "main"
[limits]
max_tokens = 1000000
[people]
ann = {{ memory = "@ann", may = ["speak", "steer", "stop", "approve"] }}
"""
DOT = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
CHILDREN = ("kid", "lad", "son")


class Begun(NamedTuple):
    """Where the journals are before an act: the newest entry, and how many a subagent has of a kind."""

    seq: int
    children: int


class Warm:
    """A home with a session in which something is held: every cell begins with a copy of it."""

    def __init__(self, root: Path, patch: pytest.MonkeyPatch) -> None:
        self.place = place = Place(root / "place")
        place.environ["LOGNAME"] = "user"
        self._kept = root / "kept"
        self.server = ModelServer(lambda request: self.agent(request))
        rest = CONFIG.format(url=self.server.base_url)
        place.configure(self.server.base_url, rest=rest, model="images = true")
        (place.folder / "a.txt").write_text("old\n")
        (place.folder / "notes.txt").write_text("Use tabs.\n")
        (place.folder / "dot.png").write_bytes(DOT)
        self.agent: Agent = self._learned()
        chat = place.chat()
        self.session = chat.session
        chat.completes("repaint it")
        chat.send("tidy up")
        assert self.until(lambda: self.kinds().count("model_called") == 3)
        for text in ("two", "three"):
            chat.send({"text": text, "as": "queue"})
        chat.ask("/stop")
        chat.wait("stopped")
        assert chat.close() == 0
        shutil.copytree(root / "place", self._kept)
        for name, value in place.environ.items():  # for what runs in this process
            patch.setenv(name, value)
        patch.chdir(place.folder)

    def begin_again(self) -> None:
        """Put everything back."""
        for part in ("home", "project"):
            shutil.rmtree(self.place.home.parent / part)
            shutil.copytree(self._kept / part, self.place.home.parent / part)
        os.chdir(self.place.folder)
        self.agent = self._learned()

    def end(self) -> None:
        """End every program."""
        self.agent.close()
        self.place.close()
        said = "\n".join(chat.diagnostics for chat in self.place.chats)
        self.place.chats.clear()
        assert "Traceback" not in said, said

    def _learned(self) -> Agent:
        agent = Agent()

        def look(door: str) -> Any:
            return uses(call("read", path="notes.txt"), door=agent.door(door))

        agent.when("## The goal", says('{"verdict": "done", "reason": "they pass"}'))
        agent.when("Go on working", look("go on"), says("Turn."))
        for name in CHILDREN:
            agent.when(f"job of the {name}", look(name), says(f"The {name} is done."))
            job = call("delegate", task=f"job of the {name}", name=name)
            agent.when(f"send {name}", uses(job), says("Delegated."))
        for number in "123":
            ask = call("shell", command=f"echo {number}")
            agent.when(f"ask {number}", uses(ask), says("Asked."))
        agent.when("tidy up", look("tidy"), says("Done."))
        agent.when("look at b", look("b"), says("B is done."))
        agent.when("tests pass", look("goal"), says("Turn."))
        change = call("edit", path="a.txt", old="old", new="new")
        agent.when("repaint", uses(change), says("Changed."))
        agent.when("", says("Hello."))
        return agent

    def entries(self, after: int = 0, *, of_children: bool = False) -> list[Entry]:
        """Return the entries of the session after one, or those of its subagents."""
        rows = self._read("data", "!=" if of_children else "=", after)
        entries = [json.loads(data) for data in rows]
        return [entry for entry in entries if entry["kind"] != "answer_grew"]  # once a second

    def kinds(self, after: int = 0, *, of_children: bool = False) -> list[str]:
        """Return the kinds of these entries."""
        return [str(entry["kind"]) for entry in self.entries(after, of_children=of_children)]

    @property
    def seq(self) -> int:
        """The number of the newest entry."""
        return int(self._read("max(seq)", "=", 0)[0])

    def _read(self, what: str, which: str, after: int) -> list[Any]:
        """Read the journal, with the library that may keep it in this process: two would break locks."""
        query = (
            f"SELECT {what} FROM entries WHERE session {which} ? AND seq > ? ORDER BY session, seq"
        )
        with closing(apsw.Connection(f"{self.place.home}/state/journal.db")) as home:
            home.set_busy_timeout(5_000)
            return [value for (value,) in home.execute(query, (self.session, after))]

    def until(self, came: Callable[[], bool], limit: float = 10.0) -> bool:
        """Wait until something is so, for so many seconds; say whether it is."""
        deadline, looking = time.monotonic() + seconds(limit), threading.Event()
        while not (is_so := came()) and time.monotonic() < deadline:
            looking.wait(PAUSE)
        return is_so

    def begun(self, act: Act) -> Begun:
        """Note where the journals are before an act."""
        return Begun(self.seq, self.kinds(of_children=True).count(act.child))

    def is_done(self, act: Act, begun: Begun, wanted: list[Entry] | None) -> bool:
        """Say whether all has come of an act: the entries that are known of it, or the last one."""
        if act.child and self.kinds(of_children=True).count(act.child) <= begun.children:
            return False
        found = self.kinds(begun.seq)
        if wanted is not None:
            return len(found) >= len(wanted)
        return not act.ends or found.count(act.ends) >= act.times

    def line(self, act: Act) -> Said:
        """Return what is typed, with the id of the newest question in it."""
        asked = [entry["question"] for entry in self.entries() if entry["kind"] == "question_asked"]
        return Said(act.text.replace("QUESTION", ["q-1", *asked][-1]), act.by, act.key)


class Apart(NamedTuple):
    """Acts that some interfaces do not have: what is said to them, and why.

    Without words there is nothing that could be typed or sent.
    """

    faces: tuple[str, ...]
    acts: tuple[str, ...]
    words: str
    why: str


NOT_OPEN = "is not open: `steersman chat --resume"
COMMANDS = tuple(act.name for act in HELD + LIVE if act.text.startswith("/"))
ANSWERED = ("nothing to stop", "stop", "allow once", "always", "deny", "steer as command")
APART = (
    Apart(
        ("screen", "plain", "editor", "room", "mcp"),
        ("interrupt",),
        "",
        "a message is chosen to wait or to steer; `stop`, and then the message, does the same",
    ),
    Apart(("mcp",), ("steer a child",), "", "a name at the beginning is part of the text"),
    Apart(
        ("editor",),
        ("deny",),
        "your editor has its own way for it",
        "the protocol has options, and no reason",
    ),
    Apart(
        ("mcp",),
        tuple(name for name in COMMANDS if name not in ANSWERED),
        "there is no tool",
        "a model says, steers, stops and answers; what people decide is theirs",
    ),
)
OFFLINE = {
    "nothing to stop": "Nothing to stop: nothing runs",  # nor is a message on its way that it overtakes
    "limits": NOT_OPEN,
}
"""What changes a session that a program runs, and no other one; what is said of it there."""
REFUSED = (
    *("goal resume", "compact", "undo", "steer from queue", "side talk", "resume one"),
    *("allow once", "wrap up", "stop a child"),
)
"""What needs a program that runs the session; a message waits there."""
HELD_ONLY = ("plain",)
"""There a line waits for the turn before it: it neither steers nor stops one."""


def apart(act: Act, face: str) -> Apart | None:
    """Return the row of an act that an interface does not have."""
    return next((row for row in APART if act.name in row.acts and face in row.faces), None)


def played(
    warm: Warm, face: str, where: str, known: Sequence[list[Entry]] = ()
) -> list[list[Entry]]:
    """Carry out the acts through an interface; return what came of each in the journal.

    `known` is what came of each before: so many entries are waited for.
    """
    warm.begin_again()
    made: list[list[Entry]] = []
    with ExitStack() as opened:
        opened.callback(warm.end)
        if where == "elsewhere":
            warm.place.chat("--resume", warm.session).wait("session_started")
        ways = [INTERFACES[name](warm.place, warm.session, where) for name in (face, "mailbox")]
        talk, other = (opened.enter_context(way) for way in ways)
        assert warm.until(lambda: where == "nobody" or "recovered" in warm.kinds())
        acts = HELD if face in HELD_ONLY or where == "nobody" else HELD + LIVE
        for act, wanted in zip_longest(acts, known[: len(acts)]):
            begun = warm.begun(act)
            words = OFFLINE.get(act.name, "") if where == "nobody" else ""
            do(warm, act, talk, other, face, words)
            is_done = bool(words) or warm.until(lambda: warm.is_done(act, begun, wanted))  # noqa: B023
            found = warm.entries(begun.seq)
            assert is_done, f"{act}: it brought {found}, and not {wanted}"
            made.append(found)
        if where == "nobody":
            check_refused(warm, talk, face)
    return made


def do(warm: Warm, act: Act, talk: Interface, other: Interface, face: str, words: str = "") -> None:
    """Carry an act out; it is answered with these words.

    What the interface does not have is done in the other way, so that the next act finds the same.
    """
    row, line = apart(act, face), warm.line(act)
    if act.text.startswith("open "):
        warm.agent.door(act.text[5:]).open()
    elif row is None:
        for _ in range(2 if act.key and face in KEYED else 1):
            answer = talk.does(line)
            assert words in answer, f"{act}: {answer}"
    else:
        if row.words and row.words not in talk.does(line):
            talk.shows(row.words)
        other.does(line)


def check_refused(warm: Warm, talk: Interface, face: str) -> None:
    """Try what needs a program that runs the session; a goal may be set, and begins then."""
    for act in LIVE:
        if act.name in (*REFUSED, "goal") and apart(act, face) is None:
            answer = talk.does(warm.line(act))
            assert ("Goal set" if act.name == "goal" else NOT_OPEN) in answer, f"{act}: {answer}"


def common(value: Any) -> Any:
    """Return what of entries has to be the same; what is empty says nothing."""
    match value:
        case list():
            return [common(each) for each in value]
        case dict():
            kept = {name: common(each) for name, each in value.items() if name not in VARIES}
            return {name: each for name, each in kept.items() if each not in ("", {})}
        case str():
            return SIGNED.sub("", value)
        case _:
            return value


@pytest.fixture(scope="module")
def warm(tmp_path_factory: pytest.TempPathFactory) -> Generator[Warm]:
    """The home, in which one cell after another is played."""
    with pytest.MonkeyPatch.context() as patch:
        here = Warm(tmp_path_factory.mktemp("acts"), patch)
        with closing(here.server):
            yield here


@pytest.fixture(scope="module")
def known(warm: Warm) -> list[list[Entry]]:
    """What comes of each act with JSON lines."""
    return played(warm, "lines", "here")


ALIKE = ("library", "http", "page", "screen", "plain")
CELLS = {
    "here": (*ALIKE, "editor", "room"),
    "elsewhere": (*ALIKE, "lines", "control", "mailbox", "mcp", "send", "commands"),
    "nobody": ("mailbox", "mcp", "send", "commands"),
}
"""The interfaces that reach a session in each place."""
DAILY = {
    "here": ("library", "page"),
    "elsewhere": ("lines", "control"),
    "nobody": ("mailbox",),
}
"""Those that `make test` compares."""


@pytest.mark.parametrize(
    ("face", "where"),
    [
        pytest.param(face, where, marks=() if face in DAILY[where] else pytest.mark.nightly)
        for where, faces in CELLS.items()
        for face in faces
    ],
)
def test_the_same_comes_of_every_act(
    warm: Warm, known: list[list[Entry]], face: str, where: str
) -> None:
    """Act by act and entry by entry, but for the fields that are declared."""
    found = played(warm, face, where, known)
    acts = HELD + LIVE
    for act, mine, theirs in zip(acts, found, known, strict=False):
        if where != "nobody" or (act in HELD and act.name not in OFFLINE):
            assert common(mine) == common(theirs), act


def attached(warm: Warm) -> str:
    """Attach to the session."""
    return warm.place.run("attach", warm.session, "--json").stderr


def resumed(warm: Warm) -> str:
    """Resume it in a chat."""
    return warm.place.run("chat", "--json", "--resume", warm.session).stderr


def opened_by(face: str, where: str) -> Callable[[Warm], str]:
    """Return what opens the session by an interface, and says why it cannot."""

    def opening(warm: Warm) -> str:
        with pytest.raises(Exception, match=warm.session) as refusal:
            with INTERFACES[face](warm.place, warm.session, where):
                pass
        return f"{refusal.value} {getattr(refusal.value, 'hint', '')}"

    return opening


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("where", "opening", "words"),
    [
        ("nobody", attached, "chat --resume"),
        ("nobody", opened_by("library", "elsewhere"), "`resume` of an open home takes it up"),
        ("elsewhere", resumed, "attach"),
        ("elsewhere", opened_by("library", "here"), "attach"),
        ("elsewhere", opened_by("editor", "here"), "attach"),
    ],
)
def test_what_cannot_be_opened_so_says_how(
    warm: Warm, where: str, opening: Callable[[Warm], str], words: str
) -> None:
    """What takes a session up, and what joins one: in the wrong place each names the other."""
    warm.begin_again()
    if where == "elsewhere":
        warm.place.chat("--resume", warm.session).wait("session_started")
    try:
        assert words in opening(warm)
    finally:
        warm.end()
