"""The session's machine: one conversation, of which at most one turn runs.

`starting` is the instant between asking the queue for the next item and its answer; what people say
then waits a moment, so that it is judged by what is really running. `interrupting` lasts until
everything the turn started is dead: the next turn never runs beside the remains of the last.
"""

from .machine import Machine, State, Transition

__all__ = ["SESSION"]

SESSION = Machine(
    name="session",
    doc="One conversation with its history, queue and turns.",
    initial="idle",
    states=(
        State("idle", "Nothing runs. Whether the queue is held is the queue's state."),
        State("starting", "The queue was asked for the next item."),
        State("busy", "A turn runs."),
        State("interrupting", "The turn has ended; what it started is being stopped."),
        State(
            "leaving", "What runs is being stopped, then everything is on disk and nobody there."
        ),
        State("suspended", "Nobody is there; everything is on disk."),
        State("finalizing", "What runs is being stopped, then the session ends for good."),
        State("finalized", "Over for good.", is_final=True),
    ),
    transitions=(
        Transition("start", ("idle",), "starting"),
        Transition("nothing_to_start", ("starting",), "idle"),
        Transition("turn_started", ("starting",), "busy"),
        Transition("turn_ended", ("busy", "interrupting"), "idle"),
        Transition("turn_ended", ("leaving", "finalizing"), effects=("settle",)),
        Transition("interrupted", ("busy",), "interrupting"),
        Transition("interrupted", ("leaving", "finalizing")),
        Transition("stopped", ("interrupting",), "idle"),
        Transition("stopped", ("leaving", "finalizing"), effects=("settle",)),
        Transition("interrupt", ("busy",), effects=("interrupt_turn",)),
        Transition(
            "interrupt", ("interrupting", "leaving", "finalizing"), ignored="already stopping"
        ),
        Transition("interrupt", ("idle", "suspended"), ignored="nothing runs"),
        Transition("interrupt", ("starting",), effects=("wait",)),
        Transition("suspend", ("idle",), "leaving", effects=("settle",)),
        Transition("suspend", ("busy",), "leaving", effects=("interrupt_turn",)),
        Transition("suspend", ("interrupting",), "leaving"),
        Transition("suspend", ("starting",), effects=("wait",)),
        Transition("suspend", ("suspended", "leaving", "finalizing"), ignored="already leaving"),
        Transition("settle", ("leaving",), "suspended"),
        Transition("settle", ("finalizing",), "finalized"),
        Transition("resume", ("suspended",), "idle"),
        Transition("resume", ("idle",), ignored="already here"),
        Transition("finalize", ("idle", "suspended"), "finalizing", effects=("settle",)),
        Transition("finalize", ("busy",), "finalizing", effects=("interrupt_turn",)),
        Transition("finalize", ("interrupting", "leaving"), "finalizing"),
        Transition("finalize", ("starting",), effects=("wait",)),
        Transition("finalize", ("finalizing",), ignored="already finalizing"),
        Transition("recover", ("starting", "busy", "interrupting", "leaving"), "idle"),
        Transition("recover", ("idle", "suspended"), "idle"),
        Transition("recover", ("finalizing",)),
    ),
    control=("interrupt", "suspend", "finalize"),
)
