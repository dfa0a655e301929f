"""The world of a replay: models, tools, files and judges that answer from the record."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from msgspec.structs import asdict
from pykka import ActorRef

from ...actors.decisions.turning import CHANGED
from ...journal import entries as e
from ...machines import protocol as m

if TYPE_CHECKING:
    from .player import Player

Asked = tuple[Any, "ActorRef[Any] | None"]
"""An effect, and who waits for its outcome."""


class RecordedPorts:
    """Takes the effects of a replay; none is carried out. `begun` are calls of tools that run."""

    def __init__(self, player: Player) -> None:
        self._player = player
        self.forget()
        self._results: dict[str, list[tuple[e.ToolEnded, str]]] | None = None

    def forget(self) -> None:
        """Drop what was begun: the program that did has ended."""
        self._model: Asked | None = None
        self._models: dict[str, Asked] = {}
        self._streamed = ""
        self.begun: dict[str, Asked] = {}
        self._others: list[Asked] = []
        self._timers: list[Asked] = []

    def __call__(self, effect: m.PortEffect, reply_to: ActorRef[Any] | None) -> None:
        """Take an effect; its outcome comes when the record has it."""
        match effect:
            case m.CallModel():
                self._model = self._models[effect.turn] = effect, reply_to
                self._streamed = ""
            case m.CancelModel():
                self._model = None
            case m.RunTool():
                self.begun[effect.call] = effect, reply_to
            case m.StopTool():
                self.begun.setdefault(effect.call, (effect, reply_to))
            case m.SetTimer() | m.GoalTimer():
                self._timers.append((effect, reply_to))
            case m.AnswerAgent() | m.LookAfter() | m.CloseChild() | m.OpenChild():
                pass
            case _:
                self._others.append((effect, reply_to))

    @property
    def is_asking(self) -> bool:
        """Whether a model is being asked."""
        return self._model is not None

    @property
    def is_waiting(self) -> bool:
        """Whether anything waits for an outcome."""
        return bool(self._model or self.begun or self._others)

    def fire(self, kind: type = object) -> bool:
        """Let the timer run out that is due first; whether there was one."""
        timers = [timer for timer in self._timers if isinstance(timer[0], kind)]
        if not timers:
            return False
        effect, reply_to = first = min(timers, key=lambda timer: timer[0].seconds)
        self._timers.remove(first)
        is_goals = isinstance(effect, m.GoalTimer)
        timer = m.Timer(kind=effect.name) if is_goals else effect.timer
        fired = m.TimerFired(timer=timer, epoch=0 if is_goals else effect.epoch)
        self._player.hand(reply_to, fired)
        return True

    # Outcomes -------------------------------------------------------------------------------------

    def give(self, entry: e.Entry) -> bool:
        """Send the outcome that an entry of the record came of; whether somebody waits for it."""
        match entry:
            case e.HookRan():
                self._player.tell(m.NoteEntry(entry=entry))
                return True
            case e.ToolEnded():
                return self._end_calls()
            case e.ProgressMade():
                return self._progress(entry)
            case e.RevertBegun() | e.Reverted() | e.RevertRefused():
                return self._restored(entry)
            case e.LateResult():
                return self._late(entry)
            case e.ModelAskedAgain():
                return self.fire(m.SetTimer)
            case e.GoalPaused(reason="budget"):
                return self.fire(m.GoalTimer)
            case e.GoalJudged() | e.GoalWoken() | e.JudgingStopped():
                return self._judge(entry)
            case _:
                return self._model is not None and self._answer(entry, *self._model)

    def stream(self, turn: str, text: str, *, is_due: bool = False) -> None:
        """Let come what has come of an answer; `text` is all of it, or with `is_due` more of it."""
        if self._model is None:
            return
        effect, reply_to = self._model
        delta = text if is_due else text.removeprefix(self._streamed)
        self._streamed += delta
        if delta:
            piece = m.ModelText(
                turn=turn, epoch=effect.epoch, step=effect.step, delta=delta, is_due=is_due
            )
            self._player.hand(reply_to, piece)

    def _answer(self, entry: e.Entry, call: m.CallModel, reply_to: ActorRef[Any] | None) -> bool:
        at: dict[str, Any] = {"turn": call.turn, "epoch": call.epoch, "step": call.step}
        match entry:
            case e.AnswerGrew():
                self.stream(entry.turn, entry.text, is_due=True)
                return True
            case e.AnswerCut():
                self.stream(entry.turn, entry.messages[0].text)
                return True
            case e.Answered():
                said = entry.messages[0]
                answer: m.Message = m.ModelAnswered(
                    **at,
                    text=said.text,
                    tool_calls=said.tool_calls,
                    usage=entry.usage,
                    thoughts=said.thoughts,
                )
            case e.ModelCallFailed():
                self._stream_before_failure()
                answer = m.ModelFailed(**at, reason=entry.reason, hint=entry.hint)
            case e.ModelAwaited():
                seconds = entry.until - self._player.now()
                answer = m.ModelFailed(**at, reason=entry.reason, again=seconds)
            case e.CompactionBegun(why="refused"):
                answer = m.ModelFailed(**at, reason=entry.refusal, is_too_long=True)
            case e.Compacted() if call.is_summary:
                answer = m.Summarised(
                    **at, text=entry.summary, reason=entry.reason, usage=entry.usage
                )
            case e.TurnEnded() if call.is_summary:
                reason = entry.reason.rpartition("was not shortened: ")[2]
                answer = m.Summarised(**at, reason=reason)
            case _:
                return False
        self._model = None
        self._player.hand(reply_to, answer)
        return True

    def _stream_before_failure(self) -> None:
        for entry in self._player.ahead():
            if isinstance(entry, e.TurnEnded):
                for said in entry.messages:
                    text = said.text.removesuffix(said.note).removesuffix("\n") if said.note else ""
                    self.stream(entry.turn, text)
                return

    def _end_calls(self) -> bool:
        """Send the results that come next in the record, as many as came together."""
        found = False
        for entry in self._player.ahead():
            if not isinstance(entry, e.ToolEnded) or entry.call not in self.begun:
                return found
            self._end(*self.begun.pop(entry.call), entry)
            found = True
        return found

    def _end(self, effect: m.RunTool, reply_to: ActorRef[Any] | None, entry: e.ToolEnded) -> None:
        said = entry.messages[0] if entry.messages else None
        text = said.text if said is not None else ""
        call = self._player.record.turns[effect.turn].calls.get(effect.call)
        if call is not None and call.is_changed:
            given = json.dumps(call.arguments, ensure_ascii=False)
            text = text.removeprefix(CHANGED.format(arguments=given))
        pictures = said.pictures if said is not None else ()
        result = m.ToolResult(**asdict(entry.end), text=text, pictures=pictures)
        self._player.hand(reply_to, m.finished(effect, result))

    def _progress(self, entry: e.ProgressMade) -> bool:
        for effect, reply_to in self.begun.values():
            told = m.ToolProgressed(
                call=effect.call,
                done=entry.done,
                total=entry.total,
                unit=entry.unit,
                note=entry.note,
            )
            self._player.hand(reply_to, told)
            return True
        return False

    def _late(self, entry: e.LateResult) -> bool:
        asked = self._models.get(entry.turn)
        if asked is None:
            return False
        call, reply_to = asked
        at: dict[str, Any] = {"turn": call.turn, "epoch": call.epoch, "step": call.step}
        match entry.what:
            case "model":
                self._player.hand(reply_to, m.ModelAnswered(**at, text="", usage=entry.usage))
            case "summary":
                self._player.hand(reply_to, m.Summarised(**at, usage=entry.usage))
            case _:
                return False
        return True

    # Files and judges -----------------------------------------------------------------------------

    def _taken(self, *kinds: type) -> Asked | None:
        """Return the oldest of these effects that waits, which does so no more."""
        for asked in self._others:
            if isinstance(asked[0], kinds):
                self._others.remove(asked)
                return asked
        return None

    def _restored(self, entry: e.RevertBegun | e.Reverted | e.RevertRefused) -> bool:
        asked = self._taken(m.RestoreFiles)
        if asked is None:
            return False
        if isinstance(entry, e.RevertBegun):
            self._others.append(asked)
            self._player.hand(asked[1], m.RestoreCounted(id=entry.id, files=entry.files))
        elif isinstance(entry, e.RevertRefused):
            self._player.hand(asked[1], m.RestoreEnded(id=entry.id, fault=entry.reason))
        else:
            told = {**asdict(entry)}
            for name in ("scope", "is_dry_run", "is_partial"):  # the session knows these itself
                del told[name]
            self._player.hand(asked[1], m.RestoreEnded(**told))
        return True

    def _judge(self, entry: e.GoalJudged | e.GoalWoken | e.JudgingStopped) -> bool:
        if isinstance(entry, e.JudgingStopped):
            asked = self._taken(m.StopJudging)
            if asked is not None:
                dead = m.JudgeDead(killed=entry.killed, survivors=entry.survivors)
                self._player.hand(asked[1], dead)
                return True
            entry = e.GoalJudged(goal=entry.goal, turn=entry.turn, verdict="", fault=entry.why)
        if isinstance(entry, e.GoalWoken):
            is_late = entry.why == "it did not happen in time"
            if not is_late and entry.why != "it has happened":
                return False
            asked = self._taken(m.AwaitCondition)
            if asked is not None:
                self._player.hand(asked[1], m.ConditionMet(name=asked[0].name, is_late=is_late))
            return asked is not None
        asked = self._taken(m.RunGate, m.AskJudge, m.CountChanges)
        if asked is None:
            return False
        match effect := asked[0]:
            case m.RunGate():
                passed = m.GateResult(command=effect.argv[0], passed=True)
                gate = entry.gates[effect.number] if effect.number < len(entry.gates) else passed
                message: m.Message = m.GateEnded(
                    turn=effect.turn, number=effect.number, result=gate
                )
            case m.CountChanges():
                files = int(not entry.is_unchanged)
                message = m.ChangesCounted(turn=effect.turn, files=files)
            case _:
                verdict: dict[str, Any] = {"verdict": entry.verdict, "reason": entry.reason}
                if entry.condition:
                    verdict["condition"] = entry.condition
                message = m.JudgeAnswered(
                    turn=effect.turn,
                    text="" if entry.fault else json.dumps(verdict),
                    fault=entry.fault,
                    usage=entry.usage,
                )
        self._player.hand(asked[1], message)
        self._player.again()
        return True

    # Where the record is over ---------------------------------------------------------------------

    def unanswered(self) -> Any:
        """Return what waits for an outcome."""
        if self._model is not None:
            return self._model[0]
        return next((effect for effect, _ in (*self.begun.values(), *self._others)), None)

    def answered(self, call: m.CallModel, answer: m.ModelAnswered | m.ModelFailed) -> None:
        """Send an answer that is not of the record."""
        assert self._model is not None
        _, reply_to = self._model
        self._model = None
        self._player.hand(reply_to, answer)

    def give_same(self, effect: m.RunTool) -> bool:
        """Send the recorded result of the same call, if there is one that was not sent yet."""
        if self._results is None:
            self._results = {}
            for key, ended in self._recorded_calls():
                self._results.setdefault(key, []).append((ended, ""))
        left = self._results.get(_key(effect.tool, effect.arguments), [])
        if not left:
            return False
        ended, _ = left.pop(0)
        self._end(*self.begun.pop(effect.call), ended)
        return True

    def _recorded_calls(self) -> Iterator[tuple[str, e.ToolEnded]]:
        begun: dict[str, str] = {}
        for recorded in self._player.script.entries:
            match recorded.entry:
                case e.ToolIntended() as call:
                    begun[call.call] = _key(call.tool, call.arguments)
                case e.ToolEnded() as ended if ended.call in begun:
                    yield begun[ended.call], ended
                case _:
                    continue

    def pattern_of(self, question: str, given: e.AllowanceGiven) -> str:
        """Return the pattern that was typed with `always`: none where the call itself leads to it."""
        player = self._player
        for call in player.record.turns[player.record.turn].calls.values():
            if call.question == question:
                from ...actors.decisions.queries import request_of

                found = player.environment.tool_policy.allowance(request_of(call))
                return "" if found == (given.tool, given.pattern) else given.pattern
        return given.pattern


def _key(tool: str, arguments: dict[str, Any]) -> str:
    return f"{tool} {json.dumps(arguments, sort_keys=True)}"
