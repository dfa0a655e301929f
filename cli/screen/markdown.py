"""Markdown a line at a time: what a line looks like needs nothing but the lines before it.

So a line can be shown while it grows and be printed once it is whole. Marks that make a pair are
hidden, all others stay: nothing that the model said is lost. (CommonMark has more; this is what
models write.)
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
    """Styled text, and where in the source it begins; `mark` opens its style in the source."""

    style: str
    text: str
    at: int
    mark: str = ""


class Line(Value):
    """A line as it looks: what stands before it, its text, and what begins its further rows."""

    lead: list[Piece] = field(default_factory=list[Piece])
    spans: list[Span] = field(default_factory=list[Span])
    hang: str = ""
    is_code: bool = False

    def pieces(self) -> list[Piece]:
        """Return all of it."""
        return [*self.lead, *((span.style, span.text) for span in self.spans)]


class Markdown:
    """Knows whether the next line is code."""

    def __init__(self, look: Appearance) -> None:
        self._look = look
        self._fence = ""

    def take(self, text: str) -> Line:
        """Return how a whole line looks, and go past it."""
        line = self.show(text)
        if found := _FENCE.match(text):
            if not self._fence:
                self._fence = found[1]
            elif found[1].startswith(self._fence) and not found[2]:
                self._fence = ""
        return line

    def show(self, text: str, rest: str | None = None) -> Line:
        """Return how a line looks that may still grow.

        `rest`: it goes on with one whose beginning was taken before, and these are its rows' hang.
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
        """Start again: an answer has ended, with whatever it left open."""
        self._fence = ""

    def _rule(self, name: str = "") -> Line:
        dash = self._look.sign("─")
        drawn = f"{dash * 2} {name} {dash * 6}" if name else dash * 8
        return Line(spans=[Span(style=DIM, text=drawn, at=0)], is_code=True)

    def _block(self, text: str) -> Line:
        if _RULE.match(text):
            return Line(spans=[Span(style=DIM, text=self._look.sign("─") * 20, at=0)])
        if _TABLE.match(text):
            return Line(spans=_inline(text, 0, ""), is_code=True)
        if found := _HEADING.match(text):
            style = f"{HEAD} underline" if len(found[1]) == 1 else HEAD
            return Line(spans=_inline(text[found.end() :], found.end(), style))
        if found := _BULLET.match(text):
            lead = f"{found[1]}{self._look.sign('•')}{found[3]}"
            return Line(
                lead=[("", lead)],
                spans=_inline(text[found.end() :], found.end(), ""),
                hang=" " * len(lead),
            )
        if found := _NUMBER.match(text):
            spans = _inline(text[found.end() :], found.end(), "")
            return Line(lead=[("", found[0])], spans=spans, hang=" " * found.end())
        if found := _QUOTE.match(text):
            bar = f"{self._look.sign('│')} "
            return Line(
                lead=[(DIM, bar)],
                spans=_inline(text[found.end() :], found.end(), "italic"),
                hang=bar,
            )
        indent = len(text) - len(text.lstrip(" "))
        return Line(spans=_inline(text, 0, ""), hang=" " * min(indent, 12))


def _inline(text: str, base: int, style: str, mark: str = "") -> list[Span]:
    """Part text at its pairs of marks; `base` is where it begins in the source."""
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


# The model's answer as it streams: whole rows are given out once, the last line can be looked at


LIVE = 5
"""Rows of an unfinished line; what a longer one begins with is given out before its end."""


class Stream:
    """Text in, rows out; nothing is given out twice, nothing is left behind at `finish`."""

    def __init__(self, look: Appearance) -> None:
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
