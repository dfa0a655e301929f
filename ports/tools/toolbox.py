"""The tools that this program brings along, by name."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from ...machines.conversation import ToolSchema
from ...machines.errors import ToolError
from ..process.process import Processes
from .file_tools import make_edit, make_list, make_read, make_write
from .searching import SearchTool
from .session_tools import make_defer, make_delegate, make_dismiss, make_progress
from .shell import CommandTool, ShellTool
from .tool import Tool


class Toolbox:
    """Holds one of each tool.

    `grace` is seconds between asking a tool's processes to end and killing them; `output_limit` is
    how many bytes of output the model is given of one run.
    """

    def __init__(self, processes: Processes, *, grace: float, output_limit: int) -> None:
        self.processes = processes
        tools: tuple[Tool, ...] = (
            make_read(output_limit),
            make_write(),
            make_edit(),
            make_list(),
            SearchTool(processes, output_limit),
            ShellTool(processes, grace, output_limit),
            make_delegate(),
            make_dismiss(),
            make_progress(),
            make_defer(),
        )
        self._tools = {tool.schema.name: tool for tool in tools}
        self._command = CommandTool(processes, grace, output_limit)

    def including(self, tool: Tool) -> Toolbox:
        """Return a toolbox that has one tool more."""
        more = copy(self)
        more._tools = {**self._tools, tool.schema.name: tool}
        return more

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools."""
        return tuple(self._tools)

    def get(self, name: str) -> Tool | None:
        """Give a tool by its name, none if there is no such tool; `command` is there for runs only."""
        return self._command if name == self._command.schema.name else self._tools.get(name)

    def schemas(self, names: Sequence[str]) -> tuple[ToolSchema, ...]:
        """Give what a model is told about these tools, in this order. Raises `ToolError`."""
        unknown = [name for name in names if name not in self._tools]
        if unknown:
            raise ToolError(
                f"there is no tool `{unknown[0]}`", f"known are `{'`, `'.join(self._tools)}`"
            )
        return tuple(self._tools[name].schema for name in names)
