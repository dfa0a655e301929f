"""The reports of a child to its parent, made by an observer of its journal.

The child knows nothing of this; it is a session like any other. https://www.erlang.org/doc/ calls
the like a monitor: it watches, and is no part of what it watches.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from ..journal import entries as e
from ..journal.child_record import ChildRecord
from ..journal.record import SessionRecord
from ..machines import protocol as m
from ..machines.result_routing import Return
from .environment import Publication

COMES = (Return.ANSWER, Return.BOUNDARY, Return.RUN)
"""The ways of a result with which a session goes on automatically."""
PARTIAL_LIMIT = 8_000
"""Characters of an unfinished result that are handed on."""


class ChildReporter:
    """Reports to the child supervisor what a parent has to know."""

    def __init__(self, name: str, report: Callable[[m.ChildReport], None]) -> None:
        self._name = name
        self._report = report
        self._record: SessionRecord | None = None

    def observe_entry(
        self, entry: e.Entry, seq: int, time: float, record: SessionRecord
    ) -> Publication | None:
        """Make the reports that an entry calls for."""
        self._record = record
        reports = _reports(self._name, entry, record)
        return partial(self._report_all, reports) if reports else None

    def _report_all(self, reports: list[m.ChildReport]) -> None:
        for report in reports:
            self._report(report)

    def observe_fact(self, fact: m.Fact) -> None:
        """Report a steer that missed or is in already, and a journal that is lost."""
        if isinstance(fact, m.MessageRejected) and fact.said.client_id:
            self._report(m.ChildReport(name=self._name, kind="missed", key=fact.said.client_id))
        elif isinstance(fact, m.MessageKnown) and fact.client_id and self._record is not None:
            known = self._record.queue.items.get(fact.id)
            if known is not None and known.turn:
                self._report(
                    m.ChildReport(
                        name=self._name,
                        kind="steered",
                        key=fact.client_id,
                        turn=known.turn,
                        step=known.step,
                    )
                )
        elif isinstance(fact, m.StoreLost):
            self._report(
                m.ChildReport(name=self._name, kind="ended", status="failed", reason=fact.text)
            )
            self._report(m.ChildReport(name=self._name, kind="closed"))


def last_report(name: str, record: SessionRecord) -> m.ChildReport | None:
    """Say what a session that was opened before ended with; none if it has something to do."""
    turn = record.turns.get(record.turn)
    if turn is None or record.queue.order or turn.state not in ("completed", "failed"):
        return None
    if _has_workers(record):
        return None  # it goes on with what they find
    goal = record.goals.goal
    if goal is not None and not goal.is_over:
        return None  # it goes on for its goal
    return _over(name, turn.state, turn.reason, record)


def _over(name: str, status: str, reason: str, record: SessionRecord) -> m.ChildReport:
    """Report that a session is through with its turns: as failed if it has missed its goal."""
    goal = record.goals.goal
    if goal is not None and goal.state != "achieved":
        return _ended(name, "failed", goal.detail or reason, record)
    return _ended(name, status, reason, record)


def _reports(name: str, entry: e.Entry, record: SessionRecord) -> list[m.ChildReport]:
    match entry:
        case e.TurnStarted():
            item = record.queue.items[entry.item]
            if not item.said.client_id:
                return []
            # a steer that found nothing running has become a turn
            return [
                m.ChildReport(name=name, kind="steered", key=item.said.client_id, turn=entry.turn)
            ]
        case e.TurnEnded() if _is_done(record):
            return [_over(name, entry.status, entry.reason, record)]
        case e.ChildInterrupted() if record.state == "idle" and _is_done(record):
            if any(stop.state == "stopping" for stop in record.stops.values()):
                return []  # the stop reports for both, once all is dead
            last = last_report(name, record)  # its turn had ended before, by a fault
            return [last] if last is not None else []
        case e.GoalJudged() | e.GoalPaused() if record.state == "idle" and _is_done(record):
            return _goal_ended(name, record)
        case e.Stopped():
            return [_stopped(name, record, entry.killed, entry.survivors, entry.order)]
        case e.Recovered() | e.SessionResumed():
            # what it had to report may have been lost with its actor; a second time is no matter
            last = last_report(name, record)
            return [last] if last is not None else []
        case e.SessionSuspended() | e.SessionFinalized():
            return [m.ChildReport(name=name, kind="closed")]
        case e.Steered():
            return [_steered(name, item, record) for item in entry.items]
        case e.SteerArrived() if entry.turn:
            return [_steered(name, entry.item, record)]
        case e.Withdrawn():
            key = record.queue.items[entry.item].said.client_id
            return [m.ChildReport(name=name, kind="missed", key=key)] if key else []
        case _:
            return []


def _goal_ended(name: str, record: SessionRecord) -> list[m.ChildReport]:
    """Report a goal that ended or paused between two turns; a stop is reported when all is dead."""
    goal = record.goals.goal
    if goal is None or goal.reason in ("interrupt", "user"):
        return []
    status = "completed" if goal.state == "achieved" else "failed"
    return [_ended(name, status, "" if status == "completed" else goal.detail, record)]


def _is_done(record: SessionRecord) -> bool:
    """Whether nothing is left that would go on automatically; what a queue holds does not."""
    queue = record.queue
    is_through = not queue.order or (queue.state == "held" and not queue.will_run())
    return is_through and not _has_workers(record) and not record.goals.is_pursued


def _has_workers(record: SessionRecord) -> bool:
    """Whether a child of its own works, or has ended with a result that is still on its way here."""
    return any(child.is_at_work or _is_coming(record, child) for child in record.children.values())


def _is_coming(record: SessionRecord, child: ChildRecord) -> bool:
    """Whether a result is yet to arrive; a run looks after those of its children itself."""
    return record.run is None and child.goes in COMES and not child.is_returned


def _steered(name: str, item: str, record: SessionRecord) -> m.ChildReport:
    found = record.queue.items[item]
    key = found.said.client_id
    return m.ChildReport(name=name, kind="steered", key=key, turn=found.turn, step=found.step)


def _ended(name: str, status: str, reason: str, record: SessionRecord) -> m.ChildReport:
    text = _last_word(record) if status == "completed" else _so_far(record)
    return m.ChildReport(
        name=name,
        kind="ended",
        status=status,
        text=text,
        reason=reason,
        steps=_steps(record),
        usage=record.whole_usage,
    )


def _stopped(
    name: str,
    record: SessionRecord,
    killed: tuple[int, ...] = (),
    survivors: tuple[int, ...] = (),
    order: int = 0,
) -> m.ChildReport:
    return m.ChildReport(
        name=name,
        kind="stopped",
        text=_so_far(record),
        steps=_steps(record),
        usage=record.whole_usage,
        killed=killed,
        survivors=survivors,
        order=order,
    )


def _last_word(record: SessionRecord) -> str:
    for message in reversed(record.conversation):
        if message.role == "assistant" and message.text:
            return message.text
    return ""


def _so_far(record: SessionRecord) -> str:
    """Gather what the agent has said of its own, newest last, up to a limit."""
    said = [
        message.own
        for message in record.conversation[record.seeded :]
        if message.role == "assistant" and message.own
    ]
    return "\n".join(said)[-PARTIAL_LIMIT:]


def _steps(record: SessionRecord) -> int:
    return sum(turn.step for turn in record.turns.values())
