"""The turn's machine: the agent loop.

A turn begins at a boundary. At each boundary it takes in the steers that wait, then calls the model;
an answer with tool calls leads to `acting` and from there to the next boundary; an answer without
them leads to a boundary, too, at which the turn is complete unless a steer waits. An answer that is
cut off for a steer leads to a boundary at which the turn goes on.
"""

from .machine import Machine, State, Transition

__all__ = ["TURN"]

TURN = Machine(
    name="turn",
    doc="One run of the agent loop, from a message to the agent's last word.",
    initial="boundary",
    states=(
        State("boundary", "Between calls: steers enter here and nowhere else."),
        State("calling", "The model was asked."),
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
        Transition("calls_done", ("acting",), "boundary", effects=("open_boundary",)),
        Transition("interrupt", ("boundary", "calling", "acting"), "interrupted", (), ("stop",)),
        Transition("fail", ("boundary", "calling", "acting"), "failed", effects=("end",)),
    ),
    control=("interrupt",),
)
