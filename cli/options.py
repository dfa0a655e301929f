"""What `steersman chat` was asked for, and what a face is: a way to talk."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Literal

import typer

from ..gateway.interface import ChatHost, ChatSession
from ..machines.errors import UsageError
from ..machines.value import Value

# The folder that a command works in --------------------------------------------------------------


def work_folder(named: Path) -> Path:
    """Return the folder as an absolute path without links. Raises `UsageError` if it is missing."""
    folder = named.expanduser().resolve()
    if not folder.is_dir():
        raise UsageError(f"`{folder}` is not a folder", "give --cwd an existing one")
    return folder


# One line of the doctor's report ------------------------------------------------------------------


Verdict = Literal["ok", "warn", "bad"]


class Finding(Value):
    """What was looked at and how it is; `hint` is what to do, empty if nothing."""

    name: str
    verdict: Verdict
    text: str
    hint: str = ""


class ChatOptions(Value):
    """What the command line asked for."""

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


Face = Callable[[ChatHost, Callable[[], ChatSession], ChatOptions], int]
"""Opens the conversation, talks, and returns the exit code; `SignalHandler` may be raised in it."""


# Options and arguments that several commands have -------------------------------------------------


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
