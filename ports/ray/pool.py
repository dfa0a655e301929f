"""The slots that a run has on a cluster: which command goes where, and what became of it.

Ray places slots by the resources they ask for; a command goes to a slot that is free. So a slot is started
only when commands wait, and no more than the cluster has room for, and ends when nothing waits for it any
more. A command is handed to a slot once. What a slot does not answer is unknown.

Runs in the driver (`driver.py`), on its asyncio loop.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from typing import Any, NamedTuple

import ray
from ray import exceptions as faults

from .sending import Sending
from .slot import FENCE, PIECE, Slot

_BEAT = FENCE / 6
_LEAVE = 2.0  # seconds for slots to end in order
_IDLE = 3.0  # seconds for which a slot is kept without work
_LOOK = 0.5  # seconds for which what the cluster has free is taken as known
_UNBOUNDED = 64  # slots that need nothing
_STARTS = 3  # attempts to start a slot for a command
_PATIENCE = 20.0  # seconds for a stopped command to end, beyond its own grace
_QUIET = 0.5  # seconds for which a command runs before its output is asked for
_PARALLEL = 64  # calls of one slot at a time: one command, its stops, its output


class Needs(NamedTuple):
    """The resources of a slot; `memory` in bytes."""

    cpus: float
    gpus: float
    memory: int

    @property
    def resources(self) -> dict[str, float]:
        """As Ray names them, without what is not needed."""
        found = {"CPU": self.cpus, "GPU": self.gpus, "memory": float(self.memory)}
        return {name: value for name, value in found.items() if value}


class Job:
    """A command on its way: `order` is what the owner asks for. `slot` is set when it was handed over."""

    def __init__(self, order: dict[str, Any]) -> None:
        self.number: int = order["id"]
        self.order = order
        self.needs = Needs(*order["needs"])
        self.slot: RunningSlot | None = None
        self.is_over = False
        self.stopping: asyncio.TimerHandle | None = None


class RunningSlot:
    """A slot that is alive; `known` are hashes of contents that it has."""

    def __init__(self, actor: Any, needs: Needs, host: str) -> None:
        self.actor = actor
        self.needs = needs
        self.host = host
        self.known = set[str]()
        self.idle_since = time.monotonic()


async def awaited(reference: Any) -> Any:
    """Wait for the value of a reference, of a driver as of a client. Raises what Ray raises."""
    return await asyncio.wrap_future(reference.future())


class Pool:
    """All slots of a run. `tell` sends a message to the owner; `version` is that of this program."""

    def __init__(
        self,
        tell: Callable[[dict[str, Any]], None],
        version: str,
        allow: list[str],
        patience: float,
    ) -> None:
        self._tell = tell
        self._version, self._allow, self._patience = version, allow, patience
        self._sending = Sending()
        self._jobs: dict[int, Job] = {}
        self._waiting: dict[Needs, deque[Job]] = {}
        self._starting: dict[Needs, int] = {}
        self._free: dict[Needs, list[RunningSlot]] = {}
        self._slots = set[RunningSlot]()
        self._tasks = set[asyncio.Task[None]]()
        self._available: dict[str, float] = {}
        self._looked = 0.0
        self._beating = self._task(self._beat())

    # Orders ---------------------------------------------------------------------------------------

    def run(self, order: dict[str, Any]) -> None:
        """Take a command; how it ended is told."""
        job = self._jobs[order["id"]] = Job(order)
        self._waiting.setdefault(job.needs, deque()).append(job)
        self._pump(job.needs)

    def stop(self, number: int, grace: float | None) -> None:
        """Stop a command: one that waits does not begin."""
        job = self._jobs.get(number)
        if job is None:
            return
        if job.slot is None:
            self._waiting[job.needs].remove(job)
            self._end(job, {"status": "killed", "reason": "stopped before it started"})
            return
        job.slot.actor.stop.remote(number, grace)
        if job.stopping is None:
            loop = asyncio.get_running_loop()
            job.stopping = loop.call_later((grace or 0.0) + _PATIENCE, self._abandon, job)

    async def close(self) -> None:
        """End all slots; nothing more is told."""
        self._tell = lambda _: None
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

    def _pump(self, needs: Needs) -> None:
        """Hand over what can be handed over, and start slots for what waits."""
        waiting, free = self._waiting.setdefault(needs, deque()), self._free.setdefault(needs, [])
        while waiting and free:
            self._hand_over(waiting.popleft(), free.pop())
        wanted = len(waiting) - self._starting.get(needs, 0)
        if wanted > 0:
            for slot in [slot for other in self._free for slot in self._free[other]]:
                if slot.needs != needs:
                    self._drop(slot)  # what it holds may be what is lacking
            for _ in range(min(wanted, self._room(needs))):
                self._starting[needs] = self._starting.get(needs, 0) + 1
                self._task(self._start(needs))

    def _room(self, needs: Needs) -> int:
        """Return how many slots to start: what the cluster has free; one, if it has nothing."""
        starting = self._starting.get(needs, 0)
        if time.monotonic() - self._looked > _LOOK:
            self._available, self._looked = ray.available_resources(), time.monotonic()
        fits = [
            int(self._available.get(name, 0.0) // value) for name, value in needs.resources.items()
        ]
        room = min(fits, default=_UNBOUNDED) - starting
        return max(room, 0 if starting else 1)

    async def _start(self, needs: Needs) -> None:
        """Start a slot for what waits; if that is impossible, the first command learns why."""
        reason = ""
        for _ in range(_STARTS):
            reason = await self._unfit(needs)
            if reason:
                break
            actor = self._made(needs)
            greeting = asyncio.ensure_future(awaited(actor.hello.remote()))
            try:
                while not greeting.done():
                    await asyncio.wait([greeting], timeout=_IDLE)
                    if not greeting.done() and not self._waiting[needs]:
                        ray.kill(actor)
                        self._starting[needs] -= 1
                        return
                found = greeting.result()
            except faults.RayError as error:
                reason = _told(error)
                continue
            finally:
                greeting.cancel()
            self._starting[needs] -= 1
            slot = RunningSlot(actor, needs, found["host"])
            self._slots.add(slot)
            self._release(slot)
            return
        self._starting[needs] -= 1
        if self._waiting[needs]:
            job = self._waiting[needs].popleft()
            self._end(job, {"status": "failed", "reason": reason})
            self._pump(needs)

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
        ).remote(self._version, self._allow)

    async def _unfit(self, needs: Needs) -> str:
        """Wait for a node that could ever hold a slot; say why there is none."""
        deadline = time.monotonic() + self._patience
        is_told = False
        while True:
            nodes = [node["Resources"] for node in ray.nodes() if node["Alive"]]
            wanted = needs.resources
            if any(all(node.get(n, 0.0) >= wanted[n] for n in wanted) for node in nodes):
                return ""
            best = {name: max((node.get(name, 0.0) for node in nodes), default=0) for name in wanted}
            reason = f"no node of the cluster has {_listed(wanted)}; the most is {_listed(best)}"
            if time.monotonic() >= deadline or not self._waiting[needs]:
                return reason
            if not is_told:
                is_told = True
                self._tell({"is": "notice", "text": f"{reason}; waiting for one"})
            await asyncio.sleep(_LOOK)

    def _release(self, slot: RunningSlot) -> None:
        """Note that a slot is free."""
        slot.idle_since = time.monotonic()
        self._free.setdefault(slot.needs, []).append(slot)
        for needs in [slot.needs, *(other for other in self._waiting if other != slot.needs)]:
            if self._waiting.get(needs):
                self._pump(needs)

    def _drop(self, slot: RunningSlot) -> None:
        """End a slot that is free."""
        self._free[slot.needs].remove(slot)
        self._slots.discard(slot)
        slot.actor.leave.remote()

    def _kill(self, slot: RunningSlot) -> None:
        self._slots.discard(slot)
        with suppress(faults.RayError):
            ray.kill(slot.actor)

    async def _beat(self) -> None:
        """Tell the slots that their owner lives, and end those that nothing needs."""
        while True:
            await asyncio.sleep(min(_BEAT, _IDLE))
            now = time.monotonic()
            for slot in list(self._slots):
                is_free = slot in self._free.get(slot.needs, ())
                if is_free and now - slot.idle_since > _IDLE:
                    self._drop(slot)
                else:
                    slot.actor.beat.remote()
            for needs, waiting in self._waiting.items():
                if waiting:
                    self._pump(needs)

    # Commands -------------------------------------------------------------------------------------

    def _hand_over(self, job: Job, slot: RunningSlot) -> None:
        job.slot = slot
        self._tell({"is": "given", "id": job.number})
        self._task(self._run(job, slot))

    async def _run(self, job: Job, slot: RunningSlot) -> None:
        """Run a command in a slot, to its end."""
        tail = asyncio.get_running_loop().call_later(_QUIET, self._follow, job, slot)
        try:
            result = await self._sent(job, slot)
            if result.get("files") and not result["data"]:
                await self._fetch(job, slot, result)
        except OSError as error:
            result = {"status": "failed", "reason": str(error)}
        except faults.RayError as error:
            self._kill(slot)
            result = {"status": "unknown", "reason": f"its worker on {slot.host} was lost"}
            if not isinstance(error, faults.RayActorError):
                result["reason"] += f": {_told(error)}"
        finally:
            tail.cancel()
        self._end(job, result)
        if slot in self._slots:
            self._release(slot)
        else:
            self._pump(slot.needs)

    async def _sent(self, job: Job, slot: RunningSlot) -> dict[str, Any]:
        """Hand over a command with the contents that its slot lacks. Raises `OSError`, `RayError`."""
        order = dict(job.order)
        order["inputs"], contents = await self._sending.read(order["inputs"])
        wanted = [digest for digest in contents if digest not in slot.known]
        while True:
            sent = {digest: contents[digest] for digest in wanted}
            result = await awaited(slot.actor.run.remote(job.number, order, sent))
            slot.known.update(wanted)
            if "lacking" not in result:
                return result
            wanted = result["lacking"]

    async def _fetch(self, job: Job, slot: RunningSlot, result: dict[str, Any]) -> None:
        """Fetch output files that are too large for a message. Raises `OSError`, `RayError`."""
        result["staged"] = []
        for at, (path, _, size) in enumerate(result["files"]):
            target = f"{job.order['staging']}/{job.number}-{at}"
            with open(target, "wb") as file:
                for offset in range(0, size, PIECE):
                    data = await awaited(slot.actor.piece.remote(job.number, path, offset))
                    await asyncio.to_thread(file.write, data)
            result["staged"].append(target)
        await awaited(slot.actor.forget.remote(job.number))

    def _follow(self, job: Job, slot: RunningSlot) -> None:
        if job.order["is_followed"]:
            self._task(self._pass_on(job, slot))

    async def _pass_on(self, job: Job, slot: RunningSlot) -> None:
        """Pass on the output of a command while it runs."""
        with suppress(faults.RayError):
            while not job.is_over:
                data = await awaited(slot.actor.tail.remote(job.number))
                if data is None or job.is_over:
                    return
                self._tell({"is": "output", "id": job.number, "data": data})

    def _end(self, job: Job, result: dict[str, Any]) -> None:
        job.is_over = True
        if job.stopping is not None:
            job.stopping.cancel()
        self._jobs.pop(job.number, None)
        self._tell({"is": "ended", "id": job.number, **result})

    def _task(self, work: Any) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _listed(resources: dict[str, float]) -> str:
    units = {"CPU": "{:g} CPUs", "GPU": "{:g} GPUs"}
    return ", ".join(
        units[name].format(value) if name in units else f"{value / 2**30:.1f} GiB of memory"
        for name, value in resources.items()
    )


def _told(error: Exception) -> str:
    """Return the last line of what Ray says, which is the cause."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:500] if lines else type(error).__name__
