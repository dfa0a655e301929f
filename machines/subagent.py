"""The machine of a subagent: a session that works for another, as its parent knows it.

A side talk is one, too. What the child session itself does is a matter of its own journal; here is
what its parent may rely on, across crashes.
"""

from collections.abc import Iterable

from .machine import Machine, State, Transition

__all__ = ["AT_WORK", "SUBAGENT", "meant"]

SUBAGENT = Machine(
    name="subagent",
    doc="A session that works for another one, from being asked for to its result.",
    initial="waiting",
    states=(
        State("waiting", "It begins as soon as there is room for it."),
        State("working", "It was given its task."),
        State("stopping", "It was told to end; everything it started is being stopped."),
        State("interrupted", "It was stopped, or its program died; it can go on from there."),
        State("completed", "It gave its result.", is_final=True),
        State("failed", "It could not go on; what it had is kept.", is_final=True),
        State("cancelled", "It was stopped for good; what it had is kept.", is_final=True),
        State("disconnected", "What it ran on went away.", is_final=True),
    ),
    transitions=(
        Transition("admit", ("waiting",), "working"),
        Transition("cancel", ("waiting", "interrupted"), "cancelled"),
        Transition("cancel", ("working",), "stopping"),
        Transition("cancel", ("stopping",)),
        Transition("detach", ("waiting", "working")),
        Transition("detach", ("stopping", "interrupted"), ignored="it does not work"),
        Transition("interrupted", ("waiting", "working", "stopping"), "interrupted"),
        Transition("complete", ("working", "stopping"), "completed"),
        Transition("fail", ("waiting", "working", "stopping", "interrupted"), "failed"),
        Transition("stopped", ("waiting", "working", "stopping", "interrupted"), "cancelled"),
        Transition("disconnect", ("waiting", "working", "stopping"), "disconnected"),
        Transition("resume", ("interrupted",), "working"),
    ),
    control=("cancel", "detach"),
)

AT_WORK = ("waiting", "working", "stopping")
"""The states in which a child counts as one that works."""


def meant(names: Iterable[str], name: str) -> tuple[str, ...]:
    """Return who of those at work is meant by a name.

    A name that an interrupted child still bears is given on with a number: `kid-2` is meant by
    `kid`, too, while no `kid` works.
    """
    there = tuple(names)
    exact = tuple(one for one in there if one == name)
    return exact or tuple(
        one for one in there if one.startswith(f"{name}-") and one[len(name) + 1 :].isdecimal()
    )
