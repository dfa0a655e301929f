"""The command line of `steersman queue …`, `send` and `stop`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ...machines.errors import UsageError
from ..options import Json, Number, NumberOrLast, Of, Session

if TYPE_CHECKING:
    from ...gateway.commands.command import CommandCall


queue = typer.Typer(
    help="Show and change a session's queue.\n\nExample: steersman queue list",
    no_args_is_help=True,
    rich_markup_mode=None,
)


Place = Annotated[
    str, typer.Argument(metavar="ID", help="The same as --session.", show_default=False)
]


@queue.command("list")
def queue_list(
    session: Of = "",
    is_all: Annotated[
        bool, typer.Option("--all", help="Include messages whose turn was replaced by another one.")
    ] = False,
    as_json: Json = False,
) -> int:
    """List the running and queued messages, without changing them.

    Example: steersman queue list --session last
    """
    from ..queue import list_queue

    return list_queue(os.environ, session, is_all=is_all, as_json=as_json)


@queue.command("add")
def queue_add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The message.")],
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Queue a message.

    Example: steersman queue add "and the tests"
    """
    from ...gateway.commands.queue import add_to_queue

    return _run(session, add_to_queue(text), as_json)


@queue.command("edit")
def queue_edit(
    number: Number,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="The new text.")],
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Replace the text of a queued message.

    Example: steersman queue edit 2 "only the tests"
    """
    from ...gateway.commands.queue import edit_queue

    return _run(session, edit_queue(number, text), as_json)


@queue.command("move")
def queue_move(
    number: Number,
    position: Annotated[int, typer.Argument(metavar="POS", help="Its new place, from 1.")],
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Move a queued message.

    Example: steersman queue move 3 1
    """
    from ...gateway.commands.queue import move_in_queue

    return _run(session, move_in_queue(number, position), as_json)


@queue.command("pop")
def queue_pop(number: NumberOrLast = 0, session: Of = "", as_json: Json = False) -> int:
    """Remove a queued message.

    Example: steersman queue pop 2
    """
    from ...gateway.commands.queue import pop_queue

    return _run(session, pop_queue(number or None), as_json)


@queue.command("clear")
def queue_clear(session: Of = "", as_json: Json = False) -> int:
    """Remove all queued messages.

    Example: steersman queue clear
    """
    from ...gateway.commands.queue import clear_queue

    return _run(session, clear_queue(), as_json)


@queue.command("keep")
def queue_keep(number: NumberOrLast = 0, session: Of = "", as_json: Json = False) -> int:
    """Queue the answer of a side talk or subagent as a message.

    Example: steersman queue keep 3
    """
    from ...gateway.commands.queue import keep_in_queue

    return _run(session, keep_in_queue(number or None), as_json)


@queue.command("steer")
def queue_steer(
    number: Number,
    name: Annotated[
        str, typer.Argument(metavar="[@NAME]", help="A subagent, or @parent; else the turn.")
    ] = "",
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Send a queued message to the running turn, or to one subagent.

    Example: steersman queue steer 2
    """
    from ...gateway.commands.queue import steer_from_queue

    return _run(session, steer_from_queue(number, name), as_json)


@queue.command("resume")
def queue_resume(
    which: Annotated[
        str,
        typer.Argument(
            metavar="N|ID", help="The message to run first, or a session; if left out, the oldest."
        ),
    ] = "",
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Resume a held queue: interrupted messages first, then the waiting ones.

    Example: steersman queue resume
    """
    from ...gateway.commands.queue import resume_queue
    from ...gateway.home.home import SHORTEST_ID

    if which.isdigit() and len(which) < SHORTEST_ID:
        return _run(session, resume_queue(which), as_json)
    return _run(_either(which, session), resume_queue(), as_json)


@queue.command("discard")
def queue_discard(place: Place = "", session: Of = "", as_json: Json = False) -> int:
    """Delete the saved queue, including interrupted messages.

    Example: steersman queue discard 8e496f95
    """
    from ...gateway.commands.saved_queue import discard_queue

    return _run(_either(place, session), discard_queue(), as_json)


@queue.command("restore")
def queue_restore(
    place: Place = "",
    session: Of = "",
    everywhere: Annotated[bool, typer.Option("--list", help="List all saved queues.")] = False,
    as_json: Json = False,
) -> int:
    """List the saved queue of a session, or of all sessions; changes nothing.

    Example: steersman queue restore --list
    """
    from ..queue import list_queue, list_saved

    if everywhere:
        return list_saved(os.environ, as_json=as_json)
    return list_queue(os.environ, _either(place, session), as_json=as_json)


@queue.command("export")
def queue_export(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file.")],
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Write the queue to a TOML file.

    Example: steersman queue export queue.toml
    """
    from ...gateway.commands.saved_queue import export_queue
    from ...workflows.home_folder import expanded

    return _run(session, export_queue(str(expanded(file).absolute())), as_json)


@queue.command("import")
def queue_import(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file.")],
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Add the messages of a TOML file to the queue: all or none.

    Example: steersman queue import queue.toml
    """
    from ...gateway.commands.saved_queue import import_queue
    from ...workflows.home_folder import expanded

    return _run(session, import_queue(str(expanded(file).absolute())), as_json)


def _either(place: str, session: str) -> str:
    """Return the session that was named, in one way or the other. Raises `UsageError`."""
    if place and session and place != session:
        raise UsageError(f"`{place}` or `{session}`?", "name one session")
    return place or session


def _run(session: str, call: CommandCall, as_json: bool) -> int:
    from ..queue import run_on

    return run_on(os.environ, session, call, as_json=as_json)


def send(
    session: Session,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A message, or a slash command.")],
    way: Annotated[
        str, typer.Option("--as", metavar="WAY", help="auto, queue, steer or interrupt.")
    ] = "auto",
    user: Annotated[
        str,
        typer.Option("--user", metavar="NAME", help="The name of the sender; optional."),
    ] = "",
    as_json: Json = False,
) -> int:
    """Send a message to a session; if no program has it open, it is queued.

    Example: steersman send last "and the tests" --as queue
    """
    from ..queue import send_to

    return send_to(os.environ, session, text, way, user, as_json=as_json)


def stop(session: Session, as_json: Json = False) -> int:
    """Stop the running turn of a session and everything that it started.

    Example: steersman stop last
    """
    from ...gateway.commands.talk import stop as stop_turn

    return _run(session, stop_turn(), as_json)
