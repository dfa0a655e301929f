"""Ports for the simulator: a model and tools that roll dice.

They keep to the letter of the seams, in the way that is hardest for their callers: an answer that
comes although the call was cancelled, a tool that takes its time to die.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any, assert_never
from zlib import crc32

from msgspec import Struct, field
from msgspec.structs import replace
from pykka import ActorRef

from ..actors.decisions.queries import DELEGATE
from ..actors.gate import never_started
from ..actors.kernel.mailbox import reply
from ..machines import protocol as m
from ..machines.conversation import ToolRequest, Usage
from ..machines.value import Value
from .schedule import Dice, Timeline

if TYPE_CHECKING:
    from ..actors.work.executor import ChildOpener
    from .session import SimulatedSession

# Gates, judges and conditions: they roll dice, and some are late, or of no use --------------------


SAYS = {
    "done": '{"verdict": "done", "reason": "it is there"}',
    "continue": '{"verdict": "continue", "reason": "two are missing"}',
    "wait": '{"verdict": "wait", "reason": "it builds", "condition": {"seconds": 3}}',
    "impossible": '{"verdict": "impossible", "reason": "it cannot be"}',
    "prose": "Well done, but let me think about it.",
    "both": '{"verdict": "done"} {"verdict": "continue"}',
}


class Verdicts(Value):
    """The judge's answers, each as likely as the others; how often it fails, and gates do.

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
        self.begun: dict[object, m.GoalEffect] = {}
        self.is_closed = False
        self._timeline, self._dice, self._verdicts = timeline, dice, verdicts

    def __call__(self, effect: m.GoalEffect, reply_to: ActorRef[Any] | None) -> None:
        """Begin an effect."""
        match effect:
            case m.RunGate():
                self._begin(effect, lambda: reply(reply_to, self._gate(effect)))
            case m.AskJudge():
                self._begin(effect, lambda: reply(reply_to, self._verdict(effect)))
            case m.CountChanges():
                files = int(self._dice.random() < self._verdicts.changes)
                counted = m.ChangesCounted(
                    turn=effect.turn, files=files, is_sure=self._dice.random() < 0.8
                )
                self._begin(effect, lambda: reply(reply_to, counted))
            case m.AwaitCondition():
                seconds = min(effect.limit, effect.condition.seconds * self._dice.random() * 2)
                met = m.ConditionMet(name=effect.name, is_late=self._dice.random() < 0.2)
                self._later(seconds, lambda: reply(reply_to, met))
            case m.GoalTimer():
                self._later(
                    effect.seconds,
                    lambda: reply(reply_to, m.TimerFired(timer=m.Timer(kind=effect.name))),
                )
            case m.StopJudging():
                killed = (
                    (4712,) if any(isinstance(o, m.RunGate) for o in self.begun.values()) else ()
                )
                self.begun.clear()
                self._later(self._delay(), lambda: reply(reply_to, m.JudgeDead(killed=killed)))
            case _:  # an effect that is none of the ports'
                assert_never(effect)

    def _begin(self, effect: m.GoalEffect, end: Callable[[], None]) -> None:
        """Begin it; one that was stopped gives its result even so, now and then."""
        key = object()
        self.begun[key] = effect
        is_stubborn = self._dice.random() < 0.3

        def over() -> None:
            if self.begun.pop(key, None) is not None or is_stubborn:
                end()

        self._later(self._delay(), over)

    def _gate(self, effect: m.RunGate) -> m.GateEnded:
        failed = self._dice.random() < self._verdicts.gate_fails
        result = m.GateResult(
            command=effect.argv[0],
            passed=not failed,
            status="exited",
            exit_code=int(failed),
            output="output",
        )
        return m.GateEnded(turn=effect.turn, number=effect.number, result=result)

    def _verdict(self, effect: m.AskJudge) -> m.JudgeAnswered:
        usage = Usage(input=len(effect.said), output=1)
        if self._dice.random() < self._verdicts.fails:
            return m.JudgeAnswered(turn=effect.turn, fault="it is down", usage=usage)
        return m.JudgeAnswered(
            turn=effect.turn, text=SAYS[self._dice.choice(self._verdicts.says)], usage=usage
        )

    def _later(self, seconds: float, event: Callable[[], None]) -> None:
        self._timeline.after(seconds, lambda: None if self.is_closed else event())

    def _delay(self) -> float:
        return self._dice.random() * self._verdicts.longest


class Chances(Value):
    """How often things go which way, from 0 to 1; delays are in virtual seconds.

    `tells_when`: a model that fails may say when it can be asked again.
    """

    calls: float = 0.5
    model_fails: float = 0.05
    answers_after_cancel: float = 0.3
    bad_arguments: float = 0.05
    delegates: float = 0.0
    longest: float = 4.0
    repeats: float = 0.0
    tells_when: bool = False
    verdicts: Verdicts = field(default_factory=Verdicts)


WAITS = (0.0, 3.0, 90.0, 100_000.0)
"""Seconds after which a model that failed can be asked again; the last is too long to wait for."""
PATIENCE = 60.0
"""Minutes that a simulated session waits for it at most, where it does."""
TOOLS = ("read", "read", "write", "ask_read", "ask_write", "deny_write", "defer")


class SimulatedPorts:
    """One incarnation's model and tools; `performed` is called with every effect before it begins.

    `session` returns whose they are. `text`, `wishes`, `request`, `result` make up what comes back,
    and a derived class may replace them.
    `keeps_streams`: a part of an answer that streams is kept at once, as after a second.
    """

    keeps_streams = False

    def __init__(
        self,
        timeline: Timeline,
        dice: Dice,
        chances: Chances,
        performed: Callable[[m.PortEffect], None],
        session: Callable[[], SimulatedSession],
        children: ChildOpener,
        has_room: Callable[[], bool],
    ) -> None:
        self.models: dict[str, ModelCall] = {}
        self.tools: dict[str, ToolCall] = {}
        self.session, self._children, self._has_room = session, children, has_room
        self._doors: dict[str, float] = {}
        self.judging = SimulatedJudging(timeline, dice, chances.verdicts)
        self.dice = dice
        self._timeline, self._chances = timeline, chances
        self._performed = performed

    def __call__(self, effect: m.PortEffect, reply_to: ActorRef[Any] | None) -> None:
        """Begin an effect."""
        self._performed(effect)
        match effect:
            case m.CallModel(is_summary=True):
                self._summarise(effect, reply_to)
            case m.CallModel():
                self._call(effect, reply_to)
            case m.CancelModel(turn=turn):
                self._cancel(turn)
            case m.RunTool():
                self._run(effect, reply_to)
            case m.StopTool():
                self._stop(effect, reply_to)
            case m.AnswerAgent():
                pass  # no agent here is another program
            case m.RestoreFiles():
                self._restore(effect, reply_to)
            case m.OpenChild():
                if reply_to is not None:
                    self._at_door(effect.session, lambda: self._open(effect, reply_to))
            case m.CloseChild(session=session):
                self._at_door(session, lambda: finish(self._children.close_child(session)))
            case m.SetTimer():
                fired = m.TimerFired(timer=effect.timer, epoch=effect.epoch)
                self._later(effect.seconds, lambda: reply(reply_to, fired))
            case m.LookAfter():
                pass
            case _:
                self.judging(effect, reply_to)

    def close(self) -> None:
        """End whatever still runs."""
        self.judging.is_closed = True
        for turn in list(self.models):
            self._cancel(turn)
        self.tools.clear()

    def _later(self, seconds: float, event: Callable[[], None]) -> None:
        self._timeline.after(seconds, lambda: None if self.judging.is_closed else event())

    # Children -------------------------------------------------------------------------------------

    def _at_door(self, session: str, event: Callable[[], None]) -> None:
        """Open or close a child's session after a while, one after the other."""
        now = self._timeline.now
        due = max(now + self._delay() / 4, self._doors.get(session, 0.0))
        self._doors[session] = due
        self._later(due - now, event)

    def _open(self, effect: m.OpenChild, supervisor: ActorRef[Any]) -> None:
        reply(supervisor, self._children.open_child(self.session().id, effect, supervisor))

    # The model ------------------------------------------------------------------------------------

    def _call(self, effect: m.CallModel, reply_to: ActorRef[Any] | None) -> None:
        call = ModelCall(effect=effect, reply_to=reply_to)
        self.models[effect.turn] = call
        delay = 0.0
        for number in range(self.dice.randrange(0, 4)):
            delay += self._delay() / 10
            self._later(delay, lambda number=number: self._stream(call, number))  # type: ignore[misc]
        self._later(delay + self._delay() / 10, lambda: self._answer(call))

    def _stream(self, call: ModelCall, number: int) -> None:
        at = call.effect
        if call.is_open:
            reply(
                call.reply_to,
                m.ModelText(
                    turn=at.turn,
                    epoch=at.epoch,
                    step=at.step,
                    delta=f"piece {number} ",
                    is_due=self.keeps_streams and number == 1,
                ),
            )
            if number == 0:
                reply(
                    call.reply_to, m.ModelNoticed(turn=at.turn, epoch=at.epoch, text="slow today")
                )

    def _answer(self, call: ModelCall) -> None:
        if not call.is_open and self.dice.random() >= self._chances.answers_after_cancel:
            return
        at = call.effect
        assert isinstance(at, m.CallModel)
        if self.models.get(at.turn) is call:
            del self.models[at.turn]
        if self.dice.random() < self._chances.model_fails:
            failed = m.ModelFailed(
                turn=at.turn, epoch=at.epoch, step=at.step, reason="it is down", hint="try again"
            )
            if self._chances.tells_when:
                again = WAITS[crc32(f"{at.turn}.{at.step}".encode()) % len(WAITS)]
                failed = replace(failed, again=again)
            reply(call.reply_to, failed)
            return
        calls = self.wishes(at)
        usage = Usage(input=len(at.messages), output=1)
        answered = m.ModelAnswered(
            turn=at.turn,
            epoch=at.epoch,
            step=at.step,
            text=self.text(at),
            tool_calls=calls,
            usage=usage,
        )
        reply(call.reply_to, answered)

    def wishes(self, at: m.CallModel) -> tuple[ToolRequest, ...]:
        """Return the tool calls of an answer."""
        if self.dice.random() >= self._chances.calls:
            return ()
        return tuple(self.request(at, number) for number in range(self.dice.randrange(1, 4)))

    def text(self, at: m.CallModel) -> str:
        """Return the text of an answer."""
        is_repeated = self._chances.repeats and self.dice.random() < self._chances.repeats
        return "the same again" if is_repeated else f"answer {at.turn}.{at.step}"

    def _summarise(self, effect: m.CallModel, reply_to: ActorRef[Any] | None) -> None:
        """Sum up, or fail to; a cancel comes too late as often as it does for an answer."""
        call = ModelCall(effect=effect, reply_to=reply_to)
        self.models[effect.turn] = call
        self._later(self._delay(), lambda: self._sum_up(call, effect))

    def _sum_up(self, call: ModelCall, effect: m.CallModel) -> None:
        if not call.is_open and self.dice.random() >= self._chances.answers_after_cancel:
            return
        self.models.pop(effect.turn, None)
        fails = self.dice.random() < self._chances.model_fails
        usage = Usage(input=len(effect.messages), output=1)
        text, reason = ("", "it is down") if fails else ("much happened", "")
        done = m.Summarised(
            turn=effect.turn,
            epoch=effect.epoch,
            step=effect.step,
            text=text,
            reason=reason,
            usage=usage,
        )
        reply(call.reply_to, done)

    def request(self, at: m.CallModel, number: int) -> ToolRequest:
        """Return the tool call of this number, from 0, of an answer."""
        is_bad = self.dice.random() < self._chances.bad_arguments
        name = f"{at.turn}.s{at.step}.c{number + 1}"
        chance = self._chances.delegates
        if chance and self.dice.random() < chance and self._has_room():
            arguments = {"bad": True} if is_bad else self._task(name)
            return ToolRequest(call=name, tool=DELEGATE, arguments=arguments)
        arguments = {"bad": True} if is_bad else {"path": f"{number}"}
        return ToolRequest(call=name, tool=self.dice.choice(TOOLS), arguments=arguments)

    def _task(self, name: str) -> dict[str, Any]:
        dice = self.dice
        return {
            "task": f"task {name}",
            "agent": dice.choice(("", "scout", "scout", "unknown" if dice.random() < 0.1 else "")),
            "name": dice.choice(("", "", "twin", "all" if dice.random() < 0.1 else "other")),
            "background": dice.choice((True, False, False)),
        }

    def _cancel(self, turn: str) -> None:
        call = self.models.pop(turn, None)
        if call is not None:
            call.is_open = False

    # Tools ----------------------------------------------------------------------------------------

    def _run(self, effect: m.RunTool, reply_to: ActorRef[Any] | None) -> None:
        call = ToolCall(effect=effect, reply_to=reply_to)
        self.tools[effect.call] = call
        self._later(2 * self._delay(), lambda: self._end(call, "ok"))

    def _stop(self, effect: m.StopTool, reply_to: ActorRef[Any] | None) -> None:
        call = self.tools.get(effect.call)
        if call is None:
            reply(reply_to, never_started(effect))
        else:  # it may take its time, or end before that
            self._later(self._delay(), lambda: self._end(call, "killed"))

    def _end(self, call: ToolCall, status: m.ToolStatus) -> None:
        if self.tools.pop(call.effect.call, None) is not None:
            reply(call.reply_to, m.finished(call.effect, self.result(call.effect, status)))

    def pids(self, status: m.ToolStatus) -> tuple[int, ...]:
        """Name the process of a call that was killed: each has one of its own, in the whole program."""
        return (next(self._timeline.pids),) if status == "killed" else ()

    def result(self, at: m.RunTool, status: m.ToolStatus) -> m.ToolResult:
        """Return the result of a call that ended, or was killed."""
        if status == "ok" and self.dice.random() < 0.2:
            status = self.dice.choice(("failed", "timed_out"))
        progress = None
        if self.dice.random() < 0.3:
            progress = (self.dice.randrange(0, 9), 9, "file", "")
        killed = self.pids(status)
        return m.ToolResult(
            status=status,
            text="output",
            exit_code=0,
            bytes=6,
            killed=killed,
            progress=progress,
        )

    # Files ----------------------------------------------------------------------------------------

    def _restore(self, effect: m.RestoreFiles, reply_to: ActorRef[Any] | None) -> None:
        """Give back as many files as there are dice for, or none."""
        if self.tools and not effect.is_dry_run:  # of a turn whose actor failed
            self._timeline.after(1.0, lambda: self._restore(effect, reply_to))
            return
        begin = self._delay() / 4
        is_full = self.dice.random() < 0.2
        if not is_full or self.dice.random() < 0.5:  # else it fails before it has counted
            counted = m.RestoreCounted(id=effect.id, files=2)
            self._timeline.after(begin, lambda: reply(reply_to, counted))
        ended = m.RestoreEnded(
            id=effect.id, fault="the disk is full" if is_full else "", restored=("a", "b")
        )
        self._timeline.after(begin + self._delay() / 4, lambda: reply(reply_to, ended))

    def _delay(self) -> float:
        return self.dice.random() * self._chances.longest


def finish(work: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine that waits for nothing."""
    try:
        work.send(None)
    except StopIteration:
        return
    raise RuntimeError("a coroutine of the simulator waits")


class ModelCall(Struct, kw_only=True, eq=False):
    """A model call that was begun; closed by a cancel."""

    effect: m.CallModel
    reply_to: ActorRef[Any] | None
    is_open: bool = True


class ToolCall(Struct, kw_only=True, eq=False):
    """A tool call that runs."""

    effect: m.RunTool
    reply_to: ActorRef[Any] | None
