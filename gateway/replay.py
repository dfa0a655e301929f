"""A session's journal under another routing table: what would have become of what was said.

Nothing is changed and nothing runs. The entries are folded one by one; at each message, each cancel,
each limit, each end of a turn and of the session the other tables are asked what they would have done
there and then. It is a comparison moment by moment, not another history: what follows from a different
outcome is not made up. What the session's own tables did is not recomputed, it is journalled: the row's
name is. The row also says what the journal does not: which choice the sender made, and which modes
applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from ..actors.decisions.queries import policy_of
from ..journal import entries as e
from ..journal.codec import decode_entry
from ..journal.entries import LimitReached
from ..journal.record import SessionRecord, apply
from ..journal.store import StoredEntry
from ..machines.classification import Keywords, classify
from ..machines.delivery import Cause, Delivery, Relation, never_asked
from ..machines.disposition import Action, DispositionRow
from ..machines.explanation import Explanation, Recipient, explain, receipts
from ..machines.policy import Policy, RoutesChoice
from ..machines.route_diff import apart
from ..machines.routes import Routes
from ..machines.value import Value
from .dry_run import state_of

NOT_ROUTED = ("", "taken-back")
"""What stands for the row where no table was asked: an import, a reading that was taken back.

A child's result is no message of a person either.
"""

FOLLOWS = (Cause.SIGNAL, Cause.FINALIZE, Cause.NEW, Cause.TURN_END)
"""Causes of interrupts that follow from the end of a session or turn, a moment of its own."""

STOPS = {
    Cause.TIMEOUT: "the time limit",
    Cause.BUDGET: "a limit of the session",
    Cause.PARENT: "a stop by the parent",
}
"""What an interrupt is called that no person gave."""


class Moment(Value):
    """Something that a table was asked about: `what` names it, `rule` is the row that decided.

    Without a rule it is no message, and `cause` came by itself. `doing` and `company` are how the
    session was just before, `named` the children that a steer was handed to.
    """

    seq: int
    what: str
    text: str
    doing: str
    company: tuple[Recipient, ...]
    policy: Policy
    choice: RoutesChoice | None = None
    rule: str = ""
    cause: str = ""
    named: tuple[str, ...] = ()


class Deviation(Value):
    """A moment with another outcome; `ours` and `theirs` are what came, and what would have come."""

    moment: Moment
    ours: str
    theirs: str
    our_rule: str
    their_rule: str


class Replay(Struct, kw_only=True):
    """What was looked at, by kind, and what would have been different."""

    looked_at: dict[str, int] = field(default_factory=dict[str, int])
    deviations: list[Deviation] = field(default_factory=list[Deviation])


def moments(
    entries: Iterable[StoredEntry],
    configured: Policy,
) -> Iterator[Moment]:
    """Fold a journal, and yield each moment at which a routing table is asked.

    `configured` are the modes where a session chose none: what they were then is not journalled.
    """
    record = SessionRecord()
    known = set[str]()
    messages = 0
    for stored in entries:
        entry = decode_entry(stored.data)
        found = _of_entry(entry, record, known)
        if found is not None:
            is_message = bool(found.get("rule"))
            messages += is_message
            doing, company = state_of(record)
            what = f"message {messages}" if is_message else str(found["what"])
            moment = Moment(
                seq=stored.seq,
                what=what,
                text=found.get("text", ""),
                doing=doing,
                company=found.get("company", company),
                policy=policy_of(record, configured),
                choice=record.routes,
                rule=found.get("rule", ""),
                cause=found.get("cause", ""),
                named=found.get("named", ()),
            )
            yield moment
        apply(record, entry, stored.seq, stored.time)


def _of_entry(entry: e.Entry, record: SessionRecord, known: set[str]) -> dict[str, Any] | None:
    """Say what of an entry a table decided, none if nothing.

    `known` are receipts, and turns at whose limit the table was asked, that were seen before.
    """
    match entry:
        case e.Queued() if entry.rule not in NOT_ROUTED and not entry.child:
            return {"text": entry.text, "rule": entry.rule, "named": entry.for_children}
        case e.SteerAddressed() if entry.for_children:
            return {
                "what": f"a steer by {entry.item}, which waited",
                "cause": _steer_cause(record, entry.for_children),
                "company": _companions(record, entry.for_children),
            }
        case e.InterruptRequested() | e.InterruptPlanned():
            return _of_interrupt(entry, known)
        case LimitReached() if not record.parent:
            known.add(f"limit {entry.turn}")
            return {"what": STOPS[Cause.BUDGET], "cause": Cause.BUDGET}
        case e.ChildCancelled(cause=Cause.TIMEOUT):
            limited = (Recipient(name=entry.child, relation=Relation.SELF),)
            what = f"the time limit of {entry.child}"
            return {"what": what, "cause": Cause.TIMEOUT, "company": limited}
        case e.SessionLeaving():
            return {"what": "leaving the program", "cause": Cause.SIGNAL}
        case e.SessionFinalizing():
            cause = Cause.NEW if entry.cause == "new" else Cause.FINALIZE
            return {"what": "the end of the session", "cause": cause}
        case e.TurnEnded() | e.Stopped() if entry.turn:
            return {"what": f"the end of turn {entry.turn}", "cause": Cause.TURN_END}
        case _:
            return None


def _of_interrupt(
    entry: e.InterruptRequested | e.InterruptPlanned, known: set[str]
) -> dict[str, Any] | None:
    """Say what stopped; none if it follows from a moment that was looked at before."""
    is_known = entry.receipt in known
    known.add(entry.receipt)
    is_limit = entry.cause == Cause.BUDGET and f"limit {entry.turn}" in known
    if is_known or is_limit or entry.cause in FOLLOWS:
        return None
    if entry.text:
        return {"text": entry.text, "rule": entry.rule}
    cause = Cause(entry.cause) if entry.cause in tuple(Cause) else Cause.STOP
    what = STOPS.get(cause, "a stop")
    return None if entry.rule else {"what": what, "cause": entry.cause}


def _companions(record: SessionRecord, names: tuple[str, ...]) -> tuple[Recipient, ...]:
    """Return those children of the company whom these names name."""
    return tuple(companion for companion in state_of(record)[1] if companion.name in names)


def _steer_cause(record: SessionRecord, names: tuple[str, ...]) -> Cause:
    """Return by which cause a waiting message steers: all that the turn waits for, or by name."""
    waited = {
        companion.name
        for companion in state_of(record)[1]
        if companion.relation == Relation.FOREGROUND_CHILD
    }
    return Cause.STEER_THROUGH if waited == set(names) else Cause.STEER_NAMED


def replay(
    history: Iterable[Moment],
    ours: Callable[[RoutesChoice | None], Routes],
    theirs: Routes,
    words: Keywords,
) -> Replay:
    """Compare what came of each moment with what would have come under other tables.

    `ours` returns the tables that a session's choice stands for.
    """
    done = Replay()
    for moment in history:
        kind = moment.what.split(" ")[0] if moment.rule else "other"
        done.looked_at[kind] = done.looked_at.get(kind, 0) + 1
        here = ours(moment.choice)
        if moment.rule:
            pair = _said(moment, here, theirs, words)
        else:
            pair = (_happened(moment, here), _happened(moment, theirs))
        if pair[0].outcome != pair[1].outcome:
            ours_told, theirs_told = apart(*pair)
            deviation = Deviation(
                moment=moment,
                ours=ours_told,
                theirs=theirs_told,
                our_rule=_rules(pair[0]),
                their_rule=_rules(pair[1]),
            )
            done.deviations.append(deviation)
    return done


def _said(
    moment: Moment, here: Routes, theirs: Routes, words: Keywords
) -> tuple[Explanation, Explanation]:
    """Explain a message under both tables; ours as it was journalled, where the row is known."""
    row = next(
        (candidate for candidate in here.dispositions.rows if candidate.name == moment.rule), None
    )
    key = _key(moment, row.when if row else {}, words)
    named = _named(moment, here, row)
    there = _steering(explain(theirs, key, moment.company), theirs, named)
    if row is None:
        return _steering(explain(here, key, moment.company), here, named), there
    given = receipts(here, row.cause, moment.company) if row.cause else ()
    return _steering(Explanation(row=row, receipts=given), here, named), there


def _named(moment: Moment, here: Routes, row: DispositionRow | None) -> tuple[Recipient, ...]:
    """Return the children that a steer named; none if its row's own cause reaches the same ones."""
    named = tuple(companion for companion in moment.company if companion.name in moment.named)
    if row is None or not named:
        return named
    reached = here.reach(row.cause)
    taken = [
        companion
        for companion in moment.company
        if companion.relation not in (Relation.SELF, Relation.GOAL)
        and reached.get(companion.relation) == Delivery.STEER
    ]
    return () if taken == [*named] else named


def _steering(
    explanation: Explanation, routes: Routes, named: tuple[Recipient, ...]
) -> Explanation:
    """Put those whom a steer names in place of those whom its row's cause reaches."""
    if not named or explanation.row.action != Action.STEER:
        return explanation
    return Explanation(row=explanation.row, receipts=receipts(routes, Cause.STEER_NAMED, named))


def _key(moment: Moment, when: Mapping[str, tuple[str, ...]], words: Keywords) -> tuple[str, ...]:
    """Put a message into the words of the first table, as the row that decided knew them."""
    policy = moment.policy
    likely = {
        "intent": str(classify(moment.text, words).intent),
        "situation": str(moment.doing),
        "busy": policy.busy_mode,
        "strategy": policy.strategy,
        "auto_queue": "on" if policy.is_auto_queue else "off",
    }
    known = {name: when.get(name, (value,)) for name, value in likely.items()}
    return tuple(
        value if value in known[name] else str(known[name][0]) for name, value in likely.items()
    )


def _happened(moment: Moment, routes: Routes) -> Explanation:
    """Explain a cause that came without a message: the cause stands for the row."""
    company = [
        companion
        for companion in moment.company
        if not never_asked(moment.cause, companion.relation)
    ]
    nothing: Any = ""
    row = DispositionRow(name=moment.cause, when={}, action=nothing, cause=moment.cause)
    return Explanation(row=row, receipts=receipts(routes, moment.cause, company))


def _rules(explanation: Explanation) -> str:
    """Name the rows that decided."""
    names = [explanation.row.name, *(receipt.row.name for receipt in explanation.given)]
    return ", ".join(dict.fromkeys(names))
