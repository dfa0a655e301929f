"""The state of a workflow's run as data, and the fold that makes it from the journal.

Ten thousand items are no reason to be slow or large: the state of a step's work is one letter an item,
and only what is worth telling of an attempt is kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, Final, assert_never

from msgspec import field
from msgspec.structs import replace

from ..machines.lifecycles import RUN
from ..machines.steps import STEP, WORK
from ..machines.value import Value
from . import entries as e
from .fold import EntryKinds, moved
from .log import IndexMap

NOTHING: Final = e.WorkResult(exit_code=0)
"""A result that is not worth keeping: it succeeded and said nothing."""

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
    "unknown": "lose",
}
_EVENT_OF_STEP: Final = {"done": "finish", "failed": "fail", "skipped": "skip", "blocked": "block"}


class Attempt(Value):
    """An attempt that is under way: at which item of which step, by which call of the session.

    `is_child`: a session does it. `asked` is the question that waits for a person.
    """

    step: str
    index: int
    call: str
    is_child: bool = False
    asked: e.StepAsked | None = None


class StepRecord(Value):
    """One step. The mappings are by an item's index, written as text."""

    id: str
    """Its name."""
    state: str = STEP.initial
    """A state of the step machine."""
    since: float = 0.0
    """When it came into that state, in seconds since 1970."""
    started: float = 0.0
    """When it began."""
    reason: str = ""
    """Why it ended so."""
    is_many: bool = False
    """It has a `for_each`."""
    items: tuple[Any, ...] = field(default_factory=tuple[Any, ...])
    """The items of its `for_each`."""
    marks: str = ""
    """A letter for each item, or one: the state of its work."""
    attempts: IndexMap[int] = field(default_factory=IndexMap[int])
    """Which attempt is the newest or next, if not the first."""
    losses: IndexMap[int] = field(default_factory=IndexMap[int])
    """How many workers died under it."""
    results: IndexMap[e.WorkResult] = field(default_factory=IndexMap[e.WorkResult])
    """What its last attempt came to."""
    children: Mapping[str, str] = field(default_factory=dict[str, str])
    """The child that does it."""

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
        index = self.first(*states)
        while index is not None:
            yield index
            index = self.first(*states, start=index + 1)

    def first(self, *states: str, start: int = 0) -> int | None:
        """Return the first item, from `start` on, whose work is in one of these states."""
        found = [self.marks.find(_LETTERS[state], start) for state in states]
        return min((place for place in found if place >= 0), default=None)

    def result(self, index: int) -> e.WorkResult:
        """Return the result of an item's last attempt."""
        return self.results.get(str(index), NOTHING)

    def name(self, index: int) -> str:
        """Name an item for people: its value, its number where that is a table, or the step."""
        if not self.is_many:
            return self.id
        item = self.items[index]
        return f"{index + 1}" if isinstance(item, dict | list) else str(item)[:80]

    def marked(self, index: int, event: str) -> str:
        """Return the marks after an item's work has moved."""
        letter = _LETTERS[moved(WORK, self.state_of(index), event)]
        return f"{self.marks[:index]}{letter}{self.marks[index + 1 :]}"


class RunRecord(Value):
    """A whole run."""

    workflow: e.WorkflowCopy
    """The workflow as it was when the run began."""
    state: str = RUN.initial
    """A state of the run machine."""
    id: str = "run"
    """The same in every session."""
    item: str = ""
    """The queue's item that it is."""
    turn: str = ""
    """The turn that it is now, or was last."""
    reason: str = ""
    """Why it failed."""
    started: float = 0.0
    """When it began, in seconds since 1970."""
    ended: float = 0.0
    """When it ended."""
    began: float = 0.0
    """When its newest turn began."""
    worked: float = 0.0
    """Seconds that its ended turns took."""
    is_late: bool = False
    """It has worked for as long as it may."""
    calls_made: int = 0
    """How many attempts it has begun."""
    said: str = ""
    """What people have said to it that no agent has got yet."""
    killed: tuple[int, ...] = ()
    """Processes of the attempts that were interrupted in its newest turn."""
    survivors: tuple[int, ...] = ()
    """Those of them that could not be killed."""
    steps: Mapping[str, StepRecord] = field(default_factory=dict[str, StepRecord])
    """The steps that have begun or ended, by name; the others wait."""
    open: Mapping[str, Attempt] = field(default_factory=dict[str, Attempt])
    """The attempts that are under way, by their calls."""

    @property
    def questions(self) -> dict[str, Attempt]:
        """The questions that wait for a person, by name: whose they are."""
        return {known.asked.question: known for known in self.open.values() if known.asked}

    def step(self, name: str) -> StepRecord:
        """Return a step as it is, also one that has not begun."""
        return self.steps.get(name) or StepRecord(id=name)

    def unknown(self) -> list[tuple[str, int]]:
        """List the work whose outcome is unknown: step and index."""
        return [(step.id, at) for step in self.steps.values() for at in step.those("unknown")]


_Folded = (
    e.AnyRunEntry
    | e.ChildStarted
    | e.Steered
    | e.TurnStarted
    | e.Interrupted
    | e.Stopped
    | e.TurnEnded
    | e.Recovered
)
_FOLDED = EntryKinds[_Folded](_Folded)


def apply_to_run(run: RunRecord, entry: e.Entry, time: float) -> RunRecord:
    """Return the run after one entry; entries that are none of its business leave it as it is.

    Raises `StoreDamaged` if a machine refuses the entry.
    """
    if not _FOLDED.include(entry):
        return run
    match entry:
        case e.ItemEnded():
            return _end_item(run, entry, time)
        case e.ItemStarted():
            return _start_item(run, entry)
        case e.StepStarted():
            return _start_step(run, entry, time)
        case e.StepEnded():
            state = moved(STEP, run.step(entry.step).state, _EVENT_OF_STEP[entry.status])
            return _put(run, entry.step, state=state, since=time, reason=entry.reason)
        case e.StepAsked():
            asked = {
                known.call: replace(known, asked=entry)
                for known in run.open.values()
                if _is_at(known, entry)
            }
            return replace(run, open={**run.open, **asked})
        case e.StepReleased():
            return _release_item(run, entry)
        case e.RunOverdue():
            return replace(run, is_late=True)
        case e.StepReopened():  # whoever tries a run again grants it its time once more
            return replace(_reopen_step(run, entry, time), worked=0.0, is_late=False)
        case e.ItemReopened():
            event = "settle" if entry.is_done else "again"
            marks = run.steps[entry.step].marked(entry.index, event)
            return _put(run, entry.step, marks=marks)
        case e.ChildStarted():
            return _start_child(run, entry)
        case e.Steered():
            said = (run.said, *(message.text for message in entry.messages))
            return replace(run, said="\n\n".join(filter(None, said)))
        case e.TurnStarted() | e.Interrupted() | e.Stopped() | e.TurnEnded() | e.Recovered():
            return _follow_turn(run, entry, time)
        case _:
            assert_never(entry)


def _put(run: RunRecord, name: str, **changes: Any) -> RunRecord:
    """Change fields of a step, also of one that has not begun."""
    return replace(run, steps={**run.steps, name: replace(run.step(name), **changes)})


def _start_child(run: RunRecord, entry: e.ChildStarted) -> RunRecord:
    """Note which session does the work that it was sent off for."""
    known = run.open.get(entry.call)
    if known is None:
        return run
    children = {**run.steps[known.step].children, str(known.index): entry.child}
    return _put(run, known.step, children=children)


def _is_at(known: Attempt, entry: e.StepAsked | e.StepReleased | e.ItemEnded) -> bool:
    return (known.step, known.index) == (entry.step, entry.index)


def _start_step(run: RunRecord, entry: e.StepStarted, time: float) -> RunRecord:
    step = run.step(entry.step)
    state = moved(STEP, step.state, "start")
    if step.state != STEP.initial:
        return _put(run, entry.step, state=state, since=time)
    items, is_many = tuple(entry.items or ()), entry.items is not None
    return _put(
        run,
        entry.step,
        state=state,
        since=time,
        started=time,
        is_many=is_many,
        items=items,
        marks="w" * (len(items) if is_many else 1),
    )


def _reopen_step(run: RunRecord, entry: e.StepReopened, time: float) -> RunRecord:
    step = run.steps[entry.step]
    state = moved(STEP, step.state, "reset" if entry.is_anew else "reopen")
    if entry.is_anew:
        return replace(
            run, steps={**run.steps, step.id: StepRecord(id=step.id, state=state, since=time)}
        )
    marks, attempts = list(step.marks), dict(step.attempts)
    for index in step.those("failed"):
        marks[index] = _LETTERS[moved(WORK, "failed", "again")]
        attempts.pop(str(index), None)
    return _put(
        run,
        step.id,
        state=state,
        since=time,
        reason="",
        marks="".join(marks),
        attempts=IndexMap(attempts),
    )


def _start_item(run: RunRecord, entry: e.ItemStarted) -> RunRecord:
    step, index = run.steps[entry.step], str(entry.index)
    attempts, children = step.attempts, step.children
    if entry.attempt > 1:
        attempts = attempts.with_item(index, entry.attempt)
    if entry.is_child and index not in children:
        children = {**children, index: ""}
    step = replace(
        step,
        marks=step.marked(entry.index, "start"),
        attempts=attempts,
        children=children,
    )
    begun = Attempt(step=step.id, index=entry.index, call=entry.call, is_child=entry.is_child)
    return replace(
        run,
        steps={**run.steps, step.id: step},
        open={**run.open, entry.call: begun},
        calls_made=run.calls_made + 1,
        said="" if entry.is_told else run.said,
    )


def _release_item(run: RunRecord, entry: e.StepReleased) -> RunRecord:
    """Let an attempt go on whose question is answered: it begins now."""
    step, index = run.steps[entry.step], str(entry.index)
    if entry.is_child and index not in step.children:
        step = replace(step, children={**step.children, index: ""})
    begun = {
        known.call: replace(known, asked=None, is_child=entry.is_child)
        for known in run.open.values()
        if _is_at(known, entry)
    }
    return replace(
        run,
        steps={**run.steps, step.id: step},
        open={**run.open, **begun},
        said="" if entry.is_told else run.said,
    )


def _end_item(run: RunRecord, entry: e.ItemEnded, time: float) -> RunRecord:
    step, index = run.steps[entry.step], str(entry.index)
    children, results = step.children, step.results
    if entry.status != "interrupted":
        children = _without(children, index)
    if entry.result != NOTHING:
        results = results.with_item(index, entry.result)
    else:
        results = results.without(index)
    losses, attempts = step.losses, step.attempts
    if entry.status == "unknown":
        losses = losses.with_item(index, losses.get(index, 0) + 1)
    if entry.status == "retry":
        attempts = attempts.with_item(index, attempts.get(index, 1) + 1)
    step = replace(
        step,
        marks=step.marked(entry.index, _EVENT_OF_WORK[entry.status]),
        attempts=attempts,
        losses=losses,
        since=time,
        children=children,
        results=results,
    )
    return replace(
        run,
        steps={**run.steps, step.id: step},
        open={call: known for call, known in run.open.items() if not _is_at(known, entry)},
        killed=run.killed + entry.killed,
        survivors=run.survivors + entry.survivors,
    )


def _without(known: Mapping[str, str], key: str) -> Mapping[str, str]:
    if key not in known:
        return known
    return {name: value for name, value in known.items() if name != key}


def _follow_turn(
    run: RunRecord,
    entry: e.TurnStarted | e.Interrupted | e.Stopped | e.TurnEnded | e.Recovered,
    time: float,
) -> RunRecord:
    """The run goes as its turn goes."""
    match entry:
        case e.TurnStarted():
            return replace(
                run,
                state=moved(RUN, run.state, "start"),
                started=run.started or time,
                began=time,
                turn=entry.turn,
                item=entry.item,
                reason="",
                killed=(),
                survivors=(),
            )
        case e.Interrupted():
            return replace(run, state=moved(RUN, run.state, "interrupt"))
        case e.Stopped():
            if not entry.turn:
                return run
            run = replace(run, state=moved(RUN, run.state, "stopped"), worked=_worked(run, time))
            return _halt(run, "interrupt", time)
        case e.TurnEnded():
            state = moved(RUN, run.state, "finish" if entry.status == "completed" else "fail")
            worked = _worked(run, time)
            run = replace(run, state=state, reason=entry.reason, ended=time, worked=worked)
            return _halt(run, "interrupt", time)
        case e.Recovered():
            if run.state in RUN.final:
                return run
            worked = run.worked
            if run.state in ("running", "interrupting"):
                worked = _worked(run, entry.last_active)
            run = replace(run, state=moved(RUN, run.state, "lose"), worked=worked)
            return _halt(run, "lose", time)


def _worked(run: RunRecord, time: float) -> float:
    """Return how many seconds the run has worked when its newest turn ends; no clock goes back here."""
    return run.worked + max(0.0, time - run.began)


def _halt(run: RunRecord, event: str, time: float) -> RunRecord:
    """Stop all work; work of a child, or that a person was asked about, can be resumed."""
    asked = {(known.step, known.index) for known in run.questions.values()}
    steps = {name: _halted(step, event, time, asked) for name, step in run.steps.items()}
    return replace(run, steps=steps, open={})


def _halted(
    step: StepRecord, event: str, time: float, asked: AbstractSet[tuple[str, int]]
) -> StepRecord:
    """Return a step of a run that has halted; `asked` is the work that a person was asked about."""
    state, since, marks = step.state, step.since, list(step.marks)
    if state == "running":
        state, since = moved(STEP, state, "interrupt"), time
    for index in step.those("running", "resting"):
        can_go_on = str(index) in step.children or (step.id, index) in asked
        after = moved(WORK, step.state_of(index), "interrupt" if can_go_on else event)
        marks[index] = _LETTERS[after]
    return replace(step, state=state, since=since, marks="".join(marks))
