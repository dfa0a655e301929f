"""What a session may do with its tools: arguments checked, permissions looked up."""

from pathlib import Path

from ..machines.conversation import ToolRequest
from ..ports.tools.permission import Permissions, exact_rule
from ..ports.tools.toolbox import Toolbox
from .environment import Permit

__all__ = ["SessionToolbook"]


class SessionToolbook:
    """One session's tools: those its agent has, in its folder, under its permissions."""

    def __init__(
        self, toolbox: Toolbox, names: tuple[str, ...], permissions: Permissions, folder: Path
    ) -> None:
        self._toolbox = toolbox
        self._names = names
        self._permissions = permissions
        self._folder = folder

    def fault(self, request: ToolRequest) -> str:
        """Say what is wrong with a call; empty when nothing is."""
        tool = self._toolbox.get(request.tool) if request.tool in self._names else None
        if tool is None:
            return f"there is no tool `{request.tool}`; there are {', '.join(self._names)}"
        return tool.fault(request.arguments)

    def permit(self, request: ToolRequest) -> Permit:
        """Look the call up in the permission rules."""
        decision = self._permissions.decide(request.tool, request.arguments, self._folder)
        return Permit(decision.do, decision.rule, decision.is_outside)

    def always_allow(self, request: ToolRequest) -> None:
        """Remember for this session that calls like this one are allowed."""
        rule = exact_rule(request.tool, request.arguments, self._folder)
        self._permissions = self._permissions.with_rule(rule)

    def is_mutating(self, tool: str) -> bool:
        """Whether it may change something, so that it runs alone and in order."""
        found = self._toolbox.get(tool)
        return found is None or found.is_mutating

    def is_idempotent(self, tool: str) -> bool:
        """Whether it may be repeated after a crash."""
        found = self._toolbox.get(tool)
        return found is not None and found.is_idempotent
