"""What a session goes by: the settings that decide what a message does."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["Policy"]


@dataclass(frozen=True, slots=True)
class Policy:
    """One session's settings, from config and flags; `can_ask`: somebody can answer questions."""

    busy_mode: Literal["interrupt", "steer", "queue"] = "interrupt"
    strategy: Literal["keyword", "always", "never"] = "keyword"
    is_auto_queue: bool = False
    max_queue_size: int = 10
    after_interrupt: Literal["hold", "continue"] = "hold"
    can_ask: bool = False
    interrupt_at: Literal["now", "boundary"] = "now"
    steer_while_streaming: Literal["wait", "cut"] = "wait"
