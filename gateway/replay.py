"""A session's journal under another routing table: what would have become of what was said.

Nothing is changed and nothing runs. The entries are folded one by one; at each message, each cancel
and each end of a turn the other tables are asked what they would have done there and then. It is a
comparison moment by moment, not another history: what follows from a different outcome is not made
up. What the session's own tables did is not recomputed, it is journalled: the row's name is. The
row also says what the journal does not: which choice the sender made, and which modes applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ..actors.reception import policy_of
from ..journal import entries as e
from ..journal.codec import decode_entry
from ..journal.record import SessionRecord, apply
from ..journal.store import StoredEntry
from ..machines.classification import classify
from ..machines.delivery import Cause, Relation
from ..machines.disposition import DispositionRow
from ..machines.explanation import (
    Companion,
    Explanation,
    explain,
    receipts,
)
from ..machines.policy import Policy, RoutesChoice
from ..machines.route_diff import apart
from ..machines.routes import Routes
from ..machines.words import Words
from .explaining import state_of

__all__ = ["Deviation", "Moment", "Replay", "moments", "replay"]

NOT_ROUTED = ("", "taken-back")
"""What stands for the row where no table was asked: an import, a reading that was taken back.

A child's result is no message of a person either.
"""

LEAVING = (Cause.SIGNAL, Cause.FINALIZE)
"""Causes of interrupts that follow from the end of a session, which is a moment of its own."""


@dataclass(frozen=True, slots=True)
class Moment:
    """Something that a table was asked about: `what` names it, `rule` is the row that decided.

    Without a rule it is no message, and `cause` came by itself. `doing` and `company` are how the
    session was just before.
    """

    seq: int
    what: str
    text: str
    doing: str
    company: tuple[Companion, ...]
    policy: Policy
    choice: RoutesChoice | None = None
    rule: str = ""
    cause: str = ""


@dataclass(frozen=True, slots=True)
class Deviation:
    """A moment with another outcome; `ours` and `theirs` are what came, and what would have come."""

    moment: Moment
    ours: str
    theirs: str
    our_rule: str
    their_rule: str


@dataclass(slots=True)
class Replay:
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
    receipts_seen = set[str]()
    messages = 0
    for stored in entries:
        entry = decode_entry(stored.data)
        found = _of_entry(entry, receipts_seen)
        if found is not None:
            is_message = "rule" in found and found["rule"]
            messages += bool(is_message)
            doing, company = state_of(record)
            what = f"message {messages}" if is_message else str(found.pop("what"))
            found.pop("what", None)
            policy = policy_of(record, configured)
            yield Moment(
                stored.seq,
                what,
                found.pop("text", ""),
                doing,
                company,
                policy,
                record.routes,
                **found,
            )
        apply(record, entry, stored.seq, stored.time)


def _of_entry(entry: e.Entry, seen: set[str]) -> dict[str, Any] | None:
    """Say what of an entry a table decided, none if nothing."""
    match entry:
        case e.Queued() if entry.rule not in NOT_ROUTED and not entry.child:
            return {"text": entry.text, "rule": entry.rule}
        case e.InterruptRequested() | e.InterruptPlanned():
            is_known = entry.receipt in seen
            seen.add(entry.receipt)
            if is_known or entry.cause in LEAVING:
                return None
            if entry.text:
                return {"text": entry.text, "rule": entry.rule}
            return None if entry.rule else {"what": "a stop", "cause": entry.cause}
        case e.SessionLeaving():
            return {"what": "leaving the program", "cause": Cause.SIGNAL}
        case e.SessionFinalizing():
            cause = Cause.NEW if entry.cause == "new" else Cause.FINALIZE
            return {"what": "the end of the session", "cause": cause}
        case e.TurnEnded() | e.Stopped():
            return {"what": f"the end of turn {entry.turn}", "cause": Cause.TURN_END}
        case _:
            return None


def replay(
    history: Iterable[Moment],
    ours: Callable[[RoutesChoice | None], Routes],
    theirs: Routes,
    words: Words,
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
            rules = [_rules(one) for one in pair]
            done.deviations.append(Deviation(moment, ours_told, theirs_told, *rules))
    return done


def _said(
    moment: Moment, here: Routes, theirs: Routes, words: Words
) -> tuple[Explanation, Explanation]:
    """Explain a message under both tables; ours as it was journalled, where the row is known."""
    row = next((one for one in here.dispositions.rows if one.name == moment.rule), None)
    key = _key(moment, row.when if row else {}, words)
    there = explain(theirs, key, moment.company)
    if row is None:
        return explain(here, key, moment.company), there
    given = receipts(here, row.cause, moment.company) if row.cause else ()
    return Explanation(row, given), there


def _key(moment: Moment, when: Mapping[str, tuple[str, ...]], words: Words) -> tuple[str, ...]:
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
    others = [one for one in moment.company if one.relation != Relation.SELF]
    company = others if moment.cause == Cause.TURN_END else moment.company
    nothing: Any = ""
    row = DispositionRow(moment.cause, {}, nothing, moment.cause)
    return Explanation(row, receipts(routes, moment.cause, company))


def _rules(explanation: Explanation) -> str:
    """Name the rows that decided."""
    names = [explanation.row.name, *(one.row.name for one in explanation.given)]
    return ", ".join(dict.fromkeys(names))
