"""The tools of the simulator's sessions, and what those may do with them."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...machines.conversation import ToolRequest
from ..decisions.standing import DELEGATE
from ..environment import Permit

__all__ = ["SimulatedToolbook"]


@dataclass(slots=True)
class SimulatedToolbook:
    """Tools by their names: `write…` change something, `ask…` need permission, `deny…` get none.

    `only_looks`: whatever is not `read` gets none, as beside the work of a parent.
    """

    allowed: set[str] = field(default_factory=set[str])
    only_looks: bool = False
    may_delegate: bool = True

    def fault(self, request: ToolRequest) -> str:
        """Say what is wrong with a call."""
        if request.tool == DELEGATE and not self.may_delegate:
            return "there is no such tool"
        return "it makes no sense" if request.arguments.get("bad") else ""

    def permit(self, request: ToolRequest) -> Permit:
        """Look at the name."""
        if self.only_looks:
            return Permit("allow" if request.tool == "read" else "deny")
        if request.tool in self.allowed:
            return Permit("allow", "always")
        if request.tool.startswith("ask"):
            return Permit("ask", "ask first")
        return Permit("deny", "never") if request.tool.startswith("deny") else Permit("allow")

    def allowance(self, request: ToolRequest, pattern: str = "") -> tuple[str, str] | str:
        """Allow the tool, whatever the pattern."""
        return request.tool, pattern or "*"

    def allow(self, tool: str, pattern: str) -> None:
        """Remember."""
        self.allowed.add(tool)

    def disallow(self, tool: str, pattern: str) -> None:
        """Forget."""
        self.allowed.discard(tool)

    def is_mutating(self, tool: str) -> bool:
        """Look at the name."""
        return tool.endswith("write")

    def is_idempotent(self, tool: str) -> bool:
        """Nothing here is."""
        return tool == ""
