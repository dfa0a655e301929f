"""The state of a workflow's run as data, and the fold that makes it from the journal.

Ten thousand items are no reason to be slow or large: the state of a step's work is one letter an item,
and only what is worth telling of an attempt is kept.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from ..machines.run import RUN
from ..machines.workflow_step import STEP, WORK
from . import entries as e
from . import run_entries as r
from .entry import Entry
from .fold import move

__all__ = ["NOTHING", "RunRecord", "StepRecord", "apply_to_run"]

NOTHING: Final = r.WorkResult(exit_code=0)
"""What is not worth keeping: it succeeded and said nothing."""

_LETTERS: Final = {
    "waiting": "w",
    "running": "r",
    "resting": "z",
    "interrupted": "i",
    "unknown": "u",
    "done": "d",
    "failed": "f",
}
_STATES: Final = {letter: state for state, letter in _LETTERS.items()}
_EVENT_OF_WORK: Final = {
    "ok": "succeed",
    "failed": "fail",
    "retry": "retry",
    "interrupted": "interrupt",
}
_EVENT_OF_STEP: Final = {"done": "finish", "failed": "fail", "skipped": "skip", "blocked": "block"}


@dataclass(slots=True)
class _Moving:
    """One piece of work for the instant in which its machine moves it."""

    id: str
    state: str


@dataclass(slots=True)
class StepRecord:
    """One step; `marks` has a letter for each item: what state its work is in.

    `items` is none without `for_each`. The dictionaries are by an item's index, written as text: what
    its last attempt came to, attempts if there were several, and the child that does it.
    """

    id: str
    state: str = STEP.initial
    since: float = 0.0
    started: float = 0.0
    reason: str = ""
    is_many: bool = False
    items: list[Any] = field(default_factory=list[Any])
    marks: str = ""
    attempts: dict[str, int] = field(default_factory=dict[str, int])
    results: dict[str, r.WorkResult] = field(default_factory=dict[str, r.WorkResult])
    children: dict[str, str] = field(default_factory=dict[str, str])
    calls: dict[str, str] = field(default_factory=dict[str, str])

    @property
    def total(self) -> int:
        """How many items there are."""
        return len(self.marks)

    def count(self, state: str) -> int:
        """How many items' work is in a state."""
        return self.marks.count(_LETTERS[state])

    def state_of(self, index: int) -> str:
        """Return the state of an item's work."""
        return _STATES[self.marks[index]]

    def those(self, *states: str) -> Iterator[int]:
        """Give the indexes of the items whose work is in one of these states, in order."""
        letters = {_LETTERS[one] for one in states}
        return (index for index, letter in enumerate(self.marks) if letter in letters)

    def first(self, *states: str) -> int | None:
        """Return the first item whose work is in one of these states."""
        found = [self.marks.find(_LETTERS[one]) for one in states]
        return min((one for one in found if one >= 0), default=None)

    def result(self, index: int) -> r.WorkResult:
        """Return what an item's last attempt came to."""
        return self.results.get(str(index), NOTHING)

    def name(self, index: int) -> str:
        """Name an item for people: its value, its number where that is a table, or the step."""
        if not self.is_many:
            return self.id
        item = self.items[index]
        return f"{index + 1}" if isinstance(item, dict | list) else str(item)[:80]

    def mark(self, index: int, event: str) -> None:
        """Move an item's work."""
        work = _Moving(f"{self.id}:{index}", self.state_of(index))
        move(WORK, work, event)
        letter = _LETTERS[work.state]
        self.marks = f"{self.marks[:index]}{letter}{self.marks[index + 1 :]}"


@dataclass(slots=True)
class RunRecord:
    """A whole run. `steps` are those that have begun or ended; the others wait.

    `questions` are the open ones: by name, whose they are. `item` is the queue's item that it is.
    """

    workflow: r.WorkflowCopy
    state: str = RUN.initial
    id: str = "run"
    item: str = ""
    turn: str = ""
    reason: str = ""
    started: float = 0.0
    ended: float = 0.0
    calls_made: int = 0
    steps: dict[str, StepRecord] = field(default_factory=dict[str, StepRecord])
    questions: dict[str, tuple[str, int]] = field(default_factory=dict[str, tuple[str, int]])

    def step(self, name: str) -> StepRecord:
        """Return a step as it is, also one that has not begun."""
        return self.steps.get(name) or StepRecord(name)

    def unknown(self) -> list[tuple[str, int]]:
        """List the work whose outcome nobody knows: step and index."""
        return [(one.id, at) for one in self.steps.values() for at in one.those("unknown")]

    def running(self) -> Iterator[tuple[StepRecord, int]]:
        """Give the work that runs."""
        for one in self.steps.values():
            if "r" in one.marks:
                yield from ((one, index) for index in one.those("running"))


def apply_to_run(run: RunRecord, entry: Entry, time: float) -> None:
    """Fold one entry into the run, in place; entries that are none of its business leave it alone."""
    match entry:
        case r.ItemEnded():
            _end_item(run, entry, time)
        case r.ItemStarted():
            _start_item(run, entry)
        case r.StepStarted():
            _start_step(run, entry, time)
        case r.StepEnded():
            step = run.steps.setdefault(entry.step, StepRecord(entry.step))
            move(STEP, step, _EVENT_OF_STEP[entry.status])
            step.since, step.reason = time, entry.reason
        case r.StepAsked():
            run.questions[entry.question] = (entry.step, entry.index)
        case r.StepReopened():
            _reopen_step(run, entry, time)
        case r.ItemReopened():
            run.steps[entry.step].mark(entry.index, "settle" if entry.is_done else "again")
        case e.ChildStarted():
            for step, index in run.running():
                if step.calls.get(str(index)) == entry.call:
                    step.children[str(index)] = entry.child
        case _:
            _follow_turn(run, entry, time)


def _start_step(run: RunRecord, entry: r.StepStarted, time: float) -> None:
    step = run.steps.setdefault(entry.step, StepRecord(entry.step))
    if step.state == STEP.initial:
        step.started = time
        step.is_many = entry.items is not None
        step.items = list(entry.items or ())
        step.marks = "w" * (len(step.items) if step.is_many else 1)
    move(STEP, step, "start")
    step.since = time


def _reopen_step(run: RunRecord, entry: r.StepReopened, time: float) -> None:
    step = run.steps[entry.step]
    move(STEP, step, "reset" if entry.is_anew else "reopen")
    if entry.is_anew:
        run.steps[entry.step] = StepRecord(step.id, step.state, time)
        return
    step.since, step.reason = time, ""
    for index in list(step.those("failed")):
        step.mark(index, "again")
        step.attempts.pop(str(index), None)


def _start_item(run: RunRecord, entry: r.ItemStarted) -> None:
    step, index = run.steps[entry.step], str(entry.index)
    step.mark(entry.index, "start")
    run.calls_made += 1
    step.calls[index] = entry.call
    if entry.attempt > 1:
        step.attempts[index] = entry.attempt
    if entry.is_child:
        step.children.setdefault(index, "")


def _end_item(run: RunRecord, entry: r.ItemEnded, time: float) -> None:
    step, index = run.steps[entry.step], str(entry.index)
    step.mark(entry.index, _EVENT_OF_WORK[entry.status])
    step.since = time
    step.calls.pop(index, None)
    if entry.status != "interrupted":
        step.children.pop(index, None)
    if entry.result != NOTHING:
        step.results[index] = entry.result
    else:
        step.results.pop(index, None)
    if run.questions:
        here = (entry.step, entry.index)
        run.questions = {name: of for name, of in run.questions.items() if of != here}


def _follow_turn(run: RunRecord, entry: Entry, time: float) -> None:
    """The run goes as its turn goes."""
    match entry:
        case e.TurnStarted():
            run.turn, run.item, run.reason = entry.turn, entry.item, ""
            run.started = run.started or time
            move(RUN, run, "start")
        case e.Interrupted():
            move(RUN, run, "interrupt")
        case e.Stopped() if entry.turn:
            move(RUN, run, "stopped")
            _halt(run, "interrupt", time)
        case e.TurnEnded():
            move(RUN, run, "finish" if entry.status == "completed" else "fail")
            run.reason, run.ended = entry.reason, time
            _halt(run, "interrupt", time)
        case e.Recovered() if run.state not in RUN.final:
            move(RUN, run, "lose")
            _halt(run, "lose", time)
        case _:
            pass


def _halt(run: RunRecord, event: str, time: float) -> None:
    """Nothing runs any more; what a child does, or a person was asked, can be taken up again."""
    asked = set(run.questions.values())
    for step in run.steps.values():
        if step.state == "running":
            move(STEP, step, "interrupt")
            step.since = time
        for index in list(step.those("running", "resting")):
            can_go_on = str(index) in step.children or (step.id, index) in asked
            step.mark(index, "interrupt" if can_go_on else event)
        step.calls.clear()
    run.questions.clear()
