"""Carries out a wish to have files as they were, and says to its session what became of it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

from ...journal.workspace.outcome import Outcome, RevertOrder, Scope
from ...journal.workspace.restore import RestoreFailed
from ...machines.effects import RestoreFiles
from ...machines.results import RestoreCounted, RestoreEnded
from ...ports.workspace.workspace import Workspace

__all__ = ["give_back"]


async def give_back(
    workspace: Workspace | None, effect: RestoreFiles, say: Callable[[Any], None]
) -> None:
    """Say how many files it is about, give them back, say what was given back and what was not."""
    if workspace is None:
        say(RestoreEnded(effect.id, "nothing was kept of the files of this session"))
        return
    order = RevertOrder(
        effect.id,
        cast("Scope", effect.scope),
        effect.turns,
        effect.since,
        effect.paths,
        effect.resumed,
        effect.force,
        effect.is_dry_run,
    )
    try:
        say(RestoreCounted(effect.id, await workspace.count(order)))
        outcome = await workspace.revert(order)
    except (RestoreFailed, OSError) as error:
        say(RestoreEnded(effect.id, str(error)))
        return
    say(_ended(effect.id, outcome))


def _ended(name: str, outcome: Outcome) -> RestoreEnded:
    notes = [f"what commands changed in turn {one}" for one in outcome.blind]
    notes += [f"`{one}` is a repository of its own and is not looked at" for one in outcome.nested]
    return RestoreEnded(
        name,
        "",
        outcome.restored,
        outcome.kept,
        outcome.shared,
        outcome.yours,
        outcome.turns,
        tuple(notes),
    )
