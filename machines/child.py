"""The machine of a supervised child, after OTP's supervisor behaviour."""

from .machine import Machine, State, Transition

__all__ = ["CHILD"]

CHILD = Machine(
    name="child",
    doc="An actor as its supervisor sees it.",
    initial="running",
    states=(
        State("running", "It takes messages."),
        State("stopping", "It was told to end because a sibling failed; awaited."),
        State("suspended", "It is down; its mailbox is kept for the next incarnation."),
        State("ended", "It is down and stays so.", is_final=True),
        State("given_up", "It failed too often; its supervisor failed with it.", is_final=True),
    ),
    transitions=(
        Transition("stop", ("running",), "stopping"),
        Transition("stop", ("stopping", "suspended"), ignored="already on its way"),
        Transition("down", ("running",), "suspended", ("must_restart",)),
        Transition("down", ("running",), "ended"),
        Transition("down", ("stopping",), "suspended", ("must_restart",)),
        Transition("down", ("stopping",), "ended"),
        Transition("restart", ("suspended",), "running"),
        Transition("give_up", ("running", "stopping", "suspended"), "given_up"),
    ),
    control=("stop",),
)
