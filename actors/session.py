"""The session actor: supervisor, router, and the one place where a session's journal is ordered.

What people say arrives here, classified. The first routing table says what it is, given what the
session is doing; the second says who hears of it. The queue and the turn decide; what they decide
comes back as entries, is folded into the record, numbered, and handed to the journal. Only when it is
durable is it told to anybody, and only then, if no cancel came in between, are its effects performed.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ..journal import entries as e
from ..journal.child_record import at_work
from ..journal.limit_entries import LimitsGranted
from ..journal.permission_entries import AllowanceForgotten, AllowanceGiven
from ..journal.recovery import recovered
from ..machines.delegation import (
    EndChild,
    Offer,
    Recall,
    SideTalk,
)
from ..machines.delivery import Cause, Delivery
from ..machines.disposition import Action, DispositionRow, Intent, Situation
from ..machines.messages import (
    Allow,
    Answer,
    Compact,
    Finalize,
    GrantLimits,
    Interrupt,
    Lane,
    PolicyChange,
    QueueChange,
    QueueImport,
    Rename,
    ResumeQueue,
    Suspend,
    TakeBack,
    UserMessage,
)
from ..machines.orders import (
    Committed,
    Decided,
    Down,
    Enqueue,
    Inspect,
    NothingToStart,
    Settled,
    StoreBroke,
)
from ..machines.pursuit import Catch, Heard
from ..machines.results import RestoreCounted, RestoreEnded
from ..machines.subagent import meant
from .actor import Forward
from .cancelling import Cancelling
from .inspection import inspect_session
from .mailbox import tell
from .reception import (
    addressed,
    decided,
    enqueue_order,
    is_asked_here,
    known,
    policy_of,
    situation,
)

__all__ = ["Session"]


OVERTAKEN_TALK = (Intent.CONVERSE, Intent.STEER_WORD, Intent.EXPLICIT_QUEUE)


class Session(Cancelling):
    """One session, as people and other programs speak to it."""

    def on_start(self) -> None:
        """Start the household, and put in order what a dead owner left. Nothing runs by itself."""
        self._start_household()
        record = self.record
        if record.seq == 0 or record.state == "finalized":
            return
        is_at_work = record.state not in ("idle", "suspended") or any(at_work(record.children))
        is_cut = record.queue.order or is_at_work
        self._say(recovered(record) if is_cut else e.SessionResumed())
        self._begin_reverts()

    def on_receive(self, message: Any) -> Any:
        """Route. What people say waits while it is undecided what runs."""
        match message:
            case Decided():
                self._journal(message)
            case Committed(seq):
                self._release(seq)
            case StoreBroke():
                self._break(message)
            case NothingToStart():
                self._shift("nothing_to_start")
                self.unstash()
                self._pursue()
            case Catch():
                self._catch_up(message)
            case Heard(number):
                self._goal_has_heard(number)
            case Settled():
                self._settled(message)
            case Down():
                self._down(message)
            case e.SessionOpened():
                self._say(message)
                self.unstash()
            case Inspect(is_of_queue=False):
                return inspect_session(self.record, self.mailbox, self.children)
            case RestoreCounted() | RestoreEnded():
                self._restored(message)
            case _ if self._broken:
                return self._turn_away(message, self._broken)
            case _ if self._must_wait():
                return self.stash()
            case _ if self._is_gone(message):
                return self._turn_away(message, "session_suspended")
            case _:
                return self._obey(message)
        return None

    def _is_gone(self, message: Any) -> bool:
        """Whether nobody is there any more: all that may still be said is that it ends for good."""
        return self.record.state in ("leaving", "suspended") and not isinstance(message, Finalize)

    def _obey(self, message: Any) -> Any:
        match message:
            case UserMessage():
                self._route(message)
            case Interrupt():
                return self._interrupt(message)
            case QueueChange(op="steer"):
                return self._steer_waiting(message)
            case ResumeQueue(number=None):
                return Forward(self._queue, replace(message, children=self._resume_children()))
            case QueueChange() | QueueImport() | ResumeQueue() | Recall():
                return Forward(self._queue)
            case Inspect():
                return Forward(self._queue, Inspect())
            case EndChild():
                return Forward(self._nursery)
            case SideTalk():
                self._side_talk(message)
            case GrantLimits(user):
                self._environment.account.shares += 1
                self._say(LimitsGranted(user))
            case Compact():
                return self._sum_up(message)
            case PolicyChange():
                self._say(
                    e.PolicyChanged(
                        message.busy_mode, message.is_auto_queue, message.routes, message.model
                    )
                )
            case Rename():
                self._say(e.SessionRenamed(message.name))
            case TakeBack():
                return self._take_back()
            case Allow(tool, pattern, is_given):
                book = self._environment.toolbook
                (book.allow if is_given else book.disallow)(tool, pattern)
                self._say((AllowanceGiven if is_given else AllowanceForgotten)(tool, pattern))
            case Answer():
                is_own = is_asked_here(self.record, message.question)
                return Forward(self._turn if is_own and self._turn else self._nursery)
            case Suspend():
                self._leave("suspend", message.cause)
            case Finalize():
                self._leave("finalize", message.cause)
            case _:
                return super().on_receive(message)
        return {"ok": True}

    # What people say ------------------------------------------------------------------------------

    def _route(self, message: UserMessage) -> None:
        before = known(self.record, message.client_id)
        if before is not None:
            self._pass_on_when_durable(before)
            return
        policy = policy_of(self.record, self._environment.policy)
        is_named = message.to not in ("", "parent")
        doing = addressed(situation(self.record), message.to)
        if message.intent in OVERTAKEN_TALK and 0 < message.said < self._cut:
            doing = Situation.OVERTAKEN
        row, message = decided(self._environment.dispositions, message, doing, policy)
        match row.action:
            case Action.RUN if message.type != "normal" and self.mailbox.depth()[Lane.DATA]:
                tell(self.actor_ref, replace(message, type="normal"))  # behind what came before it
            case Action.RUN:
                self._shift("start")
                self._queue.tell(enqueue_order(message, row, "turn", is_next=True))
                self._start_next()
            case Action.QUEUE:
                is_next = doing is Situation.INTERRUPTING
                is_late = doing is Situation.OVERTAKEN
                order = enqueue_order(message, row, "queue", is_next=is_next, is_overtaken=is_late)
                self._queue.tell(self._waiting(order))
            case Action.STEER if is_named:
                self._steer_named(message, row)
            case Action.STEER:
                self._steer(message, row)
            case Action.INTERRUPT:
                self._wish(message, row.cause)
                self._cancel_by_message(message, row)
            case Action.REFUSE | Action.COMMAND:
                self._reject(row.ack or row.name, message.content, message.client_id)

    def _waiting(self, order: Enqueue) -> Enqueue:
        """Say what a message waits for that is to wait: as a rule, for a turn of its own."""
        return order

    def _steer(self, message: UserMessage, row: DispositionRow) -> None:
        """Hand it to whoever the table names for its cause: the turn, or children of it."""
        names = () if row.cause == Cause.STEER else self._steered(row.cause)
        turn = "" if names else self.record.turn
        self._queue.tell(enqueue_order(message, row, "steer", for_turn=turn, for_children=names))

    def _steer_named(self, message: UserMessage, row: DispositionRow) -> None:
        """Hand it to the child that was named, whatever the session itself is doing."""
        name, _, beneath = message.to.partition("/")
        names = self._steered(Cause.STEER_NAMED, name)
        if not names:
            self._reject("no_subagent", message.content, message.client_id)
            return
        order = enqueue_order(message, row, "steer", for_children=names, beneath=beneath)
        self._queue.tell(order)

    def _steered(self, cause: str, name: str = "") -> tuple[str, ...]:
        """Name the children that a steer reaches by the table; of these, if given, the one named."""
        reached = self._reached(cause, Delivery.STEER)
        return reached if name in ("", "all") else meant(reached, name)

    def _steer_waiting(self, message: QueueChange) -> Any:
        """Steer by a message that waits: into the turn, or, while it waits for children, into those."""
        names: tuple[str, ...] = ()
        if message.to not in ("", "parent"):
            names = self._steered(Cause.STEER_NAMED, message.to)
            if not names:
                return {"ok": False, "reason": f"No subagent `{message.to}` works"}
        elif not message.to and situation(self.record) is Situation.DELEGATING:
            names = self._steered(Cause.STEER_THROUGH)
        return Forward(self._queue, replace(message, for_children=names))

    def _side_talk(self, message: SideTalk) -> None:
        before = known(self.record, message.client_id)
        if before is not None:
            self._pass_on_when_durable(before)
            return
        offer = Offer(message.text, "", message.user, message.client_id, is_answered=False)
        self._queue.tell(offer)

    def _turn_away(self, message: Any, reason: str) -> dict[str, Any]:
        if isinstance(message, UserMessage):
            self._reject(reason, message.content, message.client_id)
        return {"ok": False, "reason": reason}
