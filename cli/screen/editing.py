"""A waiting message taken back into the input line, to be worded anew."""

from __future__ import annotations

from dataclasses import dataclass

from ...gateway.events.contract import Event
from .status import Status

__all__ = ["Edited", "waiting_before"]


@dataclass(frozen=True, slots=True)
class Edited:
    """Message `number` is in the line; `id` is its item, `text` what it said."""

    id: str
    number: int
    text: str

    def is_waiting(self, status: Status) -> bool:
        """Whether it still waits: only then can it be changed."""
        return any(one["id"] == self.id and one["state"] == "pending" for one in status.items)

    def note(self, status: Status) -> str:
        """Return what stands over the line."""
        if self.is_waiting(status):
            return (
                f"Editing #{self.number}: Enter keeps it, emptied it is taken back, Esc leaves it."
            )
        return f"#{self.number} does not wait any more: Enter says this as a new message."


def waiting_before(status: Status, edited: Edited | None) -> Edited | None:
    """Return the last message that waits, or the one before that which is edited; none left: none."""
    waiting = [one for one in status.items if one["state"] == "pending"]
    if edited is not None:
        at = next((at for at, one in enumerate(waiting) if one["id"] == edited.id), 0)
        waiting = waiting[:at]
    return _edited(waiting[-1]) if waiting else None


def _edited(item: Event) -> Edited:
    return Edited(item["id"], item["number"], str(item["text"]))
