"""A session that this process owns, and the surroundings that its actors are given."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from pykka import ActorRef

from ..journal.record import SessionRecord
from ..journal.store import Lease
from .accounting import account_of
from .agent_profile import AgentProfile
from .departure import Departure
from .environment import Environment, Journal
from .ledger import Ledger
from .offline import OfflineSession
from .session import Session
from .toolbook import SessionToolbook
from .work.performer import Performer

__all__ = ["LiveSession", "environment_of"]


@dataclass(slots=True)
class LiveSession:
    """A session that this process owns; `parent` is whose child it is, empty for nobody's."""

    id: str
    lease: Lease
    ledger: Ledger
    environment: Environment
    performer: Performer
    departure: Departure
    profile: AgentProfile
    toolbook: SessionToolbook
    parent: str = ""
    ref: ActorRef[Any] | None = None
    kind: type[Session | OfflineSession] = Session

    @property
    def record(self) -> SessionRecord:
        """The session's state, with everything that was decided until now."""
        return self.ledger.record


def environment_of(
    profile: AgentProfile,
    record: SessionRecord,
    journal: Journal,
    performer: Performer,
    departure: Departure,
    toolbook: SessionToolbook,
) -> Environment:
    """Return the surroundings of a session whose agent is `profile`."""
    return Environment(
        journal,
        performer,
        departure,
        toolbook,
        profile.policy,
        profile.max_steps,
        profile.routes.dispositions,
        profile.routes.deliveries,
        delegation=profile.delegation,
        compaction=replace(profile.compaction, overhead=performer.scene.overhead),
        account=account_of(record, profile.limits),
        price=profile.price,
        goals=profile.goals,
        agent=profile.name,
        workflow=profile.workflow,
        helpers=profile.helpers,
    )
