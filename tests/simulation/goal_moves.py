"""Which transitions of a goal and of its judge some runs went through."""

from steersman.actors.goal import Goal
from steersman.actors.judge import Judge
from steersman.actors.session import Session
from steersman.journal import entries as e
from steersman.journal.goal_record import VERDICT_EVENTS
from steersman.journal.record import SessionRecord, apply
from steersman.machines.lifecycles import JUDGE
from steersman.machines.machine import Machine, Step, step
from steersman.simulator.happening import Appended, Happening, Started

__all__ = ["Move", "goal_moves", "rows", "watched"]

Move = tuple[str, str, str]
"""From a state, by an event, to a state."""

EVENTS: dict[type[e.Entry], str] = {
    e.GoalSet: "begin",
    e.GoalBegun: "begin",
    e.GoalPaused: "pause",
    e.GoalResumed: "resume",
    e.GoalWoken: "wake",
    e.GoalCleared: "clear",
    e.Recovered: "pause",
    e.SessionResumed: "pause",
    e.SessionSuspended: "pause",
    e.SessionFinalized: "clear",
}


def rows(machine: Machine) -> set[Move]:
    """List a machine's transitions; an event that is ignored is none."""
    return {
        (state, row.event, row.dest or state)
        for row in machine.transitions
        for state in row.source
        if not row.ignored
    }


def goal_moves(history: list[Happening]) -> set[Move]:
    """Read from a journal, as it grew, what became of its goals."""
    found, kept, record = set[Move](), list[e.Entry](), SessionRecord()
    for happening in history:
        match happening:
            case Started(seq=seq):
                del kept[seq:]
                record = SessionRecord()
                for number, entry in enumerate(kept, 1):
                    apply(record, entry, number, 0.0)
            case Appended(seq=seq, entry=entry):
                before = {name: goal.state for name, goal in record.goals.goals.items()}
                apply(record, entry, seq, 0.0)
                kept.append(entry)
                found |= _moved(before, entry, record)
            case _:
                pass
    return found


def _moved(before: dict[str, str], entry: e.Entry, record: SessionRecord) -> set[Move]:
    """Name what an entry moved, an internal transition of the goal that it is about included."""
    event = EVENTS.get(type(entry), "")
    if isinstance(entry, e.GoalJudged):
        event = VERDICT_EVENTS[entry.verdict]
    about = getattr(entry, "goal", "")
    return {
        (before.get(name, "lined_up"), event, goal.state)
        for name, goal in record.goals.goals.items()
        if event
        and (goal.state != before.get(name, "lined_up") or (name == about and name in before))
    }


def watched(moves: set[Move]) -> type[Session]:
    """Return a session whose judges write down each of their moves."""

    class WatchedJudge(Judge):
        def _fire(self, event: str, facts: frozenset[str] = frozenset()) -> None:
            moved = step(JUDGE, self.state, event, facts)
            if isinstance(moved, Step):
                moves.add((self.state, event, moved.state))
            super()._fire(event, facts)

    class WatchedGoal(Goal):
        judge_type = WatchedJudge

    class WatchedSession(Session):
        goal_type = WatchedGoal

    return WatchedSession
