"""Markdown, one line at a time: the appearance of a line depends only on the lines before it.

So a line can be shown while it grows, and printed when it is complete. Marks in pairs are hidden, all
others stay, so that no text of the model is lost. (CommonMark has more; this is what models write.)
"""

from __future__ import annotations

import re

from msgspec import field

from ...machines.value import Value
from ..wrapping import wrapped_pieces
from .appearance import CODE, DIM, HEAD, Appearance, Piece, Row

_FENCE = re.compile(r"\s*(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$")
_HEADING = re.compile(r"(#{1,6})\s+")
_BULLET = re.compile(r"(\s*)([-*+])(\s+)(?=\S)")
_NUMBER = re.compile(r"\s*\d{1,3}[.)]\s+(?=\S)")
_QUOTE = re.compile(r"\s*>\s?")
_RULE = re.compile(r"\s*([-*_])(?:\s*\1){2,}\s*$")
_TABLE = re.compile(r"\s*\|")
_INLINE = re.compile(
    r"(?P<tick>`+)(?P<code>.+?)(?<!`)(?P=tick)(?!`)"
    r"|\*\*(?P<bold>\S(?:.*?\S)?)\*\*(?!\*)"
    r"|(?<![\w*])\*(?P<slant>[^\s*](?:[^*]*[^\s*])?)\*(?![\w*])"
)


class Span(Value):
    """Styled text, and its start in the source; `mark` opens its style in the source."""

    style: str
    text: str
    at: int
    mark: str = ""


class Line(Value):
    """A styled line: its lead, its text, and the hanging indent of its further rows."""

    lead: list[Piece] = field(default_factory=list[Piece])
    spans: list[Span] = field(default_factory=list[Span])
    hang: str = ""
    is_code: bool = False

    def pieces(self) -> list[Piece]:
        """Return the whole line."""
        return [*self.lead, *((span.style, span.text) for span in self.spans)]


class Markdown:
    """Styles lines, and remembers whether a code block is open."""

    def __init__(self, appearance: Appearance) -> None:
        self._appearance = appearance
        self._fence = ""

    def take(self, text: str) -> Line:
        """Style a complete line; the next line follows it."""
        line = self.show(text)
        if found := _FENCE.match(text):
            if not self._fence:
                self._fence = found[1]
            elif found[1].startswith(self._fence) and not found[2]:
                self._fence = ""
        return line

    def show(self, text: str, rest: str | None = None) -> Line:
        """Style a line that may still grow.

        `rest`: the line continues one whose start was taken before; this is the indent of its rows.
        """
        fence = _FENCE.match(text)
        if self._fence:
            is_end = fence and fence[1].startswith(self._fence) and not fence[2]
            return (
                self._rule()
                if is_end
                else Line(spans=[Span(style=CODE, text=text, at=0)], is_code=True)
            )
        if rest is not None:
            return Line(lead=[("", rest)] if rest else [], spans=_inline(text, 0, ""), hang=rest)
        if fence and "\n" not in text:
            return self._rule(fence[2])
        return self._block(text)

    def reset(self) -> None:
        """Start with a new answer; an open code block ends."""
        self._fence = ""

    def _rule(self, name: str = "") -> Line:
        dash = self._appearance.sign("─")
        drawn = f"{dash * 2} {name} {dash * 6}" if name else dash * 8
        return Line(spans=[Span(style=DIM, text=drawn, at=0)], is_code=True)

    def _block(self, text: str) -> Line:
        if _RULE.match(text):
            return Line(spans=[Span(style=DIM, text=self._appearance.sign("─") * 20, at=0)])
        if _TABLE.match(text):
            return Line(spans=_inline(text, 0, ""), is_code=True)
        if found := _HEADING.match(text):
            style = f"{HEAD} underline" if len(found[1]) == 1 else HEAD
            return Line(spans=_inline(text[found.end() :], found.end(), style))
        if found := _BULLET.match(text):
            lead = f"{found[1]}{self._appearance.sign('•')}{found[3]}"
            return Line(
                lead=[("", lead)],
                spans=_inline(text[found.end() :], found.end(), ""),
                hang=" " * len(lead),
            )
        if found := _NUMBER.match(text):
            spans = _inline(text[found.end() :], found.end(), "")
            return Line(lead=[("", found[0])], spans=spans, hang=" " * found.end())
        if found := _QUOTE.match(text):
            bar = f"{self._appearance.sign('│')} "
            return Line(
                lead=[(DIM, bar)],
                spans=_inline(text[found.end() :], found.end(), "italic"),
                hang=bar,
            )
        indent = len(text) - len(text.lstrip(" "))
        return Line(spans=_inline(text, 0, ""), hang=" " * min(indent, 12))


def _inline(text: str, base: int, style: str, mark: str = "") -> list[Span]:
    """Split text at its pairs of marks; `base` is its start in the source."""
    spans = list[Span]()
    at = 0
    for found in _INLINE.finditer(text):
        spans.append(Span(style=style, text=text[at : found.start()], at=base + at, mark=mark))
        kind = found.lastgroup if found.lastgroup != "tick" else "code"
        begin = found.start(kind or 0)
        opens = text[found.start() : begin]
        added = {"code": CODE, "bold": "bold", "slant": "italic"}[kind or "code"]
        inner = f"{style} {added}".strip()
        if kind == "code":
            spans.append(Span(style=inner, text=found["code"], at=base + begin, mark=opens))
        else:
            spans += _inline(text[begin : found.end(kind or 0)], base + begin, inner, mark + opens)
        at = found.end()
    spans.append(Span(style=style, text=text[at:], at=base + at, mark=mark))
    return [span for span in spans if span.text]


# Streaming ----------------------------------------------------------------------------------------


LIVE = 5
"""Rows of an unfinished line; the first rows of a longer one are returned before its end."""


class Stream:
    """Makes rows of an answer that streams: each row is returned once, the last ones by `finish`."""

    def __init__(self, appearance: Appearance) -> None:
        self._markdown = Markdown(appearance)
        self._text = ""
        self._rest: str | None = None

    def feed(self, text: str, width: int) -> list[Row]:
        """Take in more text; return the rows that are finished with it."""
        rows = list[Row]()
        *whole, self._text = (self._text + text.expandtabs(4)).split("\n")
        for line in whole:
            rows += self._taken(line, width)
        if len(self._text) > width * LIVE:
            rows += self._unfinished_rows(width)
        return rows

    @property
    def is_unfinished(self) -> bool:
        """Whether the last line is not complete."""
        return bool(self._text)

    def live(self, width: int) -> list[Row]:
        """Return the rows of the unfinished line; none if it is empty."""
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

    def _unfinished_rows(self, width: int) -> list[Row]:
        """Return the full rows of a long line, and keep its last one."""
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
