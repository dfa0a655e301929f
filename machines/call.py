"""The machine of a tool call: an intent that is durable before anything starts, and one result.

A crash between the two leaves `unknown`: shown, told to the model, and never run again by itself.
"""

from .machine import Machine, State, Transition

__all__ = ["CALL"]

CALL = Machine(
    name="call",
    doc="One tool call of one model answer.",
    initial="requested",
    states=(
        State("requested", "The model asked for it; nothing was decided."),
        State("asking", "A person is asked whether it may run."),
        State("running", "The intent is durable; it runs or is about to."),
        State("stopping", "It was told to end; its processes are being stopped."),
        State("done", "It returned.", is_final=True),
        State("failed", "It ran and failed, or could not run.", is_final=True),
        State("timed_out", "It was ended at its time limit.", is_final=True),
        State("killed", "It was ended by a cancel.", is_final=True),
        State("denied", "It was not allowed.", is_final=True),
        State("skipped", "The turn ended before it could start.", is_final=True),
        State(
            "unknown", "The program died while it ran: nobody knows how it ended.", is_final=True
        ),
    ),
    transitions=(
        Transition("ask", ("requested",), "asking"),
        Transition("intend", ("requested", "asking"), "running"),
        Transition("deny", ("requested", "asking"), "denied"),
        Transition("reject", ("requested",), "failed"),
        Transition("succeed", ("running", "stopping"), "done"),
        Transition("fail", ("running", "stopping"), "failed"),
        Transition("time_out", ("running", "stopping"), "timed_out"),
        Transition("kill", ("running", "stopping"), "killed"),
        Transition("stop", ("running",), "stopping"),
        Transition("stop", ("requested", "asking"), "skipped"),
        Transition("stop", ("stopping",), ignored="already stopping"),
        Transition("lose", ("running", "stopping"), "unknown"),
        Transition("lose", ("requested", "asking"), "skipped"),
    ),
    control=("stop",),
)
