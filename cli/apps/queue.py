"""`steersman queue …`, `send` and `stop`, as people type them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ...machines.errors import UsageError
from ..parameter import Json, Number, NumberOrLast, Of, Session

SHORTEST_ID = 6
"""Digits from which on a word names a session, and no longer a message."""

queue = typer.Typer(
    help="See and change a session's queue.\n\nExample: steersman queue list",
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
        bool, typer.Option("--all", help="Also messages whose turn another one replaced.")
    ] = False,
    as_json: Json = False,
) -> int:
    """List what runs and what waits, without touching it.

    Example: steersman queue list --session last
    """
    from ..queue import list_queue

    return list_queue(os.environ, session, is_all=is_all, as_json=as_json)


@queue.command("add")
def queue_add(
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What to say when its turn comes.")],
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Add a message; it waits for its turn.

    Example: steersman queue add "and the tests"
    """
    return _change(session, "add", [text], as_json)


@queue.command("edit")
def queue_edit(
    number: Number,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="What it says from now on.")],
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Change what a waiting message says.

    Example: steersman queue edit 2 "only the tests"
    """
    return _change(session, "edit", [str(number), text], as_json)


@queue.command("move")
def queue_move(
    number: Number,
    position: Annotated[int, typer.Argument(metavar="POS", help="Its new place, from 1.")],
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Move a waiting message to another place.

    Example: steersman queue move 3 1
    """
    return _change(session, "move", [str(number), str(position)], as_json)


@queue.command("pop")
def queue_pop(number: NumberOrLast = 0, session: Of = "", as_json: Json = False) -> int:
    """Take a message back.

    Example: steersman queue pop 2
    """
    return _change(session, "pop", [str(number)] if number else [], as_json)


@queue.command("clear")
def queue_clear(session: Of = "", as_json: Json = False) -> int:
    """Take back everything that waits.

    Example: steersman queue clear
    """
    return _change(session, "clear", [], as_json)


@queue.command("keep")
def queue_keep(number: NumberOrLast = 0, session: Of = "", as_json: Json = False) -> int:
    """Let the answer of a side talk or subagent wait like a message.

    Example: steersman queue keep 3
    """
    return _change(session, "keep", [str(number)] if number else [], as_json)


@queue.command("steer")
def queue_steer(
    number: Number,
    name: Annotated[
        str, typer.Argument(metavar="[@NAME]", help="A subagent, or @parent; else the turn.")
    ] = "",
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Hand a waiting message to the running turn, or to one subagent.

    Example: steersman queue steer 2
    """
    return _change(session, "steer", [str(number), *([name] if name else [])], as_json)


@queue.command("resume")
def queue_resume(
    which: Annotated[
        str,
        typer.Argument(
            metavar="N|ID", help="Which message first, the oldest if left out; or a session."
        ),
    ] = "",
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Run what is held: what was interrupted first, then what waits.

    Example: steersman queue resume
    """
    if which.isdigit() and len(which) < SHORTEST_ID:
        return _change(session, "resume", [which], as_json)
    return _change(_either(which, session), "resume", [], as_json)


@queue.command("discard")
def queue_discard(place: Place = "", session: Of = "", as_json: Json = False) -> int:
    """Delete everything that is saved, also what was interrupted.

    Example: steersman queue discard 8e496f95
    """
    return _change(_either(place, session), "discard", [], as_json)


@queue.command("restore")
def queue_restore(
    place: Place = "",
    session: Of = "",
    everywhere: Annotated[bool, typer.Option("--list", help="List all saved queues.")] = False,
    as_json: Json = False,
) -> int:
    """List what a session saved, or what all sessions did; nothing is changed.

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
    """Write the queue into a TOML file.

    Example: steersman queue export queue.toml
    """
    return _change(session, "export", [str(file)], as_json)


@queue.command("import")
def queue_import(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A TOML file.")],
    session: Of = "",
    as_json: Json = False,
) -> int:
    """Add what waits in a TOML file: all of it, or nothing.

    Example: steersman queue import queue.toml
    """
    return _change(session, "import", [str(file)], as_json)


def _either(place: str, session: str) -> str:
    """Return the session that was named, in one way or the other. Raises `UsageError`."""
    if place and session and place != session:
        raise UsageError(f"`{place}` or `{session}`?", "name one session")
    return place or session


def _change(session: str, verb: str, words: list[str], as_json: bool) -> int:
    from ..queue import change_queue

    return change_queue(os.environ, session, verb, words, as_json=as_json)


def send(
    session: Session,
    text: Annotated[str, typer.Argument(metavar="TEXT", help="A message, or a slash command.")],
    way: Annotated[
        str, typer.Option("--as", metavar="WAY", help="auto, queue, steer or interrupt.")
    ] = "auto",
    user: Annotated[
        str,
        typer.Option(
            "--user", metavar="NAME", help="Who says it; nobody in particular if left out."
        ),
    ] = "",
    as_json: Json = False,
) -> int:
    """Say something to a session; where nobody has it open, it waits.

    Example: steersman send last "and the tests" --as queue
    """
    from ..queue import say_to

    return say_to(os.environ, session, text, way, user, as_json=as_json)


def stop(session: Session, as_json: Json = False) -> int:
    """Stop the running turn of a session and everything that it started.

    Example: steersman stop last
    """
    from ..queue import stop_session

    return stop_session(os.environ, session, as_json=as_json)
