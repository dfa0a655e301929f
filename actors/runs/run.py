"""The run actor: a workflow's run. It stands where an agent's turn would, and is stopped like one.

A stop lets the commands that run end by themselves for a moment, since most do, and what has ended
need not be done again. Sessions are stopped at once: they go on where they were. A second stop, or
the end of that moment, stops the commands, too.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from ...journal import entries as e
from ...journal import run_entries as r
from ...machines.conversation import ChatMessage
from ...machines.delegation import EndChild, StopChild
from ...machines.delivery import Cause
from ...machines.effects import StopTool
from ...machines.messages import Answer
from ...machines.orders import InterruptTurn
from ...machines.workflow_order import LookAfter, SetRunTimer
from ..turns.entry import planned, requested
from .attempt import Open, by_default
from .loop import LATE, OVERTIME, RunLoop

__all__ = ["PATIENCE", "Run", "chosen"]

PATIENCE: Final = 1.0
"""Seconds that commands have to end by themselves when a run is stopped."""
INTERRUPTED: Final = "[Interrupted.]"
NO_ANSWER: Final = "nobody answered in time"
IN_A_HURRY: Final = (Cause.SIGNAL, Cause.FINALIZE, Cause.PARENT)


class Run(RunLoop):
    """One turn of a run: from the beginning, or from where it was interrupted, to an end."""

    _killed: tuple[int, ...] = ()
    _survivors: tuple[int, ...] = ()

    # The end by cancel ----------------------------------------------------------------------------

    def _interrupt(self, message: InterruptTurn) -> None:
        if self.run.state != "running":
            return
        commands = dict.fromkeys(one.step.id for one in self.open.values() if one.is_command)
        if self.cancel is not None or message.cause in IN_A_HURRY or not commands:
            self._cut(message)
            return
        self._note(planned(self.turn, message, list(commands)))
        self.cancel = replace(message, client_id="", text="")
        self._effects.append(SetRunTimer("patience", PATIENCE, self.epoch))
        self._urgent += [one for one in self._stops() if isinstance(one, StopChild)]

    def _go_on(self) -> None:
        """Go on; while a stop waits for commands, only until the last of them has ended."""
        if self.cancel is not None and self.run.state == "running":
            if not any(one.is_command for one in self.open.values()):
                self._cut(self.cancel)
        super()._go_on()

    def _cut(self, message: InterruptTurn) -> None:
        """End here, in one commit; what runs is told to stop, and its results are awaited."""
        self.cancel = message
        self._errands.clear()
        for one in [one for one in self.open.values() if one.asked]:
            del self.open[one.call]
            self._note(r.ItemEnded(self.turn, one.step.id, one.index, "interrupted"))
        self._note(requested(self.turn, message))
        self._note(e.Interrupted(self.turn, message.cause, self._checkpoint()))
        self._urgent += self._stops()
        self._bury()

    def _stops(self) -> list[StopTool | StopChild]:
        """Order all that runs to stop; sessions that were taken up, the session stops itself."""
        return [
            (StopChild if one.is_errand else StopTool)(self.turn, self.epoch, one.call)
            for one in self.open.values()
            if not one.asked and not one.is_taken_up
        ]

    def _checkpoint(self) -> dict[str, Any] | None:
        """Say how far the newest step with items is."""
        for step in reversed(self.run.steps.values()):
            if step.is_many and step.state == "running":
                return {"done": step.count("done"), "total": step.total, "unit": "item"}
        return None

    def _lay_down(self, one: Open, killed: tuple[int, ...], survivors: tuple[int, ...]) -> None:
        """Note that an attempt was stopped: it can go on, or be made again."""
        self._killed += killed
        self._survivors += survivors
        self._note(r.ItemEnded(self.turn, one.step.id, one.index, "interrupted"))
        if self.run.state == "interrupting":
            self._bury()

    def _bury(self) -> None:
        """When everything that was started is dead, say so, and end."""
        if self.open:
            return
        self._urgent += [LookAfter(self.turn, name) for name in self._looked]
        said = (ChatMessage("assistant", INTERRUPTED),)
        self._note(e.Stopped(self.turn, self._killed, self._survivors, said))
        self._flush()
        self.stop()

    # Time -----------------------------------------------------------------------------------------

    def _time_is_up(self, timer: str) -> None:
        kind, _, rest = timer.partition(" ")
        if self.run.state != "running":
            return
        match kind:
            case "patience" if self.cancel is not None:
                self._cut(self.cancel)
            case "rest":
                index, _, name = rest.partition(" ")
                self._rested.append((name, int(index)))
            case "limit" | "ask" if rest in self.open:
                self._limit(self.open[rest])
            case "run" if self.cancel is None:
                self._is_late = True
                self._stop_late()
            case _:
                pass

    def _stop_late(self) -> None:
        """Stop all that runs for good: the whole run took too long."""
        for one in list(self.open.values()):
            if one.asked is not None:
                self._conclude(self.open.pop(one.call), ("failed", r.WorkResult(reason=OVERTIME)))
                continue
            one.overdue = OVERTIME
            if one.is_command:
                self._urgent.append(StopTool(self.turn, self.epoch, one.call))
            elif one.child:
                self._session.tell(EndChild(one.child))

    def _limit(self, one: Open) -> None:
        """A session or a person took too long."""
        if one.asked is not None:
            self._conclude(self.open.pop(one.call), by_default(one.asked.default, NO_ANSWER))
        elif one.child:
            one.overdue = LATE.format(one.step.timeout)
            self._session.tell(EndChild(one.child))

    # Answers --------------------------------------------------------------------------------------

    def _answered(self, message: Answer) -> dict[str, Any]:
        found = [one for one in self.open.values() if one.asked]
        one = next((one for one in found if _question(one) == message.question), None)
        if one is None or one.asked is None:
            return {"ok": False, "reason": f"no question `{message.question}` is open"}
        text = chosen(one.asked.options, message.choice)
        is_nobody = message.choice == "deny" and bool(message.reason)
        if text is None and not is_nobody:
            known = ", ".join(one.asked.options)
            return {"ok": False, "reason": f"`{message.choice}` is no answer; there are: {known}"}
        del self.open[one.call]
        if text is None or is_nobody:
            self._conclude(one, by_default(one.asked.default, NO_ANSWER))
        else:
            self._conclude(one, ("ok", r.WorkResult(text, more={"by": "user"})))
        self._go_on()
        return {"ok": True}


def _question(one: Open) -> str:
    return one.asked.question if one.asked is not None else ""


def chosen(options: tuple[str, ...], said: str) -> str | None:
    """Return the option that an answer means, by its words or number; none if it means none."""
    if not options:
        return said
    by_number = {str(number): one for number, one in enumerate(options, 1)}
    by_word = {one.casefold(): one for one in options}
    word = said.strip().casefold()
    return by_word.get(word) or by_number.get(word)
