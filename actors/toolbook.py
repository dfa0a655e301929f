"""What a session may do with its tools: arguments checked, files claimed, permissions looked up."""

from collections.abc import Callable, Iterable
from pathlib import Path

from ..machines.conversation import ToolRequest
from ..machines.errors import ToolError
from ..ports.tools.permission import Allowances, Permissions, exact_rule, misfit, wider_rule
from ..ports.tools.place import find_place
from ..ports.tools.toolbox import Toolbox
from .environment import Permit

__all__ = ["SessionToolbook"]


CHANGES = ("write", "edit")
"""The tools that change one file, the one at `path`."""


class SessionToolbook:
    """One session's tools: those its agent has, in its folder, under its permissions.

    `claim` claims a file for the running turn, or says who has it. `allowed` is what a person allowed
    for the rest of the session: tools with patterns.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        names: tuple[str, ...],
        permissions: Permissions,
        folder: Path,
        claim: Callable[[Path], str],
        allowed: Iterable[tuple[str, str]] = (),
    ) -> None:
        self.allowed = Allowances(wider_rule(*one) for one in allowed)
        self._toolbox = toolbox
        self._names = names
        self._permissions = permissions
        self._folder = folder
        self._fault_of = claim

    def fault(self, request: ToolRequest) -> str:
        """Say what is wrong with a call; empty when nothing is."""
        tool = self._toolbox.get(request.tool) if request.tool in self._names else None
        if tool is None:
            return f"there is no tool `{request.tool}`; there are {', '.join(self._names)}"
        return tool.fault(request.arguments) or self._claim(request)

    def _claim(self, request: ToolRequest) -> str:
        """Claim the file that a call changes, or say who has it."""
        if request.tool not in CHANGES:
            return ""
        try:
            place = find_place(request.arguments["path"], self._folder)
        except ToolError:
            return ""  # the tool itself says what is wrong with it
        return self._fault_of(place.path)

    def permit(self, request: ToolRequest) -> Permit:
        """Look the call up in the permission rules."""
        decision = self._permissions.decide(
            request.tool, request.arguments, self._folder, self.allowed
        )
        return Permit(decision.do, decision.rule, decision.is_outside, decision.source)

    def allowance(self, request: ToolRequest, pattern: str = "") -> tuple[str, str] | str:
        """Give tool and pattern that allow calls like this one, or say why `pattern` does not fit."""
        if not pattern:
            exact = exact_rule(request.tool, request.arguments, self._folder)
            return exact.tool, exact.match
        why = misfit(
            wider_rule(request.tool, pattern), request.tool, request.arguments, self._folder
        )
        return f"`{pattern}` {why}" if why else (request.tool, pattern)

    def allow(self, tool: str, pattern: str) -> None:
        """Allow what was said `always` to, for this session."""
        self.allowed.add(wider_rule(tool, pattern))

    def disallow(self, tool: str, pattern: str) -> None:
        """Ask again about what was allowed for this session."""
        self.allowed.remove(wider_rule(tool, pattern))

    def is_mutating(self, tool: str) -> bool:
        """Whether it may change something, so that it runs alone and in order."""
        found = self._toolbox.get(tool)
        return found is None or found.is_mutating

    def is_idempotent(self, tool: str) -> bool:
        """Whether it may be repeated after a crash."""
        found = self._toolbox.get(tool)
        return found is not None and found.is_idempotent
