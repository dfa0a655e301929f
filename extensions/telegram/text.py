"""The text of a message for Telegram: plain, with its formatting and mentions as entities beside it.

Telegram's own markup (`parse_mode`) is never used, so nothing in a text is markup by accident. Its server
still turns `@name` in a plain text into a mention, which notifies; only code is exempt. Each `@name`
is therefore shown as code, except the person for whom the message is.
Source: https://core.telegram.org/bots/api#messageentity, https://core.telegram.org/api/entities
"""

from __future__ import annotations

import re
from typing import Literal

from msgspec.structs import replace

from ...machines.value import Value

ENTITIES = 100
"""How many entities Telegram keeps in one message."""
NAME = 32
"""The longest name that is mentioned, in characters."""

_FENCE = re.compile(r" {0,3}(?P<mark>`{3,}|~{3,})(?P<info>[^\n]*)")
_LANGUAGE = re.compile(r"[A-Za-z0-9_+#.-]{1,32}")
_CODE = re.compile(r"(?<!`)(?P<ticks>`{1,3})(?!`)(?P<code>[^\n]+?)(?<!`)(?P=ticks)(?!`)")
_BOLD = re.compile(r"\*\*(?=[^\s*])(?P<bold>[^\n*]*[^\s*])\*\*")
_MENTION = re.compile(r"(?<![A-Za-z0-9_])@(?=[A-Za-z0-9_])[A-Za-z0-9_]+")

# What the server replaces or removes, which would shift the offsets of entities, or reorders a line.
_HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")

Kind = Literal["pre", "code", "bold", "text_mention"]


class TelegramSpan(Value, kw_only=False):
    """A formatted part of a text; `start` and `end` in UTF-16 code units, as Telegram counts.

    `detail` is the language of a `pre`, and the person's id of a `text_mention`.
    """

    start: int
    end: int
    kind: Kind
    detail: str = ""


def plain(text: str) -> str:
    """Return a text without control characters; lines end in a line feed."""
    return _HIDDEN.sub("", text.replace("\r\n", "\n").replace("\r", "\n")).strip("\n")


def one_line(text: str, most: int) -> str:
    """Return a name as one line of at most `most` characters."""
    return " ".join(plain(text).split())[:most]


def compose(
    text: str, *, is_markdown: bool = False, person: str = "", name: str = ""
) -> tuple[str, list[TelegramSpan]]:
    """Return what is shown of a text, and its formatting.

    With `is_markdown`, code blocks, code and bold become entities; their marks are removed. If `person`
    (a user's id) is given, the text begins with a mention of them under `name`.
    """
    draft = _Draft()
    if person:
        draft.add(one_line(name, NAME).replace("@", "") or person, "text_mention", person)
        draft.add(": ")
    if is_markdown:
        _add_markdown(draft, plain(text))
    else:
        draft.add(plain(text))
    draft.hide_mentions()
    return draft.finish()


class _Draft:
    """A text that is put together; its spans count in characters until it is finished."""

    def __init__(self) -> None:
        self.text = ""
        self.spans: list[TelegramSpan] = []

    def add(self, text: str, kind: Kind | None = None, detail: str = "") -> None:
        """Append a text, formatted if a kind is given."""
        start = len(self.text)
        self.text += text
        if kind and text.strip():
            self.spans.append(TelegramSpan(start, len(self.text), kind, detail))

    def hide_mentions(self) -> None:
        """Show each `@name` as code; those past the most entities get another `@`."""
        code = [span for span in self.spans if span.kind in ("pre", "code")]
        is_code = bytearray(len(self.text))
        for span in code:
            is_code[span.start : span.end] = b"\x01" * (span.end - span.start)
        kept = [span for span in self.spans if span.kind == "text_mention"]
        hidden: list[TelegramSpan] = []
        signs = list(self.text)
        for found in _MENTION.finditer(self.text):
            if is_code[found.start()]:
                continue
            if len(kept) + len(hidden) < ENTITIES:
                hidden.append(TelegramSpan(found.start(), found.end(), "code"))
            else:
                signs[found.start()] = "＠"  # noqa: RUF001 - meant
        self.text = "".join(signs)
        kept += hidden
        for span in self.spans:
            if span.kind != "text_mention":
                kept += _without(span, hidden)
        self.spans = sorted(kept[:ENTITIES], key=lambda span: span.start)

    def finish(self) -> tuple[str, list[TelegramSpan]]:
        """Return the text, and its spans in UTF-16 code units."""
        at = [0]
        for sign in self.text:
            at.append(at[-1] + (2 if sign > "\uffff" else 1))
        spans = [replace(span, start=at[span.start], end=at[span.end]) for span in self.spans]
        return self.text, spans


def _without(span: TelegramSpan, hidden: list[TelegramSpan]) -> list[TelegramSpan]:
    """Return the parts of a span that no hidden mention overlaps."""
    parts: list[TelegramSpan] = []
    start = span.start
    for hole in (hole for hole in hidden if hole.start < span.end and hole.end > span.start):
        if hole.start > start:
            parts.append(replace(span, start=start, end=hole.start))
        start = max(start, hole.end)
    if start < span.end:
        parts.append(replace(span, start=start))
    return parts


def _add_markdown(draft: _Draft, text: str) -> None:
    """Append a text with code blocks; one that is not closed reaches to the end."""
    fence, language = "", ""
    block: list[str] = []
    lines = text.split("\n")
    for index, line in enumerate(lines):
        found = _FENCE.fullmatch(line.rstrip())
        end = "\n" if index + 1 < len(lines) else ""
        if fence and found and not found["info"].strip() and found["mark"].startswith(fence):
            draft.add("\n".join(block), "pre", language)
            draft.add(end)
            fence, block = "", []
        elif fence:
            block.append(line)
        elif found and "`" not in found["info"]:
            fence = found["mark"]
            word = (found["info"].split() or [""])[0]
            language = word if _LANGUAGE.fullmatch(word) else ""
        else:
            _add_line(draft, line)
            draft.add(end)
    if fence:
        draft.add("\n".join(block), "pre", language)


def _from(at: int, found: re.Match[str] | None) -> re.Match[str] | None:
    """Return what was found if it begins there or later, else the next; where nothing was, nothing is."""
    return found if found is None or found.start() >= at else found.re.search(found.string, at)


def _add_line(draft: _Draft, line: str, kind: Kind | None = None) -> None:
    """Append a line with code and bold; within bold, code is code only, as they cannot overlap."""
    at = 0
    code, bold = _CODE.search(line), None if kind else _BOLD.search(line)
    while at < len(line):
        code, bold = _from(at, code), _from(at, bold)
        if bold and (not code or bold.start() < code.start()):
            draft.add(line[at : bold.start()])
            _add_line(draft, bold["bold"], "bold")
            at = bold.end()
        elif code:
            draft.add(line[at : code.start()], kind)
            draft.add(code["code"], "code")
            at = code.end()
        else:
            draft.add(line[at:], kind)
            return
