"""The resources of one session's effects, and how the parts of its executor start tasks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from ...machines.context import CHARACTERS
from ...machines.conversation import ToolSchema
from ...machines.policy import ResultLimits
from ...ports.judging import JudgeSeat
from ...ports.models.model import Model
from ...ports.tools.sandbox import Sandbox
from ...ports.tools.toolbox import Toolbox
from ...ports.workspace import WorkspacePort

if TYPE_CHECKING:
    from ...ports.tools.mcp_offer import McpServers


class StartTask(Protocol):
    """Starts work as a task on the asyncio loop; what it raises goes to `fault`."""

    def __call__(
        self, work: Coroutine[Any, Any, None], fault: Callable[[BaseException], None]
    ) -> asyncio.Task[None]:
        """Start it."""
        ...


def fault_of(error: BaseException) -> str:
    """Report an error as the program's own fault."""
    return f"a fault in the program: {type(error).__name__}: {error}"


class SessionResources(Struct, kw_only=True):
    """The resources of one session: its id, its model, its tools, its folder.

    `storage` names where the copies of files of `workspace` are.
    `limits` bounds what the model receives of a result. A child's answer of more than
    `answer_limit` characters is written to `answer_file`, from where its parent can read it.
    """

    session: str
    model: Model
    system: str
    tools: tuple[ToolSchema, ...]
    toolbox: Toolbox
    folder: Path
    spill_folder: Path
    environment: dict[str, str]
    workspace: WorkspacePort | None = None
    storage: str = ""
    hidden: tuple[tuple[str, bool], ...] = ()
    sandbox: Sandbox | None = None
    servers: McpServers | None = None
    limits: ResultLimits = field(default_factory=ResultLimits)
    answer_file: Path | None = None
    answer_limit: int = 0

    @property
    def overhead(self) -> int:
        """Tokens that instructions and tools take, as estimated."""
        return (len(self.system) + len(str(self.tools))) // CHARACTERS

    judge: Callable[[], JudgeSeat] | None = None
