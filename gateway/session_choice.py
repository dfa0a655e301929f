"""The sessions that a person can choose from: by a number, an id, a name or words of the title."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from ..journal.store import SessionRow, Store
from ..machines.errors import UsageError
from ..machines.value import Value
from .wording.formats import age
from .wording.redaction import Redactor
from .wording.terminal import clean

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
    rows = [row for row in store.sessions() if row.session != here and row.folder == folder]
    return choices_of(store, redactor, rows)


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
