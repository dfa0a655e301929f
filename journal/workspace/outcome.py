"""What is asked of a workspace, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

__all__ = ["Outcome", "RevertOrder", "Scope"]

Scope = Literal["turn", "last", "undo"]


@dataclass(frozen=True, slots=True)
class RevertOrder:
    """An order to give files back; the same `id` is carried out once.

    `turns` are those whose changes are meant, `since` means a turn and all after it; with neither,
    the newest turn that changed anything. `paths` narrow an undo. `resumed` are pairs of
    a turn and the one that it goes on from: together they are one.
    """

    id: str
    scope: Scope
    turns: tuple[str, ...] = ()
    since: str = ""
    paths: tuple[str, ...] = ()
    resumed: tuple[tuple[str, str], ...] = ()
    force: bool = False
    is_dry_run: bool = False


@dataclass(frozen=True, slots=True)
class Outcome:
    """What was given back, and what was kept and why.

    `shared` changed while a command of the turn ran, `yours` went back to a person's own version,
    `blind` says of which turns it is not known what their commands changed, `nested` are other
    repositories in the folder, which are not looked at.
    """

    id: str
    scope: str
    restored: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    shared: tuple[str, ...] = ()
    yours: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    blind: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    is_dry_run: bool = False
