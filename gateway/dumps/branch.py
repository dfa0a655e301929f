"""A tree of lines for people: drawn with rules, cut to the terminal, its states coloured if wanted."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

from msgspec import Struct, field

from ..terminal import clean

_COLOURS = {
    "green": ("running", "busy", "working", "acting", "calling", "open", "active"),
    "yellow": ("pending", "held", "waiting", "asking", "stopping", "interrupting", "offered"),
    "red": ("interrupted", "failed", "unknown", "crashed", "killed", "timed_out", "cancelled"),
    "grey": ("idle", "suspended", "finalized", "completed", "done", "withdrawn", "steered"),
}
_CODES = {"green": "32", "yellow": "33", "red": "31", "grey": "90"}
_CODE_OF = {state: _CODES[name] for name, states in _COLOURS.items() for state in states}


class Branch(Struct, kw_only=True):
    """One line: who, in which state, what about it; and the lines beneath."""

    title: str
    state: str = ""
    about: str = ""
    twigs: list[Branch] = field(default_factory=list["Branch"])


def draw(branch: Branch, width: int = 0, *, is_coloured: bool = False) -> list[str]:
    """Draw a tree, line by line; `width` in columns, 0 for as wide as it gets."""
    return list(_lines(branch, "", "", width, is_coloured))


def _lines(branch: Branch, lead: str, below: str, width: int, hue: bool) -> Iterator[str]:
    yield _line(branch, lead, width, hue)
    for number, twig in enumerate(branch.twigs, 1):
        is_last = number == len(branch.twigs)
        fork, rule = ("└ ", "  ") if is_last else ("├ ", "│ ")
        yield from _lines(twig, below + fork, below + rule, width, hue)


def _line(branch: Branch, lead: str, width: int, hue: bool) -> str:
    parts = [" ".join(clean(part).split()) for part in (branch.title, branch.state, branch.about)]
    text = cut(lead + "  ".join(part for part in parts if part), width)
    if not hue:
        return text
    at = len(lead) + len(parts[0])
    title, rest = text[len(lead) : at], text[at:]
    code = _CODE_OF.get(branch.state.lower().strip("[]"), "")
    if code and parts[1] and rest.startswith(f"  {parts[1]}"):
        rest = f"  \x1b[{code}m{parts[1]}\x1b[0m{rest[2 + len(parts[1]) :]}"
    return f"\x1b[90m{text[: len(lead)]}\x1b[0m\x1b[1m{title}\x1b[0m{rest}"


def cut(text: str, width: int) -> str:
    """Cut a line at a width in columns, with a mark where something is missing; 0 cuts nothing."""
    if not width or width_of(text) <= width:
        return text
    while text and width_of(text) > width - 1:
        text = text[:-1]
    return f"{text}…"


def width_of(text: str) -> int:
    """Columns that a text takes: wide characters two, combining ones none."""
    if text.isascii():
        return len(text)
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)
