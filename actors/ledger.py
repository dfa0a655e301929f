"""The ledger of a session: the only writer of its record, and the gate to everything outside.

A session's actors share one record. Each of them is the authority for its part and decides alone
about that; only messages are queued by the actor that routes them. What they decide goes through
`decide`, which folds it at once, numbers it, and hands it on to the journal. So the next decision is made
on a state with every earlier one, durable or not. Events and effects wait for the commit.

A decision is folded whole or refused whole: it is tried on a copy, which replaces the record only when
every machine has accepted every entry. Used on the dispatcher's thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import copy
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pykka import ActorRef

from ..journal import entries as e
from ..journal.codec import encode_entry
from ..journal.record import SessionRecord, apply
from ..journal.store import StoredEntry
from ..machines import protocol as m
from ..machines.errors import StoreDamaged
from ..machines.machine import Refusal
from ..machines.value import Value
from .decisions.decision import Decision, Role, refused_with
from .gate import admits, in_place_of
from .kernel.actor import Actor, posted_of
from .kernel.mailbox import tell
from .wakes import interested

if TYPE_CHECKING:
    from .environment import Environment, Publication
    from .kernel.system import ActorSystem


# The outbox: events and effects of decisions that are not durable yet --------------------------------


class OutboxItem(Value):
    """Events and effects that wait until entry `seq` is durable; results go to `reply_to`.

    `entry` is that one, where the events are about it.
    """

    seq: int
    entry: e.Entry | None = None
    publications: tuple[Publication, ...] = ()
    facts: tuple[m.Fact, ...] = ()
    effects: tuple[m.Effect, ...] = ()
    reply_to: ActorRef[Any] | None = None


class Outbox:
    """One session's outbox; `durable` is the newest entry that is known to be on disk."""

    __slots__ = ("_held", "durable")

    def __init__(self, durable: int) -> None:
        self.durable = durable
        self._held: list[OutboxItem] = []

    def hold(self, held: OutboxItem) -> None:
        """Keep it until `release`."""
        self._held.append(held)

    def release(self, seq: int) -> Iterator[OutboxItem]:
        """Give out, in order, what waited for the entries up to `seq`."""
        self.durable = max(self.durable, seq)
        ready = 0
        while ready < len(self._held) and self._held[ready].seq <= self.durable:
            ready += 1
        given, self._held = self._held[:ready], self._held[ready:]
        yield from given

    def lost(self) -> Iterator[m.Fact]:
        """Forget everything, as it will never be durable; give each message in it back to its sender."""
        held, self._held = self._held, []
        for item in held:
            if (said := _message_in(item.entry)) is not None:
                yield m.MessageRejected(reason="store_failed", said=said)
            yield from (fact for fact in item.facts if isinstance(fact, m.MessageRejected))


def _message_in(entry: e.Entry | None) -> m.Said | None:
    """Return what a person said, if an entry holds that, and no other one does."""
    match entry:
        case e.Queued(item_kind=m.ItemKind.MESSAGE) | e.Offered(is_answered=False):
            return entry.said
        case e.InterruptRequested() | e.InterruptPlanned() if not entry.order.is_replaced:
            return entry.order.said if entry.order.said.text else None
        case _:
            return None


class Ledger:
    """One session's; `now` returns seconds since the epoch.

    `record` is the fold of everything decided so far, durable or about to be. `broken` says why the
    journal cannot be written any more, empty while it can; `is_lost`: another process has it now.
    """

    def __init__(
        self, record: SessionRecord, environment: Environment, now: Callable[[], float]
    ) -> None:
        self.record = record
        self.environment = environment
        self.broken = ""
        self.is_lost = False
        self._outbox = Outbox(record.seq)
        self._members: dict[Role, ActorRef[Any]] = {}
        self._woken = set[str]()
        self._unpublished: list[Publication] = []
        self._early = 0  # the newest entry whose effects may begin before it is durable
        self._now = now

    # The actors -----------------------------------------------------------------------------------

    def enlist(self, role: Role, ref: ActorRef[Any]) -> None:
        """Make an actor of the session known to the others."""
        self._members[role] = ref
        self._woken.discard(role)

    def member(self, role: Role) -> ActorRef[Any] | None:
        """Return one of the session's actors; none if it is not there."""
        ref = self._members.get(role)
        return ref if ref is not None and ref.is_alive() else None

    def tell(self, role: Role, message: Any) -> None:
        """Tell one of the session's actors, if it is there."""
        tell(self.member(role), message)

    def wake(self, role: Role) -> None:
        """Have an actor do what is due; once, however often it is asked before it does."""
        ref = self.member(role)
        if ref is not None and role not in self._woken:
            self._woken.add(role)
            tell(ref, m.Wake())

    def awake(self, role: Role) -> None:
        """Note that an actor looks at the record now."""
        self._woken.discard(role)

    # Decisions ------------------------------------------------------------------------------------

    def decide(self, role: Role, decision: Decision, posted: int = 0) -> Refusal | None:
        """Fold a decision of the actor `role`, and carry it out.

        It consumes the message `posted` of the session's mailbox, if that is what it is about.
        Returns the refusal if a machine does not accept one of its entries: then nothing of it is
        done, but for what only stops something.
        """
        reply_to = self._members.get(role)
        for effect in decision.urgent:  # the session stops what another actor hears of
            self._perform(effect, None if role == "session" else reply_to)
        if self.broken:
            return Refusal(machine="journal", state="broken", event="write", reason=self.broken)
        if self.record.state == "finalized" and decision.entries:
            return Refusal(
                machine="session",
                state="finalized",
                event=role,
                reason="the session is finalized",
            )
        stages: list[tuple[e.Entry, SessionRecord, float]] = []
        try:
            stages.extend(self._folded(decision.entries))
        except StoreDamaged as error:
            return Refusal(
                machine="session", state=self.record.state, event="decide", reason=error.message
            )
        for entry, record, time in stages:
            self.record = record
            observers = self.environment.observers
            observed = [by.observe_entry(entry, record.seq, time, record) for by in observers]
            publications = tuple(publish for publish in observed if publish is not None)
            self._outbox.hold(OutboxItem(seq=record.seq, entry=entry, publications=publications))
            self.environment.journal.append(
                StoredEntry(seq=record.seq, time=time, data=encode_entry(entry)), record, posted
            )
        waits = self._early > self._outbox.durable  # one call is ahead of the disk, not a chain
        for effect in () if waits else decision.early:
            self._perform(effect, reply_to)
        effects = (decision.early if waits else ()) + decision.effects
        self._early = self.record.seq if decision.early else self._early
        if effects or decision.facts:
            seq, facts = self.record.seq, decision.facts
            held = OutboxItem(seq=seq, facts=facts, effects=effects, reply_to=reply_to)
            self._outbox.hold(held)
        for name, order in decision.orders:
            tell(self.member(name), order)
        for name in interested(decision.entries, self.record):
            if name != role:
                self.wake(name)
        self.committed(self._outbox.durable)
        return None

    def _folded(
        self, entries: tuple[e.Entry, ...]
    ) -> Iterator[tuple[e.Entry, SessionRecord, float]]:
        """Give each entry with the record as it is after it. Raises `StoreDamaged`."""
        record, now = self.record, self._now()
        for entry in entries:
            record = copy(record)
            apply(record, entry, record.seq + 1, now)
            yield entry, record, now

    # Events and effects ---------------------------------------------------------------------------

    def committed(self, seq: int) -> None:
        """Everything up to `seq` is durable: perform what no stop has overtaken, and publish it all.

        No effect waits for a reader of events.
        """
        released = list(self._outbox.release(seq))
        for held in released:
            for effect in held.effects:
                self._perform(effect, held.reply_to)
        is_waiting = bool(self._unpublished)
        for held in released:
            self._unpublished += held.publications
            self._unpublished += [partial(self._observe, fact) for fact in held.facts]
        if self._unpublished and not is_waiting:
            self.environment.soon(self._publish_all)

    def _publish_all(self) -> None:
        waiting, self._unpublished = self._unpublished, []
        for publish in waiting:
            publish()

    def _perform(self, effect: m.Effect, reply_to: ActorRef[Any] | None) -> None:
        if not admits(self.record, self.environment.ancestors, effect):
            instead = in_place_of(self.record, effect)
            if isinstance(instead, m.ToolFinished):
                tell(reply_to, instead)
            if not isinstance(instead, m.AnswerAgent):
                return
            effect = instead
        match effect:
            case m.Delegate() | m.Dismiss() | m.StopChild() | m.PassSteer():
                tell(self.member("children"), effect)
            case _:
                self.environment.perform(effect, reply_to)

    def publish(self, fact: m.Fact) -> None:
        """Publish a fact that is not journalled, when all it may come of is durable and published."""
        if self._early > self._outbox.durable:
            self._outbox.hold(OutboxItem(seq=self.record.seq, facts=(fact,)))
        elif self._unpublished:
            self._unpublished.append(partial(self._observe, fact))
        else:
            self._observe(fact)

    def _observe(self, fact: m.Fact) -> None:
        for observer in self.environment.observers:
            observer.observe_fact(fact)

    def break_off(self, message: m.StoreBroke) -> None:
        """Fail loudly: nothing that is not durable is published, and nothing more is accepted."""
        self.broken, self.is_lost = message.reason, message.is_lease_lost
        lost, self._early = list(self._outbox.lost()), 0
        code = "lease_lost" if message.is_lease_lost else "store_failed"
        self.publish(m.StoreLost(code=code, text=message.reason, hint=message.hint))
        for fact in lost:
            self.publish(fact)


class Member(Actor):
    """One of a session's actors: it reads the record, and what it decides is folded as its `role`'s."""

    role: ClassVar[Role]

    def __init__(self, system: ActorSystem, ledger: Ledger) -> None:
        super().__init__(system)
        self.ledger = ledger

    @property
    def record(self) -> SessionRecord:
        """The session's state, with everything that was decided until now."""
        return self.ledger.record

    @property
    def environment(self) -> Environment:
        """The environment of the session's actors."""
        return self.ledger.environment

    def enlist(self) -> None:
        """Make the actor known to the others."""
        self.ledger.enlist(self.role, self.actor_ref)

    def awake(self) -> None:
        """Note that the actor looks at the record now."""
        self.ledger.awake(self.role)

    def decide(self, decision: Decision) -> Any:
        """Have a decision folded and carried out; return its reply, or what a machine refused.

        The refusal is logged. Nothing of the decision is done then, but for what only stops something
        and for facts, which are published.
        """
        refused = self._fold(decision)
        if refused is None:
            return decision.reply
        if decision.entries or not decision.facts:
            return refused_with(refused.reason)
        for fact in decision.facts:
            self.ledger.publish(fact)
        return decision.reply

    def accepts(self, decision: Decision) -> bool:
        """Have a decision folded and carried out; whether every machine accepted it."""
        return self._fold(decision) is None

    def settle(self, due: Callable[[SessionRecord, Environment], Decision]) -> None:
        """Decide what `due` says is due: one thing after the other, until nothing is."""
        while decision := due(self.record, self.environment):
            if not self.accepts(decision):
                break

    def _fold(self, decision: Decision) -> Refusal | None:
        refused = self.ledger.decide(self.role, decision, posted_of(self))
        if refused is not None and not self.ledger.broken:
            self.system.note_refusal(self, refused)
        return refused
