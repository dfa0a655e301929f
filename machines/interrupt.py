"""The machine of an interrupt's receipt: from the order to stop until everything is dead."""

from .machine import Machine, State, Transition

__all__ = ["INTERRUPT"]

INTERRUPT = Machine(
    name="interrupt",
    doc="What became of one order to stop.",
    initial="planned",
    states=(
        State("planned", "It was accepted; the tools that run end first."),
        State("stopping", "It took effect; what the turn started is being stopped."),
        State("stopped", "Everything that the turn started is dead.", is_final=True),
        State("overtaken", "Another one came first, or the turn ended by itself.", is_final=True),
        State("called_off", "It was taken back before it took effect.", is_final=True),
    ),
    transitions=(
        Transition("take_effect", ("planned",), "stopping"),
        Transition("call_off", ("planned",), "called_off"),
        Transition("call_off", ("stopping",), ignored="it took effect"),
        Transition("overtake", ("planned", "stopping"), "overtaken"),
        Transition("finish", ("stopping",), "stopped"),
        Transition("finish", ("planned",), "overtaken"),
    ),
    control=("call_off",),
)
