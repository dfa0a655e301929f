"""What `steersman chat` was asked for, and what a face is: a way to talk."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ..gateway.conversation import Conversation
from ..gateway.host import Host
from ..machines.errors import UsageError

# The folder that a command works in, as somebody named it -----------------------------------------


def work_folder(named: Path) -> Path:
    """Return it whole, without links. Raises `UsageError` where there is none."""
    folder = named.expanduser().resolve()
    if not folder.is_dir():
        raise UsageError(f"`{folder}` is not a folder", "give --cwd an existing one")
    return folder


# One line of the doctor's report ------------------------------------------------------------------


Verdict = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at and how it is; `hint` is what to do, empty if nothing."""

    name: str
    verdict: Verdict
    text: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class ChatOptions:
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


Face = Callable[[Host, Callable[[], Conversation], ChatOptions], int]
"""Opens the conversation, talks, and returns the exit code; `Leaving` may be raised in it."""
