"""What a session works with: a model and tools; or an agent that is another program, which is both."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from ..ports.agents.external import AgentSpec, ExternalAgent
from ..ports.process.process import Processes
from ..ports.tools.toolbox import Toolbox

__all__ = ["equipped"]


def equipped(
    model: Any, toolbox: Toolbox, processes: Processes, folder: Path, known: str
) -> tuple[Any, Toolbox]:
    """Return a session's model and toolbox; `known` is an external agent's own id of the session."""
    if not isinstance(model, AgentSpec):
        return model, toolbox
    agent = ExternalAgent(model, processes, folder, known)
    return agent, toolbox.including(agent)
