"""The base of all messages between actors, and the lanes they travel in.

Lanes are served SYSTEM, then CONTROL, then DATA; within a lane each sender's messages stay in order.
SYSTEM is the runtime's own traffic (a child is down, journal entries that were decided, commits that
are durable); CONTROL is what must not wait behind work (interrupt, steer, timer); DATA is everything
else. Only messages from outside (`is_external`) are counted against a mailbox's bound.
"""

from dataclasses import dataclass
from enum import IntEnum
from typing import ClassVar

__all__ = ["Lane", "Message"]


class Lane(IntEnum):
    """Service order of a mailbox, first to last."""

    SYSTEM = 0
    CONTROL = 1
    DATA = 2


@dataclass(frozen=True, slots=True)
class Message:
    """Base of all messages; a subclass that says nothing travels in DATA, from inside."""

    lane: ClassVar[Lane] = Lane.DATA
    is_external: ClassVar[bool] = False
