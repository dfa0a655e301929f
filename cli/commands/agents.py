"""`steersman agents …`: a session's subagents, from another terminal."""

from __future__ import annotations

import os

from ...gateway.commands.agents import (
    agents_of,
    draw_agents,
    stop_agent,
    stored_state,
    wrap_up_agent,
)
from ...gateway.wording.redaction import redactor_of
from ..options import Json, Session, group
from ..output import show, show_document
from ..stored import stored
from .session_command import find_for_listing, twin

agents = group("Show and end a session's subagents.", "steersman agents list last")


@agents.command("list")
def agents_list(session: Session = "last", as_json: Json = False) -> int:
    """List the subagents of a session and their subagents, without changing it.

    Example: steersman agents list last
    """
    with stored(os.environ) as store:
        row = find_for_listing(store, session)
        redactor = redactor_of(os.environ, row.folder if row else "")
        found = agents_of(stored_state(store), row.session, redactor) if row else []
    if as_json:
        show_document({"agents": found})
    elif row:
        show(draw_agents(found))
    return 0


agents.command("stop")(twin(stop_agent, Session))
agents.command("wrap-up")(twin(wrap_up_agent, Session))
