"""Runs of models that go round in circles: one call again and again, several in turn, or failures.

About two of three turns do, each in a way of its own, whatever people say to it. What counts as a circle
is found here from the journal alone, by looking at each step of a turn anew.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any
from zlib import crc32

from ..journal import entries as e
from ..journal.turn_record import GOES_ON
from ..machines import protocol as m
from ..machines.conversation import ToolRequest
from ..machines.progress import LONGEST, ProgressPolicy
from .choices import Choices, Seed
from .goals import GoalScenario
from .ports import SimulatedPorts
from .program import SimulatedProgram
from .promises import durable_entries
from .scenario import Scenario

MOST_STEPS = 60
"""Answers of a model in a turn, more than any circle may take."""
_FAILURES = 0
_FREE = 9
"""What is left after a division: the kind of a turn. Between both: the length of its cycle."""


class LoopingPorts(SimulatedPorts):
    """Ports whose model goes round in circles; `salt` says which turns do, and how."""

    keeps_streams = True

    def __init__(self, salt: int, **given: Any) -> None:
        super().__init__(**given)
        self._salt = salt

    def _kind(self, turn: str) -> int:
        return min(crc32(f"{self._salt} {turn}".encode()) % 14, _FREE)

    def wishes(self, at: m.CallModel) -> tuple[ToolRequest, ...]:
        """Make the one call that is due in the circle."""
        kind = self._kind(at.turn)
        if kind == _FREE:
            return super().wishes(at)
        name = f"{at.turn}.s{at.step}.c1"
        path = f"{at.step}" if kind == _FAILURES else f"{at.step % kind} of {kind}"
        return (ToolRequest(call=name, tool="read", arguments={"path": path}),)

    def result(self, at: m.RunTool, status: m.ToolStatus) -> m.ToolResult:
        """Return the same each time."""
        kind = self._kind(at.turn)
        if kind == _FREE or status != "ok":
            return super().result(at, status)
        if kind == _FAILURES:
            return m.ToolResult(status="failed", text=f"no such file: {at.arguments}")
        return m.ToolResult(status="ok", text="output", exit_code=0, bytes=6)


class LoopScenario:
    """A session's run, or that of goals for every third seed, with a model that goes round in circles."""

    def __init__(self, seed: Seed, **changes: Any) -> None:
        number = seed.number if isinstance(seed, Choices) else seed
        kind = Scenario if number % 3 else GoalScenario
        ports = partial(LoopingPorts, number)
        self._played = kind(seed, ports_type=ports, max_steps=MOST_STEPS, **changes)
        self.program = self._played.program

    def run(self) -> SimulatedProgram:
        """Play it to its end, and check every promise."""
        program = self._played.run()
        policy = program.environment.progress
        for history in program.chronicle.of.values():
            journal = durable_entries(history)
            circles_end(journal, policy)
            only_circles_are_noted(journal, policy)
        return program


def circles_end(journal: list[e.Entry], policy: ProgressPolicy) -> None:
    """No turn goes round longer than its policy says, unless a person wants it to."""
    for turn, count, entry in repetitions(journal, policy.period):
        if isinstance(entry, e.ModelCalled):
            assert count < policy.end, f"{turn} was to make a step after {count} repetitions"


def only_circles_are_noted(journal: list[e.Entry], policy: ProgressPolicy) -> None:
    """Only a turn that repeats itself is told so, asked about, judged or ended."""
    for turn, count, entry in repetitions(journal, policy.period):
        if isinstance(entry, e.NoProgress) and entry.did != "cut":
            least = {"told": policy.tell, "judged": policy.tell, "asked": policy.ask}
            due = least.get(entry.did, min(policy.ask, policy.end))
            assert count >= due, f"{turn} was {entry.did} after {count} repetitions"


def repetitions(journal: list[e.Entry], period: int) -> Iterator[tuple[str, float, e.TurnEntry]]:
    """For each entry of a turn give how often its newest steps were done, as far as is known then.

    What changed something, a steer, and a person who lets the turn go on begin the count anew; it is
    minus infinity once a person has said that the turn may go on for ever.
    """
    steps: dict[str, list[tuple[Any, Any]]] = {}
    called: dict[str, tuple[str, Any]] = {}
    open_calls: dict[str, dict[str, tuple[Any, Any]]] = {}
    asked: dict[str, str] = {}
    free: set[str] = set()
    for entry in journal:
        if not isinstance(entry, e.TurnEntry):
            if isinstance(entry, e.Steered):
                steps[entry.turn] = []
                open_calls.pop(entry.turn, None)
            continue
        turn = entry.turn
        match entry:
            case e.Answered():
                requests = entry.messages[0].tool_calls if entry.messages else ()
                called |= {request.call: (request.tool, request.arguments) for request in requests}
                open_calls[turn] = {}
            case e.ToolIntended(call=call, is_changed=True):
                called[call] = (entry.tool, entry.arguments)
            case e.ToolEnded() | e.ToolRefused():
                said = entry.messages[0].text if entry.messages else ""
                end = entry.end if isinstance(entry, e.ToolEnded) else m.CallEnd(status="failed")
                status = entry.status if isinstance(entry, e.ToolRefused) else end.status
                has_run = end.exit_code is not None
                tool = called[entry.call][0]
                failure = None if status == "ok" or has_run else (tool, _plain(said))
                step = open_calls.setdefault(turn, {})
                step[entry.call] = ((*called[entry.call], status, said), failure)
            case e.QuestionAsked(rule="no_progress"):
                asked[entry.question] = turn
            case e.QuestionAnswered(choice=choice) if asked.get(entry.question) == turn:
                if choice in GOES_ON:
                    steps[turn] = []
                free |= {turn} if choice == "always" else set()
            case e.ModelCalled() | e.NoProgress() | e.TurnEnded():
                if step := open_calls.pop(turn, {}):
                    done = sorted(step.values(), key=repr)
                    steps.setdefault(turn, []).append(
                        ([mark for mark, _ in done], [failure for _, failure in done])
                    )
            case _:
                pass
        yield turn, -float("inf") if turn in free else _count(steps.get(turn, []), period), entry


def _count(steps: list[tuple[list[Any], list[Any]]], period: int) -> int:
    """Say how many of the newest steps were made before, or failed in the same way, one included.

    Those that were made before are in a circle only if none was made longer ago than `period` steps.
    """
    marks, failures = [mark for mark, _ in steps], [failure for _, failure in steps]
    repeated = failed = farthest = 0
    for at in range(len(steps) - 1, -1, -1):
        before = marks[max(0, at - LONGEST) : at]
        if marks[at] not in before:
            break
        repeated, farthest = repeated + 1, max(farthest, before[::-1].index(marks[at]) + 1)
    if farthest > period:
        repeated = 0
    for failure in reversed(failures):
        if failure != failures[-1] or None in failure:
            break
        failed += 1
    return max(repeated + 1 if repeated else 0, failed)


def _plain(text: str) -> str:
    return text.partition(":")[0]
