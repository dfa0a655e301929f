"""`steersman sessions revert`: give files back from another terminal, or when nobody is there."""

from __future__ import annotations

import shlex
from collections.abc import Mapping

from .queue import say_to


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
    """Carry out `/revert …` on a session, whoever has it open."""
    words = ["--to", to] if to else []
    words += ["--force"] if force else []
    words += ["--dry-run"] if dry_run else []
    words += ["--", *what] if what else []
    return say_to(environ, session, shlex.join(["/revert", *words]), "auto", as_json=as_json)
