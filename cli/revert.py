"""`steersman sessions revert`: reverts files of a session, open or closed."""

from __future__ import annotations

from collections.abc import Mapping

from ..gateway.commands.revert import revert
from .queue import run_on


def revert_session(
    environ: Mapping[str, str],
    session: str,
    what: list[str],
    to: str,
    *,
    force: bool,
    dry_run: bool,
    as_json: bool,
) -> int:
    """Run `/revert …` on a session, also one that another process has open."""
    call = revert(tuple(what), since=to, force=force, is_dry_run=dry_run)
    return run_on(environ, session, call, as_json=as_json)
