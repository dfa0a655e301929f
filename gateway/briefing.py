"""What a session is told by AGENTS.md when it begins, and how much its model can read at all."""

from __future__ import annotations

from pathlib import Path

from ..journal.record import SessionRecord
from ..machines.agent_call import AGENT_TOOL
from ..ports import attachment
from ..ports.instructions import FEW, MOST, Instructions, has_changed, instructions_of
from ..ports.instructions import read_instructions as read
from ..ports.models.choice import Choice

__all__ = ["attachable", "instructions_for", "is_outdated"]


def instructions_for(
    choice: Choice | None, folder: Path, tools: tuple[str, ...], own: Path
) -> Instructions:
    """Read what people wrote for agents in a folder; one without tools does nothing in it."""
    if not _works_here(tools):
        return Instructions()
    return read(folder, own, FEW if _is_embedded(choice) else MOST)


def is_outdated(record: SessionRecord, own: Path) -> bool:
    """Whether a session that begins now would be told something else."""
    before = instructions_of(record.system)
    return _works_here(record.tools) and has_changed(before, Path(record.folder), own)


def attachable(choice: Choice | None) -> int:
    """Return how many bytes a message may bring along."""
    return attachment.FEW if _is_embedded(choice) else attachment.MOST


def _works_here(tools: tuple[str, ...]) -> bool:
    return bool(tools) and AGENT_TOOL not in tools


def _is_embedded(choice: Choice | None) -> bool:
    return choice is not None and choice.config.provider == "local"
