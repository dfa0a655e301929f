"""The command line of `steersman inspect`."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..options import Json, Session


def inspect(
    session: Session = "last",
    form: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="tree, toml, json, mermaid or svg."),
    ] = "tree",
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="SEQ|TIME",
            help="A past moment: 48, 14:03, yesterday 14:03, tue 14:03, 5m ago, 2026-11-17T14:03.",
        ),
    ] = "",
    watch: Annotated[bool, typer.Option("--watch", help="Update the output until Ctrl-C.")] = False,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option("--diff", metavar="A B", help="Show the changes between two moments."),
    ] = None,
    events: Annotated[bool, typer.Option("--events", help="List the journal.")] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Events of a kind, or `tool_*`; repeatable."),
    ] = None,
    since: Annotated[
        str, typer.Option("--since", metavar="SEQ|TIME", help="Events from then on.")
    ] = "",
    until: Annotated[
        str, typer.Option("--until", metavar="SEQ|TIME", help="Events up to then.")
    ] = "",
    turn: Annotated[str, typer.Option("--turn", metavar="ID", help="Events of a turn.")] = "",
    item: Annotated[str, typer.Option("--item", metavar="ID", help="Events of a message.")] = "",
    last: Annotated[int, typer.Option("--last", metavar="N", help="The last N events.")] = 0,
) -> int:
    """Show what every part of a session is doing, or was doing at any moment.

    Mermaid is the last turn as a sequence diagram, SVG the tree as a picture. A path, such as
    ./dump.json, opens a dump that was saved as JSON.

    Example: steersman inspect last --at "5m ago"
    """
    from ..inspection.inspect import inspect_session
    from ..inspection.view import InspectOptions

    options = InspectOptions(
        session=session,
        form=form,
        at=at,
        diff=diff,
        watches=watch,
        lists_events=events,
        kinds=tuple(kind or ()),
        since=since,
        until=until,
        turn=turn,
        item=item,
        last=last,
    )
    return inspect_session(os.environ, options)


def why(
    session: Session = "last",
    message: Annotated[
        str,
        typer.Argument(
            metavar="MESSAGE", help="Its number, id or receipt; if left out, the newest."
        ),
    ] = "last",
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="text, json, toml or mermaid.")
    ] = "text",
    as_json: Json = False,
) -> int:
    """Tell the story of one message: what became of it, when, by which rule, and what it waits for.

    Example: steersman why last 2
    """
    from ..inspection.inspect import tell_why

    return tell_why(os.environ, session, message, "json" if as_json else form)


def attach(
    session: Session = "last",
    user: Annotated[
        str, typer.Option("--user", metavar="NAME", help="Your name; if left out, your login name.")
    ] = "",
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines in and out.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="No prompt.")] = False,
) -> int:
    """Follow a session that runs in another terminal, and type into it; leaving leaves it running.

    Example: steersman attach last
    """
    from ..attach import attach as follow

    return follow(os.environ, session, user, is_json=as_json, is_plain=plain)
