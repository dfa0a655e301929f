"""The machine of a queue item: one message that a person sent, from arrival to its end.

A steer is an item, too: it waits, pending, for a boundary of the turn that it names, or of the
children that it was handed on to. What is offered never runs by itself.
"""

from .machine import Machine, State, Transition

__all__ = ["ITEM"]

ITEM = Machine(
    name="item",
    doc="One message in a session's queue.",
    initial="pending",
    states=(
        State("pending", "It waits: for its turn, or as a steer for a boundary."),
        State("offered", "A side talk's or a child's answer: to steer, keep or drop."),
        State("running", "Its turn runs."),
        State("interrupted", "Its turn was interrupted; it can be resumed from there."),
        State("superseded", "Another message replaced its turn; only its number resumes it."),
        State("steered", "A running turn took it in.", is_final=True),
        State("done", "Its turn is complete.", is_final=True),
        State("failed", "Its turn failed.", is_final=True),
        State("withdrawn", "A person took it back.", is_final=True),
    ),
    transitions=(
        Transition("start", ("pending", "interrupted"), "running"),
        Transition("steer", ("pending",), "steered"),
        Transition("requeue", ("pending",)),
        Transition("address", ("pending",)),
        Transition("address", ("offered",), "pending"),
        Transition("offer", ("pending",), "offered"),
        Transition("keep", ("offered",), "pending"),
        Transition("edit", ("pending", "interrupted")),
        Transition("complete", ("running",), "done"),
        Transition("fail", ("running",), "failed"),
        Transition("interrupt", ("running",), "interrupted"),
        Transition("supersede", ("running",), "superseded"),
        Transition("resume", ("superseded",), "interrupted"),
        Transition(
            "interrupt",
            ("pending", "interrupted", "superseded", "offered"),
            ignored="it does not run",
        ),
        Transition("withdraw", ("pending", "interrupted", "superseded", "offered"), "withdrawn"),
        Transition("withdraw", ("running",), ignored="it runs; stop it first"),
    ),
    control=("interrupt", "withdraw"),
)
