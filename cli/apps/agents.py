"""`steersman agents …`, as people type it."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..parameter import Json, Session

agents = typer.Typer(
    help="See and end a session's subagents.\n\nExample: steersman agents list last",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the list calls it.")]


@agents.command("list")
def agents_list(session: Session = "last", as_json: Json = False) -> int:
    """List who works for a session, and for whom in turn, without touching it.

    Example: steersman agents list last
    """
    from ..agents import list_agents

    return list_agents(os.environ, session, as_json=as_json)


@agents.command("stop")
def agents_stop(session: Session, name: Name, as_json: Json = False) -> int:
    """Stop one subagent and everything it started; what it had goes to whoever asked for it.

    Example: steersman agents stop last kid
    """
    from ..agents import end_agent

    return end_agent(os.environ, session, "stop", name, as_json=as_json)


@agents.command("wrap-up")
def agents_wrap_up(session: Session, name: Name, as_json: Json = False) -> int:
    """Let one subagent sum up what it has, and end.

    Example: steersman agents wrap-up last kid
    """
    from ..agents import end_agent

    return end_agent(os.environ, session, "wrap-up", name, as_json=as_json)
