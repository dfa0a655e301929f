"""The child supervisor: the one authority on a session's children, which are sessions of their own.

It opens their sessions, starts their actors and starts them again when they fail, and passes on what is
meant for them. Whom a stop reaches is in the record before it looks there (`decisions/stopping.py`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace
from pykka import ActorRef

from ..journal import entries as e
from ..journal.child_record import ChildRecord, at_work
from ..journal.queue_record import NOT_YET
from ..machines import protocol as m
from ..machines.lifecycles import SUBAGENT
from .decisions import children
from .decisions.decision import Decision, answer, refused_with
from .decisions.queries import CLOSES, given_up
from .gate import never_started, turn_may_act
from .kernel.actor import Forward
from .kernel.mailbox import tell
from .kernel.supervisor import Child, ChildSpec, GaveUp, Supervisor
from .ledger import Ledger, Member

if TYPE_CHECKING:
    from .kernel.system import ActorSystem


WRAP_UP = (
    "You are asked to end now. Begin nothing new: sum up in one answer what you have done and found, "
    "and what is left."
)


class ChildSlot(Struct, kw_only=True):
    """A child whose session is open here or being opened; `ref` is none until it is.

    `number` is that of the order by which it is opened. `steers` were handed on and are not taken in
    yet. `told` is the epoch of the newest stop that it was told of. `is_closing`: it was asked to
    suspend, or to end.
    """

    number: int
    ref: ActorRef[Any] | None = None
    steers: tuple[m.PassSteer, ...] = ()
    told: int = 0
    is_closing: bool = False

    def tell(self, message: object) -> bool:
        """Tell the child, if it is there, and return whether it is."""
        return tell(self.ref, message)

    def stop(self, child: ChildRecord) -> None:
        """Tell it of the newest stop that reached it."""
        self.told = child.stopped
        self.tell(
            m.Interrupt(order=m.StopOrder(cause=children.cause_below(child), epoch=child.stopped))
        )

    def take_up(self, child: ChildRecord) -> None:
        """Say again to a child that was started again what may have been lost with it."""
        self.is_closing = False
        if child.state in SUBAGENT.final:
            self.is_closing = self.tell(m.Finalize(cause=child.state))
        elif child.state == "stopping":
            self.stop(child)
        elif child.is_at_work:
            for message in (children.first_message(child), *children.go_on(child)):
                self.tell(message)


class SteerRelay:
    """Passes on the messages to children that go through their parent: steers, and answers."""

    def __init__(self, member: Member, slots: dict[str, ChildSlot]) -> None:
        self._member, self._slots = member, slots

    def pass_steer(self, message: m.PassSteer) -> None:
        """Hand a steer on to the children it is for, and wait a while for each to take it in."""
        for name in message.names:
            child, slot = self._member.record.children.get(name), self._slots.get(name)
            if child is not None and child.state in ("waiting", "stopping", "interrupted"):
                continue  # it is handed on again when the child begins or goes on
            if child is None or child.state != "working" or slot is None:
                self._member.decide(
                    Decision(entries=(e.SteerArrived(item=message.item, child=name),))
                )
                continue
            if any(steer.item == message.item for steer in slot.steers):
                continue  # it was handed on when the child began, just now
            slot.steers = (*slot.steers, message)
            self._hand(message, slot)

    def call_back(self, child: ChildRecord, slot: ChildSlot) -> None:
        """Have a child that is about to go on give back what was withdrawn meanwhile."""
        for item in child.withdrawn:
            slot.tell(m.Recall(key=self._key(item)))

    def hand_on(self, child: str, slot: ChildSlot) -> None:
        """Hand on all that waits for a child that begins, or goes on, only now."""
        known = {steer.item: steer for steer in slot.steers}
        slot.steers = tuple(
            known.get(item.id) or m.PassSteer(item=item.id, names=(child,), said=item.said)
            for item in self._member.record.queue.handed_on(child)
        )
        for steer in slot.steers:
            self._hand(steer, slot)

    def _hand(self, steer: m.PassSteer, slot: ChildSlot) -> None:
        slot.tell(self._said(steer))
        if late := self._member.environment.delegation.steer_deadline:
            timer = m.Timer(kind="steer", about=steer.item)
            self._member.decide(Decision(effects=(m.SetTimer(timer=timer, seconds=late),)))

    def arrived(self, report: m.ChildReport, slot: ChildSlot) -> None:
        """Note whether a steer that was handed on arrived."""
        turn = report.turn if report.kind == "steered" else ""
        for steer in slot.steers:
            if report.key == self._key(steer.item):
                slot.steers = tuple(kept for kept in slot.steers if kept is not steer)
                arrived = e.SteerArrived(
                    item=steer.item, child=report.name, turn=turn, step=report.step
                )
                self._member.decide(Decision(entries=(arrived,)))

    def recall(self, item: str) -> None:
        """Take a steer back from children at work that have not taken it in yet."""
        handed = self._member.record.queue.items.get(item)
        for name, slot in self._slots.items():
            if handed is not None and handed.for_children.get(name) == NOT_YET:
                slot.tell(m.Recall(key=self._key(item)))

    def pass_answer(self, message: m.Answer) -> Any:
        """Pass an answer on to the child that asked."""
        slot = self._slots.get(m.child_that_asks(self._member.environment.path, message.question))
        if slot is None or slot.ref is None:
            return refused_with(f"no question `{message.question}` is open")
        return Forward(ref=slot.ref)

    def _said(self, steer: m.PassSteer) -> Any:
        return children.say_to_child(steer.said, self._key(steer.item), steer.beneath)

    def _key(self, item: str) -> str:
        return f"{self._member.record.id}:{item}"


class ChildSupervisor(Member, Supervisor):
    """One session's children; `slots` are those whose session is open, or being opened, here."""

    role = "children"

    def __init__(self, system: ActorSystem, ledger: Ledger) -> None:
        super().__init__(system, ledger)
        self.slots: dict[str, ChildSlot] = {}
        self.relay = SteerRelay(self, self.slots)

    def on_start(self) -> None:
        """Release the children of an incarnation that failed; requeue the steers that had not arrived."""
        self.enlist()
        if self.birth.incarnation:
            lost = children.lose(self.record)
            self.decide(lost)
            for entry in lost.entries:
                if isinstance(entry, e.ChildInterrupted):
                    self._give_back(entry.child)
        self.decide(children.let_go(self.record))
        for name in children.unreturned(self.record):  # after a crash
            self._give_back(name)
        self._end_given_up()

    def on_receive(self, message: Any) -> Any:
        """Decide; then stop, admit and close children as the record says."""
        match message:
            case m.Wake():
                self.awake()
                for name in children.stranded(self.record):
                    self._give_back(name)
                reply = None
            case m.EndChild():
                reply = self._end_one(message)
            case m.Answer():
                reply = self.relay.pass_answer(message)
            case (
                m.ChildOpened()
                | m.ChildLost()
                | m.ChildReport()
                | m.TimerFired()
                | m.StoreBroke()
                | m.Down()
            ):
                self._learn(message)
                reply = None
            case _:
                reply = self._obey(message)
        # what is due is in the record: of many results that wait, the last one is enough to look at it
        if not isinstance(message, m.ChildReport) or self.mailbox.empty():
            self._attend()
        return reply

    def _obey(self, message: Any) -> Any:
        record, environment = self.record, self.environment
        match message:
            case m.Delegate():
                if not turn_may_act(record, environment.ancestors, message.turn):
                    self.ledger.tell("turn", never_started(message))
                    return
                self._begin(children.delegate(record, message, self.slots, environment))
            case m.ResumeChildren():
                self._resume(message)
            case m.Dismiss():
                self._dismiss(message)
            case m.StopChild():
                self.decide(children.stop_call(record, message))
            case m.PassSteer():
                self.relay.pass_steer(message)
            case m.CloseChildren():
                pass  # it is seen to with whatever else is due
            case _:
                return super().on_receive(message)
        return None

    def _learn(self, message: Any) -> None:
        """Take note of what happened elsewhere."""
        match message:
            case m.ChildOpened():
                self._opened(message)
            case m.ChildLost():
                self._lost(message)
            case m.ChildReport():
                self._reported(message)
            case m.TimerFired(timer=timer):
                self._time_is_up(timer)
            case m.StoreBroke():  # no child works for a session that cannot journal its result
                for slot in self.slots.values():
                    order = m.StopOrder(cause="parent", epoch=self.record.epoch + 1)
                    slot.tell(m.Interrupt(order=order))
            case _:
                self._down(message)

    # Due work -------------------------------------------------------------------------------------

    def _attend(self) -> None:
        """Stop the children that a stop has reached, end those that a run has given up, begin others.

        Those begin that were started, and those that there is room for now. A session that ends closes
        the idle ones.
        """
        for child in children.to_be_cancelled(self.record):
            is_kept = children.is_kept(self.record, child, self.environment)
            self._cancel(child, child.stop_cause, is_kept=is_kept)
        for name, slot in self.slots.items():
            known = self.record.children.get(name)
            if known is not None and known.state == "stopping" and slot.told < known.stopped:
                slot.stop(known)  # it was told to wait for its boundary
        self._end_given_up()
        for child in children.unopened(self.record, self.slots):
            self._begin(Decision(effects=(children.opening(self.record, child),)))
        while (waiting := children.admit(self.record, self.environment)) is not None:
            opening = children.opening(self.record, waiting)
            admitted = e.ChildAdmitted(child=waiting.name)
            if not self._begin(Decision(entries=(admitted,), effects=(opening,))):
                break
        if self.record.state in CLOSES:
            self._close_all()

    def _end_given_up(self) -> None:
        """End the stopped children for which nothing waits that could go on."""
        for child in given_up(self.record):
            self._cancel(child, "parent", is_kept=False)

    def _close_all(self) -> None:
        """The session ends: close the children that are stopped or done, with what may be resumed."""
        is_final = self.record.state == "finalizing"
        cause = self.record.finalize_cause if is_final else "exit"
        for name in list(self.record.children):
            child, slot = self.record.children[name], self.slots.get(name)
            if is_final and child.state == "interrupted":
                self._cancel(child, cause, is_kept=False)
                child = self.record.children[name]
            is_free = child.state == "stopping" or not child.is_at_work
            if slot is not None and not slot.is_closing and slot.ref is not None and is_free:
                slot.is_closing = slot.tell(
                    m.Finalize(cause=cause) if is_final else m.Suspend(cause=cause)
                )
        if not self.slots:
            self.ledger.tell("session", m.ChildrenClosed())

    # Beginning ------------------------------------------------------------------------------------

    def _begin(self, decision: Decision) -> bool:
        """Begin to open the session of a child, or none; whether every machine accepted it."""
        for effect in decision.effects:
            if isinstance(effect, m.OpenChild):
                self.slots[effect.name] = ChildSlot(number=effect.number)
        return self.accepts(decision)

    def _opened(self, message: m.ChildOpened) -> None:
        child, slot = self.record.children.get(message.name), self.slots.get(message.name)
        if slot is not None and slot.number != message.number:
            return  # of an order that a later one has replaced
        if child is None or slot is None or child.state != "working" or message.is_over:
            # it has stopped meanwhile, or is over
            self.decide(Decision(effects=(m.CloseChild(session=message.session),)))
            self.slots.pop(message.name, None)
            if child is not None:
                self._stopped(child, message.last)
            return
        slot.ref = self.start_child(
            ChildSpec(name=child.name, start=message.start, restart="transient")
        )
        if message.entry is not None:
            slot.ref.tell(message.entry)
        self.relay.call_back(child, slot)
        if message.last is not None:
            self._reported(message.last)
        elif message.has_task:
            for word in children.go_on(child):
                slot.ref.tell(word)
        else:
            slot.ref.tell(children.first_message(child))
        self.relay.hand_on(child.name, slot)
        limit = self.environment.delegation.timeout
        if limit:
            self.decide(
                Decision(
                    effects=(
                        m.SetTimer(timer=m.Timer(kind="limit", about=child.name), seconds=limit),
                    )
                )
            )

    def _lost(self, message: m.ChildLost) -> None:
        """A child's session could not be opened."""
        slot = self.slots.get(message.name)
        if slot is None or slot.number != message.number:
            return
        del self.slots[message.name]
        child = self.record.children[message.name]
        if child.state == "stopping":
            self._stopped(child)
        elif child.state not in SUBAGENT.final:
            self._finish(child, "failed", reason=message.reason)

    def _resume(self, message: m.ResumeChildren) -> None:
        for child in children.resumable(self.record, message):
            slot = self.slots.get(child.name)
            is_new = slot is None or slot.is_closing
            turn = message.turn or child.turn
            above = self.environment.ancestors.mandate()
            resumed = e.ChildResumed(
                child=child.name, turn=turn, epoch=self.record.epoch, above=above
            )
            opening = (children.opening(self.record, child),) if is_new else ()
            self._begin(Decision(entries=(resumed,), effects=opening))
            if not is_new and slot is not None:
                self.relay.call_back(child, slot)
                for word in children.go_on(child):
                    slot.tell(word)
                self.relay.hand_on(child.name, slot)

    # Stopping -------------------------------------------------------------------------------------

    def _cancel(self, child: ChildRecord, cause: str, *, is_kept: bool, user: str = "") -> None:
        """Stop a child: for its parent to resume, or permanently; `user` asked for it."""
        child, slot = self.record.children[child.name], self.slots.get(child.name)
        record, environment = self.record, self.environment
        is_open = slot is not None
        decision = children.cancel(record, child, cause, is_kept, environment, is_open, user)
        if not decision or not self.accepts(decision):
            return
        now = self.record.children[child.name]
        if now.state == "stopping" and slot is not None:
            slot.stop(now)
        else:
            self._gone(child.name)

    def _stopped(self, child: ChildRecord, report: m.ChildReport | None = None) -> None:
        """Nothing of a child is at work any more; without a report, since its session is not open."""
        decision = children.stopped(self.record, child, report, self.environment)
        if decision and self.accepts(decision):
            self._gone(child.name, report)

    def _finish(
        self, child: ChildRecord, status: str, report: m.ChildReport | None = None, reason: str = ""
    ) -> None:
        """A child is over; its session ends permanently, too."""
        record, environment = self.record, self.environment
        decision = children.ended(record, child, status, environment, report, reason)
        if self.accepts(decision):
            self._gone(child.name, report)

    def _gone(self, name: str, report: m.ChildReport | None = None) -> None:
        """Give back what a child had; close the session of one that is over."""
        self._give_back(name, report)
        child, slot = self.record.children[name], self.slots.get(name)
        if child.state not in SUBAGENT.final:
            return
        if slot is None:
            self.decide(Decision(effects=(m.CloseChild(session=child.session),)))
        elif not slot.is_closing and slot.ref is not None:
            slot.is_closing = slot.tell(m.Finalize(cause=child.state))

    def _give_back(self, name: str, report: m.ChildReport | None = None) -> None:
        record, environment = self.record, self.environment
        self.decide(children.give_back(record, name, environment, report))

    def _end_one(self, message: m.EndChild) -> Any:
        """End one child, at once or after it has summed up what it has."""
        head, _, rest = message.child.partition("/")
        slot = self.slots.get(head)
        if rest and slot is not None and slot.ref is not None:
            return Forward(ref=slot.ref, message=replace(message, child=rest))
        child = self.record.children.get(message.child)
        if child is None or not (child.is_at_work or child.state == "interrupted"):
            there = ", ".join(other.name for other in at_work(self.record.children)) or "none"
            reason = f"No subagent `{message.child}` works. There are: {there}"
            return refused_with(reason)
        if not message.is_gentle:
            self._cancel(child, message.cause, is_kept=False, user=message.user)
            return answer(name=child.name, state=self.record.children[child.name].state)
        if slot is None or child.state != "working":
            return refused_with(f"`{child.name}` is {child.state}: stop it instead")
        slot.tell(
            children.say_to_child(
                m.Said(text=WRAP_UP, user=message.user or "user"), f"wrap {child.name}"
            )
        )
        seconds = self.environment.delegation.wrap_up
        self.decide(
            Decision(
                effects=(m.SetTimer(timer=m.Timer(kind="wrap", about=child.name), seconds=seconds),)
            )
        )
        return answer(name=child.name, state=child.state, seconds=seconds)

    def _dismiss(self, message: m.Dismiss) -> None:
        """Do for the agent itself what a person can do; it can name only its own children."""
        wanted, gently = str(message.arguments["name"]), bool(message.arguments.get("wrap_up"))
        by = self.environment.agent
        done = self._end_one(m.EndChild(child=wanted, is_gentle=gently, user=by, cause="parent"))
        if isinstance(done, Forward):  # a child of a child: it gets the message, and reports itself
            tell(done.ref, done.message)
            done = answer()
        if not done["ok"]:
            text = f"[dismiss was not run: {done['reason']}]"
            self.decide(children.answered(message, "failed", text))
            return
        how = "was asked to sum up" if gently else "was asked to stop"
        text = f"`{wanted}` {how}; what it has comes as its result."
        self.decide(children.answered(message, "ok", text))

    # Reports --------------------------------------------------------------------------------------

    def _reported(self, report: m.ChildReport) -> None:
        child, slot = self.record.children.get(report.name), self.slots.get(report.name)
        if child is None or slot is None:
            return
        match report.kind:
            case "ended":
                if child.is_at_work:
                    self._finish(child, report.status, report)
            case "stopped":
                if not children.is_stale(child, report):
                    self._stopped(child, report)
            case "closed":
                self._closed(child)
            case "steered" | "missed":
                self.relay.arrived(report, slot)

    def _closed(self, child: ChildRecord) -> None:
        """A child's session is left, or over."""
        del self.slots[child.name]
        found = self.children.pop(child.name, None)
        if found is not None:
            self._retire(found)
        self.decide(Decision(effects=(m.CloseChild(session=child.session),)))
        self._stopped(child)

    def _down(self, down: m.Down) -> None:
        """A child's actor failed: it begins again from its journal, unless it fails too often."""
        slot = self.slots.get(down.name)
        try:
            self.handle_down(down)
            if slot is not None and down.name in self.children:
                slot.take_up(self.record.children[down.name])
        except GaveUp as error:
            found = self.children.pop(down.name, None)
            if found is not None:
                self._retire(found)
            child = self.record.children[down.name]
            self.slots.pop(down.name, None)
            if child.is_at_work:
                self._finish(child, "failed", reason=str(error))
            else:
                self.decide(Decision(effects=(m.CloseChild(session=child.session),)))

    def child_ended(self, child: Child, down: m.Down) -> None:
        """A child that was started again has found that its session is over."""
        known = self.record.children.get(down.name)
        if known is not None and down.name in self.slots:
            self._closed(known)

    # Time ----------------------------------------------------------------------

    def _time_is_up(self, timer: m.Timer) -> None:
        child = self.record.children.get(timer.about)
        if timer.kind == "steer":
            self.relay.recall(timer.about)
        elif timer.kind == "limit" and child is not None:
            if children.is_timed_out(child, self.environment):
                self._cancel(child, "timeout", is_kept=False)
        elif child is not None and child.is_at_work:
            self._cancel(child, "user", is_kept=False)
