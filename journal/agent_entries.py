"""What is journalled of an agent that is another program."""

from dataclasses import dataclass
from typing import Any

from .entry import Entry


@dataclass(frozen=True, slots=True)
class AgentSessionKnown(Entry):
    """The agent's own id of this session: it is loaded under it when the agent is started again."""

    session: str


@dataclass(frozen=True, slots=True)
class CallReported(Entry):
    """The agent said that it uses a tool of its own, in call `within` of the turn."""

    turn: str
    step: int
    within: str
    call: str
    tool: str
    arguments: dict[str, Any]
