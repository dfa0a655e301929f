"""A machine as an SVG picture, drawn from the rows that run: no browser, no network, no library."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape

from .layout import Arrow, Layout, lay_out
from .machine import Machine

__all__ = ["picture"]

BOX, HEIGHT, GAP, STEP, PAD, LINE = 128, 38, 118, 128, 56, 13  # pixels
_HEAD = (
    "<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='8' markerHeight='8' "
    "orient='auto-start-reverse'><path d='M0 0 L8 4 L0 8 z' fill='#607d8b'/></marker></defs>"
)
_FONT = "font-family='system-ui,Segoe UI,Helvetica,Arial,sans-serif'"
Point = tuple[float, float]


def picture(machine: Machine, *current: str) -> str:
    """Draw a machine as an SVG document, with the states in `current` lit."""
    layout = lay_out(machine)
    width = layout.columns * (BOX + GAP) - GAP + 2 * PAD + 90
    height = layout.rows * STEP - (STEP - HEIGHT) + 2 * PAD
    lines = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
        f"height='{height}' {_FONT} font-size='13'>",
        f"<title>{escape(machine.name)}: {escape(machine.doc)}</title>",
        _HEAD,
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
    ]
    drawn = [_arrow(one, layout) for one in layout.arrows]
    lines += [path for path, _, _ in drawn]
    lines += _start(machine, layout)
    finals = machine.final
    for state in machine.states:
        lines += _box(state.name, layout, state.name in current, state.name in finals, state.doc)
    taken: list[tuple[float, float, float, float]] = []
    for one, (_, x, y) in zip(layout.arrows, drawn, strict=True):
        lines += _labels(one.labels, x, y, taken)
    return "\n".join([*lines, "</svg>"]) + "\n"


def _center(name: str, layout: Layout) -> Point:
    column, row = layout.places[name]
    return PAD + column * (BOX + GAP) + BOX / 2, PAD + row * STEP + HEIGHT / 2


def _start(machine: Machine, layout: Layout) -> Iterator[str]:
    x, y = _center(machine.initial, layout)
    top = y - HEIGHT / 2
    yield f"<circle cx='{x:g}' cy='{top - 30:g}' r='6' fill='#37474f'/>"
    yield f"<path d='M{x:g} {top - 24:g} V{top - 2:g}' stroke='#607d8b' marker-end='url(#tip)'/>"


def _box(name: str, layout: Layout, is_lit: bool, is_final: bool, doc: str) -> Iterator[str]:
    x, y = _center(name, layout)
    fill, edge, wide = ("#ffd54f", "#e65100", 3) if is_lit else ("#e3f2fd", "#1565c0", 1.5)
    if is_final and not is_lit:
        fill, edge = "#eceff1", "#607d8b"
    left, top = x - BOX / 2, y - HEIGHT / 2
    yield (
        f"<g><title>{escape(doc)}</title><rect x='{left:g}' y='{top:g}' width='{BOX}' "
        f"height='{HEIGHT}' rx='9' fill='{fill}' stroke='{edge}' stroke-width='{wide}'/>"
    )
    if is_final:
        yield (
            f"<rect x='{left + 4:g}' y='{top + 4:g}' width='{BOX - 8}' height='{HEIGHT - 8}' "
            f"rx='6' fill='none' stroke='{edge}'/>"
        )
    yield (
        f"<text x='{x:g}' y='{y + 4.5:g}' text-anchor='middle' font-weight='600' "
        f"fill='#1a237e'>{escape(name)}</text></g>"
    )


def _arrow(arrow: Arrow, layout: Layout) -> tuple[str, float, float]:
    """Draw an arrow; returns it and where its label belongs.

    Down goes straight, up bows out to the right, within a layer it bows below.
    """
    (x, y), (u, v) = _center(arrow.source, layout), _center(arrow.dest, layout)
    if y < v:
        start, end = (x, y + HEIGHT / 2), (u, v - HEIGHT / 2 - 2)
        bend = (end[1] - start[1]) / 2
        return _curve(start, (x, start[1] + bend), (u, end[1] - bend), end)
    if y == v:
        side = 1 if x < u else -1
        start, end = (x + side * BOX / 4, y + HEIGHT / 2), (u - side * BOX / 4, v + HEIGHT / 2 + 2)
        if side < 0:
            start, end = (start[0], y - HEIGHT / 2), (end[0], v - HEIGHT / 2 - 2)
        sag = side * (24 + abs(x - u) / 8)
        return _curve(start, (start[0], start[1] + sag), (end[0], end[1] + sag), end)
    start, end = (x + BOX / 2, y - 6), (u + BOX / 2 + 2, v + 6)
    out = max(x, u) + BOX / 2 + 34 + 10 * (y - v) / STEP
    return _curve(start, (out, y - 10), (out, v + 14), end)


def _curve(start: Point, first: Point, second: Point, end: Point) -> tuple[str, float, float]:
    points = " ".join(f"{x:g} {y:g}" for x, y in (first, second, end))
    path = (
        f"<path d='M{start[0]:g} {start[1]:g} C{points}' fill='none' stroke='#607d8b' "
        "stroke-width='1.3' marker-end='url(#tip)'/>"
    )
    x, y = (
        (one + 3 * two + 3 * three + four) / 8
        for one, two, three, four in zip(start, first, second, end, strict=True)
    )
    return path, x, y


def _labels(
    labels: tuple[str, ...], x: float, y: float, taken: list[tuple[float, float, float, float]]
) -> Iterator[str]:
    """Write the events of an arrow at its middle, moved down where another label stands."""
    wide = max(map(len, labels)) * 5.9 + 6
    high = len(labels) * LINE
    while any(abs(x - a) < (wide + w) / 2 and abs(y - b) < (high + h) / 2 for a, b, w, h in taken):
        y += 4
    taken.append((x, y, wide, high))
    top = y - high / 2
    yield (
        f"<rect x='{x - wide / 2:.1f}' y='{top:.1f}' width='{wide:.1f}' height='{high}' rx='3' "
        "fill='#ffffff' fill-opacity='0.88'/>"
    )
    for at, label in enumerate(labels, 1):
        yield (
            f"<text x='{x:.1f}' y='{top + at * LINE - 3:.1f}' text-anchor='middle' font-size='11' "
            f"fill='#455a64'>{escape(label)}</text>"
        )
