"""Messages between a session, its queue and its turn about what people said in the middle of it."""

from dataclasses import dataclass
from typing import Any, ClassVar

from .messages import Lane, Message

__all__ = ["CallOff", "HandBack"]


@dataclass(frozen=True, slots=True)
class CallOff(Message):
    """The session's word to its turn that a planned interrupt was taken back, if it still waits."""

    lane: ClassVar[Lane] = Lane.SYSTEM
    receipt: str


@dataclass(frozen=True, slots=True)
class HandBack(Message):
    """The model can't work a message in: `words` are how it begins, empty if there is only one.

    The queue answers with the result of the tool call.
    """

    lane: ClassVar[Lane] = Lane.SYSTEM
    turn: str
    epoch: int
    step: int
    call: str
    words: str
    why: str
    reply_to: Any
