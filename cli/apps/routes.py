"""The command line of `steersman routes …`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ..options import Json

routes = typer.Typer(
    help="Show, check, compare and choose the routing tables.\n\n"
    'Example: steersman routes explain "how is it going?" --children 2',
    no_args_is_help=True,
    rich_markup_mode=None,
)

Table = Annotated[
    str,
    typer.Argument(
        metavar="TABLE", help="A table's name, or a file; if left out, the table in force here."
    ),
]


@routes.command("list")
def routes_list(as_json: Json = False) -> int:
    """List the routing tables, and mark the one in force in this folder.

    Example: steersman routes list
    """
    from ..routes import list_tables

    return list_tables(os.environ, as_json=as_json)


@routes.command("show")
def routes_show(
    table: Table = "",
    form: Annotated[str, typer.Option("--format", metavar="FORMAT", help="text or toml.")] = "text",
) -> int:
    """Print both routing tables, or write them as a file.

    Example: steersman routes show never-cancel
    """
    from ..routes import show_table

    return show_table(os.environ, table, form)


@routes.command("check")
def routes_check(table: Table = "", as_json: Json = False) -> int:
    """Prove that tables are complete, safe and without dead rows; or show counterexamples.

    Example: steersman routes check steersman.toml
    """
    from ..routes import check_tables

    return check_tables(os.environ, table, as_json=as_json)


@routes.command("diff")
def routes_diff(
    ours: Annotated[str, typer.Argument(metavar="A", help="A table's name, or a file.")],
    theirs: Annotated[str, typer.Argument(metavar="B", help="Another table.")],
    as_json: Json = False,
) -> int:
    """List the differences of two tables, each with an example.

    Example: steersman routes diff steersman never-cancel
    """
    from ..routes import diff_tables

    return diff_tables(os.environ, ours, theirs, as_json=as_json)


@routes.command("use")
def routes_use(
    table: Annotated[str, typer.Argument(metavar="NAME", help="A table of `routes list`.")],
    session: Annotated[
        str, typer.Option("--session", metavar="ID", help="For one session, at once.")
    ] = "",
    folder: Annotated[
        Path | None,
        typer.Option("--folder", metavar="DIR", help="For a folder; if left out, the current one."),
    ] = None,
    unsafe: Annotated[
        bool, typer.Option("--unsafe", help="Even if it breaks a safety rule.")
    ] = False,
) -> int:
    """Choose a table for a folder, or for one session.

    Example: steersman routes use never-cancel --session last --unsafe
    """
    from ..routes import use_for_folder

    if not session:
        return use_for_folder(os.environ, table, folder or Path.cwd(), may_be_unsafe=unsafe)
    from ...gateway.commands.routes import use_routes as use_for_session
    from ..queue import run_on

    return run_on(os.environ, session, use_for_session(table, unsafe=unsafe), as_json=False)


@routes.command("explain")
def routes_explain(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message.")] = "",
    cause: Annotated[
        str,
        typer.Option(
            metavar="CAUSE", help="Instead of a text: timeout, budget, turn_ended, signal, …"
        ),
    ] = "",
    state: Annotated[
        str, typer.Option(metavar="STATE", help="The situation: idle, busy, delegating, …")
    ] = "",
    busy: Annotated[str, typer.Option(metavar="MODE", help="interrupt, steer or queue.")] = "",
    strategy: Annotated[str, typer.Option(metavar="S", help="keyword, always or never.")] = "",
    auto_queue: Annotated[str, typer.Option(metavar="X", help="on or off.")] = "",
    children: Annotated[
        int, typer.Option(metavar="N", min=0, help="Children that the turn waits for.")
    ] = 0,
    background: Annotated[
        int, typer.Option(metavar="N", min=0, help="Children in the background.")
    ] = 0,
    side_talks: Annotated[int, typer.Option(metavar="N", min=0, help="Side talks.")] = 0,
    goal: Annotated[bool, typer.Option("--goal", help="The session works for a goal.")] = False,
    way: Annotated[
        str, typer.Option("--as", metavar="WAY", help="auto, queue, steer or interrupt.")
    ] = "auto",
    table: Annotated[str, typer.Option(metavar="TABLE", help="A table's name, or a file.")] = "",
    user: Annotated[
        str, typer.Option(metavar="NAME", help="Who says it: a line of [people].")
    ] = "",
    turn_of: Annotated[
        str, typer.Option(metavar="NAME", help="Whose turn runs, where that matters.")
    ] = "",
    as_json: Json = False,
) -> int:
    """Show what a message or a cause would do, and by which rows; does nothing.

    Example: steersman routes explain "how is it going?" --children 2
    """
    from ..routes import DryRun, explain_text

    dry = DryRun(
        state=state,
        busy=busy,
        strategy=strategy,
        auto_queue=auto_queue,
        children=children,
        background=background,
        side_talks=side_talks,
        way=way,
        user=user,
        turn_of=turn_of,
        cause=cause,
        has_goal=goal,
    )
    return explain_text(os.environ, text, table, dry, as_json=as_json)
