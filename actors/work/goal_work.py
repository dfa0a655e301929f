"""Does what goals ask for, on the asyncio loop: runs gates, asks the judge, waits for conditions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ...machines import protocol as m
from ...machines.errors import SteersmanError
from ...ports.judging import ask_judge, await_condition, run_gate
from ...ports.process.process import Process
from ..kernel.mailbox import reply
from .resources import StartTask, fault_of

if TYPE_CHECKING:
    from .resources import SessionResources


class GoalWork:
    """Performs the effects of one session's goals, without blocking. `_gate` is the gate that runs."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, resources: SessionResources, start_task: StartTask
    ) -> None:
        self._loop, self.resources, self._start_task = loop, resources, start_task
        self._tasks: set[asyncio.Task[None]] = set()
        self._gates: dict[asyncio.Task[None], Process | None] = {}
        self._timers = set[asyncio.TimerHandle]()
        self._dead: list[tuple[tuple[int, ...], tuple[int, ...]]] = []

    def __call__(self, effect: m.GoalEffect, reply_to: ActorRef[Any] | None) -> None:
        """Begin an effect; its result goes to `reply_to`."""
        match effect:
            case m.RunGate():
                self._run_gate(effect, reply_to)
            case m.AskJudge():
                self._ask(effect, reply_to)
            case m.CountChanges():
                self._count(effect, reply_to)
            case m.AwaitCondition():
                self._await(effect, reply_to)
            case m.GoalTimer():
                self._set_timer(effect, reply_to)
            case m.StopJudging():
                self._stop(reply_to)

    def close(self) -> None:
        """Stop everything; the caller waits for the tasks."""
        for timer in self._timers:
            timer.cancel()
        for task in self._tasks:
            task.cancel()
        for process in self._gates.values():
            if process is not None:
                process.stop()

    # Gates ----------------------------------------------------------------------------------------

    def _run_gate(self, effect: m.RunGate, reply_to: ActorRef[Any] | None) -> None:
        resources = self.resources

        def started(process: Process) -> None:
            task = asyncio.current_task()
            assert task is not None
            if task in self._gates:
                self._gates[task] = process
            else:
                process.stop()  # while it was being started

        async def work() -> None:
            result, ended = await run_gate(
                effect.argv,
                resources.folder,
                resources.environment,
                effect.timeout,
                resources.toolbox.processes,
                started,
            )
            if ended is not None:
                self._dead.append((ended.killed, ended.survivors))
            reply(reply_to, m.GateEnded(turn=effect.turn, number=effect.number, result=result))

        def fault(error: BaseException) -> None:
            result = m.GateResult(
                command=effect.argv[0], passed=False, status="failed", output=fault_of(error)
            )
            reply(reply_to, m.GateEnded(turn=effect.turn, number=effect.number, result=result))

        self._dead.clear()
        task = self._start_task(work(), fault)
        self._gates[task] = None
        task.add_done_callback(lambda ended: self._gates.pop(ended, None))

    def _stop(self, reply_to: ActorRef[Any] | None) -> None:
        """Stop everything, and say when nothing of it is left."""
        for task in self._tasks:
            task.cancel()
        gates = list(self._gates)
        for task, process in list(self._gates.items()):
            if process is not None:
                process.stop()
            else:
                self._gates.pop(task)

        async def bury() -> None:
            await asyncio.gather(*gates, return_exceptions=True)
            killed = tuple(pid for pids, _ in self._dead for pid in pids) if gates else ()
            left = tuple(pid for _, pids in self._dead for pid in pids) if gates else ()
            reply(reply_to, m.JudgeDead(killed=killed, survivors=left))

        self._start_task(bury(), lambda error: reply(reply_to, m.JudgeDead()))

    # The judge ------------------------------------------------------------------------------------

    def _ask(self, effect: m.AskJudge, reply_to: ActorRef[Any] | None) -> None:
        take_seat = self.resources.judge

        async def work() -> None:
            if take_seat is None:
                reply(reply_to, m.JudgeAnswered(turn=effect.turn, fault="there is no judge"))
                return
            try:
                seat = await asyncio.to_thread(take_seat)
            except SteersmanError as error:
                reply(reply_to, m.JudgeAnswered(turn=effect.turn, fault=error.message))
                return
            reply(reply_to, await ask_judge(seat, effect))

        self._keep(
            work(),
            lambda error: reply(reply_to, m.JudgeAnswered(turn=effect.turn, fault=fault_of(error))),
        )

    def _count(self, effect: m.CountChanges, reply_to: ActorRef[Any] | None) -> None:
        workspace = self.resources.workspace

        async def work() -> None:
            files, is_sure = 0, False
            if workspace is not None:
                files, is_sure = await workspace.changed(effect.turn)
            reply(reply_to, m.ChangesCounted(turn=effect.turn, files=files, is_sure=is_sure))

        unsure = m.ChangesCounted(turn=effect.turn, files=0, is_sure=False)
        self._keep(work(), lambda error: reply(reply_to, unsure))

    # Time -----------------------------------------------------------------------------------------

    def _await(self, effect: m.AwaitCondition, reply_to: ActorRef[Any] | None) -> None:
        async def work() -> None:
            has_happened = await await_condition(
                effect.condition, self.resources.folder, effect.limit, effect.since
            )
            reply(reply_to, m.ConditionMet(name=effect.name, is_late=not has_happened))

        late = m.ConditionMet(name=effect.name, is_late=True)
        self._keep(work(), lambda error: reply(reply_to, late))

    def _set_timer(self, effect: m.GoalTimer, reply_to: ActorRef[Any] | None) -> None:
        def fire() -> None:
            self._timers.discard(timer)
            reply(reply_to, m.TimerFired(timer=m.Timer(kind=effect.name)))

        timer = self._loop.call_later(effect.seconds, fire)
        self._timers.add(timer)

    def _keep(
        self, work: Coroutine[Any, Any, None], fault: Callable[[BaseException], None]
    ) -> None:
        task = self._start_task(work, fault)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
