"""The command line of `steersman agents …`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..options import Json, Session

agents = typer.Typer(
    help="Show and end a session's subagents.\n\nExample: steersman agents list last",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="The name in the list.")]


@agents.command("list")
def agents_list(session: Session = "last", as_json: Json = False) -> int:
    """List the subagents of a session and their subagents, without changing it.

    Example: steersman agents list last
    """
    from ..agents import list_agents

    return list_agents(os.environ, session, as_json=as_json)


@agents.command("stop")
def agents_stop(session: Session, name: Name, as_json: Json = False) -> int:
    """Stop one subagent with all its processes; its parent gets the partial result.

    Example: steersman agents stop last kid
    """
    from ..agents import end_agent

    return end_agent(os.environ, session, "stop", name, as_json=as_json)


@agents.command("wrap-up")
def agents_wrap_up(session: Session, name: Name, as_json: Json = False) -> int:
    """Ask one subagent to sum up its work and end.

    Example: steersman agents wrap-up last kid
    """
    from ..agents import end_agent

    return end_agent(os.environ, session, "wrap-up", name, as_json=as_json)
