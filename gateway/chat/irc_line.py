"""What one line of IRC means to a person."""

from __future__ import annotations

import re
from datetime import UTC, datetime

from irctokens.line import Line

from .irc_connection import washed

_THROTTLED = frozenset(("263", "439", "707"))
_OTHER_REFUSALS = frozenset(("707", "716", "717", "263", "926"))
_SECONDS = re.compile(r"(\d+) ?s", re.IGNORECASE)


def said_text(line: Line) -> str:
    """Return what a PRIVMSG says; empty for CTCP other than ACTION, and for what has no sender."""
    if len(line.params) < 2 or not line.source or "!" not in line.source:
        return ""
    text = line.params[-1]
    if not text.startswith("\x01"):
        return washed(text).strip()
    command, _, rest = text.strip("\x01").partition(" ")
    said = washed(rest).strip()
    return (
        f"* {washed(line.hostmask.nickname)} {said}" if command.upper() == "ACTION" and said else ""
    )


def refuses(line: Line) -> bool:
    """Tell whether a line says that something was not done."""
    if line.params[:1] == ["CHATHISTORY"]:
        return False
    is_error = line.command.isdigit() and "400" <= line.command <= "599"
    return is_error or line.command in _OTHER_REFUSALS or line.command == "FAIL"


def seconds(line: Line) -> float:
    """Return when a refused line may be sent again, 0 if never."""
    if line.command not in _THROTTLED and "RATE_LIMIT" not in " ".join(line.params[:2]).upper():
        return 0.0
    found = _SECONDS.search(line.params[-1])
    return float(found[1]) + 1.0 if found else 10.0


def moment(stamp: str) -> datetime:
    """Return the time that a tag says, the earliest one if it says none."""
    try:
        return datetime.fromisoformat(stamp)
    except ValueError:
        return datetime.fromtimestamp(0, UTC)


def stamp(moment: datetime) -> str:
    """Return a time as a tag says it."""
    return (
        moment.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03}Z"
    )
