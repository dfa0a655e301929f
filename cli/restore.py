"""`steersman restore …`: lists and resumes sessions of other agents."""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Mapping
from pathlib import Path

from ..gateway.views.restore_service import RestoreService, can_resume, lives, restore_view
from ..gateway.wording.formats import age
from ..gateway.wording.redaction import redactor_of
from ..machines.errors import SteersmanError
from ..workflows.config import load
from ..workflows.paths import Paths
from .output import show, show_document, show_table, warn

_HEAD = ("SESSION", "AGENT", "STATE", "LAST EVENT", "STOPPED AT", "RESUME WITH")


def list_records(environ: Mapping[str, str], *, as_json: bool) -> int:
    """Print the records that are not finalized, newest event first; changes nothing."""
    restore_service = _restore_service(environ)
    now = time.time()
    records = restore_service.kept(now)
    redactor = redactor_of(environ)
    if as_json:
        views = [restore_view(record, restore_service.agents) for record in records]
        show_document({"restore": views})
        return 0
    if not records:
        warn(
            "There is nothing to restore; `steersman hooks install AGENT` installs hooks in an agent."
        )
        return 0
    rows: list[tuple[str, ...]] = []
    for record in records:
        state = f"{record.state}, alive" if lives(record) else record.state
        command = restore_service.agents[record.agent].resume_command(record.session)
        how = f"cd {shlex.quote(record.cwd)} && {shlex.join(command)}"
        if not can_resume(record):
            how = f"its id is not known; it was in {record.cwd}"
        stopped = age(now - record.last_boundary) if record.last_boundary else "-"
        cells = (record.session, record.agent, state, age(now - record.updated), stopped, how)
        rows.append(tuple(map(redactor.line, cells)))
    show_table(_HEAD, rows, environ)
    return 0


def run_record(environ: Mapping[str, str], name: str) -> int:
    """Replace this process by the agent's resume command, in its folder. Raises `SteersmanError`."""
    command, folder = _restore_service(environ).resume(name)
    os.chdir(folder)
    try:
        os.execvpe(command[0], command, dict(environ))
    except OSError as error:
        raise SteersmanError(
            f"`{command[0]}` cannot be started: {error.strerror}",
            "install it, or put its folder into PATH; the record is kept",
        ) from error


def forget_record(environ: Mapping[str, str], name: str) -> int:
    """Delete a record."""
    record = _restore_service(environ).forget(name)
    show(redactor_of(environ).line(f"Forgot session {record.session} of {record.agent}."))
    return 0


def _restore_service(environ: Mapping[str, str]) -> RestoreService:
    paths = Paths.of(environ)
    return RestoreService(paths, load(paths, Path.cwd(), environ).restore.retention_hours)
