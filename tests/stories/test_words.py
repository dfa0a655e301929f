"""Story 5: words that stop, and words that don't."""

from typing import NamedTuple

from support.model_server import Text

from .agent import call, says, user_texts, uses
from .faces import Face
from .stage import Stage

WISH = "look through the whole project"
NEXT = "and then the docs"
MORE = "make the exit code 2 instead"


class Reading(NamedTuple):
    """A message, the word in it that stops (empty: none), and whether it also runs."""

    text: str
    word: str = ""
    runs: bool = False


READINGS = (
    Reading("Stop!", "stop"),
    Reading("just stop", "stop"),
    Reading("please cancel this", "cancel"),
    Reading(MORE, "exit", runs=True),
    Reading("stopwatch timer"),
    Reading("`exit(1)`"),
    Reading("the non-stop train"),
    Reading("undo.py has a bug"),
)


SCENES = [(reading, bool(at % 2)) for at, reading in enumerate(READINGS)]
"""Messages, and whether another one waits already."""


def words(stage: Stage) -> None:
    """Each message into a turn, alone or with another one waiting; each reading is taken back."""
    agent = stage.agent
    agent.when("whole project", Text("Looking around.", door=agent.door("looking")))
    agent.when(MORE, Text("It is 2 from now on.", door=agent.door("changing")))
    chat = stage.opens()
    chat.types("/queue on")
    chat.shows("Auto-queue is on")
    for reading, has_next in SCENES:
        chat.types(WISH)
        chat.shows("Looking around.")
        if has_next:
            chat.types(NEXT)
            chat.shows(f'📥 Queued #2: "{NEXT}"', accepted={"number": 2})
        scene = _it_stops if reading.word else _it_waits
        scene(chat, reading, 3 if has_next else 2)
        chat.types("/queue discard")
        chat.shows("Discarded")
        chat.rests()
    assert chat.leaves() == 0


def some_words(stage: Stage) -> None:
    """A few of them as one goes along, for a recording."""
    agent = stage.agent
    agent.when("whole project", Text("Looking around.", door=agent.door("looking")))
    chat = stage.opens()
    chat.types("/queue on")
    chat.shows("Auto-queue is on")
    chat.types(WISH)
    chat.shows("Looking around.")
    for number, text in enumerate(("stopwatch timer", "undo.py has a bug"), 2):
        chat.types(text)
        chat.shows(f'📥 Queued #{number}: "{text}"', accepted={"number": number})
    _it_stops(chat, Reading("just stop", "stop"), 4)
    assert chat.leaves() == 0


def _it_stops(chat: Face, reading: Reading, number: int) -> None:
    """The turn ends and is offered; taken back, the message waits behind what waited."""
    chat.types(reading.text)
    sign = f'⚠️ Interrupt detected: "{reading.word}"'
    chat.shows(sign, accepted={"as": "interrupt", "matched": reading.word, "text": reading.text})
    chat.shows("Stopping current task.", turn_ended={"status": "interrupted"})
    if reading.runs:
        chat.shows("It is 2 from now on.")
    became = "was stopped and waits" if reading.runs else "waits"
    chat.types("/undo")
    chat.shows(
        f"#{number} {became} in the queue instead.",
        "#1 was stopped already: /queue resume continues it.",
    )
    state = "INTERRUPTED" if reading.runs else "PENDING"
    chat.types("/queue list")
    chat.shows(f"#1 [INTERRUPTED]: {WISH}")
    listed = [f"#2 [PENDING]: {NEXT}"] if number == 3 else []
    listed.append(f"#{number} [{state}]: {reading.text}")
    ordered = reversed(listed) if reading.runs else listed  # what was interrupted is first
    chat.shows(*ordered, "Held. /queue resume runs them.")


def _it_waits(chat: Face, reading: Reading, number: int) -> None:
    """The turn does not notice; there is nothing to take back."""
    chat.types(reading.text)
    chat.shows(
        f'📥 Queued #{number}: "{reading.text}"',
        accepted={"as": "queue", "matched": None, "number": number},
    )
    chat.types("/undo")
    chat.shows(f"#{number} waits in the queue: there is nothing to take back.")
    chat.types("/queue list")
    chat.shows(f"#1 [RUNNING]: {WISH}", f"#{number} [PENDING]: {reading.text}")
    chat.types("/stop")
    chat.shows("Stopping current task.", turn_ended={"status": "interrupted"})


def test_words(stage: Stage) -> None:
    """What stops says by which word; only what says more reaches the model, and only once each."""
    words(stage)
    asked = [user_texts(request.body["messages"])[-1] for request in stage.server.requests]
    told = [(WISH, one.text) if one.runs else (WISH,) for one, _ in SCENES]
    assert asked == [text for texts in told for text in texts]


def a_stopped_turn_goes_on(stage: Stage) -> None:
    """What was stopped by a word that was taken back is resumed first, then the message runs."""
    agent = stage.agent
    agent.when(MORE, says("It is 2 from now on."))
    look = uses(call("list", path="."), door=agent.door("resumed"))
    agent.when("You were interrupted", look, says("All looked through."))
    agent.when("whole project", Text("Looking around.", door=agent.door("looking")))
    chat = stage.opens()
    chat.types(WISH)
    chat.shows("Looking around.")
    chat.types("Stop!")
    chat.shows("Stopping current task.", turn_ended={"status": "interrupted"})
    chat.types("/undo")
    chat.shows("#1 was stopped already: /queue resume continues it.")
    chat.types(MORE, by="queue")
    chat.shows("📥 Queued #3", accepted={"as": "queue", "number": 3})
    chat.types("/queue pop 2")
    chat.shows("Removed: #2.")
    chat.types("/queue resume")
    chat.shows("Restored 2 items. Processing #1...")
    agent.door("resumed").open()  # else the answer may come before the result of the command
    chat.shows("All looked through.", "It is 2 from now on.")
    chat.rests()
    assert chat.leaves() == 0
