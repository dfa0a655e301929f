"""What the actors of a replay are handed: a program's tools, rules and tables, and no world."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ...actors.agent_profile import AgentProfile
from ...actors.environment import Environment
from ...actors.session_maker import account_of
from ...actors.tool_policy import SessionChoices, SessionToolPolicy
from ...journal import entries as e
from ...journal.record import SessionRecord
from ...machines.conversation import ToolSchema
from ...machines.routes import Routes
from ...machines.value import Value
from ...ports.tools.toolbox import Toolbox
from .player import Player
from .script import Script


class _RecordedTool:
    """A tool that is not here, as far as the record shows what it is."""

    def __init__(self, name: str, is_mutating: bool, is_idempotent: bool) -> None:
        self.schema = ToolSchema(name=name, description="", parameters={"type": "object"})
        self.is_mutating, self.is_idempotent = is_mutating, is_idempotent

    def fault(self, arguments: dict[str, Any]) -> str:
        """Find nothing wrong with a call."""
        return ""


class Surroundings(Value):
    """Makes the environments of replays: the `toolbox` is never asked to run anything.

    `outputs` is the folder with the sessions' long outputs, `skills` that of the person's own skills.
    """

    toolbox: Toolbox
    outputs: Path
    skills: Path | None

    def around(
        self, player: Player, record: SessionRecord, profile: AgentProfile, routes: Routes
    ) -> Environment:
        """Return what a session of a profile and of routing tables has around it."""
        names = player.script.opened.tools or profile.tools
        choices = SessionChoices(lambda: player.ledger.record, profile.policy.mode)
        return Environment(
            journal=player,
            perform=player.ports,
            observers=(),
            tool_policy=self._tools(player.script, profile, names, choices),
            policy=profile.policy,
            max_steps=profile.max_steps,
            dispositions=routes.dispositions,
            deliveries=routes.deliveries,
            delegation=profile.delegation,
            compaction=replace(profile.compaction, window=_window(player.script, profile)),
            progress=profile.progress,
            account=account_of(record, profile.limits),
            price=profile.price,
            goals=profile.goals,
            agent=player.script.opened.agent,
            owner=player.script.owner,
            helpers=profile.helpers,
            result_limits=profile.result_limits,
            outputs=str(self.outputs / record.id),
        )

    def amend(
        self,
        environment: Environment,
        script: Script,
        profile: AgentProfile | None,
        routes: Routes | None,
    ) -> None:
        """Exchange the agent, the routing tables, or both, from the next decision on."""
        if profile is not None:
            environment.max_steps, environment.policy = profile.max_steps, profile.policy
            environment.progress = profile.progress
            policy = environment.tool_policy
            assert isinstance(policy, SessionToolPolicy)
            environment.tool_policy = self._tools(script, profile, profile.tools, policy.choices)
        if routes is not None:
            environment.dispositions = routes.dispositions
            environment.deliveries = routes.deliveries

    def _tools(
        self,
        script: Script,
        profile: AgentProfile,
        names: tuple[str, ...],
        choices: SessionChoices,
    ) -> SessionToolPolicy:
        toolbox = self.toolbox.including(*profile.own_tools)
        made = [
            _RecordedTool(name, *script.tools.get(name, (True, False)))
            for name in names
            if name not in toolbox.names
        ]
        return SessionToolPolicy(
            toolbox=toolbox.including(*made),  # type: ignore[arg-type]
            names=names,
            permissions=profile.permissions,
            folder=Path(script.opened.folder),
            outputs=self.outputs / script.opened.session,
            claim=lambda path: "",
            choices=choices,
            skills=self.skills,
        )


def _window(script: Script, profile: AgentProfile) -> int:
    """Return the model's window, which its server may have told."""
    told = (
        recorded.entry.window
        for recorded in script.entries
        if isinstance(recorded.entry, e.CompactionBegun) and recorded.entry.window
    )
    return next(told, profile.compaction.window)
