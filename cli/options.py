"""Options and arguments that several commands share, and what is made of them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from ..gateway.interface import ChatHost, ChatSession
from ..machines.errors import UsageError
from ..machines.value import Value


def work_folder(named: Path) -> Path:
    """Return the folder as an absolute path without links. Raises `UsageError` if it is missing."""
    folder = named.expanduser().resolve()
    if not folder.is_dir():
        raise UsageError(f"`{folder}` is not a folder", "give --cwd an existing one")
    return folder


class ChatOptions(Value):
    """The command line of `steersman chat`."""

    message: str = ""
    agent: str = ""
    model: str = ""
    is_newest: bool = False
    resume: str = ""
    folder: Path = Path()
    is_json: bool = False
    is_plain: bool = False
    is_yes: bool = False
    is_debug: bool = False


ChatInterface = Callable[[ChatHost, Callable[[], ChatSession], ChatOptions], int]
"""Opens the conversation, runs it to its end, and returns the exit code. May raise `SignalExit`."""


Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
Session = Annotated[
    str, typer.Argument(metavar="ID", help="A session's id, a unique prefix of one, or `last`.")
]
Of = Annotated[
    str,
    typer.Option(
        "--session", metavar="ID", help="A session; if left out, the newest of this folder."
    ),
]
Number = Annotated[int, typer.Argument(metavar="N", help="The number in the list.")]
NumberOrLast = Annotated[
    int, typer.Argument(metavar="N", help="Its number; if left out, the last.")
]
