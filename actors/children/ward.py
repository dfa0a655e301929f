"""The ward: what becomes of a session's children, from being opened to being let go.

The nursery decides what is asked of them; here is what follows: a child is opened and given its task,
reports, is told to stop, stops, and is over. Its actor may fail, and begins again from its journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ...journal import entries as e
from ...journal.child_record import ChildRecord, apply_to_children
from ...journal.codec import decode, encode
from ...journal.record import SessionRecord
from ...machines.delegation import (
    ChildOpened,
    ChildReport,
    CloseChild,
    OpenChild,
    PassSteer,
    SetTimer,
    StartTalk,
)
from ...machines.disposition import Intent
from ...machines.effects import Effect
from ...machines.messages import Finalize, Interrupt, ResumeQueue, Suspend, UserMessage
from ...machines.orders import Decided, Down, Settled
from ...machines.pursuit import ChangeGoal, SetGoal
from ..supervisor import ChildSpec, GaveUp, Supervisor
from .crib import Crib
from .rollcall import RollCall

if TYPE_CHECKING:
    from ..environment import Environment
    from ..system import ActorSystem

__all__ = ["Ward", "say_to_child"]


class Ward(Supervisor):
    """One session's children. `cribs` are those whose session is open, or being opened, here."""

    strategy = "one_for_one"

    def __init__(
        self,
        system: ActorSystem,
        record: SessionRecord,
        session: ActorRef[Any],
        environment: Environment,
    ) -> None:
        super().__init__(system)
        self.records: dict[str, ChildRecord] = decode(
            SessionRecord, {"children": encode(record.children)}
        ).children
        self.cribs: dict[str, Crib] = {}
        self._parent = record.id
        self._made = record.children_made
        self._session = session
        self._environment = environment
        self._roll = RollCall()

    def _decide(self, *entries: e.Entry, effects: Sequence[Effect] = ()) -> None:
        now = self.system.now()
        for entry in entries:
            apply_to_children(self.records, entry, now)
        if entries or effects:
            self._session.tell(Decided(self.name, entries, tuple(effects)))

    # Beginning ------------------------------------------------------------------------------------

    def _begin(self, entry: e.ChildStarted, talk: StartTalk | None = None) -> None:
        self._made += 1
        opening = [] if entry.is_waiting else [self._open(entry.child, entry, talk)]
        self._decide(entry, effects=opening)

    def _open(
        self, name: str, child: e.ChildStarted | ChildRecord, talk: StartTalk | None = None
    ) -> OpenChild:
        self.cribs[name] = Crib()
        said = talk.seed if talk is not None else ()
        return OpenChild(name, child.session, child.agent, child.relation, said, child.task)

    def _opened(self, message: ChildOpened) -> None:
        child, crib = self.records[message.name], self.cribs.get(message.name)
        if crib is None or child.state != "working" or self._roll.is_ending:
            self.cribs.pop(child.name, None)  # none: it was asked for before the nursery failed
            self._decide(effects=[CloseChild(child.session)])
            self._stopped(child)
            self._settle_if_empty()
            return
        crib.ref = self.start_child(ChildSpec(child.name, message.start, "transient"))
        if message.entry is not None:
            crib.ref.tell(message.entry)
        if message.last is not None:
            self._report(message.last)
        elif message.has_task:
            crib.ref.tell(ResumeQueue())
            if child.goal:
                crib.ref.tell(ChangeGoal("resume"))
        else:
            crib.ref.tell(_goal(child) if child.goal else _task(child))
        for steer in crib.steers:
            crib.ref.tell(self._steer(steer))
        limit = self._environment.delegation.timeout
        if limit:
            self._decide(effects=[SetTimer(f"limit {child.name}", limit)])

    def _admit(self) -> None:
        """Let those begin that waited for room, oldest first."""
        for child in self.records.values():
            if child.state == "waiting" and not self._is_full() and not self._roll.is_ending:
                self._decide(e.ChildAdmitted(child.name), effects=[self._open(child.name, child)])

    def _is_full(self) -> bool:
        busy = sum(one.state in ("working", "stopping") for one in self.records.values())
        return busy >= self._environment.delegation.max_children

    # What children say ----------------------------------------------------------------------------

    def _report(self, report: ChildReport) -> None:
        child, crib = self.records.get(report.name), self.cribs.get(report.name)
        if child is None or crib is None:
            return
        match report.kind:
            case "began":
                crib.has_turn = True
                if child.state == "stopping":
                    self._tell_to_stop(child, crib)
            case "ended":
                if child.is_at_work:
                    self._over(child.name, report.status, report)
            case "stopped":
                self._stopped(child, report)
            case "closed":
                self._closed(child)
            case "steered":
                self._arrived(report, report.turn)
            case "missed":
                self._arrived(report, "")

    def _stopped(self, child: ChildRecord, report: ChildReport | None = None) -> None:
        """A child has stopped: for its parent to resume, or for good."""
        if child.state == "stopping" and child.is_kept:
            told = report or ChildReport(child.name, "stopped")
            self._decide(
                e.ChildInterrupted(
                    child.name,
                    child.cause,
                    told.text,
                    told.steps,
                    told.usage,
                    told.killed,
                    told.survivors,
                )
            )
            self._answer_orders(child.name, told)
            self._admit()
        elif child.is_at_work:
            self._over(child.name, "cancelled", report)

    def _over(
        self, name: str, status: str, report: ChildReport | None = None, reason: str = ""
    ) -> None:
        """A child is over; its session ends for good, too."""
        told = report or ChildReport(name, "ended")
        self._decide(
            e.ChildEnded(
                name,
                status,
                told.text,
                reason or told.reason,
                told.steps,
                told.usage,
                told.killed,
                told.survivors,
            )
        )
        crib = self.cribs.get(name)
        if crib is not None:
            crib.tell(Finalize(status))
        else:  # its actor failed together with an earlier nursery
            self._decide(effects=[CloseChild(self.records[name].session)])
        self._answer_orders(name, told)
        self._admit()

    def _closed(self, child: ChildRecord) -> None:
        """A child's session is left: it stopped before it began anything, or was told to end."""
        del self.cribs[child.name]
        found = self.children.pop(child.name, None)
        if found is not None:
            self._retire(found)
        self._decide(effects=[CloseChild(child.session)])
        self._stopped(child)
        self._settle_if_empty()

    def _steer(self, steer: PassSteer) -> UserMessage:
        said = say_to_child(steer.text, steer.user, f"{self._parent}:{steer.item}")
        return replace(said, attached=steer.attached, to=steer.beneath)

    def _arrived(self, report: ChildReport, turn: str) -> None:
        """Note what became of a steer that was handed on."""
        crib = self.cribs[report.name]
        for steer in crib.steers:
            if report.key == f"{self._parent}:{steer.item}":
                crib.steers = tuple(one for one in crib.steers if one is not steer)
                self._decide(e.SteerArrived(steer.item, report.name, turn, report.step))

    # Stopping -------------------------------------------------------------------------------------

    def _tell_to_stop(self, child: ChildRecord, crib: Crib) -> None:
        """End its turn; one that has begun none yet is left, so that it never will."""
        crib.tell(Interrupt("parent") if crib.has_turn else Suspend("parent"))

    def _settle_if_empty(self) -> None:
        if self._roll.is_asked and not self.cribs:
            self._roll.is_asked = False
            self._session.tell(Settled("nursery"))

    def _answer_orders(self, name: str, report: ChildReport | None) -> None:
        """Say of each cancel that everybody it reached is dead, as soon as that is so."""
        for entry in self._roll.answer(name, report):
            self._decide(entry)

    # Failures -------------------------------------------------------------------------------------

    def _down(self, down: Down) -> None:
        """A child's actor failed: it begins again from its journal, unless it does so for ever."""
        crib = self.cribs.get(down.name)
        if crib is not None:
            crib.has_turn = False
        try:
            self.handle_down(down)
            if crib is not None:
                crib.tell(ResumeQueue())
        except GaveUp as error:
            found = self.children.pop(down.name, None)
            if found is not None:
                self._retire(found)
            child = self.records[down.name]
            self.cribs.pop(down.name, None)
            self._decide(effects=[CloseChild(child.session)])
            if child.is_at_work:
                self._over(child.name, "failed", reason=str(error))
            self._settle_if_empty()

    def child_ended(self, down: Down) -> None:
        """A child's actor came to its end by itself, which none does."""


def say_to_child(text: str, user: str, key: str) -> UserMessage:
    """Return a message for a child's running turn; with the same key it enters only once."""
    return UserMessage("steer", text, Intent.EXPLICIT_STEER, user=user, client_id=key)


def _goal(child: ChildRecord) -> SetGoal:
    """Give a child a goal to work for, which begins with its task."""
    gates = tuple(tuple(one) for one in child.goal.get("gates", ()))
    turns = child.goal.get("max_turns") or None
    return SetGoal(child.goal["text"], gates, turns, prompt=child.task, user=child.user)


def _task(child: ChildRecord) -> UserMessage:
    """Give a child its task; a second time it would be known."""
    return UserMessage("normal", child.task, Intent.CONVERSE, user=child.user, client_id="task")
