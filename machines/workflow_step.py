"""The machines of a workflow's step and of its work: a step has one piece of work for each item.

A step without `for_each` has one piece. Work is tried once or, with `retry`, several times; each try
is durable before it begins. What the program's death cut off is `unknown`: it may or may not have had
its effect, and is only done again if the step says that it may be, or a person does.
"""

from .machine import Machine, State, Transition

__all__ = ["STEP", "WORK"]

STEP = Machine(
    name="step",
    doc="One step of a workflow's run.",
    initial="waiting",
    states=(
        State("waiting", "What it needs has not ended yet."),
        State("running", "Some of its work runs, or is about to."),
        State("interrupted", "The run was interrupted; what is done of it stays done."),
        State("done", "All its work is done.", is_final=True),
        State("failed", "Some of its work failed, or it could not begin.", is_final=True),
        State("skipped", "Its own condition did not hold.", is_final=True),
        State("blocked", "Something that it needs failed.", is_final=True),
    ),
    transitions=(
        Transition("start", ("waiting", "interrupted"), "running"),
        Transition("skip", ("waiting",), "skipped"),
        Transition("block", ("waiting",), "blocked"),
        Transition("finish", ("running",), "done"),
        Transition("fail", ("waiting", "running", "interrupted"), "failed"),
        Transition("interrupt", ("running",), "interrupted"),
        Transition("interrupt", ("waiting", "interrupted"), ignored="it does not run"),
    ),
    control=("interrupt",),
)

WORK = Machine(
    name="work",
    doc="A step's work for one item, one attempt after another.",
    initial="waiting",
    states=(
        State("waiting", "It begins when there is room for it."),
        State("running", "An attempt is durable, and runs or is about to."),
        State("resting", "An attempt failed; the next begins after a while."),
        State("interrupted", "It was stopped; it begins again, or its session goes on."),
        State("unknown", "The program died while it ran: nobody knows how that ended."),
        State("done", "It succeeded.", is_final=True),
        State("failed", "Its last attempt failed.", is_final=True),
    ),
    transitions=(
        Transition("start", ("waiting", "resting", "interrupted"), "running"),
        Transition("succeed", ("running",), "done"),
        Transition("retry", ("running",), "resting"),
        Transition("fail", ("running", "waiting"), "failed"),
        Transition("interrupt", ("running",), "interrupted"),
        Transition("interrupt", ("resting",), "waiting"),
        Transition("interrupt", ("waiting", "interrupted", "unknown"), ignored="it does not run"),
        Transition("lose", ("running",), "unknown"),
        Transition("lose", ("resting",), "waiting"),
        Transition("again", ("unknown",), "waiting"),
        Transition("settle", ("unknown",), "done"),
    ),
    control=("interrupt",),
)
