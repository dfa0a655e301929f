"""A session's journal under another routing table: what the table would have decided.

Nothing is changed and nothing runs. The entries are folded one by one; at each message, interrupt,
limit, end of a turn and end of the session, the other tables decide for the state of that moment. The
comparison is moment by moment, not another history: the consequences of a different outcome are not
computed. The outcome under the session's own tables is not computed either: the journal has the name of
the row. The row also has what the journal lacks: the sender's choice, and the modes that applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from msgspec import Struct, field

from ...actors.decisions.queries import policy_of
from ...journal import entries as e
from ...journal.codec import decode_entry
from ...journal.entries import LimitReached
from ...journal.record import SessionRecord, apply
from ...journal.store import StoredEntry
from ...machines.classification import Keywords, classify
from ...machines.delivery import Cause, Delivery, Relation, never_asked
from ...machines.disposition import Action, DispositionRow
from ...machines.policy import Policy, RoutesChoice
from ...machines.routes import Routes
from ...machines.value import Value
from ...proofs.explanation import Explanation, Recipient, explain, receipts
from ...proofs.route_diff import apart
from .dry_run import state_of

NOT_ROUTED = ("", "taken-back")
"""Names in place of a row, where no table was asked: an import, a message that was taken back.

The result of a child is no message of a person either.
"""

FOLLOWS = (Cause.SIGNAL, Cause.FINALIZE, Cause.NEW, Cause.TURN_ENDED)
"""Causes of interrupts that follow from the end of a session or turn, a moment of its own."""

OF_A_TURN = (Cause.BUDGET, Cause.NO_PROGRESS)
"""Causes of interrupts that a turn itself gives rise to, with an entry of their own."""

STOPS = {
    Cause.TIMEOUT: "the time limit",
    Cause.BUDGET: "a limit of the session",
    Cause.NO_PROGRESS: "a turn that repeats itself",
    Cause.PARENT: "a stop by the parent",
    Cause.PARENT_BOUNDARY: "a stop by the parent, at the boundary of what runs",
}
"""Names of the interrupts that no person gave."""


class Moment(Value):
    """A moment at which a table was asked: `what` names it, `rule` is the row that decided.

    Without a rule it is no message, and `cause` arose without one. `doing` and `company` are the state
    of the session just before, `named` are the children that a steer was addressed to.
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
    """A moment with another outcome: `ours` by the session's tables, `theirs` by the other ones."""

    moment: Moment
    ours: str
    theirs: str
    our_rule: str
    their_rule: str


class Replay(Struct, kw_only=True):
    """The number of compared moments, by kind, and those with another outcome."""

    looked_at: dict[str, int] = field(default_factory=dict[str, int])
    deviations: list[Deviation] = field(default_factory=list[Deviation])


def moments(entries: Iterable[StoredEntry], configured: Policy) -> Iterator[Moment]:
    """Fold a journal, and yield each moment at which a routing table is asked.

    `configured` are the modes of a session that chose none, since the modes of then are not journalled.
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
    """Return the fields of an entry's moment; none if no table was asked, as for most entries.

    `known` are the earlier receipts, and the turns at whose limit the table was asked.
    """
    match entry:
        case e.Queued() if entry.routed.rule not in NOT_ROUTED and not entry.child:
            return {"text": entry.said.text, "rule": entry.routed.rule, "named": entry.for_children}
        case e.SteerAddressed() if entry.for_children:
            return {
                "what": f"a steer by {entry.item}, which waited",
                "cause": _steer_cause(record, entry.for_children),
                "company": _companions(record, entry.for_children),
            }
        case e.InterruptRequested() | e.InterruptPlanned():
            return _of_interrupt(entry, known)
        case LimitReached() | e.NoProgress(did="ended") if not record.parent:
            known.add(f"limit {entry.turn}")
            cause = Cause.BUDGET if isinstance(entry, LimitReached) else Cause.NO_PROGRESS
            return {"what": STOPS[cause], "cause": cause}
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
            return {"what": f"the end of turn {entry.turn}", "cause": Cause.TURN_ENDED}
        case _:
            return None


def _of_interrupt(
    entry: e.InterruptRequested | e.InterruptPlanned, known: set[str]
) -> dict[str, Any] | None:
    """Return the fields of an interrupt's moment; none if it follows from an earlier moment."""
    is_known = entry.receipt in known
    known.add(entry.receipt)
    is_limit = entry.cause in OF_A_TURN and f"limit {entry.turn}" in known
    if is_known or is_limit or entry.cause in FOLLOWS:
        return None
    text, rule = entry.order.said.text, entry.order.routed.rule
    if text:
        return {"text": text, "rule": rule}
    cause = Cause(entry.cause) if entry.cause in tuple(Cause) else Cause.STOP
    what = STOPS.get(cause, "a stop")
    return None if rule else {"what": what, "cause": entry.cause}


def _companions(record: SessionRecord, names: tuple[str, ...]) -> tuple[Recipient, ...]:
    """Return the children of a session with these names."""
    return tuple(companion for companion in state_of(record)[1] if companion.name in names)


def _steer_cause(record: SessionRecord, names: tuple[str, ...]) -> Cause:
    """Return the cause of a waiting message's steer: to all that the turn waits for, or by name."""
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
    """Compare the outcome of each moment with the outcome under other tables.

    `ours` returns the tables of a session's choice.
    """
    done = Replay()
    for moment in history:
        kind = moment.what.split(" ")[0] if moment.rule else "other"
        done.looked_at[kind] = done.looked_at.get(kind, 0) + 1
        here = ours(moment.choice)
        if moment.rule:
            pair = _explain_message(moment, here, theirs, words)
        else:
            pair = (_explain_cause(moment, here), _explain_cause(moment, theirs))
        if pair[0].outcome != pair[1].outcome:
            our_outcome, their_outcome = apart(*pair)
            deviation = Deviation(
                moment=moment,
                ours=our_outcome,
                theirs=their_outcome,
                our_rule=_rules(pair[0]),
                their_rule=_rules(pair[1]),
            )
            done.deviations.append(deviation)
    return done


def _explain_message(
    moment: Moment, here: Routes, theirs: Routes, words: Keywords
) -> tuple[Explanation, Explanation]:
    """Explain a message under both tables; under ours as it was journalled, if the row is known."""
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
    """Return the children that a steer named; none if the cause of its row reaches the same children."""
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
    """Replace the recipients of a row's cause by the children that a steer names."""
    if not named or explanation.row.action != Action.STEER:
        return explanation
    return Explanation(row=explanation.row, receipts=receipts(routes, Cause.STEER_NAMED, named))


def _key(moment: Moment, when: Mapping[str, tuple[str, ...]], words: Keywords) -> tuple[str, ...]:
    """Return the key of a message in the first table, with the values that its row accepts."""
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


def _explain_cause(moment: Moment, routes: Routes) -> Explanation:
    """Explain a cause that no message raised: the cause takes the place of the row."""
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
