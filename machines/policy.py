"""What a session goes by: the settings that decide what a message does."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["CompactionPolicy", "DelegationPolicy", "Policy", "RoutesChoice"]


@dataclass(frozen=True, slots=True)
class CompactionPolicy:
    """When older turns are summed up: from `at` of the window on, keeping `keep` of it as it is.

    Both are shares, 0 to 1; `is_auto`: without being asked. `window` counts tokens, 0 if nobody knows;
    `overhead` those of instructions and tools.
    """

    is_auto: bool = True
    at: float = 0.8
    keep: float = 0.2
    window: int = 0
    overhead: int = 0


@dataclass(frozen=True, slots=True)
class DelegationPolicy:
    """What a session may delegate: `agents` that it may call, by name; `depth` is its own, from 0.

    `detached` are those of them that go on, in the background, when the turn that waits for them is
    stopped. `when_full` says what a call does when `max_children` are at work. In seconds:
    `steer_deadline` is how long a steer waits for a child's boundary before it is held for the
    parent, `wrap_up` how long a child has to sum up, `timeout` how long one may work; 0: for ever.
    """

    agents: tuple[str, ...] = ()
    depth: int = 0
    max_depth: int = 2
    max_children: int = 4
    when_full: Literal["wait", "refuse"] = "wait"
    detached: tuple[str, ...] = ()
    steer_deadline: float = 300.0
    wrap_up: float = 60.0
    timeout: float = 0.0


@dataclass(frozen=True, slots=True)
class RoutesChoice:
    """The routing table that a person chose; `may_be_unsafe`: also if it breaks a safety rule."""

    table: str
    may_be_unsafe: bool = False


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
