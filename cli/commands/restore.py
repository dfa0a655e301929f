"""`steersman restore …`: lists and resumes sessions of other agents."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path

from ...gateway.views.restore_service import RestoreService, can_resume, lives, restore_view
from ...gateway.wording.formats import age
from ...gateway.wording.redaction import redactor_of
from ...machines.errors import SteersmanError
from ...workflows.config import load
from ...workflows.paths import Paths
from ..options import Json, Session, group
from ..output import show, show_document, show_table, warn

_HEAD = ("SESSION", "AGENT", "STATE", "LAST EVENT", "STOPPED AT", "RESUME WITH")

restore = group("restore", "steersman restore list")


@restore.command("list")
def restore_list(as_json: Json = False) -> None:
    """List the sessions that are not finalized, and how each is resumed.

    Example: steersman restore list --json
    """
    restore_service = _restore_service()
    now = time.time()
    records = restore_service.kept(now)
    redactor = redactor_of(os.environ)
    if as_json:
        views = [restore_view(record, restore_service.agents) for record in records]
        show_document({"restore": views})
        return
    if not records:
        warn(
            "There is nothing to restore; `steersman hooks install AGENT` installs hooks in an agent."
        )
        return
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
    show_table(_HEAD, rows)


@restore.command("run")
def restore_run(session: Session) -> int:
    """Resume a session with its agent's own command, in its folder.

    Example: steersman restore run last
    """
    command, folder = _restore_service().resume(session)
    os.chdir(folder)
    try:
        os.execvpe(command[0], command, dict(os.environ))
    except OSError as error:
        raise SteersmanError(
            f"`{command[0]}` cannot be started: {error.strerror}",
            "install it, or put its folder into PATH; the record is kept",
        ) from error


@restore.command("forget")
def restore_forget(session: Session) -> None:
    """Delete the record of a session; the agent's own files stay.

    Example: steersman restore forget last
    """
    record = _restore_service().forget(session)
    show(redactor_of(os.environ).line(f"Forgot session {record.session} of {record.agent}."))


def _restore_service() -> RestoreService:
    paths = Paths.of(os.environ)
    return RestoreService(paths, load(paths, Path.cwd(), os.environ).restore.retention_hours)
