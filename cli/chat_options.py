"""The command line of `steersman chat` as data, and how it is read without the argument parser.

Nothing here imports Typer: it takes longer than the rest of what comes before the first request.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..machines.errors import UsageError
from ..machines.value import Value
from ..workflows.home_folder import expanded

if TYPE_CHECKING:
    from ..gateway.interface import ChatHost, ChatSession


def work_folder(named: Path) -> Path:
    """Return the folder as an absolute path without links. Raises `UsageError` if it is missing."""
    folder = expanded(named).resolve()
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
    mode: str = ""
    is_debug: bool = False


ChatInterface: TypeAlias = "Callable[[ChatHost, Callable[[], ChatSession], ChatOptions], int]"
"""Opens the conversation, runs it to its end, and returns the exit code. May raise `SignalExit`."""

FLAGS = {
    "--continue": "is_newest",
    "--json": "is_json",
    "--plain": "is_plain",
    "--yes": "is_yes",
    "--debug": "is_debug",
}
"""The options that stand alone, and the field that each sets; `app.py` declares and explains them."""
VALUES = {
    "--agent": "agent",
    "--model": "model",
    "--resume": "resume",
    "--cwd": "folder",
    "--mode": "mode",
}
"""The options with a value."""


CHOOSE = "?"
"""In place of a session's id: the person chooses one of a list."""


def named_sessions(arguments: Sequence[str]) -> list[str]:
    """Give each `--resume` that has no id the value `CHOOSE`: what follows it is another option."""
    named: list[str] = []
    for at, argument in enumerate(arguments):
        named.append(argument)
        if argument == "--resume" and (
            at + 1 == len(arguments) or arguments[at + 1].startswith("-")
        ):
            named.append(CHOOSE)
    return named


def _is_option(argument: str) -> bool:
    """Whether what begins with a dash is an option; a sentence is a message all the same."""
    first, _, rest = argument.partition(" ")
    return first.startswith("-") and ("=" in first or not rest)


def usual_options(arguments: Sequence[str]) -> ChatOptions | None:
    """Read what is typed after `chat`; none if it is anything but whole options and one message.

    What it does not read, such as `--help`, `--model=NAME` and every mistake, is for Typer.
    """
    found: dict[str, Any] = {}
    rest = iter(arguments)
    for argument in rest:
        if argument in FLAGS:
            found[FLAGS[argument]] = True
        elif argument in VALUES:
            value = next(rest, "")
            if not value or value.startswith("-"):
                return None
            found[VALUES[argument]] = value
        elif not argument.strip() or _is_option(argument) or "message" in found:
            return None
        else:
            found["message"] = argument
    found["folder"] = Path(found.get("folder") or Path.cwd())
    return ChatOptions(**found)
