"""The card of a question above the input line: what would run, and the keys that answer."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from prompt_toolkit.utils import get_cwidth

from ...gateway.events.contract import QuestionEvent, ToolCallView
from ...gateway.terminal import exposed
from ...machines.errors import ToolError
from ...ports.tools.file_tools import content_before, difference
from ...ports.tools.place import find_place
from ..question import AnswerKey, Questions, answer_keys, why_asked
from ..wrapping import wrapped_pieces
from .appearance import DIM, Appearance, Row
from .transcript import diff_rows

GUARD = 0.5
"""Seconds for which a card must have been shown before a key answers it; a key typed ahead does not."""
MOST = 8
"""Maximum number of rows of a card; the card says how many are left out."""


def card_rows(
    question: QuestionEvent,
    count: int,
    who: str,
    width: int,
    appearance: Appearance,
    change: str = "",
    keys: Sequence[AnswerKey] = (),
    *,
    is_lit: bool = True,
) -> list[Row]:
    """Return the card of a question above the input line; `count` is the number of open questions.

    `change` is what a write would replace, in the words of the tool (`replacing`); `is_lit`: the keys
    act.
    """
    more = f"  1 of {count}" if count > 1 else ""
    asker = f"{exposed(who)} asks: may" if who else "May"
    asks = appearance.theme.asks
    head: Row = [(f"{asks} bold", f"{asker} `{exposed(question['tool'])}` run?"), (DIM, more)]
    bar = f"{appearance.sign('▌')} "
    room = max(1, width - len(bar))
    rows = [*wrapped_pieces(head, room), *_what(question, change, room - 2, appearance)]
    rows += wrapped_pieces([(DIM, why)], room) if (why := why_asked(question)) else []
    rows += _keys_rows(keys, "bold" if is_lit else DIM, room, appearance)
    return [[(asks, bar), *row] for row in rows]


def _keys_rows(
    keys: Sequence[AnswerKey], style: str, width: int, appearance: Appearance
) -> list[Row]:
    """Return the keys of a card, as many in a row as fit; a reason can only be typed."""
    rows: list[Row] = [[]]
    for key, words in (*((known.key, known.words) for known in keys), ("r", "no, with a reason")):
        used = sum(get_cwidth(text) for _, text in rows[-1])
        between = appearance.plain(" · ") if used else ""
        if used and used + len(between) + len(key) + 1 + get_cwidth(words) > width:
            rows.append([])
            between = ""
        rows[-1] += [(DIM, between), (style, key), (DIM, f" {words}")]
    return [row for line in rows for row in wrapped_pieces(line, width, "  ")]


def settled_line(question: QuestionEvent, what: str) -> str:
    """Return the line that explains why a card is gone."""
    return f"The question about `{exposed(question['tool'])}` {what}."


def replacing(question: QuestionEvent, folder: Path) -> str:
    """Return the result that the tool `write` would report for its change; empty for other tools."""
    match question:
        case {"tool": "write", "arguments": {"path": str(path), "content": str(content)}}:
            try:
                before = content_before(find_place(path, folder))
                rows = [] if before is None else difference(before, content.encode())
            except (ToolError, ValueError):
                rows = []
            return "\n".join(["Replaced ", *rows])
        case _:
            return ""


def _what(question: QuestionEvent, change: str, width: int, appearance: Appearance) -> list[Row]:
    arguments = dict(question["arguments"])
    call = ToolCallView(call="", tool=question["tool"], arguments=arguments)
    diff = diff_rows(call, change, width, appearance, MOST)
    named = ("command", "path")  # what a call is about as it is, all others behind their names
    texts = [
        str(arguments[name]) if name in named else f"{name}: {arguments[name]}"
        for name in sorted(arguments, key=lambda name: name not in named)
        if name == "path" or not diff
    ]
    rows = list[Row]()
    for line in exposed("\n".join(texts)).expandtabs(4).split("\n"):
        rows += wrapped_pieces([("", line)], max(1, width))
    if len(rows) > MOST:
        left = appearance.plain(f"… {len(rows) - MOST + 1} more rows, /inspect shows all")
        rows = [*rows[: MOST - 1], [(DIM, left)]]
    return [[("", "  "), *row] for row in rows] + diff


class Card:
    """The card of the first open question, and since when it has been shown."""

    def __init__(self, appearance: Appearance) -> None:
        self._appearance = appearance
        self._id = self._change = ""
        self._since = 0.0

    def show(self, questions: Questions, who: str, folder: Path, width: int) -> list[Row]:
        """Return the rows of the first question; `who` is the subagent that asks."""
        first = questions.first
        if first is None:
            return []
        if first["id"] != self._id:
            self._id, self._since = first["id"], time.monotonic()
            self._change = replacing(first, folder)
        return card_rows(
            first,
            len(questions.all),
            who,
            width,
            self._appearance,
            self._change,
            answer_keys(first, folder),
            is_lit=self.answerable(questions) is not None,
        )

    def answerable(self, questions: Questions) -> QuestionEvent | None:
        """Return the question whose card has been shown long enough for a key to answer it."""
        first = questions.first
        is_shown = first is not None and first["id"] == self._id
        return first if is_shown and time.monotonic() - self._since >= GUARD else None
