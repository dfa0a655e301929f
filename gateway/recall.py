"""The end of a session's conversation, for a person who resumes it."""

from __future__ import annotations

from ..journal.recovery import newest_first
from ..journal.store import Store
from .redaction import Redactor
from .terminal import clean

SAID_LINES = 3
"""Lines of the last message that are shown: its first ones."""
ANSWER_LINES = 8
"""Lines of the last answer that are shown: its last ones."""


def recalled(store: Store, session: str, redactor: Redactor) -> str:
    """Return the last message and the end of its answer as lines of text; empty if nothing was said."""
    said = answer = ""
    for message in newest_first(store, session):
        if message.role == "user":
            said = message.text
            break
        if message.role == "assistant" and not answer:
            answer = message.text
    if not said.strip():
        return ""
    lines = ["Last said here (/history shows more):"]
    lines += _first("you: ", redactor.text(clean(said)))
    lines += _last("agent: ", redactor.text(clean(answer)))
    return "\n".join(lines)


def _first(who: str, text: str) -> list[str]:
    lines = _lines(text)
    shown = lines[:SAID_LINES]
    if len(lines) > SAID_LINES:
        shown[-1] += " …"
    return _beside(who, shown)


def _last(who: str, text: str) -> list[str]:
    lines = _lines(text)
    shown = lines[-ANSWER_LINES:]
    return _beside(who, ["…", *shown] if len(lines) > ANSWER_LINES else shown)


def _lines(text: str) -> list[str]:
    return [line for line in text.splitlines() if line.strip()]


def _beside(who: str, lines: list[str]) -> list[str]:
    """Indent lines, the first of them behind a name."""
    return [f"  {'' if at else who}{line}" for at, line in enumerate(lines)]
