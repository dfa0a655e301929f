"""The tools of a program, by name; each is made at its first use."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy

from ...machines.conversation import ToolSchema
from ...machines.errors import ToolError
from ...workflows.settings import ToolDeclaration
from ...workflows.tools import TOOLS
from ..placement import Placement
from ..process.process import Processes
from .deferral import DeferredTool
from .shell import CommandTool, DeclaredTool
from .thread_tool import ThreadTool
from .tool import Tool, ToolResources


class Toolbox:
    """Holds one of each built-in tool (`workflows/tools.py`), and of those that are declared.

    `grace` is seconds between asking a tool's processes to end and killing them; `output_limit` is the
    number of bytes that a workflow reads of one command, `placement` where remote steps run,
    `sandbox` what a command cannot do in the sandbox, if there is one, `fetch` the options of what gets
    pages.
    """

    def __init__(
        self,
        processes: Processes,
        *,
        grace: float,
        output_limit: int,
        declared: Sequence[ToolDeclaration] = (),
        placement: Placement | None = None,
        sandbox: str = "",
        fetch: tuple[str, ...] = (),
    ) -> None:
        self.processes = processes
        self.resources = ToolResources(
            processes=processes, grace=grace, sandbox=sandbox, fetch=fetch
        )
        self._made: dict[str, Tool] = {
            declaration.name: DeclaredTool(declaration, self.resources) for declaration in declared
        }
        self.placement = placement
        self._command = CommandTool(self.resources, output_limit, placement)

    def including(self, *tools: Tool) -> Toolbox:
        """Return a toolbox with more tools."""
        more = copy(self)
        more._made = {**self._made, **{tool.schema.name: tool for tool in tools}}
        return more

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all tools."""
        return tuple(dict.fromkeys((*TOOLS.built_in, *self._made)))

    def get(self, name: str) -> Tool | None:
        """Return a tool by its name, none for an unknown one; `command` is for workflow runs only."""
        if name == self._command.schema.name:
            return self._command
        if name not in self._made and name in TOOLS.built_in:
            found = TOOLS.load(name)
            self._made[name] = found if isinstance(found, ThreadTool) else found(self.resources)
        return self._made.get(name)

    def listed(self, names: Sequence[str]) -> tuple[ToolSchema, ...]:
        """Return the schemas that requests list, of these tools, in this order. Raises `ToolError`."""
        seen = [name for name in names if not isinstance(self._made.get(name), DeferredTool)]
        return self.schemas(seen)

    def schemas(self, names: Sequence[str]) -> tuple[ToolSchema, ...]:
        """Return the schemas of these tools, in this order. Raises `ToolError`."""
        schemas: list[ToolSchema] = []
        for name in names:
            tool = self.get(name) if name in self.names else None
            if tool is None:
                known = "`, `".join(self.names)
                raise ToolError(f"there is no tool `{name}`", f"known are `{known}`")
            schemas.append(tool.schema)
        return tuple(schemas)
