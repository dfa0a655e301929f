"""A question of the agent as a card above the input line; it waits while everything else goes on."""

from __future__ import annotations

from pathlib import Path

from ...gateway.events.contract import Event
from ...gateway.terminal import clean
from ...machines.errors import ToolError
from ...ports.tools.difference import replaced
from ...ports.tools.place import find_place
from ..wrapping import wrapped_pieces
from .look import DIM, Look, Row
from .tool_view import diff_rows

__all__ = ["CHOICES_LINE", "card_rows", "replacing", "settled_line"]

CHOICES_LINE = "[y]es  [a]lways  [n]o"
HINT = " + Enter · a: this very call · n REASON"
MOST = 8
"""Rows of what is asked; the rest is left out, and the card says so."""


def card_rows(
    question: Event, count: int, who: str, width: int, look: Look, change: str = ""
) -> list[Row]:
    """Return the card: who asks for what, and the keys; `count` is how many questions are open.

    `change` is what a write would replace, as the tool will tell it (`replacing`).
    """
    more = f" (1 of {count})" if count > 1 else ""
    asker = f"{who} asks: " if who else ""
    head: Row = [
        ("ansiyellow bold", f"{asker}may `{question['tool']}` run?"),
        (DIM, f"{more}  {question['id']}"),
    ]
    rows = [*wrapped_pieces(head, width), *_what(question, change, width - 2, look)]
    keys: Row = [("bold", CHOICES_LINE), (DIM, look.plain(HINT))]
    return [*rows, *wrapped_pieces(keys, width)]


def settled_line(question: Event, what: str) -> str:
    """Return the line that says why a card is gone, where nothing else says it."""
    return f"The question about `{question['tool']}` {what}."


def replacing(question: Event, folder: Path) -> str:
    """Return what the tool `write` would say of the change that is asked about; else nothing."""
    match question:
        case {"tool": "write", "arguments": {"path": str(path), "content": str(content)}}:
            try:
                rows = replaced(find_place(path, folder), content.encode())
            except (ToolError, ValueError):
                rows = []
            return "\n".join(["Replaced ", *rows])
        case _:
            return ""


def _what(question: Event, change: str, width: int, look: Look) -> list[Row]:
    diff = diff_rows({**question, "call": ""}, change, width, look, MOST)
    shown = ("path",) if diff else tuple(question["arguments"])
    told = [str(question["arguments"].get(name, "")) for name in shown]
    rows = list[Row]()
    for line in clean("\n".join(told)).expandtabs(4).split("\n"):
        rows += wrapped_pieces([("", line)], max(1, width))
    if len(rows) > MOST:
        left = look.plain(f"… {len(rows) - MOST + 1} more rows, /inspect shows all")
        rows = [*rows[: MOST - 1], [(DIM, left)]]
    return [[("", "  "), *row] for row in rows] + diff
