"""The session's machine: one conversation, of which at most one turn runs.

`interrupting` lasts from the stop until everything the turn started is dead: the next turn never runs
beside the remains of the last.
"""

from .machine import Machine, State, Transition

__all__ = ["SESSION"]

SESSION = Machine(
    name="session",
    doc="One conversation with its history, queue and turns.",
    initial="idle",
    states=(
        State("idle", "Nothing runs. Whether the queue is held is the queue's state."),
        State("busy", "A turn runs."),
        State("interrupting", "The turn was told to stop; what it started is being stopped."),
        State(
            "leaving", "What runs is being stopped, then everything is on disk and nobody there."
        ),
        State("suspended", "Nobody is there; everything is on disk."),
        State("finalizing", "What runs is being stopped, then the session ends for good."),
        State("finalized", "Over for good.", is_final=True),
    ),
    transitions=(
        Transition("turn_started", ("idle",), "busy"),
        Transition("turn_ended", ("busy", "interrupting"), "idle"),
        Transition("turn_ended", ("leaving", "finalizing")),
        Transition("interrupt", ("busy",), "interrupting"),
        Transition(
            "interrupt", ("interrupting", "leaving", "finalizing"), ignored="already stopping"
        ),
        Transition("interrupt", ("idle", "suspended"), ignored="nothing runs"),
        Transition("stopped", ("interrupting",), "idle"),
        Transition("stopped", ("leaving", "finalizing")),
        Transition("suspend", ("idle", "busy", "interrupting"), "leaving"),
        Transition("suspend", ("suspended", "leaving", "finalizing"), ignored="already leaving"),
        Transition("settle", ("leaving",), "suspended"),
        Transition("settle", ("finalizing",), "finalized"),
        Transition("resume", ("suspended",), "idle"),
        Transition("resume", ("idle",), ignored="already here"),
        Transition(
            "finalize", ("idle", "suspended", "busy", "interrupting", "leaving"), "finalizing"
        ),
        Transition("finalize", ("finalizing",), ignored="already finalizing"),
        Transition("recover", ("busy", "interrupting", "leaving"), "idle"),
        Transition("recover", ("idle", "suspended"), "idle"),
        Transition("recover", ("finalizing",)),
    ),
    control=("interrupt", "suspend", "finalize"),
)
