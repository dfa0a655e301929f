"""The session actor: the supervisor of one conversation, and the router of its messages.

What people say arrives here, classified. The first routing table says what it is, given what the
session does; the second whom it reaches. The session decides about stops, files that are given back,
and its own end; the queue, the turn, the child supervisor and the goal decide about their parts. All of
them share one record, whose only writer is the ledger (`ledger.py`).
"""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace
from pykka import ActorRef

from ..journal import entries as e
from ..machines import protocol as m
from ..machines.people import FromPerson
from ..machines.protocol import mailed
from .children import ChildSupervisor
from .decisions import (
    children,
    goals,
    queueing,
    recovering,
    resuming,
    reverting,
    routing,
    running,
    stopping,
)
from .decisions.decision import Decision, Role, refusal
from .decisions.handlers import handler_of, obstacle
from .decisions.queries import is_asked_here, not_open, resumed_turns, stopping_effects
from .goal import Goal, carry_out
from .inspection import describe_session, inspect_session
from .kernel.actor import Forward, posted_of
from .kernel.mailbox import tell
from .kernel.supervisor import Child, ChildSpec, Supervisor
from .ledger import Ledger, Member
from .outcome_waiters import OutcomeWaiters
from .queue import Queue
from .turn import Turn

if TYPE_CHECKING:
    from ..journal.record import SessionRecord
    from .environment import Environment
    from .kernel.system import ActorSystem


class Session(Member, Supervisor):
    """One session, as people and other programs speak to it. The types are what it starts.

    `askers` wait for the outcome of a revert.
    """

    role = "session"

    queue_type: type[Queue] = Queue
    children_type: type[ChildSupervisor] = ChildSupervisor
    goal_type: type[Goal] = Goal
    turn_type: type[Any] = Turn

    def __init__(self, system: ActorSystem, ledger: Ledger) -> None:
        super().__init__(system, ledger)
        self.waiters = OutcomeWaiters()

    def on_start(self) -> None:
        """Put in order what a dead owner left, and start the other actors. Nothing runs automatically."""
        self.enlist()
        if self.record.state == "finalized" and self.birth.restart == "transient":
            self.stop()  # a child that failed after its last entry: its parent learns of it
            return
        self.decide(recovering.take_up(self.record, self.environment.outcomes))
        self._start("queue", self.queue_type)
        self._start("children", self.children_type)
        if self.record.goals.goals:
            self._start("goal", self.goal_type)
        self._attend()

    def on_receive(self, message: Any) -> Any:
        """Decide; then do what is due."""
        reply = self._take(message)
        self._attend()
        return reply

    def _take(self, message: Any) -> Any:
        match message:
            case m.Wake():
                self.awake()
            case m.Committed(seq=seq):
                self.ledger.committed(seq)
            case m.OpenSession(entry=entry):
                self.decide(Decision(entries=(entry,)))
            case m.NoteEntry(entry=entry):
                if self.record.state != "finalized":
                    self.decide(Decision(entries=(entry,)))
            case m.StoreBroke():
                self._break(message)
            case m.Down():
                self.handle_down(message)
            case m.ChildrenClosed():
                self._close()
            case m.RestoreCounted() | m.RestoreEnded():
                self.decide(reverting.restored(self.record, message, self.environment))
                self.waiters.answer(self.record)
            case m.Describe():
                return describe_session(self.record, self.environment)
            case m.Inspect(is_of_queue=False):
                return inspect_session(self, self.record, self.children)
            case m.RecoverRecord():
                if self.ledger.broken:
                    self._end(is_failure=True, wants_restart=True)
            case _ if self.ledger.broken:
                return self._turn_away(message, self.ledger.broken)
            case _ if self._is_gone(message):
                return self._turn_away(message, "session_suspended", is_left=True)
            case FromPerson():
                return self._obey_person(message)
            case _:
                return self._obey(message)
        return None

    def _is_gone(self, message: Any) -> bool:
        """Whether the session is left: the only message that it still takes is `Finalize`."""
        is_left = self.record.state in ("leaving", "suspended")
        return is_left and not isinstance(message, m.Finalize)

    def _turn_away(self, message: Any, reason: str, *, is_left: bool = False) -> Any:
        if isinstance(message, FromPerson):
            message = message.message
        if isinstance(message, m.UserMessage):
            return self.decide(routing.rejection(reason, message.said))
        return refusal(not_open(self.record) if is_left else reason).reply

    # Messages of people and other programs --------------------------------------------------------

    def _obey_person(self, asked: FromPerson) -> Any:
        """Carry out the message of a person with limited rights, as far as the rights allow."""
        message = asked.message
        if isinstance(message, m.UserMessage):
            return self._route(message, asked.may)
        why = obstacle(self.record, asked)
        if not why:
            done = self._obey(message)
            return (
                replace(done, message=done.message or message)
                if isinstance(done, Forward)
                else done
            )
        if isinstance(message, m.SideTalk):
            turned_away = routing.rejection("not_allowed", message.said, why)
            return self.decide(turned_away)
        return refusal(why).reply

    def _obey(self, message: Any) -> Any:
        """Carry a message out by its row; what has none to decide concerns an actor."""
        handler = handler_of(message)
        if handler is not None and handler.decide is not None:
            record, environment = self.record, self.environment
            reply = self._take_in(handler.decide(record, message, environment))
            environment.account.shares = 1 + self.record.grants
            return reply
        match message:
            case m.UserMessage():
                return self._route(message)
            case m.SetGoal() | m.ChangeGoal():
                return self._pursue(message)
            case m.ResumeQueue():
                return self._resume(message)
            case m.TakeBack():
                record, environment = self.record, self.environment
                return self._take_in(routing.take_back(record, self.system.now(), environment))
            case m.RevertOutcome(id=name):
                return self.waiters.outcome(self, self.record, name)
            case m.Inspect():
                return Forward(ref=self._member("queue"), message=m.Inspect(is_last=True))
            case m.EndChild():
                return Forward(ref=self._member("children"))
            case m.Answer():
                return self._pass_answer(message)
            case _:
                return super().on_receive(message)

    def _route(self, message: m.UserMessage, may: tuple[str, ...] | None = None) -> Any:
        decision = routing.route(self.record, message, self.environment, may)
        runs = any(
            isinstance(entry, e.Queued) and entry.routed.said_as == "turn"
            for entry in decision.entries
        )
        if runs and message.type != "normal" and self.mailbox.depth()[m.Lane.DATA]:
            later: m.Message = replace(message, type="normal")  # behind what came before it
            if may is not None:
                later = FromPerson(message=later, user=message.said.user, may=may)
            tell(self.actor_ref, mailed(later, posted_of(self)))
            return None
        return self._take_in(decision)

    def _take_in(self, decision: Decision) -> Any:
        """Fold a message to the queue, and begin what runs next.

        Both are one step, so the next message finds the turn that runs by then.
        """
        reply = self.decide(decision)
        self.settle(queueing.due)
        return reply

    def _pursue(self, message: m.SetGoal | m.ChangeGoal) -> Any:
        """Carry out an order about a goal, and queue the message that the goal begins with.

        Both are one step, so no later message runs first. The goal's actor, which is started when
        there is a goal, learns of the order from the record.
        """
        record, environment = self.record, self.environment
        decision = goals.obstacle(record, message)
        if decision is None:
            decision = goals.order(record, message, environment.goals)
        reply = carry_out(self, decision)
        if self.record.goals.goals and "goal" not in self.children:
            self._start("goal", self.goal_type)
        return reply

    def _resume(self, message: m.ResumeQueue) -> Any:
        """Run what was interrupted; children go on, too, for which no turn waits."""
        obstacle = running.obstacle(self.record, self.environment)
        if obstacle:
            return refusal(obstacle).reply
        if message.number is not None:
            return self._take_in(resuming.resume(self.record, message))
        order = m.ResumeChildren(earlier=(), turn="", epoch=self.record.epoch)
        names = tuple(child.name for child in children.resumable(self.record, order))
        if names:
            tell(self._member("children"), order)
        resumed = resuming.resume(self.record, replace(message, children=names))
        return self._take_in(resumed)

    def _pass_answer(self, message: m.Answer) -> Any:
        """Pass an answer on to the turn or child that asked."""
        record, turn = self.record, self.ledger.member("turn")
        is_of_run = record.run is not None and message.question in record.run.questions
        if turn is not None and (is_of_run or is_asked_here(record, message.question)):
            return Forward(ref=turn)
        return Forward(ref=self._member("children"))

    # Due work -------------------------------------------------------------------------------------

    def _attend(self) -> None:
        """Do what the record says is due: a turn to start, a stop to answer, files, the end."""
        self.settle(_due)
        record = self.record
        turn = record.running
        if turn is not None and self._has_no_actor(turn.id):
            self._start_turn(turn.id, turn.resumes)
        is_ending = record.state in ("leaving", "finalizing") and not self.ledger.broken
        if is_ending and stopping.is_settled(record):
            self.ledger.tell("children", m.CloseChildren())

    def _has_no_actor(self, turn: str) -> bool:
        """Whether a turn was begun for which no actor was started yet."""
        child = self.children.get("turn")
        actor = child.mailbox.owner if child is not None else None
        return (actor is None or actor.id != turn) and not self.ledger.broken

    def _close(self) -> None:
        """Write the last entry, once nothing is at work and no child is open any more."""
        record = self.record
        if not stopping.is_settled(record):
            return
        if record.state == "leaving":
            self.decide(Decision(entries=(e.SessionSuspended(),)))
        elif record.state == "finalizing":
            name = self.environment.finalize_id(record.id)
            cause = record.finalize_cause or "crashed"
            self.decide(Decision(entries=(e.SessionFinalized(finalize=name, cause=cause),)))

    # Child actors ---------------------------------------------------------------------------------

    def _start(self, role: Role, kind: type[Any]) -> ActorRef[Any]:
        def start() -> ActorRef[Any]:
            ref: ActorRef[Any] = kind.start(self.system, self.ledger)
            return ref

        return self.start_child(ChildSpec(name=role, start=start))

    def _start_turn(self, turn: str, resumes: str) -> None:
        """Start a turn's actor; the children that it waited for go on with it."""
        kind = self.environment.turn_type or self.turn_type
        account = self.environment.account
        account.seconds, account.since = self.record.seconds, self.system.now()
        if resumes:
            earlier = resumed_turns(self.record, resumes)
            tell(
                self._member("children"),
                m.ResumeChildren(earlier=earlier, turn=turn, epoch=self.record.epoch),
            )

        def start() -> ActorRef[Any]:
            ref: ActorRef[Any] = kind.start(self.system, self.ledger, turn)
            return ref

        self.start_child(ChildSpec(name="turn", start=start, restart="temporary"))

    def _member(self, role: Role) -> ActorRef[Any]:
        return self.children[role].ref

    # Failures -------------------------------------------------------------------------------------

    def child_ended(self, child: Child, down: m.Down) -> None:
        """Journal the end of a turn whose actor failed; the session goes on."""
        turn, actor = self.record.unfinished, child.mailbox.owner
        if turn is None or self.ledger.broken or getattr(actor, "id", turn.id) != turn.id:
            return
        stop = next(
            (interrupt for interrupt in self.record.stops.values() if interrupt.turn == turn.id),
            None,
        )
        self.decide(recovering.turn_failed(self.record, down.reason or "its actor ended"))
        self.ledger.wake("children")  # a result that the turn had not taken in is lost with it
        if stop is not None and stop.order.epoch:
            order = m.StopOrder(cause=stop.order.cause, epoch=stop.order.epoch)
            self.decide(stopping.stop(self.record, order, self.environment))

    def on_failure(
        self,
        exception_type: type[BaseException] | None,
        exception_value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Give back the message that cannot be taken; what the turn started ends with its actors."""
        letter = self.envelope.message if self.envelope else None
        letter = letter.message if isinstance(letter, m.Mailed) else letter
        if isinstance(letter, m.UserMessage):
            self.decide(routing.rejection("fault", letter.said))

    def stop_children(self) -> None:
        """End all child actors, and whatever the turn started in the world."""
        for effect in stopping_effects(self.record):
            if not isinstance(effect, m.StopChild):
                self.environment.perform(effect, None)
        super().stop_children()

    def _break(self, message: m.StoreBroke) -> None:
        """The journal cannot be written: nothing more is accepted, and what runs is stopped."""
        if self.ledger.broken:
            return
        self.ledger.break_off(message)
        for effect in stopping_effects(self.record):
            if not isinstance(effect, m.StopChild):
                self.environment.perform(effect, self.ledger.member("turn"))
        self.ledger.tell("children", message)


def _due(record: SessionRecord, environment: Environment) -> Decision:
    """Answer the stops that are over; begin to give files back."""
    return stopping.end(record) or reverting.begin(record)
