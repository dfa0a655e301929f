"""Faults to plant: each breaks one promise, and some check must see it."""

from dataclasses import replace
from typing import Any

from simulation.scenario import Scenario

from steersman.actors.children.nursery import Nursery
from steersman.actors.queue import Queue
from steersman.actors.rearrangement import Rearranged
from steersman.actors.session import Session
from steersman.actors.turns.turn import Turn
from steersman.journal import entries as e
from steersman.machines.delivery import Cause, Delivery, DeliveryRow, Relation
from steersman.machines.effects import CallModel, Effect, RunTool, StopTool
from steersman.machines.messages import QueueChange, UserMessage
from steersman.machines.orders import Decided, Enqueue, InterruptTurn, Settled, StartNext
from steersman.machines.results import ToolFinished
from steersman.machines.routing import when

__all__ = ["FAULTS", "CutsTooSoon", "run_with"]


class TellsTooEarly(Session):
    """Tells, and acts, as soon as an entry is folded."""

    def _journal(self, decided: Decided) -> None:
        super()._journal(decided)
        self._release(self.record.seq)


class ForgetsTheEpoch(Session):
    """Performs what a cancel has overtaken."""

    def _is_overtaken(self, effect: CallModel | RunTool) -> bool:
        return False


class ResumesByItself(Session):
    """Lets the queue go on after a restart."""

    def on_start(self) -> None:
        """Recover, and release."""
        super().on_start()
        if self.record.queue.state == "held":
            self._queue.tell(QueueChange("release"))


class LeavesTheDoorOpen(Queue):
    """Takes a steer for a turn that has passed its last boundary, and forgets it there."""

    def _is_running(self, turn: str) -> bool:
        return True

    def _take_back_steers(self) -> None:
        pass


class LeavesADoorOpen(Session):
    """Has such a queue."""

    queue_type = LeavesTheDoorOpen


class ForgetsATool(Turn):
    """Stops only the first of several tools."""

    def _decide(self, entries: Any, effects: Any = (), urgent: Any = ()) -> None:
        stops = [one for one in urgent if isinstance(one, StopTool)]
        super()._decide(entries, effects, [one for one in urgent if one not in stops[1:]])


class LosesATool(Session):
    """Has such a turn."""

    turn_type = ForgetsATool


class StartsTwice(Queue):
    """Begins the next item, and the one after it."""

    def _start_next(self, message: StartNext) -> None:
        super()._start_next(message)
        if len(self.record.waiting()) > 1:
            super()._start_next(message)


class HasTwoTurns(Session):
    """Has such a queue."""

    queue_type = StartsTwice


class CutsAtOnce(Turn):
    """Does not wait for the steers that are just entering."""

    def _interrupt(self, message: InterruptTurn) -> None:
        if self.state in ("boundary", "calling", "acting"):
            self._cut(message)


class CutsTooSoon(Session):
    """Has such a turn."""

    turn_type = CutsAtOnce


class ForgetsClients(Queue):
    """Takes a message twice when it comes twice."""

    def _enqueue(self, message: Enqueue) -> None:
        self.record.clients.clear()
        super()._enqueue(message)


class TakesTwice(Session):
    """Has such a queue, and no memory of its own."""

    queue_type = ForgetsClients

    def _known(self, client_id: str) -> None:
        return None


class ForgetsToHold(Queue):
    """Runs what is next although an interrupt said to hold it, and loses an entry of the session."""

    def _journalled(self, entry: e.Entry) -> None:
        if not isinstance(entry, e.ProgressMade):
            super()._journalled(entry)


class Drifts(Session):
    """Has such a queue."""

    queue_type = ForgetsToHold


class LosesWhatInterrupts(Session):
    """Drops a message that stops the turn, instead of running it next."""

    def _route(self, message: UserMessage) -> None:
        if self.record.state != "busy" or message.type != "interrupt":
            super()._route(message)


class PerformsTwice(Session):
    """Starts each tool twice."""

    def _perform(self, effect: Effect) -> None:
        super()._perform(effect)
        if isinstance(effect, RunTool):
            super()._perform(effect)


class LosesWhatIsTakenBack(Queue):
    """Withdraws a message whose reading was taken back."""

    def _rearrange(self, found: Rearranged) -> dict[str, Any]:
        entries = tuple(
            e.Withdrawn(one.item) if isinstance(one, e.Requeued) else one for one in found.entries
        )
        return super()._rearrange(replace(found, entries=entries))


class LosesTakenBack(Session):
    """Has such a queue."""

    queue_type = LosesWhatIsTakenBack


class GoesOnAfterATool(Turn):
    """Forgets that it was to stop after the running tool."""

    def _tool_finished(self, message: ToolFinished) -> None:
        self._loop.cancel = None
        super()._tool_finished(message)


class ForgetsToStop(Session):
    """Has such a turn."""

    turn_type = GoesOnAfterATool


class StopsChildrenByTalk(Session):
    """Goes by a table in which a message that interrupts cancels the children, too."""

    def on_start(self) -> None:
        """Put a row of its own in front."""
        row = DeliveryRow(
            "talk-kills",
            when(cause=(Cause.MESSAGE, Cause.MORE_WORD), relation=Relation.BACKGROUND_CHILD),
            Delivery.CANCEL,
            "",
        )
        table = self._environment.deliveries
        if not table.overrides:
            self._environment.deliveries = table.override((row,))
        super().on_start()


class AttachesLateChildren(Session):
    """Lets a child begin that was asked for before a stop, and came after."""

    def _stop_late_child(self, entry: e.ChildStarted) -> None:
        pass


class ForgetsItsCalls(Turn):
    """Ends without the children of its calls."""

    def _start_calls(self) -> None:
        super()._start_calls()
        if any(one.tool == "delegate" for one in self._loop.open.values()):
            self._finish("interrupt", "completed")


class EndsBeforeItsChild(Session):
    """Has such a turn."""

    turn_type = ForgetsItsCalls


class LeavesWithoutThem(Nursery):
    """Forgets its children when the session is left."""

    def _leave(self, cause: str) -> None:
        self._roll.is_ending = True

    def _settle_if_empty(self) -> None:
        if self._roll.is_asked:
            self._roll.is_asked = False
            self._session.tell(Settled("nursery"))


class ForgetsChildren(Session):
    """Has such a nursery."""

    nursery_type = LeavesWithoutThem


class GivesTwice(Session):
    """Gives each result to two places."""

    def _give_back(
        self, name: str, killed: tuple[int, ...] = (), survivors: tuple[int, ...] = ()
    ) -> None:
        super()._give_back(name, killed, survivors)
        super()._give_back(name, killed, survivors)


class ResumesChildrenByThemselves(Session):
    """Lets children go on after a restart, though nobody said so."""

    def on_start(self) -> None:
        """Recover, and wake them."""
        super().on_start()
        self._resume_children()


FAULTS: dict[str, type[Session]] = {
    "lets talk cancel a child": StopsChildrenByTalk,
    "attaches a child after a stop": AttachesLateChildren,
    "ends before its child": EndsBeforeItsChild,
    "forgets its children when it is left": ForgetsChildren,
    "delivers a result twice": GivesTwice,
    "resumes children after a restart": ResumesChildrenByThemselves,
    "tells before durable": TellsTooEarly,
    "skips the epoch check": ForgetsTheEpoch,
    "resumes after recovery": ResumesByItself,
    "leaves the door open at the closing boundary": LeavesADoorOpen,
    "forgets a running tool": LosesATool,
    "starts two turns": HasTwoTurns,
    "takes a repeated message twice": TakesTwice,
    "lets the queue's copy drift": Drifts,
    "drops a message that interrupts": LosesWhatInterrupts,
    "starts a tool twice": PerformsTwice,
    "loses what is taken back": LosesTakenBack,
    "goes on after a tool that it was to stop after": ForgetsToStop,
}


def run_with(fault: type[Session], seed: int) -> BaseException | None:
    """Run one seed with a fault planted; return what was noticed."""
    try:
        Scenario(seed, fault).run()
    except Exception as found:
        return found
    return None
