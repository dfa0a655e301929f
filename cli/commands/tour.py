"""`steersman tour`: a real session in a scratch folder, with a scripted model and keys that are pressed.

Only what the model says is written beforehand. The prompt, the queue, the stop, the files and the journal
are those of every chat: a thread presses the keys in the prompt and waits for the events that they cause.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Annotated

from prompt_toolkit.application import Application
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

from ...gateway.events.contract import Event
from ...gateway.interface import ChatHost, ChatSession
from ...machines.errors import UsageError
from ...machines.value import Value
from ..chat import chat
from ..chat_options import ChatOptions
from ..options import option
from ..output import warn
from ..prompt import talk_at_prompt
from ..screen.screen import Screen

LONGEST = 60.0
"""Seconds that an event may take before the tour gives up."""
READING = 0.045
"""Seconds for a character of an explanation, at the usual pace."""
TYPING = 0.05
"""Seconds between two keys, at the usual pace."""
WORKING = 2.0
"""Seconds that the scripted model takes for a step, at the usual pace."""

ENTER, TAB, ESC, CTRL_D = (Keys.ControlM,), (Keys.ControlI,), (Keys.Escape,), (Keys.ControlD,)
ALT_ENTER = (*ESC, *ENTER)


class TourStep(Value):
    """One step: what is explained, what is typed, the key, and fields of the event that it causes.

    `opens` is a gate that lets the running command end.
    """

    says: str
    types: str = ""
    key: tuple[Keys, ...] = ()
    until: Mapping[str, str] = {}
    opens: str = ""


FIRST = (
    TourStep(
        says="This is a real session in a scratch folder. Only the model is not real: its answers are "
        "scripted. Keys are pressed for you, for about a minute; Ctrl-C twice leaves."
    ),
    TourStep(
        says="A message, and Enter:",
        types="make all the files blue",
        key=ENTER,
        until={"type": "tool_started", "tool": "shell"},
    ),
    TourStep(
        says="It works, and you can go on typing. Tab puts a message into the queue, where it waits:",
        types="then write down what you did",
        key=TAB,
        until={"type": "accepted", "as": "queue"},
    ),
    TourStep(
        says="Alt-Enter steers: the model reads this before its next step, and nothing is cut off:",
        types="make them green, not blue",
        key=ALT_ENTER,
        until={"type": "accepted", "as": "steer"},
    ),
    TourStep(says="", opens="blue", until={"type": "tool_started", "tool": "shell"}),
    TourStep(
        says="Esc stops the turn and every process that it started. What waits is held:",
        key=ESC,
        until={"type": "stopped"},
    ),
    TourStep(
        says="/revert restores the files that the turn changed:",
        types="/revert",
        key=ENTER,
        until={"type": "reverted"},
    ),
    TourStep(
        says="Ctrl-D leaves. Everything is on disk; a crash would lose nothing, either:",
        key=CTRL_D,
    ),
)
SECOND = (
    TourStep(
        says="A new start, as by `steersman chat --continue`: it shows what was interrupted and what "
        "waits, and runs nothing. /queue resume restores the work:",
        types="/queue resume",
        key=ENTER,
        until={"type": "turn_ended", "status": "completed"},
        opens="green",
    ),
    TourStep(says="", until={"type": "turn_ended", "status": "completed"}),
    TourStep(
        says="That was the tour. Type, or press ? for all keys; the model only says that it is scripted. "
        "Ctrl-D leaves and deletes the scratch folder. `steersman` opens a chat of your own."
    ),
)
FILES = ("one.txt", "two.txt")
PAINT = """\
# Paints the files, slowly: it goes on until the tour opens its gate, beside the folder.
for second in $(seq 120); do
    echo "painting for $second s"
    [ -e "../$1" ] && break
    sleep 1
done
sed -i.old "s/= .*/= $1/" two.txt && rm two.txt.old
"""
"""A command that takes as long as the tour wants, and leaves the result in a file."""


def tour(
    pace: Annotated[float, option("FACTOR", "Scales the pauses: 2 is slower.", min=0.0)] = 1.0,
) -> int:
    """Show in a minute how to queue, steer, stop, revert and resume, in a scratch folder.

    The session is real, its model is scripted, and the keys are pressed for you.

    Example: steersman tour
    """
    is_dumb = os.environ.get("TERM", "").lower() in ("", "dumb", "unknown")
    if is_dumb or not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the tour needs a terminal", "run `steersman tour` in one")
    scratch = Path(tempfile.mkdtemp(prefix="steersman-tour-"))
    try:
        folder = _prepared(scratch, pace)
        foreign = (name for name in os.environ if not name.startswith("STEERSMAN_"))
        inside = {name: os.environ[name] for name in foreign}
        inside["STEERSMAN_HOME"] = str(scratch / "home")
        for steps, options in (
            (FIRST, ChatOptions(folder=folder)),
            (SECOND, ChatOptions(folder=folder, is_newest=True)),
        ):
            player = Player(steps, pace, scratch)
            code = chat(options, inside, player.talk)
            if not player.is_done:
                break
        return code
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
        warn(f"The scratch folder {scratch} is deleted, and the tour's session with it.")


class Player:
    """Plays steps in a prompt, from a thread of its own; `is_done` once all were played."""

    def __init__(self, steps: Sequence[TourStep], pace: float, gates: Path) -> None:
        self.is_done = False
        self._gates = gates
        self._steps = steps
        self._pace = pace
        self._changed = threading.Condition()
        self._heard: list[Event] = []
        self._known = 0  # events up to the one that the last step waited for
        self._is_over = threading.Event()
        self._thread: threading.Thread | None = None

    def talk(self, host: ChatHost, open_it: Callable[[], ChatSession], options: ChatOptions) -> int:
        """Open the prompt and play in it, until it is left."""
        unsubscribe = host.event_bus.subscribe(self._hear)
        try:
            return talk_at_prompt(host, open_it, options, self._begin)
        finally:
            self._is_over.set()
            with self._changed:
                self._changed.notify_all()
            if self._thread is not None:
                self._thread.join()
            unsubscribe()

    def _hear(self, event: Event) -> None:
        with self._changed:
            self._heard.append(event)
            self._changed.notify_all()

    def _begin(self, app: Application[int], screen: Screen) -> None:
        def play() -> None:
            self.is_done = all(self._take(step, app, screen) for step in self._steps)

        self._thread = threading.Thread(target=play, daemon=True)
        self._thread.start()

    def _take(self, step: TourStep, app: Application[int], screen: Screen) -> bool:
        """Play one step; False if the person left, or what was expected did not come."""
        while not app.is_running:
            if self._is_over.wait(0.01):
                return False
        if step.says:
            screen.write(f"\n[tour] {step.says}\n", ends_answer=True)
            if self._is_over.wait(self._pace * READING * len(step.says)):
                return False
        for sign in step.types:
            _press(app, (KeyPress(sign, sign),))
            if self._is_over.wait(self._pace * TYPING):
                return False
        if step.opens:
            (self._gates / step.opens).touch()
        if step.key:
            self.is_done = step is self._steps[-1]
            _press(app, [KeyPress(key) for key in step.key])
        if step.until and not self._came(step):
            if not self._is_over.is_set():
                screen.write("[tour] This took too long, so the tour ends here.")
            return False
        return not self._is_over.wait(self._pace * WORKING / 2) or self.is_done

    def _came(self, step: TourStep) -> bool:
        """Wait for the event of a step, which comes after the one that the step before waited for.

        It may have come while that step still paused.
        """

        def is_there() -> bool:
            while self._known < len(self._heard):
                event = self._heard[self._known]
                self._known += 1
                if all(event.get(name) == value for name, value in step.until.items()):
                    return True
            return self._is_over.is_set()

        with self._changed:
            return self._changed.wait_for(is_there, LONGEST) and not self._is_over.is_set()


def _press(app: Application[int], keys: Sequence[KeyPress]) -> None:
    """Press keys in the prompt's own thread."""

    def press() -> None:
        app.key_processor.feed_multiple(list(keys))
        app.key_processor.process_keys()

    if app.loop is not None:
        app.loop.call_soon_threadsafe(press)


def _prepared(scratch: Path, pace: float) -> Path:
    """Write the files, the script and the settings of the tour; return the folder to work in."""
    folder, home = scratch / "project", scratch / "home"
    folder.mkdir()
    home.mkdir(mode=0o700)
    for name in FILES:
        (folder / name).write_text("colour = red\n", encoding="utf-8")
    (folder / "paint.sh").write_text(PAINT, encoding="utf-8")
    script = home / "script.toml"
    script.write_text(_script(WORKING * pace), encoding="utf-8")
    settings = f"""
[models.tour]
provider = "scripted"
script = "{script}"
[agents.assistant]
model = "tour"
[permissions]
rules = [{{ tool = "*", do = "allow" }}]
[tools]
writable = ["{scratch}"]
"""
    (home / "config.toml").write_text(settings, encoding="utf-8")
    (home / "state").mkdir(mode=0o700)
    (home / "state" / "welcomed").touch()
    return folder


def _script(delay: float) -> str:
    """Return the model's answers; each takes so many seconds."""
    write = 'tool = "write", arguments = {{ path = "one.txt", content = "colour = {0}\\n" }}'
    paint = 'tool = "shell", arguments = {{ command = "sh paint.sh {0}" }}'
    again = r"(?s)interrupted.*files blue"  # the steer was read before: the work goes on with it
    scenes = [(again, "green"), ("files blue", "blue"), ("green, not blue", "green")]
    calls = [
        f"[[answer]]\nmatch = '{match}'\ndelay = {delay}\ntool_calls = [{{ {call.format(colour)} }}]\n"
        for match, colour in scenes
        for call in (write, paint)
    ]
    texts = [
        (again, "All the files are green."),
        ("files blue", "All the files are blue."),
        ("green, not blue", "All the files are green."),
        ("write down", "Done: I painted the files. (I am the scripted model of the tour.)"),
    ]
    said = [
        f'[[answer]]\nmatch = "{match}"\ntext = "{text}"\ndelay = {delay}\n'
        for match, text in texts
    ]
    other = "I am the scripted model of the tour. `steersman` opens a chat with a real one."
    return "\n".join([*calls, *said, f'[[answer]]\ntext = "{other}"\n'])
