"""What all journal entries have in common."""

from dataclasses import dataclass

__all__ = ["Entry"]


@dataclass(frozen=True, slots=True)
class Entry:
    """Base of all journal entries."""
