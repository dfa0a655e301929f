"""The machine of a revert: files are given back only when nothing that could change them is left.

`asked` lasts until the turn has ended and everything it started is dead. A crash while files are being
given back is none of this machine's business: the same order is carried out again, and finishes or
finds that it was finished.
"""

from .machine import Machine, State, Transition

__all__ = ["REVERT"]

REVERT = Machine(
    name="revert",
    doc="One wish to have files as they were.",
    initial="asked",
    states=(
        State("asked", "It waits until everything that the turn started is dead."),
        State("started", "It is looked what is to be given back; nothing else begins meanwhile."),
        State("restoring", "Files are being given back; nothing else begins meanwhile."),
        State("restored", "Done, as far as nobody else had changed them since.", is_final=True),
        State("refused", "Nothing was changed; the reason was told.", is_final=True),
    ),
    transitions=(
        Transition("start", ("asked",), "started"),
        Transition("begin", ("started",), "restoring"),
        Transition("begin", ("restoring",)),
        Transition("restore", ("started", "restoring"), "restored"),
        Transition("refuse", ("asked", "started", "restoring"), "refused"),
    ),
    control=("refuse",),
)
