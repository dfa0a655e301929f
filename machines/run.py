"""The machine of a workflow's run: a session whose turn is not an agent's, but the steps of a file.

An interrupted run goes on at the items where it was, a failed one with what failed and what waited for
that; one that succeeded is over.
"""

from .machine import Machine, State, Transition

__all__ = ["RUN"]

RUN = Machine(
    name="run",
    doc="One run of a workflow, across interrupts and crashes.",
    initial="pending",
    states=(
        State("pending", "It was opened; no step has begun."),
        State("running", "Steps run, or wait for others."),
        State("interrupting", "No step begins any more; what runs is being stopped."),
        State("interrupted", "Nothing runs; it can go on where it was."),
        State("succeeded", "Every step came to a good end, or was not needed.", is_final=True),
        State("failed", "A step failed, and nothing took care of it; it can be tried again."),
    ),
    transitions=(
        Transition("start", ("pending", "interrupted", "failed"), "running"),
        Transition("finish", ("running",), "succeeded"),
        Transition("fail", ("running", "interrupting"), "failed"),
        Transition("interrupt", ("running",), "interrupting"),
        Transition("interrupt", ("pending", "interrupted", "failed"), ignored="nothing runs"),
        Transition("interrupt", ("interrupting",), ignored="already stopping"),
        Transition("stopped", ("interrupting",), "interrupted"),
        Transition("lose", ("running", "interrupting"), "interrupted"),
        Transition("lose", ("pending", "interrupted", "failed"), ignored="nothing ran"),
    ),
    control=("interrupt",),
)
