"""Where one session's effects take place."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ...machines.context import CHARACTERS
from ...machines.conversation import ToolSchema
from ...ports.judging import JudgeSeat
from ...ports.models.model import Model
from ...ports.tools.sandbox import Sandbox
from ...ports.tools.toolbox import Toolbox
from ...ports.workspace.workspace import Workspace

__all__ = ["Scene"]


@dataclass(slots=True)
class Scene:
    """Where one session's effects take place: its model, its tools, its folder."""

    model: Model
    system: str
    tools: tuple[ToolSchema, ...]
    toolbox: Toolbox
    folder: Path
    spill_folder: Path
    environment: dict[str, str]
    workspace: Workspace | None = None
    hidden: tuple[tuple[str, bool], ...] = ()
    sandbox: Sandbox | None = None

    @property
    def overhead(self) -> int:
        """Tokens that instructions and tools take, as estimated."""
        return (len(self.system) + len(str(self.tools))) // CHARACTERS

    judge: Callable[[], JudgeSeat] | None = None
