"""Settings of a session: what a message does, what may be delegated, and how much may be used. Pure."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import Literal

from msgspec import Struct, field

from .conversation import Usage
from .permission_mode import Mode
from .value import Value


class CompactionPolicy(Value):
    """When older turns are summed up: from `at` of the window on, keeping `keep` of it as it is.

    Both are shares, 0 to 1; `is_auto`: without being asked. `window` counts tokens, 0 if it is not known;
    `overhead` those of instructions and tools.
    """

    is_auto: bool = True
    at: float = 0.8
    keep: float = 0.2
    window: int = 0
    overhead: int = 0


class ResultLimits(Value):
    """How many bytes of one result a model receives; those of the first pattern of `tools` that fits."""

    usual: int = 12 << 10
    tools: tuple[tuple[str, int], ...] = ()

    def of(self, tool: str) -> int:
        """Return the limit of a tool's results."""
        found = (limit for pattern, limit in self.tools if fnmatchcase(tool, pattern))
        return next(found, self.usual)


class DelegationPolicy(Value):
    """The limits of delegation: `agents` that may be called, by name; `depth` is the session's, from 0.

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
    """The limits of goals. Budgets: turns, tokens and minutes, none for no limit; in seconds the rest.

    `gates_decide`: when the gates succeed the goal is achieved, and no judge is asked. A pause after so
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
    """One session's settings, from config and flags; `can_ask`: a person can answer questions."""

    busy_mode: Literal["interrupt", "steer", "queue"] = "interrupt"
    strategy: Literal["keyword", "always", "never"] = "keyword"
    is_auto_queue: bool = False
    max_queue_size: int = 10
    after_interrupt: Literal["hold", "continue"] = "hold"
    can_ask: bool = False
    interrupt_at: Literal["now", "boundary"] = "now"
    steer_while_streaming: Literal["wait", "cut"] = "wait"
    mode: Mode = "ask"


# Limits and usage ---------------------------------------------------------------------------------
# An account belongs to a session, or to one of its turns, and has the account above it: what a child
# uses is used by its parent, too. A call is reserved before it is made, here and above, and settled when
# it is known what it took; so several children at work cannot use the same rest.


MILLION = 1_000_000

ANSWER = 1_000
"""Tokens that are reserved for an answer, at least."""


class Price(Value):
    """The price of a million tokens, in any currency; of cached ones that of the others if not set."""

    input: float = 0.0
    output: float = 0.0
    cached: float | None = None
    cache_write: float | None = None

    def cost(self, usage: Usage) -> float:
        """Return what a usage costs."""
        read = self.input if self.cached is None else self.cached
        written = self.input if self.cache_write is None else self.cache_write
        fresh = max(0, usage.input - usage.cache_read - usage.cache_write)
        whole = (
            fresh * self.input
            + usage.cache_read * read
            + usage.cache_write * written
            + usage.output * self.output
        )
        return whole / MILLION


class Limits(Value):
    """0 is no limit. Cost is in the currency of the configured prices.

    `wait_minutes` is how long a turn may wait for the end of a provider's limit; 0: not at all.
    """

    max_tokens: int = 0
    max_cost: float = 0.0
    max_minutes: float = 0.0
    wait_minutes: float = 0.0


class Account(Struct, kw_only=True):
    """The usage under some limits; `name` is where they are set, `seconds` how long work went on.

    `shares` is how often the limits are granted: once, and once more each time a person says so.
    """

    name: str
    limits: Limits = field(default_factory=Limits)
    above: Account | None = None
    used: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    since: float = 0.0
    shares: int = 1
    reserved: dict[str, Usage] = field(default_factory=dict[str, Usage])

    def share(self, above: Account, name: str) -> None:
        """Use from the account above, too; limits that are the same ones need not be looked at twice."""
        self.above, self.name = above, name
        if self.limits == above.limits:
            self.limits = Limits()

    def refusal(self, wanted: Usage, now: float) -> str:
        """Say which limit a call would break, here or above; empty if it may be made."""
        return self._own_refusal(wanted, now) or (
            self.above.refusal(wanted, now) if self.above else ""
        )

    @property
    def patience(self) -> float:
        """How many seconds a turn may wait for a provider, here or else above."""
        above = self.above.patience if self.above else 0.0
        return self.limits.wait_minutes * 60 or above

    def room(self) -> int:
        """Return how many tokens are left, here and above; -1 if there is no limit."""
        above = self.above.room() if self.above else -1
        most = self.limits.max_tokens * self.shares
        if not most:
            return above
        left = max(0, most - self._spoken_for.tokens)
        return left if above < 0 else min(left, above)

    def reserve(self, call: str, wanted: Usage) -> None:
        """Set something apart for a call, here and above."""
        self.reserved[call] = wanted
        if self.above:
            self.above.reserve(call, wanted)

    def settle(self, call: str, used: Usage) -> None:
        """Take what a call took from what was set apart for it, here and above."""
        self.reserved.pop(call, None)
        self.used += used
        if self.above:
            self.above.settle(call, used)

    @property
    def _spoken_for(self) -> Usage:
        return sum(self.reserved.values(), self.used)

    def _own_refusal(self, wanted: Usage, now: float) -> str:
        limits, spent = self.limits, self._spoken_for
        tokens, cost = limits.max_tokens * self.shares, limits.max_cost * self.shares
        minutes = limits.max_minutes * self.shares
        worked = (self.seconds + max(0.0, now - self.since)) / 60 if self.since else 0.0
        if tokens and spent.tokens + wanted.tokens > tokens:
            need = f"the next call takes about {wanted.tokens:,}"
            return f"{self.name}.max_tokens: {spent.tokens:,} of {tokens:,} tokens are used, and {need}"
        if cost and spent.cost + wanted.cost > cost:
            need = f"the next call costs about {wanted.cost:.4f}"
            return f"{self.name}.max_cost: {spent.cost:.4f} of {cost:.4f} is spent, and {need}"
        if minutes and worked >= minutes:
            return f"{self.name}.max_minutes: it has worked for {worked:.1f} of {minutes:g} minutes"
        return ""
