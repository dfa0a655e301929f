"""The run actor: a workflow's run. It stands where an agent's turn would, and is stopped like one.

A stop lets the commands that run end by themselves for a moment, since most do, and what has ended
need not be done again. Sessions are stopped at once: they go on where they were. A second stop, or
the end of that moment, stops the commands, too.
"""

from __future__ import annotations

from typing import Any, Final

from ...journal import entries as e
from ...journal import run_entries as r
from ...journal.cancel_record import CancelRecord
from ...machines.conversation import ChatMessage
from ...machines.delegation import EndChild, StopChild
from ...machines.effects import StopTool
from ...machines.messages import Answer
from ...machines.workflow_order import LookAfter, SetRunTimer
from ..decisions import stopping
from ..decisions.decision import Decision
from ..decisions.turning import is_dead
from .attempt import Open, by_default
from .loop import LATE, OVERTIME, RunLoop

__all__ = ["PATIENCE", "Run", "chosen"]

PATIENCE: Final = 1.0
"""Seconds that commands have to end by themselves when a run is stopped."""
INTERRUPTED: Final = "[Interrupted.]"
NO_ANSWER: Final = "nobody answered in time"


class Run(RunLoop):
    """One turn of a run: from the beginning, or from where it was interrupted, to an end."""

    _killed: tuple[int, ...] = ()
    _survivors: tuple[int, ...] = ()

    # The end by cancel ----------------------------------------------------------------------------

    def _go_on(self) -> None:
        """Obey a stop; while a planned one waits for commands, only when the last has ended."""
        stop = self.cancel
        if stop is not None and self.run.state == "running":
            has_commands = any(one.is_command for one in self.open.values())
            if stop.state == "planned" and has_commands:
                if self._has_patience:
                    self._has_patience = False
                    self._effects.append(SetRunTimer("patience", PATIENCE, self.epoch))
            else:
                self._cut(stop)
        super()._go_on()
        if self.run.state == "interrupting":
            self._bury()

    def _cut(self, stop: CancelRecord) -> None:
        """End here; what runs is told to stop, and its results are awaited."""
        self._errands.clear()
        for one in [one for one in self.open.values() if one.asked]:
            del self.open[one.call]
            self._note(r.ItemEnded(self.id, one.step.id, one.index, "interrupted"))
        planned: tuple[e.Entry, ...] = ()
        if stop.state == "planned":
            planned = (stopping.take_effect(stop, self.ledger.environment),)
        over = e.Interrupted(self.id, stop.cause, self._checkpoint())
        held = stopping.holds_after(self.ledger.record, stop.cause, self.ledger.environment)
        self.ledger.decide(Decision(entries=(*planned, over, *held), urgent=tuple(self._stops())))

    def _stops(self) -> list[StopTool | StopChild]:
        """Order the commands that run to stop, and sessions that have not begun yet.

        The stop itself reaches those that have.
        """
        return [
            (StopTool if one.is_command else StopChild)(self.id, self.epoch, one.call)
            for one in self.open.values()
            if one.is_command or (one.is_errand and not one.child)
        ]

    def _checkpoint(self) -> dict[str, Any] | None:
        """Say how far the newest step with items is."""
        for step in reversed(tuple(self.run.steps.values())):
            if step.is_many and step.state == "running":
                return {"done": step.count("done"), "total": step.total, "unit": "item"}
        return None

    def _lay_down(self, one: Open, killed: tuple[int, ...], survivors: tuple[int, ...]) -> None:
        """Note that an attempt was stopped: it can go on, or be made again."""
        self._killed += killed
        self._survivors += survivors
        self._note(r.ItemEnded(self.id, one.step.id, one.index, "interrupted"))

    def _bury(self) -> None:
        """When everything that was started is dead, say so, and end."""
        if self.open or not is_dead(self.ledger.record):
            return
        self._urgent += [LookAfter(self.id, name) for name in self._looked]
        stop = self.cancel
        killed, survivors = self._killed, self._survivors
        if stop is not None:
            killed, survivors = killed + stop.killed, survivors + stop.survivors
        said = (ChatMessage("assistant", INTERRUPTED),)
        order = stop.order if stop is not None else 0
        self._note(e.Stopped(self.id, killed, survivors, said, order=order))
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
                self._flush()
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
                self._urgent.append(StopTool(self.id, self.epoch, one.call))
            elif one.child:
                self.ledger.tell("children", EndChild(one.child))

    def _limit(self, one: Open) -> None:
        """A session or a person took too long."""
        if one.asked is not None:
            self._conclude(self.open.pop(one.call), by_default(one.asked.default, NO_ANSWER))
        elif one.child:
            one.overdue = LATE.format(one.step.timeout)
            self.ledger.tell("children", EndChild(one.child))

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
