"""Gates, judges and conditions for the simulator: they roll dice, and some are late, or of no use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pykka import ActorRef

from ...machines.conversation import Usage
from ...machines.orders import TimerFired
from ...machines.pursuit import (
    AskJudge,
    AwaitCondition,
    ChangesCounted,
    ConditionMet,
    CountChanges,
    GateEnded,
    GateResult,
    GoalEffect,
    GoalTimer,
    JudgeAnswered,
    JudgeDead,
    RunGate,
    StopJudging,
)
from ..mailbox import reply
from .simulation import Dice, Timeline

__all__ = ["SimulatedJudging", "Verdicts"]

SAYS = {
    "done": '{"verdict": "done", "reason": "it is there"}',
    "continue": '{"verdict": "continue", "reason": "two are missing"}',
    "wait": '{"verdict": "wait", "reason": "it builds", "condition": {"seconds": 3}}',
    "impossible": '{"verdict": "impossible", "reason": "it cannot be"}',
    "prose": "Well done, but let me think about it.",
    "both": '{"verdict": "done"} {"verdict": "continue"}',
}


@dataclass(frozen=True, slots=True)
class Verdicts:
    """What the judge says, each as likely as the others; how often it fails, and gates do.

    `longest` is how many virtual seconds a judge or a gate may take.
    """

    says: tuple[str, ...] = ("continue", "continue", "continue", "done", "wait", "impossible")
    fails: float = 0.1
    gate_fails: float = 0.4
    changes: float = 0.5
    longest: float = 3.0


class SimulatedJudging:
    """One session's; `begun` are the judge's calls and gates that have not ended or been stopped."""

    def __init__(self, timeline: Timeline, dice: Dice, verdicts: Verdicts) -> None:
        self.begun: dict[object, GoalEffect] = {}
        self.is_closed = False
        self._timeline, self._dice, self._verdicts = timeline, dice, verdicts

    def __call__(self, effect: GoalEffect, reply_to: ActorRef[Any] | None) -> None:
        """Begin an effect."""
        match effect:
            case RunGate():
                self._begin(effect, lambda: reply(reply_to, self._gate(effect)))
            case AskJudge():
                self._begin(effect, lambda: reply(reply_to, self._verdict(effect)))
            case CountChanges():
                files = int(self._dice.random() < self._verdicts.changes)
                counted = ChangesCounted(effect.turn, files, self._dice.random() < 0.8)
                self._begin(effect, lambda: reply(reply_to, counted))
            case AwaitCondition():
                seconds = min(effect.limit, effect.condition.seconds * self._dice.random() * 2)
                met = ConditionMet(effect.name, is_late=self._dice.random() < 0.2)
                self._later(seconds, lambda: reply(reply_to, met))
            case GoalTimer():
                self._later(effect.seconds, lambda: reply(reply_to, TimerFired(effect.name)))
            case StopJudging():
                killed = (4712,) if any(isinstance(o, RunGate) for o in self.begun.values()) else ()
                self.begun.clear()
                self._later(self._delay(), lambda: reply(reply_to, JudgeDead(killed)))

    def _begin(self, effect: GoalEffect, end: Callable[[], None]) -> None:
        """Begin it; one that was stopped gives its result even so, now and then."""
        key = object()
        self.begun[key] = effect
        is_stubborn = self._dice.random() < 0.3

        def over() -> None:
            if self.begun.pop(key, None) is not None or is_stubborn:
                end()

        self._later(self._delay(), over)

    def _gate(self, effect: RunGate) -> GateEnded:
        failed = self._dice.random() < self._verdicts.gate_fails
        result = GateResult(effect.argv[0], not failed, "exited", int(failed), "output")
        return GateEnded(effect.turn, effect.number, result)

    def _verdict(self, effect: AskJudge) -> JudgeAnswered:
        usage = Usage(input=len(effect.said), output=1)
        if self._dice.random() < self._verdicts.fails:
            return JudgeAnswered(effect.turn, fault="it is down", usage=usage)
        return JudgeAnswered(effect.turn, SAYS[self._dice.choice(self._verdicts.says)], usage=usage)

    def _later(self, seconds: float, event: Callable[[], None]) -> None:
        self._timeline.after(seconds, lambda: None if self.is_closed else event())

    def _delay(self) -> float:
        return self._dice.random() * self._verdicts.longest
