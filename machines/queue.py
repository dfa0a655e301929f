"""The queue's machine: whether what waits may run by itself."""

from .machine import Machine, State, Transition

__all__ = ["QUEUE"]

QUEUE = Machine(
    name="queue",
    doc="A session's waiting messages, in order.",
    initial="open",
    states=(
        State("open", "The next waiting message runs as soon as nothing else does."),
        State(
            "held",
            "What waits stays, in order, until a person says resume; what is said to a turn "
            "that began since is not held.",
        ),
        State("closed", "The session is final.", is_final=True),
    ),
    transitions=(
        Transition("accept", ("open", "held")),
        Transition("hold", ("open",), "held"),
        Transition("hold", ("held",), ignored="already held"),
        Transition("release", ("held",), "open"),
        Transition("release", ("open",), ignored="not held"),
        Transition("close", ("open", "held"), "closed"),
    ),
    control=("hold", "release", "close"),
)
