"""The machines of a workflow's step and of its work: a step has one piece of work for each item.

A step without `for_each` has one piece. Work is tried once or, with `retry`, several times; each try
is durable before it begins. What the program's death cut off is `unknown`: it may or may not have had
its effect, and is only done again if the step says that it may be, or a person does.

When a failed run is tried again, a step that failed is reopened: what is done of it stays done. Steps
that followed from its end are reset, as if they had never begun.
"""

from .machine import Machine, State, Transition

ENDED = ("done", "failed", "skipped", "blocked")
"""The states of a step that has ended, as far as this attempt at the run goes."""

STEP = Machine(
    name="step",
    doc="One step of a workflow's run.",
    initial="waiting",
    states=(
        State("waiting", "What it needs has not ended yet."),
        State("running", "Some of its work runs, or is about to."),
        State("interrupted", "The run was interrupted; what is done of it stays done."),
        State("done", "All its work is done."),
        State("failed", "Some of its work failed, or it could not begin."),
        State("skipped", "Its own condition did not hold."),
        State("blocked", "Something that it needs failed."),
    ),
    transitions=(
        Transition("start", ("waiting", "interrupted"), "running"),
        Transition("skip", ("waiting",), "skipped"),
        Transition("block", ("waiting",), "blocked"),
        Transition("finish", ("running",), "done"),
        Transition("fail", ("waiting", "running", "interrupted"), "failed"),
        Transition("interrupt", ("running",), "interrupted"),
        Transition("interrupt", ("waiting", "interrupted", *ENDED), ignored="it does not run"),
        Transition("reopen", ("failed",), "interrupted"),
        Transition("reset", ENDED, "waiting"),
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
        State("failed", "Its last attempt failed."),
    ),
    transitions=(
        Transition("start", ("waiting", "resting", "interrupted"), "running"),
        Transition("succeed", ("running",), "done"),
        Transition("retry", ("running",), "resting"),
        Transition("fail", ("running", "waiting"), "failed"),
        Transition("interrupt", ("running",), "interrupted"),
        Transition("interrupt", ("resting",), "waiting"),
        Transition(
            "interrupt",
            ("waiting", "interrupted", "unknown", "failed"),
            ignored="it does not run",
        ),
        Transition("lose", ("running",), "unknown"),
        Transition("lose", ("resting",), "waiting"),
        Transition("again", ("unknown", "failed"), "waiting"),
        Transition("settle", ("unknown",), "done"),
    ),
    control=("interrupt",),
)
