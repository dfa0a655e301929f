"""A session as every list shows it: the terminal, the library, HTTP, the control socket and protocols."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Literal

from msgspec.structs import replace

from ..journal.lock import Owner
from ..journal.store import SessionRow, Store
from ..machines.value import Value


class SessionInfo(Value):
    """A session in a list; times are seconds since 1970.

    `state` of a session that a program has open: `waiting` for a person (`needs` says why), `running`,
    `held` (what waits in its queue is resumed by a person), `idle`, or `elsewhere`, where that program
    runs on another machine. Of any other: `left`, `finalized`, `crashed`, `damaged` or `never began`.
    `result` is how a workflow's run ended: `succeeded`, `failed` or `interrupted`. `title` is the first
    words of its first message, `name` what a person called it. `parent` is the session above a
    subagent's. `waiting` and `interrupted` count messages, `asking` the questions that wait for a person,
    in lists with those of its subagents. `has_begun`: something was said in it. `seq` is the number of
    its newest entry.
    """

    id: str
    name: str
    title: str
    folder: str
    agent: str
    workflow: str
    parent: str
    state: str
    needs: str
    result: str
    open: Literal["here", "elsewhere", "no"]
    waiting: int
    asking: int
    interrupted: int
    has_begun: bool
    seq: int
    created: float
    updated: float


def listed(store: Store, is_here: Callable[[str], bool] = lambda _: False) -> list[SessionInfo]:
    """List the sessions of a home that have begun or are open, with subagents'.

    Those that need a person come first, then the newest. `is_here` says which this program has open.
    """
    owners, rows = store.owners(), store.sessions()
    below = Counter[str]()
    for row in rows:
        if row.parent and row.session in owners:
            below[row.root] += row.asking
    found = [
        info_of(
            replace(row, asking=row.asking + below[row.session]),
            owners.get(row.session),
            is_here=is_here(row.session),
        )
        for row in rows
        if row.has_begun or row.session in owners
    ]
    return sorted(found, key=lambda info: not info.needs)


def described(
    store: Store, session: str, is_here: Callable[[str], bool] = lambda _: False
) -> SessionInfo:
    """Describe one session as `listed` does. Raises `UnknownSession`."""
    row = store.row(session)
    for other in () if row.parent else store.family(session):
        if other.parent and other.asking and store.owner(other.session) is not None:
            row = replace(row, asking=row.asking + other.asking)
    return info_of(row, store.owner(session), is_here=is_here(session))


def info_of(row: SessionRow, owner: Owner | None, *, is_here: bool = False) -> SessionInfo:
    """Describe one session, which `owner` has open, or this program."""
    is_open = owner is not None or is_here
    asking = row.asking if is_open else 0
    return SessionInfo(
        id=row.session,
        name=row.name,
        title=row.title,
        folder=row.folder,
        agent=row.agent,
        workflow=row.workflow,
        parent=row.parent,
        state=state_of(row, owner, is_here=is_here),
        needs=f"{asking} question{'s' * (asking > 1)}" if asking else "",
        result=row.run if row.state == "suspended" and row.run in RESULTS else "",
        open="here" if is_here else "elsewhere" if is_open else "no",
        waiting=row.waiting,
        asking=asking,
        interrupted=row.count_interrupted(is_owned=is_open),
        has_begun=row.has_begun,
        seq=row.seq,
        created=row.created,
        updated=row.updated,
    )


RESULTS = ("succeeded", "failed", "interrupted")
"""How a workflow's run may end."""
_LEFT = {"suspended": "left", "finalized": "finalized"}


def state_of(row: SessionRow, owner: Owner | None, *, is_here: bool = False) -> str:
    """Name a session's state; see `SessionInfo`.

    One whose process failed before its first entry, as on a full disk, never began: it holds nothing.
    """
    if owner is None and not is_here:
        if row.is_damaged:
            return "damaged"
        return _LEFT.get(row.state, "crashed") if row.seq else "never began"
    if row.asking:
        return "waiting"
    if owner is not None and not owner.is_here:
        return "elsewhere"
    if row.state in ("busy", "interrupting"):
        return "running"
    return "held" if row.is_held and row.waiting else "idle"
