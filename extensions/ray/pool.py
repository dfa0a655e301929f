"""The slots that a run has on a cluster: which command goes where, and what became of it.

Ray places slots by the resources they ask for; a command goes to a slot that is free. So a slot is
started only when commands wait, and no more than the cluster has room for, and ends when nothing waits
for it any more. A command is handed to a slot once. What a slot does not answer is unknown.

Runs in the driver (`driver.py`), on its asyncio loop.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from .job import Demand, Job, Needs, RunningSlot, awaited
from .library import faults, ray
from .sending import Contents, Sending
from .slot import PIECE, Slot

_BEATS = 6  # signs of life to a slot until it would end itself
_LEAVE = 2.0  # seconds for slots to end in order
_IDLE = 3.0  # seconds for which a slot is kept without work
_LOOK = 0.5  # seconds for which what the cluster has free is taken as known
_UNBOUNDED = 64  # slots that need nothing
_STARTS = 3  # attempts to start a slot for a command
_STOP_TIMEOUT = 20.0  # seconds for a stopped command to end, beyond its own grace
_BATCH = 0.02  # seconds of work that are handed over at a time; as much may be unknown at once
_MOST = 32  # commands that are handed over at a time
_QUIET = 0.5  # seconds for which a command runs before its output is asked for
_PARALLEL = 64  # calls of one slot at a time: one command, its stops, its output


class Pool:
    """All slots of a run. `send` sends a message to the owner; `version` is that of this program.

    `settings` are the driver's: `allow`, `fence` and `patience`.
    """

    def __init__(
        self, send: Callable[[dict[str, Any]], None], version: str, settings: dict[str, Any]
    ) -> None:
        self._send, self._version, self._settings = send, version, settings
        self._sending = Sending()
        self._jobs: dict[int, Job] = {}
        self._demands: dict[Needs, Demand] = {}
        self._slots = set[RunningSlot]()
        self._tasks = set[asyncio.Task[None]]()
        self._available: dict[str, float] = {}
        self._looked = 0.0
        self._beating = self._task(self._beat())

    # Orders ---------------------------------------------------------------------------------------

    def run(self, order: dict[str, Any]) -> None:
        """Take a command; the owner gets a message when it has ended."""
        needs = Needs(*order["needs"])
        demand = self._demands.setdefault(needs, Demand(needs))
        job = self._jobs[order["id"]] = Job(order, demand)
        demand.waiting.append(job)
        self.pump(demand)

    def stop(self, number: int, grace: float | None) -> None:
        """Stop a command: one that waits does not begin."""
        job = self._jobs.get(number)
        if job is None:
            return
        if job.slot is None:
            job.demand.waiting.remove(job)
            self._end(job, {"status": "killed", "reason": "stopped before it started"})
            return
        job.slot.actor.stop.remote(number, grace)
        if job.stopping is None:
            loop = asyncio.get_running_loop()
            job.stopping = loop.call_later((grace or 0.0) + _STOP_TIMEOUT, self._abandon, job)

    async def close(self) -> None:
        """End all slots; the owner gets no more messages."""
        self._send = _ignore
        for task in self._tasks:
            task.cancel()
        leaving = [asyncio.wrap_future(slot.actor.leave.remote().future()) for slot in self._slots]
        if leaving:
            await asyncio.wait(leaving, timeout=_LEAVE)
        for slot in list(self._slots):
            self._kill(slot)

    def _abandon(self, job: Job) -> None:
        """Wait no longer for a command that was stopped."""
        if job.slot is not None and not job.is_over:
            self._kill(job.slot)

    # Slots ----------------------------------------------------------------------------------------

    def pump(self, demand: Demand) -> None:
        """Hand over what can be handed over, and start slots for what waits."""
        waiting = demand.waiting
        while waiting and demand.free:
            count = min(len(waiting), self._batch(demand))
            self._hand_over([waiting.popleft() for _ in range(count)], demand.free.pop())
        wanted = len(waiting) - demand.starting
        if wanted > 0:
            for other in self._demands.values():
                while other is not demand and other.free:
                    self._drop(other.free[0])  # what it holds may be what is lacking
            for _ in range(min(wanted, self._room(demand))):
                demand.starting += 1
                self._task(self._start(demand))

    def _batch(self, demand: Demand) -> int:
        """Return how many commands to hand over at a time: few milliseconds of work, and a fair share."""
        slots = sum(slot.demand is demand for slot in self._slots) + demand.starting
        share = -(-len(demand.waiting) // max(1, slots))
        return max(1, min(int(_BATCH / max(demand.took or _BATCH, 1e-4)), share, _MOST))

    def _room(self, demand: Demand) -> int:
        """Return how many slots to start: what the cluster has free; one, if it has nothing."""
        if time.monotonic() - self._looked > _LOOK:
            self._available, self._looked = ray.available_resources(), time.monotonic()
        resources = demand.needs.resources.items()
        fits = [int(self._available.get(name, 0.0) // value) for name, value in resources]
        room = min(fits, default=_UNBOUNDED) - demand.starting
        return max(room, 0 if demand.starting else 1)

    async def _start(self, demand: Demand) -> None:
        """Start a slot for what waits; if that is impossible, the first command learns why."""
        reason = ""
        for _ in range(_STARTS):
            reason = await self._unfit(demand)
            if reason:
                break
            actor = self._made(demand.needs)
            greeting = asyncio.ensure_future(awaited(actor.hello.remote()))
            try:
                while not greeting.done():
                    await asyncio.wait([greeting], timeout=_IDLE)
                    if not greeting.done() and not demand.waiting:
                        ray.kill(actor)
                        demand.starting -= 1
                        return
                found = greeting.result()
            except faults.RayError as error:
                reason = _last_line(error)
                continue
            finally:
                greeting.cancel()
            demand.starting -= 1
            slot = RunningSlot(actor, demand, found["host"])
            self._slots.add(slot)
            self._release(slot)
            return
        demand.starting -= 1
        if demand.waiting:
            job = demand.waiting.popleft()
            self._end(job, {"status": "failed", "reason": reason})
            self.pump(demand)

    def _made(self, needs: Needs) -> Any:
        """Ask Ray for a slot, which it starts when there is room. Nothing of it is ever repeated."""
        kind: Any = ray.remote(Slot)
        return kind.options(
            num_cpus=needs.cpus,
            num_gpus=needs.gpus,
            memory=needs.memory or None,
            max_restarts=0,
            max_task_retries=0,
            max_concurrency=_PARALLEL,
            scheduling_strategy="SPREAD",
        ).remote(self._version, self._settings["allow"], self._settings["fence"])

    async def _unfit(self, demand: Demand) -> str:
        """Wait for a node that could ever hold a slot; say why there is none."""
        deadline = time.monotonic() + self._settings["patience"]
        is_noted = False
        while True:
            found: list[dict[str, Any]] = ray.nodes()
            nodes: list[dict[str, float]] = [n["Resources"] for n in found if n["Alive"]]
            wanted = demand.needs.resources
            if any(all(node.get(n, 0.0) >= wanted[n] for n in wanted) for node in nodes):
                return ""
            best = {
                name: max((node.get(name, 0.0) for node in nodes), default=0) for name in wanted
            }
            reason = f"no node of the cluster has {_listed(wanted)}; the most is {_listed(best)}"
            if time.monotonic() >= deadline or not demand.waiting:
                return reason
            if not is_noted:
                is_noted = True
                self._send({"is": "notice", "text": f"{reason}; waiting for one"})
            await asyncio.sleep(_LOOK)

    def _release(self, slot: RunningSlot) -> None:
        """Note that a slot is free."""
        slot.idle_since = time.monotonic()
        slot.demand.free.append(slot)
        others = [other for other in self._demands.values() if other is not slot.demand]
        for demand in (slot.demand, *others):
            if demand.waiting:
                self.pump(demand)

    def _drop(self, slot: RunningSlot) -> None:
        """End a slot that is free."""
        slot.demand.free.remove(slot)
        self._slots.discard(slot)
        slot.actor.leave.remote()

    def _kill(self, slot: RunningSlot) -> None:
        self._slots.discard(slot)
        with suppress(faults.RayError):
            ray.kill(slot.actor)

    async def _beat(self) -> None:
        """Tell the slots that their owner lives, and end those that nothing needs."""
        while True:
            await asyncio.sleep(min(self._settings["fence"] / _BEATS, _IDLE))
            now = time.monotonic()
            for slot in list(self._slots):
                if slot in slot.demand.free and now - slot.idle_since > _IDLE:
                    self._drop(slot)
                else:
                    slot.actor.beat.remote()
            for demand in self._demands.values():
                if demand.waiting:
                    self.pump(demand)

    # Commands -------------------------------------------------------------------------------------

    def _hand_over(self, jobs: list[Job], slot: RunningSlot) -> None:
        for job in jobs:
            job.slot = slot
        self._send({"is": "given", "ids": [job.number for job in jobs]})
        self._task(self._run(jobs, slot))

    async def _run(self, jobs: list[Job], slot: RunningSlot) -> None:
        """Run commands in a slot, to their end."""
        splitting = Split(self, slot, jobs)
        try:
            while jobs:
                jobs = await self._sent(jobs, slot, splitting)
        except faults.RayError as error:
            self._kill(slot)
            reason = f"its worker on {slot.host} was lost"
            if not isinstance(error, faults.RayActorError):
                reason += f": {_last_line(error)}"
            self.lose([job for job in jobs if job.slot is slot], reason)
        finally:
            splitting.cancel()
        if slot in self._slots:
            self._release(slot)
        else:
            self.pump(slot.demand)

    async def _sent(self, jobs: list[Job], slot: RunningSlot, splitting: Split) -> list[Job]:
        """Hand over commands with the contents that their slot lacks, and take their results.

        Returns those that found a content gone, which have not begun. Raises `RayError`.
        """
        calls: list[tuple[int, dict[str, Any], Contents]] = []
        given: list[Job] = []
        for job in jobs:
            try:
                inputs, contents = await self._sending.read(job.order["inputs"])
            except OSError as error:
                self._end(job, {"status": "failed", "reason": str(error)})
                continue
            sent = {name: contents[name] for name in contents if name not in slot.known}
            slot.known.update(sent)
            calls.append((job.number, {**job.order, "inputs": inputs}, sent))
            given.append(job)
        results: list[dict[str, Any]] = []
        if calls:
            results = await awaited(slot.actor.run.remote(calls))
        await splitting.wait()
        lacking: list[Job] = []
        for job, result in zip(given, results, strict=True):
            if "lacking" in result:
                slot.known.difference_update(result["lacking"])
                lacking.append(job)
            elif "is_given" not in result:
                await self.take(job, slot, result)
            elif job.slot is slot:
                self.lose([job], f"its result on {slot.host} was lost")
        return lacking

    def lose(self, jobs: list[Job], reason: str) -> None:
        """Note that the outcome of commands is unknown."""
        for job in jobs:
            if not job.is_over:
                self._end(job, {"status": "unknown", "reason": reason})

    def recall(self, job: Job) -> None:
        """Let a command that a slot was given, and has not begun, wait for the next one."""
        job.slot = None
        job.demand.waiting.appendleft(job)

    async def take(self, job: Job, slot: RunningSlot, result: dict[str, Any]) -> None:
        """Take the result of a command, with its files. Raises `RayError`."""
        took: float = result.pop("took", _BATCH)
        known = job.demand.took or took
        job.demand.took = known + (took - known) / 4
        try:
            if result.get("files") and not result["data"]:
                await self._fetch(job, slot, result)
        except OSError as error:
            result = {"status": "failed", "reason": f"its outputs cannot be kept: {error}"}
        self._end(job, result)

    async def _fetch(self, job: Job, slot: RunningSlot, result: dict[str, Any]) -> None:
        """Fetch output files that are too large for a message. Raises `OSError`, `RayError`."""
        staged: list[str] = []
        result["staged"] = staged
        for at, (path, _, size) in enumerate(result["files"]):
            target = f"{job.order['staging']}/{job.number}-{at}"
            with open(target, "wb") as file:
                for offset in range(0, size, PIECE):
                    data = await awaited(slot.actor.piece.remote(job.number, path, offset))
                    await asyncio.to_thread(file.write, data)
            staged.append(target)
        await awaited(slot.actor.forget.remote(job.number))

    def follow(self, job: Job, slot: RunningSlot) -> None:
        """Pass on the output of a command while it runs, if the owner wants it."""
        if job.order["is_followed"]:
            self._task(self._pass_on(job, slot))

    async def _pass_on(self, job: Job, slot: RunningSlot) -> None:
        """Pass on the output of a command while it runs."""
        with suppress(faults.RayError):
            while not job.is_over:
                data = await awaited(slot.actor.tail.remote(job.number))
                if data is None or job.is_over:
                    return
                self._send({"is": "output", "id": job.number, "data": data})

    def _end(self, job: Job, result: dict[str, Any]) -> None:
        job.is_over = True
        if job.stopping is not None:
            job.stopping.cancel()
        self._jobs.pop(job.number, None)
        self._send({"is": "ended", "id": job.number, **result})

    def _task(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


class Split:
    """Takes apart what was handed over at a time, if it takes long.

    What has ended is taken, and what has not begun goes elsewhere; so a command that takes long holds up
    no other, and a worker that dies takes little with it.
    """

    def __init__(self, pool: Pool, slot: RunningSlot, jobs: list[Job]) -> None:
        self._pool, self._slot, self._jobs = pool, slot, {job.number: job for job in jobs}
        self._task: asyncio.Task[None] | None = None
        self._timer = asyncio.get_running_loop().call_later(_QUIET, self._begin)

    def cancel(self) -> None:
        """Begin no more."""
        self._timer.cancel()

    async def wait(self) -> None:
        """Wait for its end, if it has begun."""
        self._timer.cancel()
        if self._task is not None:
            await self._task

    def _begin(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._split())

    async def _split(self) -> None:
        with suppress(faults.RayError):  # the call that runs the commands raises it, too
            if len(self._jobs) > 1:
                ended: dict[int, dict[str, Any]]
                recalled: list[int]
                ended, recalled = await awaited(self._slot.actor.split.remote())
                for number, result in ended.items():
                    await self._pool.take(self._jobs.pop(number), self._slot, result)
                for number in reversed(recalled):
                    self._pool.recall(self._jobs.pop(number))
            for job in self._jobs.values():
                self._pool.follow(job, self._slot)
            self._pool.pump(self._slot.demand)


def _ignore(_: dict[str, Any]) -> None:
    """Tell the owner nothing: it has gone."""


def _listed(resources: dict[str, float]) -> str:
    units = {"CPU": "{:g} CPUs", "GPU": "{:g} GPUs"}
    return ", ".join(
        units[name].format(value) if name in units else f"{value / 2**30:.1f} GiB of memory"
        for name, value in resources.items()
    )


def _last_line(error: Exception) -> str:
    """Return the last line of what Ray says, which is the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:500] if lines else type(error).__name__
