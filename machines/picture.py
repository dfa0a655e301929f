"""A machine as an SVG picture, drawn from the rows that run: no browser, no network, no library."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from html import escape

from .layout import Arrow, Layout, lay_out
from .machine import Machine

__all__ = ["picture"]

BOX, HEIGHT, GAP, STEP, PAD, LINE = 128, 38, 112, 156, 56, 13  # pixels
_HEAD = (
    "<defs><marker id='tip' viewBox='0 0 8 8' refX='7' refY='4' markerWidth='8' markerHeight='8' "
    "orient='auto-start-reverse'><path d='M0 0 L8 4 L0 8 z' fill='#607d8b'/></marker></defs>"
)
_FONT = "font-family='system-ui,Segoe UI,Helvetica,Arial,sans-serif'"
Point = tuple[float, float]
Area = tuple[float, float, float, float]
"""The middle of a rectangle, its width and its height."""


def picture(machine: Machine, *current: str) -> str:
    """Draw a machine as an SVG document, with the states in `current` lit."""
    layout = lay_out(machine)
    ports = _ports(layout)
    drawn = [_arrow(one, layout, ports) for one in layout.arrows]
    lines = [path for path, _, _ in drawn]
    lines += _start(machine, layout)
    for state in machine.states:
        is_final = state.name in machine.final
        lines += _box(state.name, layout, state.name in current, is_final, state.doc)
    taken: list[Area] = [(*_center(name, layout), BOX, HEIGHT + 4) for name in layout.places]
    for one, (_, x, y) in zip(layout.arrows, drawn, strict=True):
        lines += _labels(one.labels, x, y, taken)
    width = math.ceil(layout.columns * (BOX + GAP)) + 2 * PAD
    height = math.ceil(max(y + high / 2 for _, y, _, high in taken)) + PAD // 2
    head = [
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width} {height}' width='{width}' "
        f"height='{height}' {_FONT} font-size='13'>",
        f"<title>{escape(machine.name)}: {escape(machine.doc)}</title>",
        _HEAD,
        f"<rect width='{width}' height='{height}' fill='#ffffff'/>",
    ]
    return "\n".join([*head, *lines, "</svg>"]) + "\n"


def _center(name: str, layout: Layout) -> Point:
    column, row = layout.places[name]
    return _at(column, row, layout)


def _at(column: float, row: float, layout: Layout) -> Point:
    return PAD + column * (BOX + GAP), PAD + row * _step(layout) + HEIGHT / 2


def _step(layout: Layout) -> float:
    """Return how far one layer is below the other: what stands between them must fit."""
    lines: dict[int, int] = {}
    for one in layout.arrows:
        if not layout.ways[one]:
            gap = min(layout.places[one.source][1], layout.places[one.dest][1])
            lines[gap] = lines.get(gap, 0) + len(one.labels)
    return max(STEP, HEIGHT + 40 + LINE * max(lines.values(), default=0))


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


def _ports(layout: Layout) -> dict[tuple[Arrow, str], float]:
    """Spread the arrows of each side of a box over its width, by where they come from or go to.

    Returns by how many pixels each end, named by its state, is off the middle.
    """
    sides: dict[tuple[str, bool], list[tuple[float, Arrow]]] = {}
    for one in layout.arrows:
        way = layout.ways[one]
        for here, there, toward in ((one.source, one.dest, 0), (one.dest, one.source, -1)):
            x = way[toward] if way else layout.places[there][0]
            is_below = layout.places[there][1] >= layout.places[here][1]
            sides.setdefault((here, is_below), []).append((x, one))
    found: dict[tuple[Arrow, str], float] = {}
    for (state, _), ends in sides.items():
        gap = BOX * 0.8 / (len(ends) + 1)
        for at, (_, one) in enumerate(sorted(ends, key=lambda end: end[0]), 1):
            found[one, state] = at * gap - BOX * 0.4
    return found


def _arrow(
    arrow: Arrow, layout: Layout, ports: dict[tuple[Arrow, str], float]
) -> tuple[str, float, float]:
    """Draw an arrow; returns it and where the middle of its label belongs.

    Between layers it bends, through a layer it goes straight; within a layer it bows below.
    """
    (x, y), (u, v) = _center(arrow.source, layout), _center(arrow.dest, layout)
    x, u = x + ports[arrow, arrow.source], u + ports[arrow, arrow.dest]
    if y == v:
        low, sag = y + HEIGHT / 2, y + HEIGHT / 2 + 24 + abs(x - u) / 10
        steps = [f"M{x:g} {low:g} C{x:g} {sag:g} {u:g} {sag:g} {u:g} {low + 2:g}"]
        return _path(steps[0]), (x + u) / 2, low + (sag - low) * 0.75
    side = HEIGHT / 2 if y < v else -HEIGHT / 2
    row = layout.places[arrow.source][1]
    steps, here = [f"M{x:g} {y + side:g}"], (x, y + side)
    middle = ((x + u) / 2, (y + v) / 2)
    for at, column in enumerate(layout.ways[arrow], 1):
        through = _at(column, row + at * (1 if y < v else -1), layout)
        middle = through if at == 1 else middle
        steps.append(_bend(here, (through[0], through[1] - side)))
        steps.append(f"V{through[1] + side:g}")
        here = (through[0], through[1] + side)
    steps.append(_bend(here, (u, v - side - (2 if side > 0 else -2))))
    return _path(" ".join(steps)), *middle


def _bend(start: Point, end: Point) -> str:
    half = (start[1] + end[1]) / 2
    return f"C{start[0]:g} {half:g} {end[0]:g} {half:g} {end[0]:g} {end[1]:g}"


def _path(steps: str) -> str:
    return (
        f"<path d='{steps}' fill='none' stroke='#607d8b' stroke-width='1.3' "
        "marker-end='url(#tip)'/>"
    )


def _covers(label: Area, taken: list[Area]) -> bool:
    x, y, wide, high = label
    return any(abs(x - a) < (wide + w) / 2 and abs(y - b) < (high + h) / 2 for a, b, w, h in taken)


def _labels(labels: tuple[str, ...], x: float, y: float, taken: list[Area]) -> Iterator[str]:
    """Write the events of an arrow at its middle, or above or below it where something stands there."""
    wide = max(map(len, labels)) * 5.9 + 6
    high = len(labels) * LINE
    for far in itertools.count(0, 4):
        tries = (y + far, y - far)
        free = [one for one in tries if not _covers((x, one, wide, high), taken)]
        if free:
            y = free[0]
            break
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
