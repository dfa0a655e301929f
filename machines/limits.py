"""How much may be used: limits, and the account that is kept of what was. Pure.

An account belongs to a session, or to one of its turns, and has the account above it: what a child
uses is used by its parent, too. A call is reserved before it is made, here and above, and settled when
it is known what it took; so several children at work cannot use the same rest.
"""

from __future__ import annotations

from msgspec import Struct, field

from .conversation import Usage
from .value import Value

# What a model call costs. Prices are configured; nothing here knows any ---------------------------


MILLION = 1_000_000


class Price(Value):
    """What a million tokens cost, in whatever currency; cached ones as the others where not said."""

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


ANSWER = 1_000
"""Tokens that are reserved for an answer, at least."""


class Limits(Value):
    """0 is no limit. Cost is in the currency of the configured prices."""

    max_tokens: int = 0
    max_cost: float = 0.0
    max_minutes: float = 0.0


class Account(Struct, kw_only=True):
    """What was used under some limits; `name` is where they are set, `seconds` how long work went on.

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
