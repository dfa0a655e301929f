"""Markdown, one line at a time: the appearance of a line depends only on the lines before it.

So a line can be shown while it grows, and printed when it is complete. Marks in pairs are hidden, all
others stay, so that no text of the model is lost. (CommonMark has more; this is what models write.)
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from ...machines.pattern import lazy_pattern
from ...machines.value import Value
from ..wrapping import wrapped_pieces
from .appearance import CODE, DIM, HEAD, Appearance, Piece, Row, link_style
from .markdown_blocks import LIVE_ROWS, MOST_ROWS, Highlighter, is_head, may_be_row, table_rows

_FENCE = lazy_pattern(r"\s*(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$")
_HEADING = lazy_pattern(r"(#{1,6})\s+")
_BULLET = lazy_pattern(r"(\s*)([-*+])(\s+)(?=\S)")
_NUMBER = lazy_pattern(r"\s*\d{1,3}[.)]\s+(?=\S)")
_QUOTE = lazy_pattern(r"\s*>\s?")
_RULE = lazy_pattern(r"\s*([-*_])(?:\s*\1){2,}\s*$")
_TABLE = lazy_pattern(r"\s*\|")
_ADDRESS = r"[^()\s]+(?:\([^()\s]*\)[^()\s]*)*"
_INLINE = lazy_pattern(
    r"(?<!`)(?P<tick>`++)(?P<code>.+?)(?<!`)(?P=tick)(?!`)"
    rf"|\[(?P<label>[^\]\[]+)\]\((?P<address>{_ADDRESS})(?:\s++\"[^\"]*+\")?\)"
    r"|<(?P<angled>https?://[^\s<>]+)>"
    r"|(?P<bare>https?://[^\s<>()\[\]|\"'`*]*[^\s<>()\[\]|\"'`*.,;:!?])"
    r"|\*\*(?P<bold>\S(?:.{0,500}?\S)?)\*\*(?!\*)"
    r"|(?<![\w*])\*(?P<slant>[^\s*](?:[^*]*[^\s*])?)\*(?![\w*])"
)


class Span(NamedTuple):
    """Styled text, and its start in the source; `mark` opens its style in the source."""

    style: str
    text: str
    at: int
    mark: str = ""


class Line(Value):
    """A styled line: its text, what stands before it, and the hanging indent of its further rows."""

    spans: list[Span]
    lead: Piece = ("", "")
    hang: str = ""
    is_code: bool = False

    def pieces(self) -> list[Piece]:
        """Return the whole line."""
        lead = [self.lead] if self.lead[1] else []
        return [*lead, *((span.style, span.text) for span in self.spans)]


class Markdown:
    """Styles lines, and remembers whether a code block is open."""

    def __init__(self, appearance: Appearance) -> None:
        self._appearance = appearance
        self._fence = ""
        self._code = Highlighter("")

    @property
    def is_code(self) -> bool:
        """Whether a code block is open."""
        return bool(self._fence)

    def take(self, text: str) -> Line:
        """Style a complete line; the next line follows it."""
        if self._fence and not self.ends_code(text):
            return self.take_code([text])[0]
        line = self.show(text)
        if found := _FENCE.match(text):
            self._fence = "" if self._fence else found[1]
            self._code = Highlighter(found[2])
        return line

    def take_code(self, texts: Sequence[str]) -> list[Line]:
        """Style complete lines of the code block that is open."""
        return [_code_line(pieces) for pieces in self._code.take(texts)]

    def ends_code(self, text: str) -> bool:
        """Whether a line ends the code block that is open."""
        fence = _FENCE.match(text)
        return bool(fence and fence[1].startswith(self._fence) and not fence[2])

    def show(self, text: str, rest: str | None = None) -> Line:
        """Style a line that may still grow.

        `rest`: the line continues one whose start was taken before; this is the indent of its rows.
        """
        if self._fence:
            is_end = self.ends_code(text)
            return self._rule() if is_end else _code_line(self._code.show(text))
        if rest is not None:
            return Line(lead=("", rest), spans=_inline(text, 0, ""), hang=rest)
        fence = _FENCE.match(text)
        if fence and "\n" not in text:
            return self._rule(fence[2])
        return self._block(text)

    def reset(self) -> None:
        """Start with a new answer; an open code block ends."""
        self._fence = ""

    def _rule(self, name: str = "") -> Line:
        dash = self._appearance.plain("─")
        drawn = f"{dash * 2} {name} {dash * 6}" if name else dash * 8
        return Line(spans=[Span(DIM, drawn, 0)], is_code=True)

    def _block(self, text: str) -> Line:
        if _RULE.match(text):
            return Line(spans=[Span(DIM, self._appearance.plain("─") * 20, 0)])
        if _TABLE.match(text):
            return Line(spans=_inline(text, 0, ""), is_code=True)
        if found := _HEADING.match(text):
            style = f"{HEAD} underline" if len(found[1]) == 1 else HEAD
            return Line(spans=_inline(text[found.end() :], found.end(), style))
        if found := _BULLET.match(text):
            lead = f"{found[1]}{self._appearance.plain('•')}{found[3]}"
            spans = _inline(text[found.end() :], found.end(), "")
            return Line(lead=("", lead), spans=spans, hang=" " * len(lead))
        if found := _NUMBER.match(text):
            spans = _inline(text[found.end() :], found.end(), "")
            return Line(lead=("", found[0]), spans=spans, hang=" " * found.end())
        if found := _QUOTE.match(text):
            bar = f"{self._appearance.plain('│')} "
            spans = _inline(text[found.end() :], found.end(), "italic")
            return Line(lead=(DIM, bar), spans=spans, hang=bar)
        indent = len(text) - len(text.lstrip(" "))
        return Line(spans=_inline(text, 0, ""), hang=" " * min(indent, 12))


def _code_line(pieces: Sequence[Piece]) -> Line:
    spans, at = list[Span](), 0
    for style, text in pieces:
        spans.append(Span(style, text, at))
        at += len(text)
    return Line(spans=spans, is_code=True)


def inline_pieces(text: str, style: str) -> list[Piece]:
    """Style the marks in a text that is no line of its own, such as a cell of a table."""
    return [(span.style, span.text) for span in _inline(text, 0, style)]


def _inline(text: str, base: int, style: str, mark: str = "") -> list[Span]:
    """Split text at its pairs of marks; `base` is its start in the source."""
    spans = list[Span]()
    at = 0
    for found in _INLINE.finditer(text):
        spans.append(Span(style, text[at : found.start()], base + at, mark))
        if found.lastgroup in ("address", "angled", "bare"):
            spans += _link(found, base, style, mark)
            at = found.end()
            continue
        kind = found.lastgroup if found.lastgroup != "tick" else "code"
        begin = found.start(kind or 0)
        opens = text[found.start() : begin]
        added = {"code": CODE, "bold": "bold", "slant": "italic"}[kind or "code"]
        inner = f"{style} {added}".strip()
        if kind == "code":
            spans.append(Span(inner, found["code"], base + begin, opens))
        else:
            spans += _inline(text[begin : found.end(kind or 0)], base + begin, inner, mark + opens)
        at = found.end()
    spans.append(Span(style, text[at:], base + at, mark))
    return [span for span in spans if span.text]


def _link(found: re.Match[str], base: int, style: str, mark: str) -> list[Span]:
    """Split a link: its label, and its address if that is another text."""
    kind = found.lastgroup or ""
    name = "label" if kind == "address" else kind
    styled = f"{style} {link_style(found[kind])}".strip()
    opens = mark + found[0][: found.start(name) - found.start()]
    label = Span(styled, found[name], base + found.start(name), opens)
    if kind != "address" or found["label"] == found["address"]:
        return [label]
    shown = found[0][found.end("label") + 1 - found.start() :]
    at = base + found.end("label")
    dim = f"{style} {DIM} {link_style(found[kind])}".strip()
    return [label, Span(style, " ", at), Span(dim, shown, at + 1)]


# Streaming ----------------------------------------------------------------------------------------


LIVE = 5
"""Rows of an unfinished line; the first rows of a longer one are returned before its end."""
LONGEST = 2_000
"""Characters of an unfinished line that is styled again with each piece, if they fill no rows."""


class Stream:
    """Makes rows of an answer that streams: each row is returned once, the last ones by `finish`.

    The lines of a table are kept until it ends.
    """

    def __init__(self, appearance: Appearance) -> None:
        self._appearance = appearance
        self._markdown = Markdown(appearance)
        self._text = ""
        self._rest: str | None = None
        self._table: list[str] = []
        self._drawn_live: tuple[object, list[Row]] = (None, [])

    def feed(self, text: str, width: int) -> list[Row]:
        """Take in more text; return the rows that are finished with it."""
        *whole, self._text = (self._text + text.expandtabs(4)).split("\n")
        rows = self._whole(whole, width)
        if len(self._text) > width * LIVE:
            rows += self._end_table(width)
            rows += self._unfinished_rows(width)
        if len(self._text) > LONGEST:
            rows += self._taken(self._text, width)
            self._text, self._rest = "", ""
        return rows

    @property
    def is_unfinished(self) -> bool:
        """Whether the last line, or a table, is not complete."""
        return bool(self._text or self._table)

    def live(self, width: int) -> list[Row]:
        """Return the last rows of the table, and those of the line, that are not complete."""
        key = len(self._table), self._table[-1:], width
        if self._drawn_live[0] != key:  # the last rows of the table, once until it grows
            shown = [*self._table[:2], *self._table[2:][-LIVE_ROWS:]]
            self._drawn_live = key, self._drawn(width, shown)
        line = _rows(self._markdown.show(self._text, self._rest), width) if self._text else []
        return [*self._drawn_live[1], *line]

    def finish(self, width: int) -> list[Row]:
        """End the line, and the answer."""
        rows = self._whole([self._text] if self._text else [], width)
        rows += self._end_table(width)
        self._text, self._rest = "", None
        self._markdown.reset()
        return rows

    def _whole(self, lines: Sequence[str], width: int) -> list[Row]:
        """Take in complete lines; those of a code block together."""
        rows, code = list[Row](), list[str]()
        for line in lines:
            is_plain = self._rest is None
            if self._markdown.is_code and is_plain and not self._markdown.ends_code(line):
                code.append(line)
                continue
            rows += self._coded(code, width)
            code = []
            if not (is_plain and self._takes_row(line)):
                rows += self._end_table(width)
                if is_plain and not self._markdown.is_code and may_be_row(line):
                    self._table = [line]
                else:
                    rows += self._taken(line, width)
            elif len(self._table) > MOST_ROWS:
                head = self._table[:2]
                rows += self._end_table(width)
                self._table = head
        return rows + self._coded(code, width)

    def _coded(self, code: Sequence[str], width: int) -> list[Row]:
        lines = self._markdown.take_code(code) if code else []
        return [row for line in lines for row in _rows(line, width)]

    def _takes_row(self, line: str) -> bool:
        """Add a line to the table, if it belongs there."""
        if not self._table or "|" not in line:
            return False
        if len(self._table) == 1 and not is_head([*self._table, line]):
            return False
        self._table.append(line)
        return True

    def _end_table(self, width: int) -> list[Row]:
        rows, self._table = self._drawn(width, self._table), []
        return rows

    def _drawn(self, width: int, table: Sequence[str]) -> list[Row]:
        """Draw a table; a first line that is not known to begin one as a line."""
        if len(table) > 1:
            return table_rows(table, width, self._appearance, inline_pieces)
        return [row for line in table for row in _rows(self._markdown.show(line), width)]

    def _taken(self, text: str, width: int) -> list[Row]:
        if self._rest is None:
            return _rows(self._markdown.take(text), width)
        line, self._rest = self._markdown.show(text, self._rest), None
        return _rows(line, width)

    def _unfinished_rows(self, width: int) -> list[Row]:
        """Return the full rows of a long line, and keep its last one."""
        line = self._markdown.show(self._text, self._rest)
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
