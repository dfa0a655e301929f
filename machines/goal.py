"""The goal's machine: work that goes on over many turns, until a judge says that it is done.

A goal ends in every case: it is achieved, it is found impossible, it is cleared, or it pauses, by
itself or because somebody said so. Whatever pauses it is a reason that people are told. Only a person
lets a paused goal go on, and that grants its budget anew.
"""

from typing import Final

from .machine import Machine, State, Transition

__all__ = ["GOAL", "PURSUED", "REASONS"]

GOAL = Machine(
    name="goal",
    doc="Something to be reached, turn by turn, and judged after each.",
    initial="lined_up",
    states=(
        State("lined_up", "It begins when the goals before it are achieved."),
        State("active", "Turns run for it, or a judge looks at the last one."),
        State("waiting", "Nothing is done for it until what the judge named has happened."),
        State("paused", "It goes on when a person says so; the reason is known."),
        State("achieved", "The judge said that it is done.", is_final=True),
        State("impossible", "The judge said that it can't be done.", is_final=True),
        State("cleared", "A person dropped it, or its session ended.", is_final=True),
    ),
    transitions=(
        Transition("begin", ("lined_up",), "active"),
        Transition("continue", ("active",)),
        Transition("wait", ("active",), "waiting"),
        Transition("wake", ("waiting",), "active"),
        Transition("achieve", ("active",), "achieved"),
        Transition("give_up", ("active",), "impossible"),
        Transition("pause", ("active", "waiting"), "paused"),
        Transition("pause", ("paused",), ignored="paused already"),
        Transition("pause", ("lined_up",), ignored="not begun yet"),
        Transition("resume", ("paused", "waiting"), "active"),
        Transition("resume", ("active",), ignored="it is active"),
        Transition("clear", ("lined_up", "active", "waiting", "paused"), "cleared"),
    ),
    control=("pause", "clear"),
)

PURSUED: Final = ("active", "waiting")
"""The states in which something is done for it, or will be, without anybody saying so."""

REASONS: Final = {
    "user": "a person paused it",
    "interrupt": "work was stopped",
    "budget": "its budget is spent",
    "no_progress": "the agent says the same again, and no file has changed",
    "judge_unusable": "the judge gives no usable verdict",
    "failing": "turn after turn failed",
}
"""Why a goal is paused."""
