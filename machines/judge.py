"""The judge's machine: what happens at one boundary of a goal, from the end of a turn to a verdict."""

from .machine import Machine, State, Transition

__all__ = ["JUDGE"]

JUDGE = Machine(
    name="judge",
    doc="One look at a goal, after a turn.",
    initial="gating",
    states=(
        State("gating", "Commands run that must succeed before anybody is asked."),
        State("asking", "The model that judges was asked."),
        State("comparing", "The agent repeats itself: it is found out whether a file has changed."),
        State("judged", "There is a verdict.", is_final=True),
        State("unusable", "There is none that can be used.", is_final=True),
        State("stopped", "Somebody stopped it first.", is_final=True),
    ),
    transitions=(
        Transition("gate_passed", ("gating",), effects=("next",)),
        Transition("gate_failed", ("gating",), "comparing", ("is_repeated",), ("compare",)),
        Transition("gate_failed", ("gating",), "judged", effects=("tell",)),
        Transition("gates_done", ("gating",), "judged", ("gates_decide",), ("tell",)),
        Transition("gates_done", ("gating",), "asking", effects=("ask",)),
        Transition("verdict", ("asking",), "comparing", ("is_repeated",), ("compare",)),
        Transition("verdict", ("asking",), "judged", effects=("tell",)),
        Transition("no_verdict", ("asking",), "unusable", effects=("tell",)),
        Transition("compared", ("comparing",), "judged", effects=("tell",)),
        Transition("stop", ("gating", "asking", "comparing"), "stopped"),
    ),
    control=("stop",),
)
