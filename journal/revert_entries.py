"""What is journalled of files that are given back; see `entries.py`."""

from __future__ import annotations

from dataclasses import dataclass

from .entries import Entry


@dataclass(frozen=True, slots=True)
class RevertAsked(Entry):
    """Somebody wants files as they were; see `RestoreFiles` for the fields.

    `turn` is the one that has to be over before it begins, empty if none runs.
    """

    id: str
    scope: str
    turn: str = ""
    turns: tuple[str, ...] = ()
    since: str = ""
    paths: tuple[str, ...] = ()
    force: bool = False
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class RevertStarted(Entry):
    """Nothing can change files any more: it is looked what is to be given back."""

    id: str


@dataclass(frozen=True, slots=True)
class RevertBegun(Entry):
    """So many files are about to be given back."""

    id: str
    files: int


@dataclass(frozen=True, slots=True)
class Reverted(Entry):
    """Files were given back, or in a dry run would be; see `RestoreEnded` for the fields."""

    id: str
    scope: str
    is_dry_run: bool = False
    restored: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    shared: tuple[str, ...] = ()
    yours: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class RevertRefused(Entry):
    """Nothing was changed."""

    id: str
    reason: str
