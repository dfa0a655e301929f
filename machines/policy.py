"""What a session goes by: the settings that decide what a message does."""

from typing import Literal

from .value import Value


class CompactionPolicy(Value):
    """When older turns are summed up: from `at` of the window on, keeping `keep` of it as it is.

    Both are shares, 0 to 1; `is_auto`: without being asked. `window` counts tokens, 0 if nobody knows;
    `overhead` those of instructions and tools.
    """

    is_auto: bool = True
    at: float = 0.8
    keep: float = 0.2
    window: int = 0
    overhead: int = 0


class DelegationPolicy(Value):
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


class GoalPolicy(Value):
    """What goals go by. Budgets: turns, tokens and minutes, none for no limit; in seconds the rest.

    `gates_decide`: when the gates succeed the goal is achieved, and nobody is asked. A pause after so
    many failures in a row, of the judge and of turns; 0: never. `backoff` is the pause after the second
    idle turn in a row; it doubles up to `backoff_limit`. `max_wait` bounds what a judge waits for.
    """

    max_turns: int = 20
    max_tokens: int | None = None
    max_minutes: float | None = None
    gates: tuple[tuple[str, ...], ...] = ()
    gates_decide: bool = False
    max_judge_failures: int = 3
    max_failed_turns: int = 3
    judge_timeout: float = 60.0
    gate_timeout: float = 600.0
    backoff: float = 0.05
    backoff_limit: float = 1.0
    max_wait: float = 3600.0


class RoutesChoice(Value):
    """The routing table that a person chose; `may_be_unsafe`: also if it breaks a safety rule."""

    table: str
    may_be_unsafe: bool = False


class Policy(Value):
    """One session's settings, from config and flags; `can_ask`: somebody can answer questions."""

    busy_mode: Literal["interrupt", "steer", "queue"] = "interrupt"
    strategy: Literal["keyword", "always", "never"] = "keyword"
    is_auto_queue: bool = False
    max_queue_size: int = 10
    after_interrupt: Literal["hold", "continue"] = "hold"
    can_ask: bool = False
    interrupt_at: Literal["now", "boundary"] = "now"
    steer_while_streaming: Literal["wait", "cut"] = "wait"
