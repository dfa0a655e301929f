"""The command line of `steersman goal …`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..options import Json, Of

goal = typer.Typer(
    help="Show and change the goal of a session.\n\nExample: steersman goal status",
    no_args_is_help=True,
    rich_markup_mode=None,
)


@goal.command("set")
def goal_set(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The condition to reach.")],
    gate: Annotated[
        list[str] | None,
        typer.Option("--gate", metavar="COMMAND", help="Must succeed first; may be repeated."),
    ] = None,
    turns: Annotated[
        int | None, typer.Option("--turns", metavar="N", help="Maximum number of turns.")
    ] = None,
    tokens: Annotated[
        int | None, typer.Option("--tokens", metavar="N", help="Maximum number of tokens.")
    ] = None,
    minutes: Annotated[
        float | None, typer.Option("--minutes", metavar="N", help="Maximum number of minutes.")
    ] = None,
    is_next: Annotated[
        bool, typer.Option("--next", help="Add it after the present goals.")
    ] = False,
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Let a session work until a judge decides that a goal is met.

    Example: steersman goal set "all tests pass" --gate "npm test" --turns 10
    """
    from ..goal import set_goal

    return set_goal(
        os.environ,
        session,
        text,
        gate or [],
        turns,
        tokens,
        minutes,
        is_next=is_next,
        as_json=as_json,
    )


@goal.command("status")
def goal_status(session: Of = "", as_json: Json = False) -> int:
    """Show the progress of the goal, without changing the session.

    Example: steersman goal status --session last
    """
    from ..goal import show_goal

    return show_goal(os.environ, session, as_json=as_json)


@goal.command("pause")
def goal_pause(session: Of = "", as_json: Json = False) -> int:
    """Start no further turn for the goal; a running one finishes.

    Example: steersman goal pause
    """
    return _change(session, "pause", as_json)


@goal.command("resume")
def goal_resume(session: Of = "", as_json: Json = False) -> int:
    """Resume the goal, with the same budget again.

    Example: steersman goal resume
    """
    return _change(session, "resume", as_json)


@goal.command("clear")
def goal_clear(session: Of = "", as_json: Json = False) -> int:
    """Clear the goal.

    Example: steersman goal clear
    """
    return _change(session, "clear", as_json)


def _change(session: str, verb: str, as_json: bool) -> int:
    from ..goal import change_goal

    return change_goal(os.environ, session, verb, as_json=as_json)
