"""The queue actor: the one authority on what waits.

Whether a message may enter, which one is next, what a boundary takes in: everybody asks here, so two
decisions about the same message never cross. It keeps its own copy of the queue's part of the
session and folds the same entries into it as everybody else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ..journal import entries as e
from ..journal.queue import ItemRecord, QueueRecord, apply_to_queue
from ..machines.conversation import ChatMessage
from ..machines.delegation import AnswerOffer, Offer, PassSteer, Recall
from ..machines.delivery import Cause
from ..machines.disposition import LATE_ACK
from ..machines.effects import Effect
from ..machines.facts import MessageKnown, MessageRejected
from ..machines.messages import QueueChange, QueueImport, ResumeQueue, TakeBack
from ..machines.orders import (
    Decided,
    Enqueue,
    Inspect,
    InterruptTurn,
    Journalled,
    NothingToStart,
    Settle,
    Settled,
    StartNext,
    SteersTaken,
    TakeSteers,
)
from ..machines.participation import HandBack
from ..machines.pursuit import Catch, GoalDecided, Heard
from ..machines.results import ToolFinished
from .actor import Actor
from .goals.message import of_goal, overtaken
from .intake import hand_back, taken_in
from .mailbox import tell
from .rearrangement import Rearranged, edit, import_items, keep, move, steer, take_back, withdraw
from .wording import chosen, with_news

if TYPE_CHECKING:
    from .environment import Environment
    from .system import ActorSystem

__all__ = ["Queue"]


class Queue(Actor):
    """One session's queue. `_shut` is the turn whose last boundary found nothing to take in.

    Its supervisor is its session, which purges what was meant for an incarnation that failed.
    """

    def __init__(
        self,
        system: ActorSystem,
        record: QueueRecord,
        session: ActorRef[Any],
        environment: Environment,
    ) -> None:
        super().__init__(system)
        self.record = record
        self._session = session
        self._environment = environment
        self._shut = ""

    def on_start(self) -> None:
        """Take back the steers of a turn that died together with the last incarnation."""
        if self.record.state != "closed":
            self._take_back_steers()

    def on_receive(self, message: Any) -> Any:
        """Decide; what is decided goes to the session, which journals it."""
        match message:
            case Enqueue():
                self._enqueue(message)
            case Offer():
                self._offer(message)
            case AnswerOffer():
                self._answer_offer(message)
            case Recall(key):
                self._recall(key)
            case StartNext():
                self._start_next(message)
            case TakeSteers():
                self._take_steers(message)
            case HandBack():
                self._hand_back(message)
            case Journalled(entry):
                self._journalled(entry)
            case Settle():
                self._session.tell(Settled())
            case GoalDecided():
                self._pass_on_goal(message)
            case Catch() | Heard():
                self._session.tell(message)
            case QueueChange() | QueueImport() | ResumeQueue() if self.record.state == "closed":
                return {"ok": False, "reason": "session_finalized"}
            case QueueChange():
                return self._change(message)
            case QueueImport():
                limit = self._environment.policy.max_queue_size
                return self._rearrange(import_items(self.record, message, limit))
            case ResumeQueue():
                return self._resume(message)
            case TakeBack():
                return self._rearrange(take_back(self.record, self.system.now()))
            case Inspect():
                return {"state": self.record.state, "waiting": len(self.record.waiting())}
            case _:
                return super().on_receive(message)
        return None

    def _decide(
        self,
        *entries: e.Entry,
        orders: tuple[InterruptTurn, ...] = (),
        effects: tuple[Effect, ...] = (),
        urgent: tuple[Effect, ...] = (),
    ) -> None:
        now = self.system.now()
        for entry in entries:
            apply_to_queue(self.record, entry, now)
        if self._is_held_in_vain():
            released = e.QueueReleased()
            apply_to_queue(self.record, released, now)
            entries = (*entries, released)
        self._session.tell(Decided(self.name, entries, effects, urgent, orders=orders))

    def _is_held_in_vain(self) -> bool:
        """Whether nothing is left to hold. It is said, not folded: an end may cross a hold."""
        return self.record.state == "held" and not self.record.order

    def _enqueue(self, message: Enqueue) -> None:
        if message.client_id and message.client_id in self.record.clients:
            self._known(message.client_id)
            return
        record, said_as, for_turn = self.record, message.said_as, message.for_turn
        is_next = message.is_next
        ack = message.ack
        if for_turn and (for_turn == self._shut or not self._is_running(for_turn)):
            if message.child and not self._environment.delegation.depth:
                self._offer(Offer(message.text, message.child, message.user))
                return
            said_as, for_turn, is_next, ack = "turn", "", True, LATE_ACK
        refusal = self._refusal(is_exempt=is_next or bool(message.child))
        if refusal:
            fact = MessageRejected(refusal, message.text, message.client_id)
            self._environment.ears.pass_on(fact)
            return
        waiting = len(record.waiting())
        place = waiting + 1 if message.position is None else min(message.position, waiting + 1)
        name, to = f"m{record.made + 1}", message.for_children
        steer = PassSteer(name, to, message.text, message.user, message.attached, message.beneath)
        self._decide(
            e.Queued(
                item=name,
                number=record.number + 1,
                text=message.text,
                said_as=said_as,
                user=message.user,
                client_id=message.client_id,
                matched=message.matched,
                rule=message.rule,
                ack=ack,
                is_next=is_next,
                for_turn=for_turn,
                position=place,
                for_children=to,
                child=message.child,
                attached=message.attached,
                purpose=message.purpose,
                past_hold=record.runs_past_hold() and not message.is_overtaken,
            ),
            orders=(message.cancels,) if message.cancels else (),
            effects=(steer,) if to else (),
        )

    def _known(self, client_id: str) -> None:
        """Say what a message got that came a second time before the first was journalled."""
        item = self.record.items.get(self.record.clients[client_id])
        if item is not None:
            fact = MessageKnown(item.id, item.said_as, item.number, client_id)
            self._session.tell(Decided(self.name, (), facts=(fact,)))

    def _is_running(self, turn: str) -> bool:
        return any(one.turn == turn and one.state == "running" for one in self.record.live())

    def _refusal(self, is_exempt: bool) -> str:
        limit = self._environment.policy.max_queue_size
        if self.record.state == "closed":
            return "session_finalized"
        if not is_exempt and len(self.record.pending()) >= limit:
            return "queue_full"
        return ""

    def _start_next(self, message: StartNext) -> None:
        if message.must_hold:
            self._hold()
        item = self.record.next_item()
        if item is None:
            self._session.tell(NothingToStart())
            return
        resumes = item.turn if item.state == "interrupted" else ""
        self._shut = ""
        said = with_news(self.record.news, item, resumes)
        self._decide(
            *overtaken(self.record, item),
            e.TurnStarted(
                message.turn,
                item.id,
                item.number,
                message.epoch,
                resumes,
                () if item.purpose else (ChatMessage("user", said),),
            ),
        )

    def _take_steers(self, message: TakeSteers) -> None:
        if not message.reply_to.is_alive():
            return  # nothing may enter the conversation of a turn that has ended
        # the first boundary follows the message that began the turn: the model answers that first
        steers = self.record.steers(message.turn) if message.step > 1 else []
        said: tuple[ChatMessage, ...] = ()
        names = tuple(one.id for one in steers)
        if steers:
            said = (ChatMessage("user", taken_in(steers)),)
            self._decide(e.Steered(names, message.turn, message.step, said))
        elif message.is_closing:
            self._shut = message.turn
        tell(
            message.reply_to,
            SteersTaken(message.turn, message.step, message.is_closing, said, names),
        )

    def _hand_back(self, message: HandBack) -> None:
        """Let a steer that the model can't work in wait again, and answer its tool call."""
        if not message.reply_to.is_alive() or not self._is_running(message.turn):
            return  # the turn is being stopped, and its calls with it
        found = hand_back(self.record, message)
        if found.entries:
            self._decide(*found.entries)
        status, text = "ok" if found.reply["ok"] else "failed", found.reply["text"]
        tell(
            message.reply_to,
            ToolFinished(message.turn, message.epoch, message.call, status, text),
        )

    def _journalled(self, entry: e.Entry) -> None:
        past_hold = isinstance(entry, e.TurnEnded) and self.record.runs_past_hold()
        apply_to_queue(self.record, entry, self.system.now())
        if isinstance(entry, e.TurnEnded | e.Interrupted | e.Recovered):
            self._take_back_steers(past_hold=past_hold)
        if isinstance(entry, e.SteerArrived):
            self._take_back_missed(entry.item)
        if self._is_held_in_vain():
            self._decide()
        if isinstance(entry, e.Interrupted):
            is_hold = self._environment.policy.after_interrupt == "hold"
            if is_hold or entry.cause in (
                Cause.PARENT,
                Cause.BUDGET,
            ):  # a child goes on only when its parent says so
                self._hold()

    def _take_back_steers(self, *, past_hold: bool = False) -> None:
        is_person = not self._environment.delegation.depth
        late = self.record.stranded()
        if late:
            why = "the turn ended first"
            entries = [
                e.Requeued(one.id, why, bool(one.child) and is_person, past_hold) for one in late
            ]
            self._decide(*entries)

    def _take_back_missed(self, name: str) -> None:
        """Let a steer that no child could take in wait for the parent."""
        item = self.record.items.get(name)
        if item is None or item.state != "pending" or not item.for_children:
            return
        if all(one == "-" for one in item.for_children.values()):
            why = f"{' and '.join(item.for_children)} ended first"
            self._decide(e.Requeued(name, why, past_hold=self.record.runs_past_hold()))

    def _recall(self, key: str) -> None:
        item = self.record.items.get(self.record.clients.get(key, ""))
        if item is not None and item.state == "pending":
            self._decide(e.Withdrawn(item.id))

    def _pass_on_goal(self, message: GoalDecided) -> None:
        """Hand on what a goal decided, with what becomes of its messages."""
        is_over = self.record.state == "closed"
        entries = () if is_over else of_goal(self.record, message)
        self._decide(*entries, effects=message.effects, urgent=message.urgent)

    # What is offered ------------------------------------------------------------------------------

    def _offer(self, message: Offer) -> None:
        record = self.record
        if message.client_id and message.client_id in record.clients:
            self._known(message.client_id)
            return
        if record.state == "closed":
            return
        self._decide(
            e.Offered(
                f"m{record.made + 1}",
                record.number + 1,
                message.text,
                message.child or f"talk-{record.made + 1}",
                message.user,
                message.client_id,
                message.is_answered,
            )
        )

    def _answer_offer(self, message: AnswerOffer) -> None:
        """Note an answer, and do with it what a person wanted done when it comes."""
        item = self.record.items.get(message.item)
        if item is None or item.state != "offered":
            return
        self._decide(e.OfferAnswered(item.id, message.text))
        if item.wants == "steer" and message.turn and message.turn != self._shut:
            if self._is_running(message.turn):
                self._decide(e.SteerAddressed(item.id, message.turn))
        elif item.wants == "keep":
            self._decide(e.Kept(item.id, self.record.runs_past_hold()))

    def _hold(self, is_all: bool = False) -> None:
        live = self.record.live()
        is_loose = any(one.past_hold or (is_all and one.is_next) for one in live)
        if live and (self.record.state == "open" or is_loose):
            self._decide(e.QueueHeld("interrupt", is_all))

    def _change(self, message: QueueChange) -> dict[str, Any]:
        match message.op:
            case "hold_next":
                if any(one.is_next for one in self.record.live()):
                    self._hold(is_all=True)
            case "hold":
                self._hold(is_all=True)
                return {"ok": True, "state": self.record.state}
            case "release":
                self._release()
            case "withdraw":
                return self._rearrange(withdraw(self.record, message.number))
            case "clear":
                live = self.record.live()
                gone = [one for one in live if one.state != "running" and not one.for_children]
                if gone:
                    self._decide(*(e.Withdrawn(one.id) for one in gone))
                return {"ok": True, "withdrawn": [one.number for one in gone]}
            case "edit":
                return self._rearrange(edit(self.record, message))
            case "move":
                return self._rearrange(move(self.record, message))
            case "steer":
                return self._rearrange(steer(self.record, message, self._shut))
            case "keep":
                return self._rearrange(keep(self.record, message))
        return {"ok": True}

    def _rearrange(self, found: Rearranged) -> dict[str, Any]:
        if found.entries:
            self._decide(*found.entries, effects=found.effects)
        return found.reply

    def _resume(self, message: ResumeQueue) -> dict[str, Any]:
        there = [one for one in self.record.live() if one.state in ("pending", "interrupted")]
        first = chosen(there, message.number)
        if message.number and first is None:
            return {"ok": False, "reason": f"No queued item #{message.number}"}
        running = next((one.number for one in self.record.live() if one.state == "running"), None)
        is_held = self.record.state == "held" or any(one.state == "interrupted" for one in there)
        reply = {"ok": True, "after": running, "children": list(message.children)}
        if first is None or not (is_held or message.number):
            return {**reply, "restored": 0, "number": None}
        self._release((first,) if message.number else ())
        return {**reply, "restored": len(there), "number": first.number}

    def _release(self, chosen: tuple[ItemRecord, ...] = ()) -> None:
        resumed = [one for one in self.record.live() if one.state == "interrupted"]
        first = tuple(one.id for one in chosen or resumed)
        if self.record.state == "held" or first:
            self._decide(e.QueueReleased(len(resumed), first))
