"""Schedules: which planned times are due, and the part of a server that carries them out.

Each planned time is an occurrence, known by its schedule's name and its moment. What is due is noted in
the store before anything is opened, with the id of the session that will have it. Then the session gets
the message, or the run its first one, under a client id made of the same name and moment. So a crash at
any point leaves one of three: nothing is noted, and it is due again, or was missed; it is noted, and
carried out at the next start, where the client id keeps a message that came through from being said
twice; or its session has it, and what becomes of it there is what becomes of any message in a crash.

The store has two tables for this, rather than a session: a journal is folded whole by every reader of
it, lists show every session, and only the key of a table refuses a second row for the same moment.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any, Self

import pykka
from msgspec.structs import replace

from ...actors.runtime import Runtime, new_session_id
from ...journal.record import SessionRecord
from ...journal.recovery import load_record
from ...journal.store import Occurrence, Watch
from ...machines.errors import (
    ConfigError,
    SteersmanError,
    StoreBusy,
    StoreError,
    UnknownSession,
    UsageError,
)
from ...ports.hooks import HookCall, HookSpec, run_hook
from ...workflows.config import load
from ...workflows.home_folder import expanded, home_folder
from ...workflows.paths import Paths
from ...workflows.schedules import SystemZone, name_of, next_occurrence, occurrences, timing_of
from ...workflows.settings import HookSettings, ScheduleSettings
from ..client import SessionClient
from ..hosts import Hosts
from ..wording.formats import iso
from .host import Host

LOGGER = logging.getLogger("steersman")
LATE = 60.0
"""Seconds after its time from which on an occurrence counts as missed."""
PAUSE = 15.0
"""Seconds between two looks at the clock and the configuration, which may be changed at any time."""
AGAIN = 15.0
"""Seconds after which what could not be carried out is tried again."""
RETRIED_FOR = 600.0
"""Seconds for which it is tried."""
SILENT = StoreBusy("the session did not answer in time")

Call = Callable[[str, str, dict[str, Any]], Awaitable[Any]]
"""Carries out a method of the control socket for a session: the session, the method, its parameters."""
Key = tuple[str, float]
"""The name of a schedule and a planned time of it."""
PASSING = (StoreError, TimeoutError, pykka.Timeout, pykka.ActorDeadError)
"""Faults of sessions and of the store that may pass."""


# Decisions ----------------------------------------------------------------------------------------


def decide(
    schedule: ScheduleSettings, watch: Watch, now: float, known: Collection[float], zone: tzinfo
) -> tuple[list[float], list[float]]:
    """Return which times begin and which are passed over, of those since a schedule was looked at. Pure.

    `known` are the times that have begun or failed: they never begin again, also after the clock was
    set back. A time that is more than `LATE` past was missed. With the rule `once` the newest of the
    missed ones begins, unless another time begins now.
    """
    after = max(watch.upto, watch.floor)
    planned = occurrences(schedule, after, now, zone)
    fresh = [moment for moment in planned if moment not in known]
    begin = [moment for moment in fresh if now - moment <= LATE]
    late = [moment for moment in fresh if now - moment > LATE]
    if schedule.missed == "once" and late and not begin:
        begin = [late.pop()]
    return begin, late


def watched(schedule: ScheduleSettings, known: Watch | None, now: float) -> Watch:
    """Return up to when a schedule is decided; one that is new or has other times counts from now.

    A single time counts also if it was configured after it.
    """
    name, timing = name_of(schedule), timing_of(schedule)
    if known is not None and known.timing == timing:
        return known
    floor = known.floor if known is not None else 0.0
    upto = 0.0 if schedule.at else now
    return Watch(schedule=name, timing=timing, upto=upto, floor=floor)


def key_of(found: Occurrence) -> Key:
    """Return the key of an occurrence."""
    return found.schedule, found.planned


def failed(found: Occurrence, fault: SteersmanError) -> Occurrence:
    """Return an occurrence that could not be carried out."""
    reason = f"{fault} ({fault.hint})" if fault.hint else str(fault)
    return replace(found, state="failed", reason=reason)


def client_id_of(found: Occurrence) -> str:
    """Return the id of an occurrence's message, the same however often it is sent."""
    return f"schedule {found.schedule} {datetime.fromtimestamp(found.planned, UTC).isoformat()}"


# The work -----------------------------------------------------------------------------------------


class ConfiguredSchedules:
    """The schedules and hooks of a person's own configuration, as its files are now.

    `is_known`: the files could be read at least once.
    """

    def __init__(self, paths: Paths, environ: Mapping[str, str]) -> None:
        self.schedules: dict[str, ScheduleSettings] = {}
        self.hooks: tuple[HookSettings, ...] = ()
        self.is_known = False
        self._paths = paths
        self._environ = environ
        self._seen: object = None

    def read(self) -> None:
        """Read the files again if they have changed; while they cannot be used, nothing changes."""
        named = self._environ.get("STEERSMAN_CONFIG")
        files = [self._paths.config_file, *([expanded(named)] if named else ())]
        seen = [_stamp(file) for file in files]
        if seen == self._seen:
            return
        self._seen = seen
        try:
            config = load(self._paths, home_folder(), self._environ)
        except ConfigError as error:
            LOGGER.warning("the schedules stay as they were: %s", error)
            return
        self.schedules = {name_of(schedule): schedule for schedule in config.schedule}
        self.hooks, self.is_known = config.hooks, True


def _stamp(file: Path) -> tuple[int, ...]:
    """Return what changes when a file does."""
    try:
        found = file.stat()
    except OSError:
        return ()
    return (found.st_ino, found.st_mtime_ns, found.st_size)


class Occurrences:
    """The occurrences that the store has, and how far each schedule was looked at.

    Only one process of a home changes them. May be used by several threads; methods block, and raise
    `StoreError`.
    """

    def __init__(self, hosts: Hosts) -> None:
        self._hosts = hosts
        self._mutex = threading.RLock()
        self._due: dict[Key, Occurrence] = {}
        self._watches: dict[str, Watch] = {}
        self._known: dict[str, set[float]] = {}
        self._is_loaded = False

    def load(self) -> None:
        """Read what was noted before, once."""
        if self._is_loaded:
            return
        self._watches = {watch.schedule: watch for watch in self._hosts.store.watches()}
        for found in self._hosts.store.occurrences():
            self._remember(found)
        self._is_loaded = True

    def due(self) -> dict[Key, Occurrence]:
        """Return what is to be carried out."""
        with self._mutex:
            return dict(self._due)

    def _remember(self, found: Occurrence) -> None:
        if found.state != "missed":
            self._known.setdefault(found.schedule, set()).add(found.planned)
        if found.state == "due":
            self._due[key_of(found)] = found

    def look(self, schedule: ScheduleSettings, now: float, zone: tzinfo) -> list[Occurrence]:
        """Note what is due of a schedule, and return all that was noted."""
        name = name_of(schedule)
        with self._mutex:
            before = self._watches.get(name)
            watch = watched(schedule, before, now)
            begin, late = decide(schedule, watch, now, self._known.get(name, ()), zone)
            if watch == before and now >= watch.upto and not (begin or late):
                return []
            found = [self._begun(schedule, moment, now) for moment in begin]
            if late:
                missed = Occurrence(schedule=name, planned=late[-1], state="missed", noted=now)
                why = "no server carried it out in time"
                found.append(replace(missed, reason=why, count=len(late)))
            watch = replace(watch, upto=now)
            are_new = self._hosts.store.note(watch, found)
            self._watches[name] = watch
            noted = [new for new, is_new in zip(found, are_new, strict=True) if is_new]
            for occurrence in noted:
                self._remember(occurrence)
            return noted

    def _begun(self, schedule: ScheduleSettings, moment: float, now: float) -> Occurrence:
        """Return an occurrence that is due, with the session that is to have it."""
        found = Occurrence(schedule=name_of(schedule), planned=moment, state="due", noted=now)
        if not schedule.session:
            return replace(found, session=new_session_id())
        try:
            return replace(found, session=self._hosts.row(schedule.session).session)
        except (UsageError, UnknownSession) as fault:
            return failed(found, fault)

    def forget(self, names: Collection[str]) -> None:
        """Treat all other schedules as new ones if they are configured again."""
        with self._mutex:
            for name, watch in self._watches.items():
                if name not in names and watch.timing:
                    self._watches[name] = replace(watch, timing="")
                    self._hosts.store.note(self._watches[name])

    def conclude(self, found: Occurrence) -> None:
        """Keep what became of an occurrence, or that another session is to have it."""
        with self._mutex:
            self._hosts.store.conclude(found)
            if found.state == "due":
                self._due[key_of(found)] = found
            else:
                del self._due[key_of(found)]


class Scheduler:
    """Carries out the schedules of a person's configuration; for the one server of a home.

    `call` reaches any session of the home, wherever it is open; `main` is a host of the server. `clock`
    returns seconds since 1970.
    """

    def __init__(
        self,
        hosts: Hosts,
        main: Host,
        call: Call,
        environ: Mapping[str, str],
        clock: Callable[[], float] = time.time,
        zone: tzinfo | None = None,
    ) -> None:
        self._hosts = hosts
        self._main = main
        self._call = call
        self._clock = clock
        self._zone = zone or SystemZone()
        self._configured = ConfiguredSchedules(hosts.paths, environ)
        self._occurrences = Occurrences(hosts)
        self._open: dict[Key, SessionClient] = {}
        self._work: dict[Key, asyncio.Task[None]] = {}
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        """Begin to carry out what is due."""
        self._task = asyncio.create_task(self._run())
        self._task.add_done_callback(_report_fault)
        return self

    async def __aexit__(self, *_: object) -> None:
        """Begin nothing more. What is being carried out goes on at the next start."""
        assert self._task is not None
        self._task.cancel()
        await asyncio.wait([self._task])

    async def _run(self) -> None:
        if not self._main.is_kept:
            LOGGER.warning("auto_queue.persistence.enabled is false: schedules do not happen")
            return
        try:
            while True:
                pause = PAUSE
                try:
                    pause = await asyncio.to_thread(self.look)
                except StoreError as fault:
                    LOGGER.warning("schedules cannot be kept just now: %s", fault)
                for key in self._occurrences.due().keys() - self._work.keys():
                    self._work[key] = asyncio.create_task(self._carry_out(key))
                await asyncio.sleep(pause)
        finally:
            for task in self._work.values():
                task.cancel()
            await asyncio.gather(*self._work.values(), return_exceptions=True)

    def look(self) -> float:
        """Note what is due; return the seconds until the next look. Blocks, raises `StoreError`."""
        time.tzset()
        self._configured.read()
        self._occurrences.load()
        now = self._clock()
        schedules = self._configured.schedules
        if self._configured.is_known:
            self._occurrences.forget(schedules.keys())
        for schedule in schedules.values():
            for found in self._occurrences.look(schedule, now, self._zone):
                self._report(found)
        planned = [next_occurrence(schedule, now, self._zone) for schedule in schedules.values()]
        now = self._clock()
        return max(0.0, min([PAUSE, *(moment - now for moment in planned if moment is not None)]))

    async def _carry_out(self, key: Key) -> None:
        """Give an occurrence to its session, once, however many attempts it takes."""
        try:
            while (found := self._occurrences.due().get(key)) is not None:
                try:
                    said = await self._said(found)
                    await asyncio.to_thread(self._occurrences.conclude, said)
                except PASSING as fault:
                    LOGGER.info("schedule `%s` is tried again: %s", key[0], fault)
                    await asyncio.sleep(AGAIN)
                else:
                    self._report(said)
        finally:
            del self._work[key]

    async def _said(self, found: Occurrence) -> Occurrence:
        """Return an occurrence that its session has, or that has failed; raises what may pass."""
        record = await asyncio.to_thread(self._stored, found.session)
        if record is not None and client_id_of(found) in record.queue.clients:
            return replace(found, state="begun")  # it has the message already, run or not
        schedule = self._configured.schedules.get(found.schedule)
        if schedule is None:
            return replace(found, state="failed", reason="it is not configured any more")
        try:
            if not schedule.session:
                found = await asyncio.to_thread(self._opened, schedule, found)
            text = schedule.say or f"run {schedule.run}"  # to a run it is only the word to start
            message = {"text": text, "as": "queue"}
            sender = {"client_id": client_id_of(found), "user": f"schedule {found.schedule}"}
            receipt = await self._call(found.session, "say", {**message, **sender})
        except PASSING as fault:
            is_recent = self._clock() - found.noted <= RETRIED_FOR
            if is_recent and not isinstance(fault, UnknownSession):
                raise  # it may pass
            known = fault if isinstance(fault, SteersmanError) else SILENT
            return await asyncio.to_thread(self._failed, found, known)
        except SteersmanError as fault:
            return await asyncio.to_thread(self._failed, found, fault)
        if receipt["type"] == "rejected":
            hint = str(receipt.get("hint") or "")
            return failed(found, SteersmanError(f"refused: {receipt['reason']}", hint))
        return replace(found, state="begun")

    def _failed(self, found: Occurrence, fault: SteersmanError) -> Occurrence:
        """Return an occurrence that has failed, with its session if there is one."""
        is_there = self._stored(found.session) is not None
        return failed(found if is_there else replace(found, session=""), fault)

    def _stored(self, session: str) -> SessionRecord | None:
        try:
            return load_record(self._hosts.store, session)
        except UnknownSession:
            return None

    # Sessions of its own --------------------------------------------------------------------------

    def _opened(self, schedule: ScheduleSettings, found: Occurrence) -> Occurrence:
        """Open the session of an occurrence; return it with the session that it has now."""
        for key, other in list(self._open.items()):
            if key[0] == found.schedule and other.is_quiet():  # nothing happens in it any more
                del self._open[key]
                self._hosts.leave(other)
        if self._hosts.find(found.session) is not None:
            return found  # the attempt before this has opened it
        record = self._stored(found.session)
        if record is not None and not record.seq:  # nothing happened in it, and nothing will
            found, record = replace(found, session=new_session_id()), None
            self._occurrences.conclude(found)
        folder, session = Path(schedule.folder or "~"), found.session
        if record is not None and schedule.run:
            conversation = self._hosts.resume_run(session)
        elif record is not None:
            conversation = self._hosts.resume(session)
        elif schedule.run:
            given = schedule.variables
            conversation = self._hosts.begin_run(schedule.run, given, folder, session)
        else:
            conversation = self._hosts.begin(folder, schedule.agent, session=session)
        self._open[key_of(found)] = conversation
        return found

    # Reports --------------------------------------------------------------------------------------

    def _report(self, found: Occurrence) -> None:
        """Report an occurrence that was not carried out: in the log and to hooks; any thread."""
        if found.state not in ("missed", "failed"):
            return
        more = f" and {found.count - 1} before it" if found.count > 1 else ""
        name, moment, state, why = found.schedule, iso(found.planned), found.state, found.reason
        LOGGER.warning("schedule `%s`, %s%s: %s: %s", name, moment, more, state, why)
        specs = [hook for hook in self._configured.hooks if hook.on == "schedule_failed"]
        if specs:
            runtime = self._main.runtime
            asyncio.run_coroutine_threadsafe(_run_hooks(runtime, specs, found), runtime.loop)


def _report_fault(task: asyncio.Task[None]) -> None:
    """Report a fault that ends all schedules, which is one of this program."""
    if not task.cancelled() and (fault := task.exception()) is not None:
        LOGGER.error("schedules do not happen any more: %s", fault, exc_info=fault)


async def _run_hooks(runtime: Runtime, hooks: Sequence[HookSettings], found: Occurrence) -> None:
    """Run hooks of an occurrence that was not carried out; a fault of one is in the log."""
    payload = {
        "schedule": found.schedule,
        "planned": iso(found.planned),
        "state": found.state,
        "count": found.count,
        "reason": found.reason,
        "session": found.session or None,
        "time": iso(found.noted),
    }
    call = HookCall(event="schedule_failed", payload=payload, folder=home_folder())
    for hook in hooks:
        spec = HookSpec(on=hook.on, run=hook.run, timeout=hook.timeout)
        result = await run_hook(spec, call, runtime.shared.processes, os.environ)
        if result.exit_code != 0:
            LOGGER.warning("the hook `%s` on %s: %s", hook.run[0], hook.on, result.output)
