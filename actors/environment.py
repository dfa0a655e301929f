"""The environment of a session's actors: journal, effects, observers, agent, handed in.

The same actors run in the program and in the simulator; only this differs.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from ..journal.entries import Entry
from ..journal.record import SessionRecord
from ..journal.recovery import NO_OUTCOMES
from ..journal.store import StoredEntry
from ..machines import protocol as m
from ..machines.conversation import ToolRequest, ToolSchema
from ..machines.delivery import DEFAULT_DELIVERIES
from ..machines.disposition import DEFAULT_DISPOSITIONS
from ..machines.policy import (
    Account,
    CompactionPolicy,
    DelegationPolicy,
    GoalPolicy,
    Policy,
    Price,
    ResultLimits,
)
from ..machines.progress import ProgressPolicy
from ..machines.result_routing import DEFAULT_RETURNS
from ..machines.routes import Routes
from ..machines.routing import Table
from ..machines.value import Value
from ..ports.tools.permission import Permissions, Rule
from ..workflows.flow.spec import WorkflowSpec
from .gate import ROOT, Ancestors


class Journal(Protocol):
    """Takes entries that are folded already; a `Committed` comes back when they are durable."""

    def append(self, entry: StoredEntry, record: SessionRecord, posted: int = 0) -> None:
        """Add the newest entry of a session; `record` is its state with the entry applied.

        `posted` is the message of the session's mailbox that the entry is about, 0 if none is.
        """
        ...


class Perform(Protocol):
    """Hands an effect to the ports; results come to `reply_to` as messages."""

    def __call__(self, effect: m.PortEffect, reply_to: Any) -> None:
        """Begin; never blocks."""
        ...


Publication = Callable[[], None]
"""Publishes what an observer has made of an entry; called once the entry is durable."""


def at_once(work: Callable[[], None]) -> None:
    """Do it now."""
    work()


class Observer(Protocol):
    """Follows a session: publishes its events, runs hooks, reports to a parent. On the loop's thread."""

    def observe_entry(
        self, entry: Entry, seq: int, time: float, record: SessionRecord
    ) -> Publication | None:
        """Take an entry that was folded, with the record as it is then; return what to publish of it."""
        ...

    def observe_fact(self, fact: m.Fact) -> None:
        """Publish a fact that is not journalled; an observer of entries alone ignores it."""
        return


class Permit(Value):
    """Whether a tool call may run, and by which rule of which file.

    `refusal` says more of a denial, `why` of a question. `path` is the resolved path that was looked at,
    with no link in it; `is_outside`: it leads out of the folder. `is_hold`: it waits for a person,
    whatever the rules say.
    """

    do: Literal["allow", "ask", "deny"]
    rule: str = ""
    path: str = ""
    is_outside: bool = False
    source: str = ""
    refusal: str = ""
    why: str = ""
    is_hold: bool = False


class ToolPolicy(Protocol):
    """The decisions about a tool before a turn runs it; pure and quick."""

    def rules(self) -> tuple[Permissions, tuple[Rule, ...]]:
        """Return the configured rules, and those that a person added in this session, oldest first."""
        ...

    def schemas(self) -> tuple[ToolSchema, ...]:
        """Return the tools that the agent has, as it sees them."""
        ...

    def fault(self, request: ToolRequest) -> str:
        """Say what is wrong with a call; empty when nothing is."""
        ...

    def permit(self, request: ToolRequest) -> Permit:
        """Look the call up in the permission rules."""
        ...

    def allowance(self, request: ToolRequest, pattern: str = "") -> tuple[str, str] | str:
        """Give tool and pattern that allow calls like this one, or say why `pattern` does not fit."""
        ...

    def is_mutating(self, tool: str) -> bool:
        """Whether it may change something, so that it runs alone and in order."""
        ...

    def is_idempotent(self, tool: str) -> bool:
        """Whether it may be repeated after a crash."""
        ...


class Environment(Struct, kw_only=True):
    """One session's surroundings. `max_steps` are the model calls after which a turn asks.

    `account` is what it may use, and has used. `agent` is whose session it is, `owner` the login
    name of the person who runs it, `path` the names of the children that lead to it. `workflow` is what a
    run goes by, and `helpers` the agents that work, and judge, where a step names none. `ancestors` are
    the sessions above it, `turn_type` the class of the actor of its turns, none for the usual one.
    `result_limits` bound what its model receives of a result; `outputs` is the folder of those that are
    longer, empty if none are kept, and `storage` names where copies of files are. `is_offline`: only its
    queue is changed, and nothing begins. `outcomes` are those of calls that ran when the last owner died.
    `soon` does what can wait for effects that were performed before: a request goes out first.
    """

    journal: Journal
    perform: Perform
    observers: tuple[Observer, ...]
    tool_policy: ToolPolicy
    policy: Policy
    max_steps: int = 500
    dispositions: Table[Any] = DEFAULT_DISPOSITIONS
    deliveries: Table[Any] = DEFAULT_DELIVERIES
    returns: Table[Any] = DEFAULT_RETURNS
    delegation: DelegationPolicy = field(default_factory=DelegationPolicy)
    compaction: CompactionPolicy = field(default_factory=CompactionPolicy)
    progress: ProgressPolicy = field(default_factory=ProgressPolicy)
    account: Account = field(default_factory=lambda: Account(name="limits"))
    price: Price | None = None
    goals: GoalPolicy = field(default_factory=GoalPolicy)
    agent: str = ""
    owner: str = ""
    path: tuple[str, ...] = ()
    workflow: WorkflowSpec | None = None
    ancestors: Ancestors = ROOT
    turn_type: type[Any] | None = None
    is_offline: bool = False
    outcomes: Mapping[str, str] = NO_OUTCOMES
    helpers: tuple[str, str] = ("assistant", "judge")
    result_limits: ResultLimits = field(default_factory=ResultLimits)
    outputs: str = ""
    storage: str = ""
    finalize_id: Callable[[str], str] = "finalize-{}".format
    soon: Callable[[Callable[[], None]], object] = at_once

    def amend(self, **changes: Any) -> None:
        """Change the policy; takes effect with the next message."""
        self.policy = replace(self.policy, **changes)

    def learn_window(self, window: int) -> None:
        """Take note of how many tokens the model can look at, where its server reports that."""
        if window > 0 and window != self.compaction.window:
            self.compaction = replace(self.compaction, window=window)

    async def adopt(self, routes: Routes) -> None:
        """Go by other routing tables, from the next message on; run on the actors' own loop."""
        self.dispositions, self.deliveries = routes.dispositions, routes.deliveries
