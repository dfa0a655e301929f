"""Who did what in the sessions of a home: what people said and chose, and what agents did for it.

The name of a person is that of the paired device, of the person in a chat room or of the library's
caller; who sits at the machine is the `owner`. The row of the routing table, or the permission rule, that
decided is the `rule`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypedDict

from ...journal import entries as e
from ...journal.codec import decode_entry
from ...journal.history import seq_at
from ...journal.store import SessionRow, Store
from ...machines import protocol as m
from ...machines.delivery import Cause
from ..wording.formats import call_words, iso
from ..wording.redaction import Redactor

OWNER, RUNTIME = "owner", "runtime"
"""Who is meant where no name is known: a person without a name, and the program itself."""
ORDERED = (Cause.STOP, Cause.NEW, Cause.BARE_WORD, Cause.MORE_WORD, Cause.MESSAGE)
"""Causes of stops that people order; others are signals, limits, and the ends of what was above."""

ENDED_BY_PEOPLE = ("user", Cause.NEW, Cause.FINALIZE)
"""Causes of an end of a session that people order; a subagent's ends with its work."""


class AuditLine(TypedDict):
    """One act: `who` did `act`, to `what`, decided by `rule`; `seq` is its entry in the journal."""

    time: str
    session: str
    seq: int
    who: str
    act: str
    what: str
    rule: str


class _Act(NamedTuple):
    act: str
    what: str = ""
    rule: str = ""
    user: str = OWNER


def audit(
    store: Store, since: float, redactor: Redactor, only: SessionRow | None = None
) -> list[AuditLine]:
    """Return the acts from a moment on, in seconds since 1970, the oldest first.

    Those of all sessions, or of one with its subagents, or of one subagent. Raises `StoreError`.
    """
    if only is None:
        rows = store.sessions()
    else:
        rows = [only] if only.parent else store.family(only.session)
    newer = (row for row in rows if row.updated >= since)
    found = [line for row in newer for line in _of_session(store, row, since, redactor)]
    return sorted(found, key=lambda line: line["time"])


def _of_session(
    store: Store, row: SessionRow, since: float, redactor: Redactor
) -> Iterator[AuditLine]:
    planned = set[str]()
    before = max(seq_at(store, row.session, row.seq, since), _replayed(store, row))
    for stored in store.entries(row.session, before):
        act = _act(decode_entry(stored.data), f"agent {row.agent}", planned)
        if act is not None:
            yield AuditLine(
                time=iso(stored.time),
                session=row.session,
                seq=stored.seq,
                who=redactor.line(act.user or OWNER),
                act=act.act,
                what=redactor.line(act.what),
                rule=act.rule,
            )


def _replayed(store: Store, row: SessionRow) -> int:
    """Return up to which entry a session was only decided again: nobody did anything of that."""
    first = next(iter(store.entries(row.session, 0, 1)), None)
    of = str(first.data.get("replay_of", "")) if first is not None else ""
    return int(of.rpartition("@")[2]) if of else 0


def _act(entry: e.Entry, agent: str, planned: set[str]) -> _Act | None:
    """Return what an entry says that somebody did; none for what follows from other entries.

    `planned` are the receipts of stops that were ordered before they took effect.
    """
    match entry:
        case e.Queued(item_kind=m.ItemKind.MESSAGE, said=said, routed=routed):
            return _Act(routed.said_as, said.text, routed.rule, said.user)
        case e.Edited(said=said):
            return _Act("edit", said.text, user=entry.user)
        case e.InterruptRequested(receipt=receipt) if receipt in planned:
            return None  # it was told when it was ordered
        case e.InterruptPlanned() | e.InterruptRequested() | e.StopNoted():
            planned.update((entry.receipt,) if isinstance(entry, e.InterruptPlanned) else ())
            order = entry.order
            user = order.said.user if order.cause in ORDERED else RUNTIME
            return _Act("stop", order.said.text or order.cause, order.routed.rule, user)
        case e.QuestionAsked():
            return _Act("question", _call(entry.tool, entry.arguments), entry.rule, agent)
        case e.QuestionAnswered(choice="withdrawn"):
            return None
        case e.QuestionAnswered():
            return _Act("answer", f"{entry.choice} {entry.question}", entry.rule, entry.user)
        case e.StepAsked():
            return _Act("question", entry.text, user=f"step {entry.step}")
        case e.ItemEnded(result=e.WorkResult(more={"by": "user"}), user=user):
            return _Act("answer", f"{entry.result.output or 'skip'} {entry.step}", user=user)
        case e.StepReleased(user=user):
            return _Act("answer", f"allow {entry.step}", user=user)
        case e.ToolIntended():
            by_flag = "--yes, for " if entry.allowed_by.endswith(": ask") else ""
            return _Act(
                "call", _call(entry.tool, entry.arguments), f"{by_flag}{entry.allowed_by}", agent
            )
        case e.ToolRefused():
            return _Act("refused", entry.tool, entry.reason, agent)
        case e.AllowanceGiven() | e.AllowanceForgotten():
            act = "allow" if isinstance(entry, e.AllowanceGiven) else "forget"
            return _Act(act, f"{entry.tool} {entry.pattern}", user=entry.user)
        case e.PolicyChanged(user=user):
            return _Act("settings", _choice(entry), user=user)
        case e.LimitsGranted(user=user):
            return _Act("limits", user=user)
        case e.GoalSet(text=text, user=user):
            return _Act("goal", text, user=user)
        case e.RevertAsked(is_dry_run=False, scope=scope, user=user):
            return _Act("revert", scope, user=user)
        case e.ChildStarted():
            return _Act("delegate", entry.task, entry.relation, entry.user or agent)
        case e.ChildCancelled(cause="user"):
            return _Act("stop", entry.child, user=entry.user)
        case e.SessionFinalizing(cause=cause):
            return _Act("finalize", cause, user=OWNER if cause in ENDED_BY_PEOPLE else RUNTIME)
        case _:
            return None


def _call(tool: str, arguments: dict[str, object]) -> str:
    return " ".join((tool, *call_words(arguments)))


def _choice(entry: e.PolicyChanged) -> str:
    """Name what was chosen: `mode=plan`."""
    chosen = {
        "busy": entry.busy_mode,
        "auto_queue": entry.is_auto_queue,
        "routes": entry.routes and entry.routes.table,
        "model": entry.model,
        "mode": entry.mode,
        "holds": entry.holds and ", ".join(" ".join(one) for one in entry.holds),
    }
    return " ".join(
        f"{name}={value}" for name, value in chosen.items() if value not in ("", None, ())
    )
