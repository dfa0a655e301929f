"""A session as every list shows it: the terminal, the library, HTTP, the control socket and protocols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Literal

from msgspec.structs import replace

from ..journal.store import SessionRow, Store
from ..machines.value import Value


class SessionInfo(Value):
    """A session in a list; times are seconds since 1970.

    `state` is `running` where a program has it open, else `suspended`, `finalized`, `crashed`, `damaged`
    or `never began`; of a workflow's run that has ended, `succeeded`, `failed` or `interrupted`.
    `activity` is what an open one does: it `asks` a person, is `working` or `ready`; else empty. `title`
    is the first words of its first message, `name` what a person called it. `parent` is the session
    above a subagent's. `waiting` and `interrupted` count messages, `asking` the questions that wait for a
    person, in lists with those of its subagents. `has_begun`: something was said in it. `seq` is the
    number of its newest entry.
    """

    id: str
    name: str
    title: str
    folder: str
    agent: str
    workflow: str
    parent: str
    state: str
    activity: str
    open: Literal["here", "elsewhere", "no"]
    waiting: int
    asking: int
    interrupted: int
    has_begun: bool
    seq: int
    created: float
    updated: float


def _is_nowhere(session: str) -> bool:
    return False


def listed(store: Store, is_here: Callable[[str], bool] = _is_nowhere) -> list[SessionInfo]:
    """List the sessions of a home that have begun or are open, the newest first, with subagents'.

    `is_here` says which of them this program has open.
    """
    owners, rows = store.owners(), store.sessions()
    below = Counter[str]()
    for row in rows:
        if row.parent and row.session in owners:
            below[row.root] += row.asking
    return [
        info_of(
            replace(row, asking=row.asking + below[row.session]),
            is_owned=row.session in owners,
            is_here=is_here(row.session),
        )
        for row in rows
        if row.has_begun or row.session in owners
    ]


def info_of(row: SessionRow, *, is_owned: bool, is_here: bool = False) -> SessionInfo:
    """Describe one session; `is_owned`: a live process has it open."""
    is_open = is_owned or is_here
    is_working = row.state in ("busy", "interrupting")
    activity = "asks" if row.asking else "working" if is_working else "ready"
    return SessionInfo(
        id=row.session,
        name=row.name,
        title=row.title,
        folder=row.folder,
        agent=row.agent,
        workflow=row.workflow,
        parent=row.parent,
        state=state_of(row, is_owned=is_open),
        activity=activity if is_open else "",
        open="here" if is_here else "elsewhere" if is_owned else "no",
        waiting=row.waiting,
        asking=row.asking if is_open else 0,
        interrupted=row.count_interrupted(is_owned=is_open),
        has_begun=row.has_begun,
        seq=row.seq,
        created=row.created,
        updated=row.updated,
    )


def state_of(row: SessionRow, *, is_owned: bool) -> str:
    """Name a session's state; see `SessionInfo`.

    One whose process failed before its first entry, as on a full disk, never began: it holds nothing.
    """
    if is_owned:
        return "running"
    if row.is_damaged:
        return "damaged"
    if not row.seq:
        return "never began"
    if row.state == "suspended" and row.run in ("succeeded", "failed", "interrupted"):
        return row.run
    return row.state if row.state in ("suspended", "finalized") else "crashed"
