"""A tree of actors as an SVG picture: a box for each line, coloured by its state; drawn by hand."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from ..terminal import clean
from .branch import Branch, cut, width_of

ROW, INDENT, CHAR, PAD = 30, 26, 7.3, 12  # pixels
MOST = 110  # columns of a line

_TONES = {
    ("running", "busy", "working", "acting", "calling", "active"): "#c8e6c9",
    ("pending", "held", "waiting", "asking", "stopping", "interrupting", "offered"): "#fff3c4",
    ("interrupted", "failed", "unknown", "killed", "timed_out", "cancelled"): "#ffcdd2",
}
_TONE_OF = {state: tone for states, tone in _TONES.items() for state in states}
_OTHER = "#eceff1"
_FONT = "font-family='ui-monospace,Menlo,Consolas,monospace' font-size='12'"


def tree_picture(tree: Branch) -> str:
    """Draw a tree as an SVG document."""
    rows = list(_rows(tree, 0, -1))
    texts = [_text(branch) for branch, _, _ in rows]
    widths = [
        depth * INDENT + width_of(text) * CHAR + 2 * PAD
        for (_, depth, _), text in zip(rows, texts, strict=True)
    ]
    width, height = max(widths) + 2 * PAD, len(rows) * ROW + 2 * PAD
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:.0f} {height}' "
        f"width='{width:.0f}' height='{height}' {_FONT}>",
        f"<title>{escape(clean(tree.title))}</title>",
        f"<rect width='{width:.0f}' height='{height}' fill='#ffffff'/>",
    ]
    lines += [_rule(at, depth, parent) for at, (_, depth, parent) in enumerate(rows) if depth]
    for at, ((branch, depth, _), text) in enumerate(zip(rows, texts, strict=True)):
        lines += _box(branch, text, depth, at)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _rows(branch: Branch, depth: int, parent: int) -> Iterator[tuple[Branch, int, int]]:
    """Yield each line with its depth and the number of the line above it in the tree."""
    counter = [0]

    def walk(node: Branch, deep: int, above: int) -> Iterator[tuple[Branch, int, int]]:
        here = counter[0]
        counter[0] += 1
        yield node, deep, above
        for twig in node.twigs:
            yield from walk(twig, deep + 1, here)

    yield from walk(branch, depth, parent)


def _rule(at: int, depth: int, parent: int) -> str:
    """Draw the line from a box to the one that it belongs to."""
    x = PAD + (depth - 1) * INDENT + INDENT / 2
    top, middle = PAD + parent * ROW + ROW - 3, PAD + at * ROW + ROW / 2
    return (
        f"<path d='M{x:g} {top:g} V{middle:g} H{PAD + depth * INDENT:g}' "
        "fill='none' stroke='#90a4ae'/>"
    )


def _box(branch: Branch, text: str, depth: int, at: int) -> Iterator[str]:
    x, y = PAD + depth * INDENT, PAD + at * ROW + 3
    tone = _TONE_OF.get(branch.state.lower().strip("[]"), _OTHER)
    wide = width_of(text) * CHAR + PAD
    yield (
        f"<rect x='{x:g}' y='{y:g}' width='{wide:.0f}' height='{ROW - 6}' rx='5' "
        f"fill='{tone}' stroke='#b0bec5'/>"
    )
    title = " ".join(clean(branch.title).split())
    rest = text[len(title) :]
    yield (
        f"<text x='{x + PAD / 2:g}' y='{y + 16:g}' fill='#263238' xml:space='preserve'>"
        f"<tspan font-weight='bold'>{escape(title)}</tspan>{escape(rest)}</text>"
    )


def _text(branch: Branch) -> str:
    parts = [" ".join(clean(part).split()) for part in (branch.title, branch.state, branch.about)]
    return cut("  ".join(part for part in parts if part), MOST)
