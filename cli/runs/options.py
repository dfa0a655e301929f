"""What `steersman run` was asked for, and what shows a run to its end."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...gateway.conversation import Conversation
from ...gateway.host import Host
from ...machines.value import Value


class RunOptions(Value):
    """What the command line asked for; `again` and `done` name work of unknown outcome."""

    file: str = ""
    variables: tuple[str, ...] = ()
    resume: str = ""
    again: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    folder: Path = Path()
    model: str = ""
    is_json: bool = False
    is_dry: bool = False
    is_yes: bool = False


RunFace = Callable[[Host, Callable[[], Conversation], RunOptions], int]
"""Opens the run, shows it to its end, and returns the exit code."""
