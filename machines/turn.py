"""The turn's machine: the agent loop.

A turn begins at a boundary. At each boundary it takes in the steers that wait, then calls the model;
an answer with tool calls leads to `acting` and from there to the next boundary; an answer without
them leads to a boundary, too, at which the turn is complete unless a steer waits. An answer that is
cut off for a steer leads to a boundary at which the turn goes on.

When the model's window is nearly full, older turns are summed up: at the first boundary, which lies
between two turns, or, where a call would be or was refused for its length, at a later one. A turn
that was asked for by `/compact` does nothing else.
"""

from .machine import Machine, State, Transition

__all__ = ["TURN"]

LIVE = ("boundary", "calling", "compacting", "acting")

TURN = Machine(
    name="turn",
    doc="One run of the agent loop, from a message to the agent's last word.",
    initial="boundary",
    states=(
        State("boundary", "Between calls: steers enter here and nowhere else."),
        State("calling", "The model was asked."),
        State("compacting", "Older turns are being summed up; no other call is open."),
        State("acting", "Tool calls of one answer run, or wait for permission."),
        State("completed", "The agent said its last word.", is_final=True),
        State("interrupted", "A cancel ended it; it can be resumed.", is_final=True),
        State("failed", "The model failed, or a limit was reached.", is_final=True),
    ),
    transitions=(
        Transition("proceed", ("boundary",), "calling", ("!steps_spent",), ("call_model",)),
        Transition("proceed", ("boundary",), "failed", effects=("end",)),
        Transition("finish", ("boundary",), "completed", effects=("end",)),
        Transition("answer", ("calling",), "acting", ("has_calls",), ("start_calls",)),
        Transition("answer", ("calling",), "boundary", effects=("close_boundary",)),
        Transition("cut", ("calling",), "boundary", effects=("open_boundary",)),
        Transition("model_failed", ("calling",), "failed", effects=("end",)),
        Transition("compact", ("boundary",), "compacting", effects=("summarise",)),
        Transition("overflow", ("calling",), "compacting", effects=("summarise",)),
        Transition("compacted", ("compacting",), "boundary", effects=("open_boundary",)),
        Transition("calls_done", ("acting",), "boundary", effects=("open_boundary",)),
        Transition("interrupt", LIVE, "interrupted", (), ("stop",)),
        Transition("fail", LIVE, "failed", effects=("end",)),
    ),
    control=("interrupt",),
)
