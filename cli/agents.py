"""`steersman agents …`: a session's subagents, from another terminal."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..gateway.commands.agents import (
    agents_of,
    draw_agents,
    stop_agent,
    stored_state,
    wrap_up_agent,
)
from ..gateway.wording.redaction import redactor_of
from ..journal.store import SessionRow, Store
from ..machines.errors import UsageError
from .output import show, show_document
from .queue import find_for_listing, run_on
from .stored import stored


def list_agents(environ: Mapping[str, str], session: str, *, as_json: bool) -> int:
    """Print the subagents below a session from the store, also while another process runs it."""
    with stored(environ) as store:
        row = find_for_listing(store, session)
        agents = _agents(environ, store, row) if row else []
    if as_json:
        show_document({"agents": agents})
    elif row:
        show(draw_agents(agents))
    return 0


def _agents(environ: Mapping[str, str], store: Store, row: SessionRow) -> list[dict[str, Any]]:
    return agents_of(stored_state(store), row.session, redactor_of(environ, row.folder))


def end_agent(
    environ: Mapping[str, str], session: str, verb: str, name: str, *, as_json: bool
) -> int:
    """End one subagent: `verb` is stop or wrap-up. Raises `UsageError`."""
    if not name.strip():
        raise UsageError("which one?", f"steersman agents {verb} last NAME")
    call = stop_agent(name) if verb == "stop" else wrap_up_agent(name)
    return run_on(environ, session, call, as_json=as_json)
