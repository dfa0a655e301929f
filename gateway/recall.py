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

LONGEST = 400
"""Characters of a line that are shown."""


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
    shown, ended = (_lines(redactor.text(clean(text))) for text in (said, answer))
    if len(shown) > SAID_LINES:
        shown = [*shown[: SAID_LINES - 1], f"{shown[SAID_LINES - 1]} …"]
    if len(ended) > ANSWER_LINES:
        ended = ["…", *ended[-ANSWER_LINES:]]
    title = "Last said here (/history shows more):"
    return "\n".join([title, *_beside("you: ", shown), *_beside("agent: ", ended)])


def _lines(text: str) -> list[str]:
    lines = (line for line in text.splitlines() if line.strip())
    return [line if len(line) <= LONGEST else f"{line[:LONGEST]} …" for line in lines]


def _beside(who: str, lines: list[str]) -> list[str]:
    """Indent lines, the first of them behind a name."""
    return [f"  {'' if at else who}{line}" for at, line in enumerate(lines)]
