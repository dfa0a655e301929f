"""How a session takes each message of people and other programs: one row for each.

The session reads here what decides about a message, the session that no program runs whether it can be
carried out there, and the table of people which right it needs. A message without a row is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import asdict

from ...journal import entries as e
from ...machines import protocol as m
from ...machines.people import Deed, FromPerson, objection
from ...machines.value import Value
from . import compacting, goals, queueing, reverting, routing, running, stopping
from .decision import Decision, answer
from .queries import owner_of_turn

if TYPE_CHECKING:
    from ...journal.record import SessionRecord
    from ..environment import Environment

Decide = Callable[["SessionRecord", Any, "Environment"], Decision]
"""Decides about a message, given the record and the environment."""
Concern = tuple[Deed, str]
"""What a message does, and whose work that concerns; empty if no person's."""


class Handler(Value):
    """How one type of message is taken.

    `deed` is what it does, for the table of people. `decide` decides; none where an actor carries it out
    or passes it on. `offline` decides in a session that no program runs; none: it is refused there.
    """

    deed: Deed | Callable[[SessionRecord, FromPerson], Concern]
    decide: Decide | None = None
    offline: Decide | None = None


def obstacle(record: SessionRecord, asked: FromPerson) -> str:
    """Say why a person may not have a message carried out; empty if they may.

    What becomes of a message is decided when its row is known (`weigh`).
    """
    deed, owner = concern(record, asked)
    return objection(asked.may, deed, asked.user, owner)


def handler_of(message: m.Message) -> Handler | None:
    """Return the row of a message; none for one that no person and no other program sends."""
    return HANDLERS.get(type(message))


def concern(record: SessionRecord, asked: FromPerson) -> Concern:
    """Return what a person's message does, and whose work that concerns."""
    handler = handler_of(asked.message)
    deed = handler.deed if handler is not None else Deed.APPROVE
    return (deed, "") if isinstance(deed, Deed) else deed(record, asked)


# What they do, where that depends -----------------------------------------------------------------


def _about_turn(record: SessionRecord, asked: FromPerson) -> Concern:
    return Deed.STOP, owner_of_turn(record)


def _resuming(record: SessionRecord, asked: FromPerson) -> Concern:
    assert isinstance(asked.message, m.ResumeQueue)
    return (Deed.SPEAK if asked.message.number is None else Deed.STEER), ""


def _pursuing(record: SessionRecord, asked: FromPerson) -> Concern:
    """Setting a goal; its gates are commands that are run without a question."""
    assert isinstance(asked.message, m.SetGoal)
    return (Deed.APPROVE if asked.message.gates else Deed.STEER), ""


def _changing(record: SessionRecord, asked: FromPerson) -> Concern:
    """Return what a change of the queue does: everyone who may speak may change their own message."""
    change = asked.message
    assert isinstance(change, m.QueueChange)
    live = record.queue.live()
    found = [item for item in live if item.number == change.number] if change.number else live[-1:]
    is_own = [item.said.user for item in found] == [asked.user]
    match change.op:
        case "steer":
            return Deed.STEER, owner_of_turn(record)
        case "end_edit":
            return Deed.SPEAK, ""
        case "withdraw" | "edit" | "begin_edit" | "keep" if is_own:
            return Deed.SPEAK, ""
        case "withdraw" | "edit" | "begin_edit" | "keep":
            return Deed.STOP, found[0].said.user if found else ""
        case "move" | "release":
            return Deed.STEER, ""
        case "clear" | "discard" | "hold":
            return Deed.STOP, ""


# What decides -------------------------------------------------------------------------------------


def _noting(entry_of: Callable[[Any], e.Entry]) -> Decide:
    """Return what notes a choice of a person."""

    def decide(record: SessionRecord, message: Any, environment: Environment) -> Decision:
        return Decision(entries=(entry_of(message),), reply=answer())

    return decide


def _choice(deed: Deed, entry_of: Callable[[Any], e.Entry]) -> Handler:
    """Return the row of a choice that is noted, whether a program runs the session or not."""
    noting = _noting(entry_of)
    return Handler(deed=deed, decide=noting, offline=noting)


def _policy(change: m.PolicyChange) -> e.Entry:
    return e.PolicyChanged(**asdict(change))


def _allowance(allow: m.Allow) -> e.Entry:
    kind = e.AllowanceGiven if allow.is_given else e.AllowanceForgotten
    return kind(tool=allow.tool, pattern=allow.pattern, user=allow.user)


def _change(record: SessionRecord, change: m.QueueChange, environment: Environment) -> Decision:
    if change.op == "steer":
        return routing.steer_waiting(record, change, environment)
    return queueing.change(record, change)


HANDLERS: Final[Mapping[type[m.Message], Handler]] = {
    m.UserMessage: Handler(deed=Deed.SPEAK),
    m.SideTalk: Handler(deed=Deed.SPEAK, decide=routing.side_talk, offline=routing.talk_offline),
    m.Interrupt: Handler(
        deed=_about_turn, decide=stopping.interrupt, offline=stopping.interrupt_offline
    ),
    m.QueueChange: Handler(deed=_changing, decide=_change),
    m.QueueImport: Handler(deed=Deed.APPROVE, decide=queueing.take_in, offline=queueing.take_in),
    m.ResumeQueue: Handler(deed=_resuming),
    m.TakeBack: Handler(deed=Deed.STOP),
    m.Recall: Handler(deed=Deed.APPROVE, decide=queueing.recall),
    m.Compact: Handler(deed=Deed.STEER, decide=compacting.asked),
    m.Revert: Handler(deed=Deed.STOP, decide=reverting.revert, offline=reverting.offline),
    m.RevertOutcome: Handler(deed=Deed.SPEAK),
    m.SetGoal: Handler(deed=_pursuing, offline=goals.offline),
    m.ChangeGoal: Handler(deed=Deed.STEER, offline=goals.offline),
    m.EndChild: Handler(deed=Deed.STOP),
    m.Answer: Handler(deed=Deed.APPROVE),
    m.Rename: _choice(Deed.STEER, lambda asked: e.SessionRenamed(name=asked.name)),
    m.PolicyChange: _choice(Deed.APPROVE, _policy),
    m.Allow: _choice(Deed.APPROVE, _allowance),
    m.GrantLimits: Handler(
        deed=Deed.APPROVE, decide=_noting(lambda asked: e.LimitsGranted(user=asked.user))
    ),
    m.Reopen: Handler(deed=Deed.APPROVE, decide=running.reopen),
    m.TryAgain: Handler(deed=Deed.APPROVE, decide=running.try_again),
    m.Suspend: Handler(deed=Deed.APPROVE, decide=stopping.suspend),
    m.Finalize: Handler(deed=Deed.APPROVE, decide=stopping.finalize),
}
