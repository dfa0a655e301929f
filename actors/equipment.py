"""What the sessions of a process work with: models, tools, processes, their folders."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..journal.record import SessionRecord
from ..ports.agents.external import AgentSpec, ExternalAgent
from ..ports.process.process import Processes
from ..ports.tools.environment import clean_environment
from ..ports.tools.sandbox import Sandbox, SandboxPolicy
from ..ports.tools.toolbox import Toolbox
from ..ports.workspace.checkpoints import Checkpoints
from .agent_profile import AgentProfile
from .claims import Claims
from .toolbook import SessionToolbook
from .work.scene import Scene

__all__ = ["Equipment"]


@dataclass(frozen=True, slots=True)
class Equipment:
    """What all sessions share. Long output goes to folders in `spill`.

    `visible` are the names of variables of the environment that commands see beside the usual ones.
    """

    processes: Processes
    toolbox: Toolbox
    claims: Claims
    spill: Path
    visible: tuple[str, ...]
    sandbox: SandboxPolicy

    def scene(
        self, session: str, record: SessionRecord, folder: Path, profile: AgentProfile
    ) -> Scene:
        """Say where the effects of a session take place."""
        model, toolbox = self._hands(profile.model, folder, record.agent_session)
        return Scene(
            model,
            record.system or profile.system,
            toolbox.schemas(profile.tools),
            toolbox,
            folder,
            self.spill / session,
            clean_environment(os.environ, self.visible),
            Checkpoints(self.spill.with_name("workspaces"), folder, session),
            profile.permissions.hidden(),
            Sandbox(self.sandbox, folder, self.spill / session / "tmp", os.environ),
            profile.judge,
        )

    def toolbook(
        self, session: str, record: SessionRecord, scene: Scene, profile: AgentProfile
    ) -> SessionToolbook:
        """Say what a session may do with its tools."""
        return SessionToolbook(
            scene.toolbox,
            profile.tools,
            profile.permissions,
            scene.folder,
            self.claims.of(session),
            record.allowed,
        )

    def _hands(self, model: Any, folder: Path, known: str) -> tuple[Any, Toolbox]:
        """Return model and tools; an agent that is another program is both.

        `known` is that agent's own id of the session.
        """
        if not isinstance(model, AgentSpec):
            return model, self.toolbox
        agent = ExternalAgent(model, self.processes, folder, known)
        return agent, self.toolbox.including(agent)
