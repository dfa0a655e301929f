"""`steersman attach`: a second terminal on a session that runs somewhere else."""

from __future__ import annotations

import time
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..gateway.attached import AttachedHost, AttachedRun, AttachedSession
from ..gateway.events.contract import Event, Stamp
from ..gateway.home.home import find_in, find_session
from ..gateway.home.trash import Trash
from ..gateway.launch_options import LaunchOptions
from ..gateway.reach import SessionReach, open_there
from ..gateway.recall import said_in
from ..gateway.session_info import working_beside
from ..gateway.views.saved_queues import told_saved
from ..gateway.wording.formats import iso
from ..gateway.wording.redaction import redactor_of
from ..journal.lock import Owner
from ..journal.store import SessionRow, Store
from ..machines.errors import SteersmanError, StoreBusy
from ..workflows.config import Config, load
from ..workflows.paths import Paths, login_name
from .chat_options import ChatOptions
from .interfaces import interface_of
from .output import show, warn
from .signals import saved_line, until_signal
from .stored import stored

if TYPE_CHECKING:
    from ..gateway.running import Works

GOING = 10.0
"""Seconds within which an owner that closed the connection releases the session."""
RECALLED = 2
"""Turns of which a person who attaches reads what was said."""


def attach(
    environ: Mapping[str, str], session: str, user: str, *, is_json: bool, is_plain: bool
) -> int:
    """Follow a running session and send messages to it; the session continues afterwards."""
    with stored(environ) as store:
        row = _find(store, session)
        owner = store.owner(row.session)
        if owner is None:
            raise SteersmanError(
                f"no program has session `{row.session}` open",
                f"`steersman chat --resume {row.session}` resumes it",
            )
        is_near = SessionReach(Paths.of(environ), environ, store).is_near(owner)
    notices: list[str] = []
    if not is_near:
        notices.append(
            "Its program is on another machine. Each answer comes here when it is whole; the output of "
            "tools and what subagents do is not shown."
        )
    paths = Paths.of(environ)
    config = load(paths, Path(row.folder), environ)
    notices.append(
        f"Attached to session {row.session} of {owner.process}; /exit leaves it running."
    )
    here = AttachedHost(paths, config, LaunchOptions(agent=row.agent), notices)
    options = ChatOptions(folder=Path(row.folder), is_json=is_json, is_plain=is_plain)
    return _attend(here, row.session, owner, options, environ, user)


def chat_there(
    paths: Paths, config: Config, server: Owner, options: ChatOptions, environ: Mapping[str, str]
) -> int:
    """Have a chat's session in the program that serves the home; it goes on there after leaving.

    `options.folder` is the session's folder, and `options.resume` its id if it is to be taken up.
    """
    wanted = {
        "folder": str(options.folder),
        "agent": options.agent,
        "model": options.model,
        "is_yes": options.is_yes,
        "mode": options.mode,
        "resume": options.resume,
    }
    row, owner, notices = _opened_there(paths, server, wanted, environ, "session")
    session = row.session
    there = (
        f"Session {session} runs in `steersman serve` ({owner.process}); leaving it, or /detach, "
        "lets it go on there."
    )
    with stored(environ) as store:
        beside = working_beside(store, session)
    here = AttachedHost(paths, config, LaunchOptions(agent=row.agent), [*notices, there, *beside])
    return _attend(here, session, owner, options, environ, "")


def run_there(
    paths: Paths,
    config: Config,
    server: Owner,
    wanted: Mapping[str, Any],
    work: Mapping[str, Works],
    environ: Mapping[str, str],
) -> int:
    """Have a run in the program that serves the home, and follow it; leaving does not stop it.

    `wanted` is what `Hosts.open_for` takes; `work` are the lists `again` and `done` of `go_on`.
    """
    from .runs.prompt import run_at_prompt

    row, owner, _ = _opened_there(paths, server, wanted, environ, "run")
    run = row.session
    there = f"Run {run} is in `steersman serve` ({owner.process}); /detach leaves it running."
    here = AttachedHost(paths, config, LaunchOptions(), [there])

    def open_it() -> AttachedRun:
        attached = here.open(AttachedRun, run, owner, login_name())
        attached.go_on(work.get("again", ()), work.get("done", ()))
        return attached

    with closing(here):
        return until_signal(lambda: run_at_prompt(here, open_it))


def _opened_there(
    paths: Paths, server: Owner, wanted: Mapping[str, Any], environ: Mapping[str, str], what: str
) -> tuple[SessionRow, Owner, list[str]]:
    """Have the program that serves the home open a session; return it, who has it, what to tell."""
    session, notices = open_there(paths.state, server, **wanted)
    with stored(environ) as store:
        row, owner = store.row(session), store.owner(session)
    if owner is None:
        raise StoreBusy(f"{what} `{session}` was left at once", "`steersman serve status`")
    return row, owner, notices


def _attend(
    here: AttachedHost,
    session: str,
    owner: Owner,
    options: ChatOptions,
    environ: Mapping[str, str],
    user: str,
) -> int:
    """Take part in a session of another process until the person leaves or it is over."""
    interface = interface_of(options, environ)[0]
    here.recall = partial(_recall, environ, has_questions=not options.is_json)
    name = user or login_name()

    def open_it() -> AttachedSession:
        return here.open(AttachedSession, session, owner, name)

    with closing(here):
        code = until_signal(lambda: interface(here, open_it, options))
    last = here.attached.session if here.attached is not None else session
    with stored(environ) as store:
        is_over = _is_over(store, last, owner, GOING if here.is_cut_off else 0.0)
        row = store.row(last)
    if is_over:
        is_crash = row.state not in ("suspended", "finalized")
        how = "ended without closing it" if is_crash else "left it"
        warn(f"The program that had session {last} open has {how}.")
        warn(saved_line(row, here.paths))
        return int(is_crash and here.is_cut_off)
    if not options.is_json:
        show(
            f"Session {last} continues in its own program. `steersman attach {last}` joins it again."
        )
    return code


def _find(store: Store, name: str) -> SessionRow:
    """Find a session; `last` is the newest that a process has open. Raises `UsageError`."""
    row, owned = find_in(store, name), store.owners()
    live = [row for row in store.sessions() if row.session in owned]
    if name != "last" or not any(row.seq and not row.parent for row in live):
        return row
    found = find_session(live, name)
    if found != row:
        warn(f"Session {row.session} is newer, but no program has it open.")
    return found


def _is_over(store: Store, session: str, owner: Owner, patience: float) -> bool:
    """Whether no program has the session any more; a dying owner closes its connection first."""
    until = time.monotonic() + patience
    while store.row(session).state != "finalized":
        now = store.owner(session)
        if now != owner:
            return now is None
        if time.monotonic() >= until:
            return False
        time.sleep(0.02)
    return True


def _recall(
    environ: Mapping[str, str], session: str, upto: int, turn: str, *, has_questions: bool
) -> list[Event]:
    """Return what was said up to an entry: in the turn that runs; for people, in one before as well.

    Where nothing was said yet, it is what others left in the folder, to be resumed there.
    """
    turns = RECALLED if has_questions else int(bool(turn))
    with stored(environ) as store:
        row = store.row(session)
        if not row.has_begun:
            at = Stamp(seq=None, time=iso(time.time()), session=session)
            return list(told_saved(store, Trash(Paths.of(environ).state), row.folder, at))
        redactor = redactor_of(environ, row.folder)
        return said_in(
            store, session, upto, turns, redactor, running=turn, has_questions=has_questions
        )
