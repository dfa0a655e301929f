"""The tool policy of a session: arguments checked, files claimed, permissions looked up."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

from msgspec.structs import replace

from ..journal.child_record import ChildRecord
from ..journal.record import SessionRecord
from ..machines.conversation import ToolRequest, ToolSchema
from ..machines.delivery import Relation
from ..machines.errors import ToolError
from ..machines.permission_mode import REFUSAL, ModeAction, Reach, mode_row
from ..ports.templates import Skill
from ..ports.tools.permission import (
    Permissions,
    Rule,
    exact_rule,
    hold,
    hold_line,
    rule_mismatch,
    ruled_as,
    wider_rule,
)
from ..ports.tools.place import find_place
from ..ports.tools.toolbox import Toolbox
from ..workflows.tools import REMOTE, kind_of
from .environment import Permit

_ANY = str(Rule("*", "*", "ask"))  # decides where no other rule is about a call

# Claims: no two sessions of a program write to the same file at a time ----------------------------
# A claim begins with a call that changes a file and ends with its turn. The call of a second session is
# refused and does not wait: two that waited for each other would do so for ever. A session that waits for
# another one changes nothing meanwhile, so its claims do not bind those that work for it.


class Claimant(Protocol):
    """A session as far as claims go; `parent` is the id of its parent, empty without one."""

    @property
    def record(self) -> SessionRecord:
        """Its state now."""
        ...

    @property
    def parent(self) -> str:
        """The session above it."""
        ...


class Claims:
    """The files claimed by the running turns of `sessions`, by session; for the actors' thread."""

    def __init__(self, sessions: Mapping[str, Claimant]) -> None:
        self._sessions = sessions
        self._held: dict[str, tuple[str, set[Path]]] = {}

    def of(self, session: str) -> Callable[[Path], str]:
        """Return what claims files for one session."""
        return partial(self.fault, session)

    def fault(self, session: str, path: Path) -> str:
        """Claim a resolved path for a session's turn; or name the session that has it."""
        free = {session, *self._waiting_for(session)}
        for other in list(self._held):
            if self._is_over(other):
                del self._held[other]
            elif other not in free and path in self._held[other][1]:
                return (
                    f"{self._who(other)} is changing that file, until its turn ends: do something else "
                    "meanwhile and try again later, or say in your answer what you would change"
                )
        claimant = self._sessions.get(session)
        if claimant is not None:
            mine = self._held.setdefault(session, (claimant.record.turn, set()))
            mine[1].add(path)
        return ""

    def _is_over(self, session: str) -> bool:
        """Whether the turn that claimed has ended, with everything that it started."""
        claimant = self._sessions.get(session)
        turn = claimant.record.unfinished if claimant is not None else None
        return turn is None or turn.id != self._held[session][0]

    def _waiting_for(self, session: str) -> Iterator[str]:
        """Name the sessions above this one that wait for it."""
        while (child := self._as_child(session)) is not None:
            if child.relation != Relation.FOREGROUND_CHILD or not child.is_at_work:
                return
            session = self._sessions[session].parent
            yield session

    def _as_child(self, session: str) -> ChildRecord | None:
        """Return a session as its parent knows it."""
        claimant = self._sessions.get(session)
        parent = self._sessions.get(claimant.parent) if claimant is not None else None
        children = parent.record.children.values() if parent is not None else ()
        return next((child for child in children if child.session == session), None)

    def _who(self, session: str) -> str:
        child = self._as_child(session)
        return f"subagent `{child.name}`" if child is not None else f"session `{session}`"


class SessionChoices:
    """What people chose for a session, as its `record` has it: the permission mode, and what is allowed.

    `default` is the configured mode. A session that works for another one, `above`, goes by the mode of
    that one, and what is allowed there is allowed here, too.
    """

    def __init__(self, record: Callable[[], SessionRecord], default: str = "ask") -> None:
        self.above: SessionChoices | None = None
        self._record = record
        self._default = default

    @property
    def mode(self) -> str:
        """The mode that holds."""
        return self.above.mode if self.above is not None else self._record().mode or self._default

    @property
    def read(self) -> list[str]:
        """The paths of the files that the running turn has read, as the model wrote them."""
        record = self._record()
        turn = record.turns.get(record.turn)
        calls = turn.calls.values() if turn is not None else ()
        ended = [call for call in calls if call.end is not None and call.end.status == "ok"]
        return [str(call.arguments.get("path")) for call in ended if call.tool == "read"]

    @property
    def holds(self) -> list[Rule]:
        """What a person holds in the session, and in those above."""
        own = [hold(*chosen) for chosen in self._record().holds]
        return own + (self.above.holds if self.above is not None else [])

    @property
    def allowed(self) -> list[Rule]:
        """What a person allowed for the rest of the session, oldest first."""
        own = [wider_rule(*rule) for rule in self._record().allowed]
        return own + (self.above.allowed if self.above is not None else [])


class SessionToolPolicy:
    """One session's tools: those its agent has, in its folder, under its permissions.

    `outputs` is the resolved folder of its calls' long outputs, which it may read without a question.
    `claim` claims a file for the running turn, or says who has it. `skills` is the resolved folder of
    the person's own skills, which it may read, too; `told` are the skills that its agent knows of.
    """

    def __init__(
        self,
        toolbox: Toolbox,
        names: tuple[str, ...],
        permissions: Permissions,
        folder: Path,
        outputs: Path,
        claim: Callable[[Path], str],
        choices: SessionChoices,
        skills: Path | None = None,
        told: Sequence[Skill] = (),
    ) -> None:
        self.choices = choices
        self._skills, self._told = skills, told
        self._toolbox = toolbox
        self._names = names
        self._permissions = permissions
        self._folder = folder
        self._outputs = outputs
        self._fault_of = claim

    def rules(self) -> tuple[Permissions, tuple[Rule, ...]]:
        """Return the configured rules, and those that a person added in this session, oldest first."""
        return self._permissions, tuple(self.choices.allowed)

    def change_tools(self, toolbox: Toolbox, names: tuple[str, ...]) -> None:
        """Let the agent have other tools from now on."""
        self._toolbox, self._names = toolbox, names

    def schemas(self) -> tuple[ToolSchema, ...]:
        """Return the tools that the agent has, as it sees them."""
        return self._toolbox.schemas(self._names)

    def fault(self, request: ToolRequest) -> str:
        """Say what is wrong with a call; empty when nothing is."""
        tool = self._toolbox.get(request.tool) if request.tool in self._names else None
        if tool is None:
            there = ", ".join(tool.name for tool in self._toolbox.listed(self._names))
            return f"there is no tool `{request.tool}`; there are {there}"
        return tool.fault(request.arguments) or self._claim(request)

    def _claim(self, request: ToolRequest) -> str:
        """Claim the file that a call changes, or name the session that has it."""
        if kind_of(request.tool) != "edit":
            return ""
        try:
            place = find_place(request.arguments["path"], self._folder)
        except ToolError:
            return ""  # the tool itself says what is wrong with it
        return self._fault_of(place.path)

    def permit(self, request: ToolRequest) -> Permit:
        """Look the call up in the permission rules and the table of the modes, then among the holds."""
        permit, chosen = self._permitted(request), self.choices.holds
        held = self._permissions.held(request.tool, request.arguments, self._folder, chosen)
        if held is None or permit.do == "deny":
            return permit
        rule, source = hold_line(held), held.source
        return replace(permit, do="ask", rule=rule, source=source, why="", is_hold=True)

    def _permitted(self, request: ToolRequest) -> Permit:
        call, allowed = (request.tool, request.arguments, self._folder), self.choices.allowed
        decision = self._permissions.decide(*call, allowed)
        if decision.do == "ask" and decision.rule == _ANY and (more := self._of_skills()):
            decision = self._permissions.decide(*call, [*allowed, *more])
        if decision.do == "ask" and (whose := self._readable(request)):
            return Permit(do="allow", rule=whose, path=decision.path, is_outside=True)
        row = mode_row(self.choices.mode, self._reach(request, decision.is_outside), decision.do)
        do, rule, refusal = decision.do, decision.rule, ""
        if row.action == ModeAction.REFUSE:
            do, rule, refusal = "deny", f"mode {self.choices.mode}", REFUSAL
        elif row.action == ModeAction.ALLOW and do == "ask":
            do, rule = "allow", f"mode {self.choices.mode}"
        return Permit(
            do=do,
            rule=rule,
            path=decision.path,
            is_outside=decision.is_outside,
            source=decision.source,
            refusal=refusal,
            why=decision.why,
        )

    def _of_skills(self) -> list[Rule]:
        """Return what the skills allow that the running turn has read; never against a person's rule."""
        read = {str(self._folder / path) for path in self.choices.read} if self._told else ()
        return [rule for skill in self._told if str(skill.file) in read for rule in skill.rules]

    def _reach(self, request: ToolRequest, is_outside: bool) -> Reach:
        """Say what a call can do; the word of a tool's server does not count, nor a change of `.git`."""
        kind = kind_of(request.tool)
        if kind == "edit" and not is_outside:
            place = find_place(str(request.arguments.get("path") or "."), self._folder)
            return Reach.ACT if ".git" in place.path.parts else Reach.EDIT
        is_local = not request.tool.startswith(REMOTE)
        changes_nothing = is_local and kind != "execute" and not self.is_mutating(request.tool)
        is_look = kind in ("read", "search", "think") or changes_nothing
        return Reach.LOOK if is_look else Reach.ACT

    def _readable(self, request: ToolRequest) -> str:
        """Say what a call reads that needs no question: an earlier call's output, a skill; else empty."""
        if request.tool != "read":
            return ""
        try:
            place = find_place(str(request.arguments.get("path") or "."), self._folder)
        except ToolError:
            return ""
        if place.path.is_relative_to(self._outputs):
            return "output of this session"
        is_skill = self._skills is not None and place.path.is_relative_to(self._skills)
        return "a skill" if is_skill else ""

    def allowance(self, request: ToolRequest, pattern: str = "") -> tuple[str, str] | str:
        """Give tool and pattern that allow calls like this one, or say why `pattern` does not fit."""
        call = request.tool, request.arguments, self._folder
        name = ruled_as(request.tool, request.arguments)
        rule = wider_rule(name, pattern) if pattern else exact_rule(*call)
        why = rule_mismatch(rule, *call)
        return f"`{pattern or 'always'}` {why}" if why else (rule.tool, rule.match)

    def is_mutating(self, tool: str) -> bool:
        """Whether it may change something, so that it runs alone and in order."""
        found = self._toolbox.get(tool)
        return found is None or found.is_mutating

    def is_idempotent(self, tool: str) -> bool:
        """Whether it may be repeated after a crash."""
        found = self._toolbox.get(tool)
        return found is not None and found.is_idempotent
