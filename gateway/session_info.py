"""A session as every list shows it: the terminal, the library, HTTP, the control socket and protocols."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Literal

from msgspec.structs import replace

from ..journal.lock import Owner
from ..journal.revert_record import OVER, REVERTED
from ..journal.store import RowFilter, SessionRow, Store
from ..machines.errors import UnknownSession, UsageError
from ..machines.value import Value
from .wording.formats import age
from .wording.redaction import Redactor
from .wording.terminal import clean


def working_beside(store: Store, session: str) -> list[str]:
    """Say which other sessions work in the folder of this one now; of very many, some are looked at."""
    folder = store.row(session).folder
    names = islice((name for name in store.owners() if name != session), _LOOKED_AT)
    others = [store.row(name) for name in names]
    return [
        f"Session {row.session} works in this folder, too: `steersman attach {row.session}`."
        for row in others
        if row.folder == folder and row.state in WORKS and not row.parent
    ]


WORKS = ("busy", "interrupting")
"""States of a session in which a turn runs."""
_LOOKED_AT = 200


class SessionInfo(Value):
    """A session in a list; times are seconds since 1970.

    `state` of a session that a program has open: `waiting` for a person (`needs` says why), `running`,
    `held` (what waits in its queue is resumed by a person), `idle`, or `elsewhere`, where that program
    runs on another machine. Of any other: `left`, `finalized`, `crashed`, `damaged` or `never began`.
    `result` is how a workflow's run ended: `succeeded`, `failed` or `interrupted`, or `reverted` if its
    work is undone. `title` is the first words of its first message, `name` what a person called it.
    `parent` is the session above a subagent's. `waiting` and `interrupted` count messages, `asking` the
    questions that wait for a person, in lists with those of its subagents. `has_begun`: something was
    said in it. `seq` is the number of its newest entry.
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


def listed(
    store: Store, is_here: Callable[[str], bool] = lambda _: False, most: int = 0
) -> list[SessionInfo]:
    """List the sessions of a home that have begun or are open, with subagents'.

    Those that need a person come first, then the newest. `is_here` says which this program has open. Of
    those that no program has open the newest are listed, at `most` so many; 0: all, with all below.
    """
    owners, rows = store.owners(), store.sessions(RowFilter(is_top=bool(most), most=most))
    if most:
        known = {row.session for row in rows}
        for session in owners.keys() - known:
            with suppress(UnknownSession):  # it was deleted meanwhile
                rows.append(store.row(session))
        rows.sort(key=lambda row: (-row.updated, row.session))
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
    goes_on = row.run not in OVER  # what a reverted run had begun can only be discarded
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
        result=_result(row),
        open="here" if is_here else "elsewhere" if is_open else "no",
        waiting=row.waiting + row.offered,
        asking=asking,
        interrupted=row.count_interrupted(is_owned=is_open) if goes_on else 0,
        has_begun=row.has_begun,
        seq=row.seq,
        created=row.created,
        updated=row.updated,
    )


RESULTS = ("succeeded", "failed", "interrupted")
"""How a workflow's run may end."""


def _result(row: SessionRow) -> str:
    """Name how a run ended; empty while it goes on, and where its program died before it ended."""
    has_ended = row.state == "suspended" and row.run in RESULTS
    return row.run if has_ended or row.run == REVERTED else ""


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
    if row.state in WORKS:
        return "running"
    return "held" if row.is_held and row.waiting else "idle"


# What a person can choose from --------------------------------------------------------------------


MOST = 20
"""Sessions that are listed, the newest first."""
UNTITLED = "(nothing said yet)"
"""What is shown for a session without a title."""


class SessionChoice(Value):
    """A session in a list to choose from; `title` is its name or the first words that were said in it.

    `about` says how old it is and what waits. Both are one line without secrets or escapes.
    """

    session: str
    title: str
    about: str
    name: str = ""
    waiting: int = 0
    updated: float = 0.0

    def view(self) -> dict[str, Any]:
        """Return it as data for programs."""
        return {
            "id": self.session,
            "name": self.name,
            "title": self.title,
            "waiting": self.waiting,
            "updated": self.updated,
        }


def resumable(store: Store, redactor: Redactor, here: str) -> list[SessionChoice]:
    """Return the sessions in the folder of session `here` that no program has open, newest first."""
    folder = store.load(here).row.folder
    rows = store.sessions(RowFilter(folder=folder, is_top=True))
    return choices_of(store, redactor, [row for row in rows if row.session != here])


def choices_of(store: Store, redactor: Redactor, rows: Sequence[SessionRow]) -> list[SessionChoice]:
    """Return what can be chosen of these rows: chats that have begun and are neither over nor open."""
    found: list[SessionChoice] = []
    for row in rows:
        is_chat = (
            row.has_begun
            and not row.is_damaged
            and not row.parent
            and not row.workflow
            and row.state != "finalized"
        )
        if is_chat and not store.is_owned(row.session):
            found.append(_choice(row, redactor, time.time()))
        if len(found) == MOST:
            break
    return found


def numbered(choices: Iterable[SessionChoice]) -> Iterator[str]:
    """Yield a line for each session, numbered from 1."""
    for number, choice in enumerate(choices, 1):
        yield f"{number:>2}. {choice.session}  {choice.title or UNTITLED}  ({choice.about})"


def chosen(choices: Sequence[SessionChoice], typed: str) -> str:
    """Return the session that a number, or words of a title, name; else what was typed, as an id.

    Raises `UsageError` for a number that no session has, and for words that several have.
    """
    number = typed.strip().rstrip(".")
    if number.isdecimal() and len(number) < 3:
        if not 0 < int(number) <= len(choices):
            raise UsageError(f"there is no number {number}", f"the list ends at {len(choices)}")
        return choices[int(number) - 1].session
    if any(typed in (choice.session, choice.name) for choice in choices):
        return typed
    fitting = [choice.session for choice in choices if fits(choice, typed)]
    begins = [choice.session for choice in choices if choice.session.startswith(typed)]
    if begins or not fitting:
        return typed
    if len(fitting) > 1:
        raise UsageError(f"`{typed}` fits several sessions: {', '.join(fitting[:5])}", "type more")
    return fitting[0]


def fits(choice: SessionChoice, typed: str) -> bool:
    """Whether each typed word is part of the session's id, name or title."""
    text = f"{choice.session} {choice.name} {choice.title}".casefold()
    return all(word in text for word in typed.casefold().split())


def _choice(row: SessionRow, redactor: Redactor, now: float) -> SessionChoice:
    waiting = f", {row.waiting} waiting" if row.waiting else ""
    name = redactor.line(clean(row.name))
    return SessionChoice(
        session=row.session,
        title=name or redactor.line(clean(row.title)),
        about=f"{age(now - row.updated)}{waiting}",
        name=name,
        waiting=row.waiting,
        updated=row.updated,
    )
