"""Hooks hear of external agents, too: where a prompt stopped, that a session began or is over for good.

An agent is never kept waiting for them: its event is on disk before anything of this runs, in a process
of its own. A turn's end is told once at most, a session's end until it was told, under the same id.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..journal.restore import RestoreRecord
from ..ports.hooks import HookCall, HookSpec, entry_point_hooks, run_hook
from ..ports.process.host import ProcessHost
from ..workflows.paths import make_private
from .formats import iso
from .restorable import Restorable, can_resume


def tell_hooks(
    restorable: Restorable, state: Path, specs: Sequence[HookSpec], environ: Mapping[str, str]
) -> int:
    """Run hooks for everything that none has heard of; returns how many were run."""
    folder = make_private(state / "agents")
    descriptor = os.open(folder / "hooks.lock", os.O_RDWR | os.O_CREAT, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # whoever is at it ends within its hooks' limits
        return asyncio.run(_tell(restorable, [*specs, *entry_point_hooks()], environ))
    finally:
        os.close(descriptor)


async def _tell(
    restorable: Restorable, specs: Sequence[HookSpec], environ: Mapping[str, str]
) -> int:
    processes = ProcessHost()
    count = 0
    try:
        for record, call in _calls(restorable):
            if not call.finalize:
                restorable.ledger.write(record, "heard", float(call.payload["at"]))
            for spec in specs:
                if spec.on == call.event:
                    await run_hook(spec, call, processes, environ)
                    count += 1
            if call.finalize:
                restorable.ledger.write(record, "settle", time.time(), call.finalize)
    finally:
        await processes.aclose()
    return count


def _calls(restorable: Restorable) -> list[tuple[RestoreRecord, HookCall]]:
    book = restorable.ledger.read()
    found: list[tuple[RestoreRecord, HookCall]] = []
    for record in book.records.values():
        if record.is_kept and record.opened > record.heard:
            found.append((record, _call(restorable, record, "session_start", record.opened)))
        if record.is_kept and record.last_boundary > record.heard:
            found.append((record, _call(restorable, record, "turn_end", record.last_boundary)))
    for record in book.ended:
        if record.state == "finalizing":
            found.append((record, _call(restorable, record, "session_finalize", record.updated)))
    return found


def _call(restorable: Restorable, record: RestoreRecord, event: str, at: float) -> HookCall:
    agent = restorable.agents[record.agent]
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
    return HookCall(event, payload, Path(record.cwd or "/"), 0, record.finalize if is_end else "")
