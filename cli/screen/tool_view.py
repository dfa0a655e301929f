"""Tool calls on the screen: one row each when they end, a diff below an edit, all of it on demand."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from prompt_toolkit.utils import get_cwidth

from ...gateway.call_words import call_words
from ...gateway.events.contract import Event
from ...gateway.size import size_text
from ...gateway.terminal import clean
from ..wrapping import fitted, wrapped_pieces
from .bar import duration
from .look import ADDED, BAD, CODE, DIM, GOOD, HEAD, REMOVED, Look, Piece, Row

__all__ = ["brief", "diff_rows", "ended_rows", "running_row", "unfolded_rows"]

_CLOSING = re.compile(r"\[(exit code|interrupted|timed out|what it left)|\(no output\)$")
"""The lines that a command's output is closed with, for the model; the row says it in its own way."""

DIFF_ROWS = 12
"""Rows of a diff that are shown without being asked for."""
UNFOLDED_ROWS = 400
"""Rows of an output that are unfolded on the screen: its beginning and its end."""


def brief(arguments: dict[str, Any]) -> str:
    """Return what a call was given, on one line; the first words of each."""
    return "  ".join(fitted(clean(one[:500]), 120, "...") for one in call_words(arguments))


def running_row(call: Event, seconds: float, width: int, look: Look) -> Row:
    """Return the row of a call that runs."""
    timed = f" {int(seconds)} s" if seconds < 60 else f" {duration(int(seconds))}"
    name = call["tool"]
    room = width - get_cwidth(f"  {name} {timed}")
    return [
        (DIM, f"{look.sign('…')} "),
        (HEAD, name),
        ("", f" {fitted(_subject(call), max(0, room), look.sign('…'))}"),
        (DIM, timed),
    ]


def ended_rows(call: Event, end: Event, seconds: float | None, width: int, look: Look) -> list[Row]:
    """Return the rows of a call that ended: what, its result, time and size; and the diff of an edit.

    `seconds` is none for a call that never started.
    """
    is_good = end["status"] == "ok" and not end.get("exit_code")
    sign = look.sign("✓") if is_good else look.sign("✗")
    row: Row = [(GOOD if is_good else BAD, sign), ("", " "), (HEAD, call["tool"])]
    took = f" · {duration(seconds)}" if seconds is not None else ""
    tail = look.plain(took + _size(end))
    result = _result(end, is_good)
    arrow = look.plain(" → ") if result else ""
    room = width - get_cwidth("".join(text for _, text in row) + tail + arrow) - 1
    least = max(room // 2, room - get_cwidth(result)) if room > 20 else room
    subject = fitted(_subject(call), max(4, least), look.sign("…"))
    row.append(("", f" {subject}" if subject else ""))
    if result and (left := room - get_cwidth(subject)) > 5:
        row.append((DIM if is_good else BAD, arrow + fitted(result, left, look.sign("…"))))
    rows = [[*row, (DIM, tail)]]
    return [*rows, *diff_rows(call, end.get("output") or "", width, look)] if is_good else rows


def diff_rows(call: Event, output: str, width: int, look: Look, most: int = DIFF_ROWS) -> list[Row]:
    """Return what an edit or a write changes, coloured and cut; none for other tools."""
    lines = list(_changed(call, output))
    rows = [_diff_row(line, width, look) for line in lines[:most]]
    if more := len(lines) - len(rows):
        rows.append([(DIM, look.plain(f"  … {more} more lines"))])
    return rows


def unfolded_rows(call: Event, end: Event, width: int, look: Look) -> list[Row]:
    """Return a call with all that it was given and all that is known of its output."""
    rows: list[Row] = [[(HEAD, f"{call['tool']} "), (DIM, call["call"])]]
    for name, value in call["arguments"].items():
        if call["tool"] in ("edit", "write") and name in ("old", "new", "content"):
            continue
        for at, line in enumerate(clean(str(value)).split("\n")):
            rows += wrapped_pieces([(DIM, f"{name}: " if at == 0 else "  "), ("", line)], width)
    rows += diff_rows(call, end.get("output") or "", width, look, UNFOLDED_ROWS)
    if call["tool"] not in ("edit", "write"):
        lines = clean(end.get("output") or "").expandtabs(4).rstrip("\n").split("\n")
        for line in _middle_out(lines, UNFOLDED_ROWS, look):
            rows += wrapped_pieces([(CODE, line)], width, by_word=False)
    return rows


def _middle_out(lines: list[str], most: int, look: Look) -> list[str]:
    if len(lines) <= most:
        return lines
    half = most // 2
    left = look.plain(f"… {len(lines) - 2 * half} lines left out …")
    return [*lines[:half], left, *lines[-half:]]


def _subject(call: Event) -> str:
    """Return what a call is about: the file, for tools that change one."""
    arguments = call["arguments"]
    if call["tool"] in ("edit", "write") and "path" in arguments:
        return clean(" ".join(str(arguments["path"]).split()))
    return brief(arguments)


def _result(end: Event, is_good: bool) -> str:
    """Return the line that says best how it ended: the last of a command's, the first of others."""
    told = clean(end.get("output") or "").splitlines()
    lines = [line for line in told if line.strip() and not _CLOSING.match(line)]
    said = lines[-1 if end["tool"] == "shell" else 0].strip() if lines else ""
    if is_good:
        return said if end["tool"] == "shell" else ""
    code = f"exit {end['exit_code']}" if end.get("exit_code") is not None else ""
    reason = clean(str(end.get("reason") or "")) or said
    status = "" if end["status"] in ("ok", "failed") and (code or reason) else end["status"]
    return ": ".join(one for one in (status, code, reason) if one)


def _size(end: Event) -> str:
    if end["tool"] in ("edit", "write"):
        return ""  # the diff says it
    lines = (end.get("lines") or 0) - (end["tool"] == "shell")
    if lines > 1 and end["status"] == "ok":
        return f" · {lines} lines"
    return f" · {size_text(end['bytes'])}" if end.get("bytes") else ""


def _changed(call: Event, output: str) -> Iterator[str]:
    """Yield the lines of a diff; of a file that is new, its lines as added."""
    arguments = call["arguments"]
    told = output.split("\n")[1:] if output.startswith(("Edited ", "Replaced ")) else []
    if call["tool"] in ("edit", "write") and told:
        yield from told
    elif call["tool"] == "write":
        yield from (f"+{line}" for line in str(arguments.get("content", "")).splitlines())
    elif call["tool"] == "edit":
        yield from (f"-{line}" for line in str(arguments.get("old", "")).splitlines())
        yield from (f"+{line}" for line in str(arguments.get("new", "")).splitlines())


def _diff_row(line: str, width: int, look: Look) -> Row:
    style = {"+": ADDED, "-": REMOVED, "@": CODE}.get(line[:1], DIM)
    text = fitted("  " + clean(line).expandtabs(4), width, look.sign("…"))
    piece: Piece = (style, text)
    return [piece]
