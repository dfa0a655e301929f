"""The base of everything that is journalled."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """Base of all journal entries."""
