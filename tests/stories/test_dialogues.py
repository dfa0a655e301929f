"""The dialogues that the product is made for, played through every interface: the journals are the same.

`chat --json` is what the others are compared with. What an interface cannot do is in `APART`, with why.
"""

from collections.abc import Callable
from contextlib import closing
from functools import cache, partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import pytest
from support.driver import wait_gone

from .agent import call, says, uses
from .faces import Face
from .journals import Entry, journals
from .stage import Stage
from .test_another_terminal import another_terminal
from .test_beside_the_road import beside_the_main_road
from .test_change_of_direction import a_change_of_direction
from .test_helper_at_work import the_helper_at_work
from .test_long_job import a_job_taken_back, a_long_job
from .test_plug_is_pulled import the_plug_is_pulled
from .test_several_things import several_things
from .test_until_done import until_it_is_done
from .test_words import a_stopped_turn_goes_on, words

WORK, TALK = "look through the project", "how is it going?"


def talk_interrupts(stage: Stage) -> None:
    """In the mode `interrupt` a message stops the turn and runs; what it replaced comes back."""
    chat = _at_work(stage, "interrupt")
    chat.types(TALK)
    chat.shows(f'Interrupting for #2: "{TALK}"', accepted={"as": "interrupt", "replaces": 1})
    chat.shows("Halfway.")
    chat.rests()
    chat.types("/queue list --all")
    chat.shows(f"#1 [SUPERSEDED]: {WORK}")
    chat.types("/queue resume")
    chat.shows("Restored 1 item. Processing #1")
    stage.agent.door("work").open()
    chat.shows("Done.")
    chat.rests()
    chat.types("/queue resume")
    chat.shows("Nothing waits.")
    assert chat.leaves() == 0


def talk_steers(stage: Stage) -> None:
    """As shipped it joins the turn, whose command goes on."""
    agent = stage.agent
    agent.when(TALK, says("Halfway."))
    agent.when(WORK, uses(call("shell", command=stage.gate.command)))
    chat = stage.opens()
    chat.types(WORK)
    command = stage.gate.wait()
    chat.types(TALK)
    chat.shows(f'Steering with #2: "{TALK}"', accepted={"as": "steer"})
    assert wait_gone([command], 0.0) == [command]
    stage.gate.open()
    chat.shows("Halfway.")
    chat.rests()
    assert chat.leaves() == 0


def talk_waits(stage: Stage) -> None:
    """In the mode `queue` it waits for the end of the turn."""
    chat = _at_work(stage, "queue")
    chat.types(TALK)
    chat.shows(f'📥 Queued #2: "{TALK}"', accepted={"as": "queue"})
    stage.agent.door("work").open()
    chat.shows("Halfway.")
    chat.rests()
    assert chat.leaves() == 0


def _at_work(stage: Stage, mode: str = "") -> Face:
    """Open a chat in which a turn runs until the door `work` opens."""
    agent = stage.agent
    agent.when(TALK, says("Halfway."))
    look = uses(call("list", path="."), saying="Looking.\n", door=agent.door("work"))
    agent.when(WORK, look, says("Done."))
    agent.when("", says("Done."))
    chat = stage.opens()
    if mode:
        chat.types(f"/busy {mode}")
        chat.shows(f"A message during a turn now follows `{mode}`.")
    chat.types(WORK)
    chat.shows("Looking.")
    return chat


def the_queue(stage: Stage) -> None:
    """Every change of what waits, while a turn runs."""
    chat = _at_work(stage)
    for text, answer in (
        ("/queue on", "Auto-queue is on"),
        ("/queue add two", "Added #2."),
        ("/queue add three", "Added #3."),
        ("/queue add four", "Added #4."),
        ("/queue add five", "Added #5."),
        ("/queue off", "Auto-queue is off"),
        ("/queue edit 2 two, but better", "#2 reads now: two, but better"),
        ("/queue move 4 1", "#4 is at position 1."),
        ("/queue pop 3", "Removed: #3."),
        ("/queue pop", "Removed: #5."),
        ("/queue pop 9", "No queued item #9"),
        ("/queue steer 2", "#2 goes to the running turn at its next boundary."),
        ("/queue steer 2", "#2 waits for turn t1 already"),
        ("/queue list", "#2 [STEERING] → turn t1: two, but better"),
    ):
        chat.types(text)
        chat.shows(answer)
    stage.agent.door("work").open()
    chat.shows("Done.")
    chat.rests()
    assert chat.leaves() == 0


def what_waits_is_cleared(stage: Stage) -> None:
    """`/queue clear` takes back what waits, `/stop` what runs, `/undo` nothing."""
    chat = _at_work(stage)
    chat.types("two", by="queue")
    chat.shows('📥 Queued #2: "two"', accepted={"number": 2})
    chat.types("/undo")
    chat.shows("#2 waits in the queue: there is nothing to take back.")
    chat.types("/queue clear")
    chat.shows("Removed: 1 waiting.")
    chat.types("/stop")
    chat.shows("Stopping current task.", turn_ended={"status": "interrupted"})
    chat.types("/queue list")
    chat.shows(f"#1 [INTERRUPTED]: {WORK}")
    chat.rests()
    assert chat.leaves() == 0


def a_change_is_taken_back(stage: Stage) -> None:
    """`/revert` restores a file; `/revert undo` brings the change back."""
    stage.files(1)
    change = call("edit", path="schema01.ts", old="yup", new="zod", all=True)
    stage.agent.when("to zod", uses(change), says("It is zod now."))
    chat = stage.opens()
    chat.types("change it to zod")
    chat.shows("It is zod now.")
    chat.rests()
    for text, answer, now in (
        ("/revert", "Reverted 1 file. Original state restored.", "yup"),
        ("/revert undo", "Undid the revert of 1 file: schema01.ts.", "zod"),
    ):
        chat.types(text)
        chat.shows(answer, reverted={"restored": ["schema01.ts"]})
        chat.rests()
        assert now in stage.place.folder.joinpath("schema01.ts").read_text("utf-8")
    assert chat.leaves() == 0


def a_saved_queue_is_discarded(stage: Stage) -> None:
    """What a kill left is listed, taken out and discarded; nothing of it runs."""
    chat = _at_work(stage)
    for number, text in ((2, "two"), (3, "three")):
        chat.types(text, by="queue")
        chat.shows(f'📥 Queued #{number}: "{text}"', accepted={"number": number})
    chat.kill()
    stage.agent.door("work").open()
    asked = len(stage.server.requests)
    chat = stage.opens()
    chat.shows("Found saved queue from crashed session (3 items", "Use `/queue", saved_queues={})
    for text, answer in (
        ("/queue restore", f"#1 [INTERRUPTED]: {WORK}"),
        ("/queue pop 2", "Removed: #2."),
        ("/queue list", "#3 [PENDING]: three"),
        ("/queue discard", "Discarded 2 items"),
        ("/queue list", "The queue is empty."),
    ):
        chat.types(text)
        chat.shows(answer)
    assert chat.leaves() == 0
    assert len(stage.server.requests) == asked


def a_goal(stage: Stage) -> None:
    """A goal is set, paused while its turn runs, resumed, and cleared."""
    agent = stage.agent
    agent.when("## The goal", says('{"verdict": "continue", "reason": "not yet"}'))
    for at, wish in enumerate(("Go on working", "all tests pass")):
        look = uses(call("list", path="."), saying=f"Look {at}.", door=agent.door(f"look {at}"))
        agent.when(wish, look, says(f"Turn {at}."))
    chat = stage.opens()
    chat.types("/goal all tests pass")
    chat.shows("Look 1.")
    chat.types("/goal pause")
    chat.shows("Goal paused")
    agent.door("look 1").open()
    chat.shows("Turn 1.")
    chat.rests()
    chat.types("/goal")
    chat.shows("Goal [PAUSED]: all tests pass")
    chat.types("/goal resume")
    chat.shows("Look 0.")
    chat.types("/goal clear")
    chat.shows("Goal cleared")
    agent.door("look 0").open()
    chat.shows("Turn 0.")
    chat.rests()
    chat.types("/goal status")
    chat.shows("Goal [CLEARED]: all tests pass")
    assert chat.leaves() == 0


Dialogue = Callable[[Stage], None]
FACES = ("screen", "plain", "served", "attached", "http")
DIALOGUES: dict[Dialogue, str] = {
    talk_interrupts: "screen",
    talk_steers: "attached",
    talk_waits: "plain",
    the_queue: "http",
    what_waits_is_cleared: "screen",
    a_change_is_taken_back: "plain",
    a_saved_queue_is_discarded: "served",
    a_goal: "http",
    a_stopped_turn_goes_on: "attached",
    a_change_of_direction: "",
    several_things: "",
    beside_the_main_road: "",
    the_helper_at_work: "",
    another_terminal: "",
    until_it_is_done: "",
    words: "",
    the_plug_is_pulled: "",
    a_long_job: "",
    a_job_taken_back: "",
}
"""All of them, and the interface of each that `make test` compares with."""


class Apart(NamedTuple):
    """A dialogue that some interfaces cannot have; a kind of entries, or a field, that differs there."""

    faces: tuple[str, ...]
    what: Dialogue | str
    why: str


WAITS = "a line of a script waits for the turn before it: it neither steers nor stops one"
APART = (
    Apart(FACES, "client_id", "drawn by an interface, so that a message sent twice is taken once"),
    Apart(FACES, "answer_grew", "written once a second while an answer streams"),
    Apart(FACES, "last_active", "the time at which the journal ended"),
    Apart(FACES, "seconds", "how long the turns of a goal took"),
    Apart(("http",), "allowed_by", "there the mode lets calls through, elsewhere `--yes`"),
    Apart(("served", "attached", "http"), "user", "who is elsewhere than the session is named"),
    Apart(("plain",), "rule", WAITS),
    Apart(("plain",), talk_interrupts, WAITS),
    Apart(("plain",), talk_steers, WAITS),
    Apart(("plain",), the_helper_at_work, WAITS),
    Apart(("plain",), words, WAITS),
    Apart(("plain",), a_stopped_turn_goes_on, WAITS),
    Apart(("plain",), a_long_job, WAITS),
    Apart(("plain",), a_job_taken_back, WAITS),
)


def is_apart(what: Dialogue | str, face: str) -> bool:
    """Say whether this is declared."""
    return any(face in row.faces and row.what == what for row in APART)


def played(dialogue: Dialogue, face: str) -> list[list[Entry]]:
    """Play it through an interface, and return the journals."""
    with TemporaryDirectory() as root, closing(Stage(Path(root), face)) as stage:
        dialogue(stage)
        return journals(stage.place)


def common(value: Any, face: str) -> Any:
    """Return what of entries has to be the same as with JSON lines; what is empty says nothing."""
    match value:
        case list():
            return [common(each, face) for each in value if not _is_kind_apart(each, face)]
        case dict():
            kept = {name: common(each, face) for name, each in value.items()}
            return {
                name: each
                for name, each in kept.items()
                if each not in ("", {}) and not is_apart(name, face)
            }
        case _:
            return value


def _is_kind_apart(entry: Any, face: str) -> bool:
    return isinstance(entry, dict) and is_apart(entry.get("kind", ""), face)


by_json = cache(partial(played, face="json"))


@pytest.mark.parametrize(
    ("dialogue", "face"),
    [
        pytest.param(each, face, marks=[] if face == daily else pytest.mark.nightly)
        for each, daily in DIALOGUES.items()
        for face in FACES
        if not is_apart(each, face)
    ],
)
def test_the_journals_are_the_same(dialogue: Dialogue, face: str) -> None:
    """Session by session and entry by entry, but for the fields that are declared."""
    assert common(played(dialogue, face), face) == common(by_json(dialogue), face)
