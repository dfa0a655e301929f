"""Runs hooks: those of a process's sessions, and those of external agents' sessions.

A session never waits for its hooks. `HookRunner` receives an entry's hook call when the entry is
durable; each session has a line of calls that run one after another, and each result is journalled. A
restart starts no hook: the calls wait until an entry that only a person's message or command can
cause. The end of a session that crashed, or whose hooks were not run, is due: `HookRunner` finds it in
the store, and runs its hooks after the next such entry.

`tell_hooks` does the same for external agents. The agent never waits for a hook: its event is on disk
first, and a separate process runs the hooks. A turn's end is reported at most once, a session's end
until it was delivered, under the same id.
"""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import shlex
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from ...actors.environment import Observer, Publication
from ...actors.runtime import Runtime
from ...journal import entries as e
from ...journal.codec import decode_entry
from ...journal.entries import HookRan
from ...journal.record import SessionRecord
from ...journal.recovery import load_record
from ...journal.store import SessionRow, Store
from ...machines import protocol as m
from ...machines.errors import AdmissionRefused, StoreDamaged, StoreError, UnknownSession
from ...ports.hooks import UNUSABLE, HookCall, HookResult, HookSpec, installed_hooks, run_hook
from ...ports.process.host import ProcessHost
from ...workflows.paths import make_private, write_private
from ..events.lifecycle import hook_call
from ..wording.formats import iso
from ..wording.redaction import Redactor
from .offline_writer import writing

if TYPE_CHECKING:
    from ...restore.records import RestoreRecord
    from ..views.restore_service import RestoreService
    from .host import Host

WAITING = 200
"""Calls that may wait for a session; each further call is skipped, and that is journalled."""
_OF_SUBAGENT = (e.SessionOpened, e.SessionFinalized, e.QuestionAsked, e.StepAsked)
"""Entries of a subagent that have hook calls of their own."""
LAST = ("session_suspend", "session_finalize")
_RESTARTS = (e.Recovered, e.SessionResumed)
_SILENT = (HookRan, e.PolicyChanged)
"""With these, waiting calls do not begin: a start may note that the model is elsewhere."""


# External agents ----------------------------------------------------------------------------------


def tell_hooks(
    service: RestoreService, state: Path, specs: Sequence[HookSpec], environ: Mapping[str, str]
) -> int:
    """Run the hooks of every event that no hook has received; returns how many were run."""
    folder = make_private(state / "agents")
    descriptor = os.open(folder / "hooks.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # the holder ends within its hooks' limits
        return asyncio.run(_run_calls(service, [*specs, *installed_hooks()], environ))
    finally:
        os.close(descriptor)


async def _run_calls(
    service: RestoreService, specs: Sequence[HookSpec], environ: Mapping[str, str]
) -> int:
    processes = ProcessHost()
    count = 0
    try:
        for record, call in _calls(service):
            if not call.finalize:
                service.ledger.write(record, "heard", float(call.payload["at"]))
            for spec in specs:
                if spec.event == call.event:
                    await run_hook(spec, call, processes, environ)
                    count += 1
            if call.finalize:
                service.ledger.write(record, "settle", time.time(), call.finalize)
    finally:
        await processes.aclose()
    return count


def _calls(service: RestoreService) -> list[tuple[RestoreRecord, HookCall]]:
    book = service.ledger.read()
    found: list[tuple[RestoreRecord, HookCall]] = []
    for record in book.records.values():
        if record.is_kept and record.opened > record.heard:
            found.append((record, _call(service, record, "session_start", record.opened)))
        if record.is_kept and record.last_boundary > record.heard:
            found.append((record, _call(service, record, "turn_ended", record.last_boundary)))
    for record in book.ended:
        if record.state == "finalizing":
            found.append((record, _call(service, record, "session_finalize", record.updated)))
    return found


def _call(service: RestoreService, record: RestoreRecord, event: str, at: float) -> HookCall:
    from ..views.restore_service import can_resume

    agent = service.agents[record.agent]
    is_end = event == "session_finalize"
    resumes = can_resume(record) and not is_end
    payload = {
        "session": record.session,
        "agent": record.agent,
        "external": True,
        "time": iso(at),
        "at": at,
        "folder": record.cwd,
        "transcript_path": record.transcript or None,
        "command": list(agent.resume_command(record.session)) if resumes else None,
        "notifies_itself": agent.publishes_stop_notification,
        **({"cause": record.cause, "finalize": record.finalize} if is_end else {}),
    }
    return HookCall(
        event=event,
        payload=payload,
        folder=Path(record.cwd or "/"),
        about=0,
        finalize=record.finalize if is_end else "",
    )


# Sessions of this process -------------------------------------------------------------------------


class HookObserver(Observer):
    """Observes one session's entries, and passes their hook calls to `hooks`.

    Of a subagent only that it begins, asks and ends: its parent's entries tell of the rest.
    """

    def __init__(self, session: str, hooks: HookRunner, *, is_child: bool = False) -> None:
        self._session, self._hooks, self._is_child = session, hooks, is_child
        self._is_ending = False

    def observe_entry(
        self, entry: e.Entry, seq: int, time: float, record: SessionRecord
    ) -> Publication | None:
        """Translate an entry into a hook call, or none; any entry may start the waiting calls."""
        self._is_ending = self._is_ending or isinstance(entry, e.SessionFinalizing)
        if self._is_child:
            is_passed_on = isinstance(entry, _OF_SUBAGENT)
        else:
            is_due = isinstance(entry, e.SessionFinalized) and not self._is_ending
            is_passed_on = not isinstance(entry, _SILENT) and not is_due
        if not is_passed_on:
            return None
        call = hook_call(entry, seq, time, record)
        is_restart = isinstance(entry, _RESTARTS)
        return partial(self._hooks.receive, self._session, call, is_restart=is_restart)


# A folder has a file for each end of a session: locked while its hooks run, not empty once all have run


def due_ends(runtime: Runtime, folder: Path, begun: float) -> Iterator[tuple[str, HookCall]]:
    """Yield the hook calls of ends that no hook has received, with their sessions; blocks.

    They count since this home has hooks, at first since `begun`.
    """
    since = folder / "since"
    if not since.exists():
        write_private(since, f"{begun}\n".encode())
    first = float(since.read_text())
    for row in runtime.store.sessions():
        if row.state == "finalized" and row.updated >= first and not runtime.is_open(row.session):
            with contextlib.suppress(StoreDamaged):
                if (call := _due_end(runtime.store, folder, row)) is not None:
                    yield row.session, call


def _due_end(store: Store, folder: Path, row: SessionRow) -> HookCall | None:
    record = load_record(store, row.session)
    for stored in store.entries(row.session, max(0, row.seq - 20)):
        entry = decode_entry(stored.data)
        if isinstance(entry, e.SessionFinalized):
            mark = folder / entry.finalize
            is_done = mark.exists() and mark.stat().st_size > 0
            return None if is_done else hook_call(entry, stored.seq, stored.time, record)
    return None


def take_end(folder: Path, finalize: str) -> int | None:
    """Lock an end for its hooks; none if another process runs them, or all have run."""
    path = make_private(folder) / finalize
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        is_free = not os.read(descriptor, 1)
    except OSError:
        is_free = False
    if not is_free:
        os.close(descriptor)
    return descriptor if is_free else None


class HookReports:
    """Journals what came of a host's hooks, and reports those that cannot be started, once each."""

    def __init__(self, host: Host) -> None:
        self._host, self._runtime = host, host.runtime
        self._redactor = Redactor(os.environ, host.config.key_variables)
        self._unstarted: set[HookSpec] = set()
        self._left: list[tuple[str, HookRan]] = []

    def note(self, session: str, call: HookCall, command: str, result: HookResult) -> None:
        """Journal a result through the session's actor, or after the session's end in `keep_left`."""
        ran = HookRan(
            event=call.event,
            command=command,
            status=result.status,
            exit_code=result.exit_code,
            seconds=result.seconds,
            output=self._redactor.text(result.output),
            about=call.about,
            finalize=call.finalize,
        )
        if call.event in LAST:
            self._left.append((session, ran))
            return
        try:
            self._runtime.tell(session, m.NoteEntry(entry=ran))
        except (UnknownSession, AdmissionRefused):
            self._left.append((session, ran))

    def report_unstarted(self, session: str, spec: HookSpec, result: HookResult) -> None:
        """Report a hook that could not be started, the first time."""
        if spec.is_plug_in and result.exit_code == UNUSABLE:
            text = f"The {result.output.strip()}"
        elif result.status == "failed":
            command = self._redactor.line(shlex.join(spec.run))
            text = f"The hook `{command}` on {spec.on} could not be started: {result.output}"
        else:
            return
        if spec not in self._unstarted:
            self._unstarted.add(spec)
            self._host.observers.report(session, text)

    def keep_left(self) -> None:
        """Journal the results of sessions that have ended, each under a lease for one commit."""
        left, self._left = self._left, []
        for session in dict.fromkeys(session for session, _ in left):
            runs = [ran for other, ran in left if other == session]
            # else another process has resumed it and reports it
            with contextlib.suppress(StoreError), writing(self._runtime.store, session) as writer:
                writer.write(time.time(), *runs)


class HookRunner:
    """Runs all hooks of one host; `receive` is for the loop's thread, the rest for any other."""

    def __init__(self, host: Host) -> None:
        self._specs = [
            HookSpec(on=hook.on, run=hook.run, timeout=hook.timeout) for hook in host.config.hooks
        ]
        self._runtime = host.runtime
        self._reports = HookReports(host)
        self._folder, self._begun = host.paths.state / "hooks", time.time()
        self._lines: dict[str, deque[HookCall]] = {}
        self._workers: dict[str, asyncio.Task[None]] = {}
        self._is_awake = False
        self._is_over = False
        self._has_points = False

    def receive(self, session: str, call: HookCall | None, *, is_restart: bool) -> None:
        """Add a call to the session's line; anything but a restart starts the line and the due calls."""
        line = self._lines.setdefault(session, deque())
        if call is not None:
            if len(line) < WAITING or call.event in LAST:
                line.append(call)
            else:
                skipped = HookResult(status="skipped", output="too many wait")
                self._reports.note(session, call, "", skipped)
        is_from_person = not is_restart and (call is None or call.event != "session_start")
        if is_from_person and not self._is_awake:
            self._is_awake = True
            self._workers[""] = self._runtime.loop.create_task(self._run_due())
        if not is_restart and session not in self._workers:
            self._workers[session] = self._runtime.loop.create_task(self._work(session))

    def drain(self) -> None:
        """Wait for the running hooks, at most the longest hook's timeout, and journal the results.

        Not for the loop's thread. Idempotent.
        """
        if self._is_over:
            return
        self._is_over = True
        longest = max((spec.timeout for spec in self._specs), default=0.0)
        self._runtime.run(self._finish(longest + 1.0), None)
        self._reports.keep_left()

    async def _finish(self, seconds: float) -> None:
        tasks = list(self._workers.values())
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=seconds)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    async def _work(self, session: str) -> None:
        """Run the calls of a session's line, one hook after another."""
        await self._find_points()
        line = self._lines[session]
        try:
            while line:
                await self._call(session, line.popleft())
        finally:
            self._workers.pop(session, None)

    async def _run_due(self) -> None:
        try:
            await self._find_points()
            if any(spec.on == "session_finalize" for spec in self._specs):
                due = due_ends(self._runtime, self._folder, self._begun)
                for session, call in await asyncio.to_thread(list, due):
                    await self._call(session, call)
        finally:
            self._workers.pop("", None)

    async def _call(self, session: str, call: HookCall) -> None:
        """Run every hook of an event; of a session's end only if no other process runs or ran them."""
        if not call.finalize:
            await self._run(session, call)
            return
        guard = await asyncio.to_thread(take_end, self._folder, call.finalize)
        if guard is None:
            return
        try:
            await self._run(session, call)
            with contextlib.suppress(OSError):  # the end is then reported again, under the same id
                os.write(guard, b"told\n")
                await asyncio.to_thread(os.fsync, guard)
        finally:
            os.close(guard)

    async def _run(self, session: str, call: HookCall) -> None:
        for spec in self._specs:
            if spec.event == call.event:
                result = await run_hook(spec, call, self._runtime.shared.processes, os.environ)
                self._reports.note(session, call, shlex.join(spec.run), result)
                self._reports.report_unstarted(session, spec, result)

    async def _find_points(self) -> None:
        if not self._has_points:
            self._has_points = True
            self._specs += await asyncio.to_thread(installed_hooks)
