"""The judge actor: one look at a goal, from the end of a turn to a verdict.

Gates run first, one after the other; the first that fails is the verdict. Then the model is asked. A
judge that fails, is late or says nothing that can be read means `continue`: the goal's budget is what
ends it in any case. Before an agent continues, it is found out whether any file has changed. `EFFECTS`
has the method for each effect that the judge's machine names.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace
from pykka import ActorRef

from ..machines import protocol as m
from ..machines.lifecycles import JUDGE
from ..machines.machine import Refusal, perform, step
from ..machines.value import Value
from ..machines.verdict import Unusable, Verdict, read_verdict
from .decisions.decision import Decision
from .ledger import Ledger, Member

if TYPE_CHECKING:
    from .kernel.system import ActorSystem


GATES_PASSED = "every gate succeeds"
NEWEST = 60
"""Messages, newest last, of which a judge is shown what fits."""


class JudgeRequest(Value):
    """The brief of a judge: the goal, the turn, `gates` to run, or how they ended last time.

    `may_have_changed`: a tool ran that can change files. `is_fresh`: the answers before this one do not
    count, so changes need not be counted. `timeouts` are seconds, for a gate and for the model.
    """

    goal: str
    turn: str
    text: str
    gates: tuple[tuple[str, ...], ...] = ()
    known: tuple[m.GateResult, ...] = ()
    earlier: tuple[str, ...] = ()
    may_have_changed: bool = False
    is_fresh: bool = False
    gates_decide: bool = False
    timeouts: tuple[float, float] = (600.0, 60.0)


class Judge(Member):
    """One boundary's judge; it ends with its verdict. `found` is what it has found out so far."""

    role = "goal"

    def __init__(
        self, system: ActorSystem, ledger: Ledger, judging: JudgeRequest, goal: ActorRef[Any]
    ) -> None:
        super().__init__(system, ledger)
        self.goal = goal
        self.state: str = JUDGE.initial
        self.at = judging
        self.found = m.Judged(
            turn=judging.turn, verdict=Verdict(kind="continue"), gates=judging.known
        )

    def on_start(self) -> None:
        """Begin with the gates; those that failed before, and nothing has changed, fail again."""
        failed = next((gate for gate in self.found.gates if not gate.passed), None)
        if failed is not None:
            self._gate_failed(failed)
        elif self.found.gates:
            self._gates_done()
        else:
            self.next_gate()

    def on_receive(self, message: Any) -> Any:
        """Take in a result; one that comes too late is dropped."""
        match message:
            case m.GateEnded(turn=turn) if self._awaits("gating", turn):
                self._gate_ended(message.result)
            case m.JudgeAnswered(turn=turn) if self._awaits("asking", turn):
                self._answered(message)
            case m.ChangesCounted(turn=turn) if self._awaits("comparing", turn):
                is_unchanged = message.is_sure and not message.files
                self.found = replace(self.found, is_unchanged=is_unchanged)
                self._fire("compared")
            case m.GateEnded() | m.JudgeAnswered() | m.ChangesCounted():
                pass
            case m.StopJudging():
                if self.state not in JUDGE.final:
                    self._fire("stop")
                    self.stop()
            case _:
                return super().on_receive(message)
        return None

    def _awaits(self, state: str, turn: str) -> bool:
        return (self.state, self.at.turn) == (state, turn)

    def _fire(self, event: str, facts: frozenset[str] = frozenset()) -> None:
        """Make the machine's step, and perform the effects that it names."""
        moved = step(JUDGE, self.state, event, facts)
        if isinstance(moved, Refusal):
            self.system.note_refusal(self, moved)
            return
        self.state = moved.state
        perform(JUDGE, moved.effects, EFFECTS)(self)

    def _do(self, effect: m.RunGate | m.AskJudge | m.CountChanges) -> None:
        self.decide(Decision(effects=(effect,)))

    # Gates ----------------------------------------------------------------------------------------

    def next_gate(self) -> None:
        """Run the gate that comes next."""
        number = len(self.found.gates)
        if number < len(self.at.gates):
            gate, timeout = self.at.gates[number], self.at.timeouts[0]
            self._do(
                m.RunGate(
                    goal=self.at.goal, turn=self.at.turn, number=number, argv=gate, timeout=timeout
                )
            )
        else:
            self._gates_done()

    def _gate_ended(self, result: m.GateResult) -> None:
        self.found = replace(self.found, gates=(*self.found.gates, result))
        if result.passed:
            self._fire("gate_passed")
        else:
            self._gate_failed(result)

    def _gate_failed(self, result: m.GateResult) -> None:
        verdict = Verdict(kind="continue", reason=_failure(result))
        self._conclude("gate_failed", replace(self.found, by="gate", verdict=verdict))

    def _gates_done(self) -> None:
        decides = self.at.gates_decide and bool(self.at.gates)
        if decides:
            verdict = Verdict(kind="done", reason=GATES_PASSED)
            self.found = replace(self.found, by="gates", verdict=verdict)
        self._fire("gates_done", frozenset({"gates_decide"} if decides else ()))

    # The model ------------------------------------------------------------------------------------

    def ask_model(self) -> None:
        """Show the model the newest messages, and ask whether the goal is reached."""
        at = self.at
        said = tuple(self.record.conversation[-NEWEST:])
        gates = self.found.gates
        timeout = at.timeouts[1]
        self._do(
            m.AskJudge(
                goal=at.goal,
                turn=at.turn,
                text=at.text,
                gates=gates,
                earlier=at.earlier,
                said=said,
                timeout=timeout,
            )
        )

    def _answered(self, message: m.JudgeAnswered) -> None:
        said = Unusable(why=message.fault) if message.fault else read_verdict(message.text)
        found = replace(self.found, usage=message.usage)
        if isinstance(said, Unusable):
            verdict = Verdict(kind="continue")
            self.found = replace(
                found, fault=said.why, verdict=verdict, is_unchanged=self._is_unchanged
            )
            self._fire("no_verdict")
        else:
            self._conclude("verdict", replace(found, verdict=said))

    # The end --------------------------------------------------------------------------------------

    @property
    def _is_unchanged(self) -> bool:
        """Whether no tool ran that can change files."""
        return not (self.at.is_fresh or self.at.may_have_changed)

    def _conclude(self, event: str, found: m.Judged) -> None:
        """Give the verdict; where the agent is to go on, find out more first."""
        is_to_go_on = found.verdict.kind == "continue"
        must_count = is_to_go_on and self.at.may_have_changed and not self.at.is_fresh
        self.found = replace(found, is_unchanged=self._is_unchanged)
        self._fire(event, frozenset({"must_count"} if must_count else ()))

    def compare(self) -> None:
        """Count the files that the turn has changed."""
        self._do(m.CountChanges(goal=self.at.goal, turn=self.at.turn))

    def tell_goal(self) -> None:
        """Report what was found, and end."""
        self.goal.tell(self.found)
        self.stop()


def _failure(result: m.GateResult) -> str:
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


EFFECTS: Final[dict[str, Callable[[Judge], None]]] = {
    "ask": Judge.ask_model,
    "compare": Judge.compare,
    "next": Judge.next_gate,
    "tell": Judge.tell_goal,
}
"""The methods that perform the effects of the judge's machine, by name."""
