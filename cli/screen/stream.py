"""The model's answer as it streams: whole rows are given out once, the last line can be looked at."""

from __future__ import annotations

from ..wrapping import wrapped_pieces
from .look import Look, Row
from .markdown import Line, Markdown

__all__ = ["Stream"]

LIVE = 5
"""Rows of an unfinished line; what a longer one begins with is given out before its end."""


class Stream:
    """Text in, rows out; nothing is given out twice, nothing is left behind at `finish`."""

    def __init__(self, look: Look) -> None:
        self._markdown = Markdown(look)
        self._text = ""
        self._rest: str | None = None

    def feed(self, text: str, width: int) -> list[Row]:
        """Take in more text; return the rows that are finished with it."""
        rows = list[Row]()
        *whole, self._text = (self._text + text.expandtabs(4)).split("\n")
        for line in whole:
            rows += self._taken(line, width)
        if len(self._text) > width * LIVE:
            rows += self._begun(width)
        return rows

    def live(self, width: int) -> list[Row]:
        """Return the unfinished line as it looks now; none when there is nothing."""
        return _rows(self._shown(), width) if self._text else []

    def finish(self, width: int) -> list[Row]:
        """End the line, and the answer."""
        rows = self._taken(self._text, width) if self._text else []
        self._text, self._rest = "", None
        self._markdown.reset()
        return rows

    def _taken(self, text: str, width: int) -> list[Row]:
        if self._rest is not None:
            line, self._rest = self._markdown.show(text, self._rest), None
            return _rows(line, width)
        return _rows(self._markdown.take(text), width)

    def _shown(self) -> Line:
        return self._markdown.show(self._text, self._rest)

    def _begun(self, width: int) -> list[Row]:
        """Give out the rows of a long line that are full, and keep its last one."""
        line = self._shown()
        *rows, last = _rows(line, width)
        if len(rows) < LIVE:
            return []
        left = sum(len(text) for _, text in last) - len(line.hang)
        for span in reversed(line.spans):
            if left <= len(span.text):
                self._text = span.mark + self._text[span.at + len(span.text) - left :]
                break
            left -= len(span.text)
        self._rest = line.hang
        return rows


def _rows(line: Line, width: int) -> list[Row]:
    return wrapped_pieces(line.pieces(), width, line.hang, by_word=not line.is_code)
