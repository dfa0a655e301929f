"""What is journalled of permissions: what a person allowed for the rest of a session."""

from dataclasses import dataclass

from .entry import Entry


@dataclass(frozen=True, slots=True)
class AllowanceGiven(Entry):
    """A person answered `always`: calls of `tool` that match `pattern` are not asked about again."""

    tool: str
    pattern: str


@dataclass(frozen=True, slots=True)
class AllowanceForgotten(Entry):
    """A person took it back: they are asked about again."""

    tool: str
    pattern: str
