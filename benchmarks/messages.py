"""How many messages actors pass for what people do: a message, a steer by name, a stop.

Run it as `python benchmarks/messages.py`, with the package installed. It runs in the simulator, where
nothing happens by chance, and counts what mailboxes hand out; what comes from ports, such as the pieces
of an answer, is left out. Each limit is half of what it took before a session's actors shared a record.
"""

import sys
from collections import Counter
from pathlib import Path
from typing import Any

from table import head, row

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from simulation.scene import answer, has_asked, scene, start_child
from simulation.single import has, run, say

from steersman.actors.kernel.actor import Actor
from steersman.journal import entries as e
from steersman.machines import protocol as m
from steersman.machines.disposition import Intent
from steersman.simulator.program import SimulatedProgram

FROM_PORTS = (
    *(m.ModelText, m.ModelThought, m.ModelNoticed, m.ModelAnswered, m.ModelFailed, m.Summarised),
    *(m.ToolPrinted, m.ToolProgressed, m.ToolFinished, m.RestoreCounted, m.RestoreEnded),
)
"""What ports say."""


class Counting:
    """Counts the messages that actors handle, by kind."""

    def __init__(self) -> None:
        self.kinds = Counter[str]()
        self._handle: Any = Actor._handle

    def __enter__(self) -> "Counting":
        handle, kinds = self._handle, self.kinds

        def counted(actor: Actor, envelope: Any) -> None:
            if type(envelope.message) not in FROM_PORTS:
                kinds[type(envelope.message).__name__] += 1
            handle(actor, envelope)

        Actor._handle = counted
        return self

    def __exit__(self, *_error: object) -> None:
        Actor._handle = self._handle

    def show(self, name: str, most: int) -> None:
        """Print how many there were, and of which kinds."""
        count = self.kinds.total()
        row(name, count, f"<= {most}", ok=count <= most)
        print("    " + ", ".join(f"{times} {kind}" for kind, times in self.kinds.most_common()))


def typed_message() -> None:
    """From the message to the end of its turn, without tools."""
    with scene() as made:
        run(made)
        with Counting() as counting:
            say(made, "hello")
            run(made, has_asked(made))
            answer(made)
            run(made)
        counting.show("a typed message, until its turn has ended", 9)


def with_child(made: SimulatedProgram) -> None:
    """Have a child at work, in the foreground."""
    say(made, "work")
    run(made, has_asked(made))
    answer(made, start_child("kid"))
    run(made, has_asked(made, "s1-1"))
    run(made)


def named_steer() -> None:
    """From the message until the child has taken it in."""
    with scene() as made:
        with_child(made)
        with Counting() as counting:
            steer = m.UserMessage(
                type="steer", said=m.Said(text="use tabs"), intent=Intent.EXPLICIT_STEER, to="kid"
            )
            made.say(steer)
            run(made)
            answer(made, path="children/kid")
            run(made, has(made, e.SteerArrived))
        counting.show("a steer for a child, until it has it", 14)


def stop() -> None:
    """From the stop until turn and child are dead."""
    with scene() as made:
        with_child(made)
        with Counting() as counting:
            made.say(m.Interrupt(order=m.StopOrder(cause="stop")))
            run(made)
        counting.show("a stop of a turn and its child, until both are dead", 13)


if __name__ == "__main__":
    head("Messages between actors")
    typed_message()
    named_steer()
    stop()
