"""A child's place in the nursery, while its session is open there or being opened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pykka import ActorRef

from ...machines.delegation import PassSteer
from ..mailbox import tell

__all__ = ["Crib"]


@dataclass(slots=True)
class Crib:
    """`ref` is none until the session is open; `has_turn`: a turn of it has begun.

    `steers` were handed on and are not taken in yet.
    """

    ref: ActorRef[Any] | None = None
    has_turn: bool = False
    steers: tuple[PassSteer, ...] = ()

    def tell(self, message: object) -> bool:
        """Tell the child, if it is there, and return whether it is."""
        return tell(self.ref, message)
