"""The options of `steersman run`, and the type of its interfaces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from ...gateway.conversation import Conversation
from ...gateway.host.host import Host
from ...machines.value import Value


class RunOptions(Value):
    """The command line of `steersman run`; `again` and `done` name work of unknown outcome.

    `cluster` is where remote steps run; empty: here.
    """

    file: str = ""
    variables: tuple[str, ...] = ()
    resume: str = ""
    again: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    cluster: str = ""
    folder: Path = Path()
    model: str = ""
    is_json: bool = False
    is_dry: bool = False
    is_yes: bool = False


RunInterface = Callable[[Host, Callable[[], Conversation], RunOptions], int]
"""Opens the run, shows it until its end, and returns the exit code."""
