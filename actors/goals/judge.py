"""The judge actor: one look at a goal, from the end of a turn to a verdict.

Gates run first, one after the other; the first that fails is the verdict. Then the model is asked. A
judge that fails, is late or says nothing that can be read means `continue`: the goal's budget is what
ends it in any case. Before an agent that repeats itself is told to go on, it is found out whether any
file has changed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ...machines.conversation import Usage
from ...machines.judge import JUDGE
from ...machines.pursuit import (
    AskJudge,
    ChangesCounted,
    CountChanges,
    GateEnded,
    GateResult,
    GoalDecided,
    JudgeAnswered,
    Judged,
    RunGate,
    StopJudging,
)
from ...machines.step import Refusal, step
from ...machines.verdict import Unusable, Verdict, read_verdict
from ..actor import Actor

if TYPE_CHECKING:
    from ...machines.policy import GoalPolicy
    from ..system import ActorSystem

__all__ = ["Boundary", "Judge"]

GATES_PASSED = "every gate succeeds"


@dataclass(frozen=True, slots=True)
class Boundary:
    """What a judge has to know: the goal, the turn, `gates` to run, or how they ended last time.

    `is_repeated`: the agent says what it said before. `may_have_changed`: a tool ran that can change
    files; `is_changed`: something has changed for sure.
    """

    goal: str
    turn: str
    text: str
    gates: tuple[tuple[str, ...], ...] = ()
    known: tuple[GateResult, ...] = ()
    earlier: tuple[str, ...] = ()
    is_repeated: bool = False
    may_have_changed: bool = False


class Judge(Actor):
    """One boundary's judge; it ends with its verdict."""

    def __init__(
        self,
        system: ActorSystem,
        boundary: Boundary,
        policy: GoalPolicy,
        goal: ActorRef[Any],
        queue: ActorRef[Any],
    ) -> None:
        super().__init__(system)
        self.state: str = JUDGE.initial
        self._at, self._policy = boundary, policy
        self._goal, self._queue = goal, queue
        self._results = list(boundary.known)
        self._verdict = Verdict("continue")
        self._by, self._fault = "judge", ""
        self._usage = Usage()

    def on_start(self) -> None:
        """Begin with the gates; those that failed before, and nothing has changed, fail again."""
        failed = next((one for one in self._results if not one.passed), None)
        if failed is not None:
            self._gate_failed(failed)
        else:
            self._next_gate()

    def on_receive(self, message: Any) -> Any:
        """Take in a result; one that comes too late is nobody's any more."""
        match message:
            case GateEnded(turn=turn) if self._awaits("gating", turn):
                self._gate_ended(message)
            case JudgeAnswered(turn=turn) if self._awaits("asking", turn):
                self._answered(message)
            case ChangesCounted(turn=turn) if self._awaits("comparing", turn):
                self._move("compared")
                self._tell(is_stuck=message.is_sure and not message.files)
            case GateEnded() | JudgeAnswered() | ChangesCounted():
                pass
            case StopJudging():
                if self.state not in JUDGE.final:
                    self._move("stop")
                    self.stop()
            case _:
                return super().on_receive(message)
        return None

    def _awaits(self, state: str, turn: str) -> bool:
        return (self.state, self._at.turn) == (state, turn)

    # Gates ----------------------------------------------------------------------------------------

    def _next_gate(self) -> None:
        number = len(self._results)
        if number < len(self._at.gates) and not self._at.known:
            gate = self._at.gates[number]
            timeout = self._policy.gate_timeout
            self._do(RunGate(self._at.goal, self._at.turn, number, gate, timeout))
        else:
            self._ask()

    def _gate_ended(self, message: GateEnded) -> None:
        self._results.append(message.result)
        if not message.result.passed:
            self._gate_failed(message.result)
            return
        self._move("gate_passed")
        self._next_gate()

    def _gate_failed(self, result: GateResult) -> None:
        self._by = "gate"
        self._verdict = Verdict("continue", _failure(result))
        self._conclude("gate_failed")

    # The model ------------------------------------------------------------------------------------

    def _ask(self) -> None:
        decides = self._policy.gates_decide and bool(self._at.gates)
        if self._move("gates_done", {"gates_decide"} if decides else set()) == "judged":
            self._by, self._verdict = "gates", Verdict("done", GATES_PASSED)
            self._tell()
            return
        at = self._at
        results, timeout = tuple(self._results), self._policy.judge_timeout
        self._do(AskJudge(at.goal, at.turn, at.text, results, at.earlier, timeout=timeout))

    def _answered(self, message: JudgeAnswered) -> None:
        self._usage = message.usage
        found = Unusable(message.fault) if message.fault else read_verdict(message.text)
        if isinstance(found, Unusable):
            self._fault = found.why
            self._verdict = Verdict("continue")
            self._move("no_verdict")
            self._tell(is_stuck=self._at.is_repeated and not self._at.may_have_changed)
            return
        self._verdict = found
        self._conclude("verdict")

    # The end --------------------------------------------------------------------------------------

    def _conclude(self, event: str) -> None:
        """Tell the verdict; where it is to go on, and the agent repeats itself, find out more."""
        at = self._at
        is_repeated = at.is_repeated and self._verdict.kind == "continue"
        must_look = is_repeated and at.may_have_changed
        if self._move(event, {"is_repeated"} if must_look else set()) == "comparing":
            self._do(CountChanges(at.goal, at.turn))
        else:
            self._tell(is_stuck=is_repeated)

    def _tell(self, is_stuck: bool = False) -> None:
        self._goal.tell(
            Judged(
                self._at.turn,
                self._verdict,
                self._by,
                self._fault,
                tuple(self._results),
                self._usage,
                is_stuck,
            )
        )
        self.stop()

    def _do(self, effect: RunGate | AskJudge | CountChanges) -> None:
        self._queue.tell(GoalDecided(self._at.goal, effects=(effect,)))

    def _move(self, event: str, facts: set[str] | frozenset[str] = frozenset()) -> str:
        moved = step(JUDGE, self.state, event, facts)
        assert not isinstance(moved, Refusal), moved
        self.state = moved.state
        return self.state


def _failure(result: GateResult) -> str:
    """Say how a gate failed."""
    match result.status:
        case "exited":
            how = f"exit code {result.exit_code}"
        case "timed_out":
            how = "timed out"
        case "failed":
            how = f"could not be run: {result.output}"
        case _:
            how = result.status
    return f"the gate `{result.command}` failed ({how})"
