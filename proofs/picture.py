"""A machine as an SVG picture, drawn from the rows that run: no browser, no network, no library."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator
from html import escape
from typing import Final

from ..machines.machine import Machine, Transition
from ..machines.value import Value

# A machine as a Mermaid state diagram, made from the same rows that run ---------------------------
# Text only: editors, code forges and documentation tools draw it. Syntax:
# https://mermaid.js.org/syntax/stateDiagram.html


_RESERVED: Final = frozenset(
    {"as", "class", "classdef", "default", "direction", "end", "note", "state", "style"}
)
_HIGHLIGHT: Final = "fill:#ffd54f,stroke:#e65100,stroke-width:3px,color:#000"


def mermaid(machine: Machine, *current: str) -> str:
    """Draw a machine, with the states in `current` highlighted.

    Arrows read `event [guards] / effects`; an internal row is an arrow from a state to itself.
    Ignored events are comments, since an arrow for each would hide the others.
    """
    lines = ["stateDiagram-v2", f"    %% {_one_line(machine.name)}: {_one_line(machine.doc)}"]
    for state in machine.states:
        lines.append(f'    state "{label(state.name)}" as {_id(state.name)}')
    lines.append(f"    [*] --> {_id(machine.initial)}")
    for row in machine.transitions:
        lines += [_arrow(row, source) for source in row.source]
    lines += [f"    {_id(state.name)} --> [*]" for state in machine.states if state.is_final]
    lit = [_id(state.name) for state in machine.states if state.name in current]
    if lit:
        lines += [f"    classDef current {_HIGHLIGHT}", f"    class {','.join(lit)} current"]
    return "\n".join(lines) + "\n"


def _arrow(row: Transition, source: str) -> str:
    """Write one row as it applies to one of its sources."""
    if row.ignored:
        return f"    %% {source} ignores {row.event}: {_one_line(row.ignored)}"
    words = row.event
    if row.guards:
        words += f" [{', '.join(guard.replace('!', 'not ') for guard in row.guards)}]"
    if row.effects:
        words += f" / {', '.join(row.effects)}"
    dest = source if row.dest is None else row.dest
    return f"    {_id(source)} --> {_id(dest)} : {label(words)}"


def _id(name: str) -> str:
    """Make an identifier that Mermaid reads as one word and does not take for its own."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{plain}_" if plain.lower() in _RESERVED else plain


def label(text: str) -> str:
    """Make a text one line, and write what would end a label or a statement by its code, as `#59;`."""
    return re.sub('[#;"]', lambda found: f"#{ord(found[0])};", _one_line(text))


def _one_line(text: str) -> str:
    """Fold white space, so that no text can begin a line of its own."""
    return " ".join(text.split())


# Layout: the states in layers, from the initial state down ----------------------------------------
# After Sugiyama, in its simplest form: a state's layer is the length of its shortest way from the initial
# state, final states stand lowest, and within a layer states are ordered by where their neighbours
# and below stand, over and over. An arrow that passes layers gets a place of its own in each, so that it
# goes between the states and not behind them. Positions are in cells: column (the middle) and row.


_SWEEPS = 8
_CHAR, _LEAST = 0.026, 0.12  # columns that a character of a label takes, and a line without one


class Arrow(Value):
    """All rows from one state to another; `labels` are their events with guards, in order."""

    source: str
    dest: str
    labels: tuple[str, ...]


class Layout(Value):
    """`places` gives each state its column and row; `ways` the columns that an arrow has on its way.

    A way has a column for each layer between the two states, from the source on. `columns` and `rows`
    count the cells.
    """

    places: dict[str, tuple[float, int]]
    arrows: tuple[Arrow, ...]
    ways: dict[Arrow, tuple[float, ...]]
    columns: float
    rows: int


Spot = str | tuple[Arrow, int]
"""A place in a layer: of a state, or of a passing arrow, with the layer's number."""


def lay_out(machine: Machine) -> Layout:
    """Place the states of a machine and gather its arrows; pure, the same each time."""
    arrows = _arrows(machine)
    states = _layers(machine, arrows)
    row_of = {name: row for row, layer in enumerate(states) for name in layer}
    layers: list[list[Spot]] = [[*layer] for layer in states]
    near: dict[Spot, list[Spot]] = {name: [] for name in row_of}
    for arrow in arrows:
        chain: list[Spot] = [arrow.source, *_passed(arrow, row_of), arrow.dest]
        for spot in chain[1:-1]:
            layers[spot[1] if isinstance(spot, tuple) else 0].append(spot)
        for end, other in itertools.pairwise(chain):
            near.setdefault(end, []).append(other)
            near.setdefault(other, []).append(end)
    at, columns = _columns(layers, near)
    ways = {arrow: tuple(at[spot] for spot in _passed(arrow, row_of)) for arrow in arrows}
    places = {name: (at[name], row) for name, row in row_of.items()}
    return Layout(places=places, arrows=arrows, ways=ways, columns=columns, rows=len(layers))


def _passed(arrow: Arrow, row_of: dict[str, int]) -> list[Spot]:
    """Name the places of an arrow in the layers between its ends, from its source on."""
    start, end = row_of[arrow.source], row_of[arrow.dest]
    step = 1 if start < end else -1
    return [(arrow, row) for row in range(start + step, end, step)]


def _columns(
    layers: list[list[Spot]], near: dict[Spot, list[Spot]]
) -> tuple[dict[Spot, float], float]:
    """Order each layer by its neighbours, and return where everything stands, and the width."""
    at: dict[Spot, float] = {}
    widest = max(sum(map(_width, layer)) for layer in layers)
    for sweep in range(_SWEEPS + 1):
        for layer in layers if sweep % 2 == 0 else reversed(layers):
            if sweep:
                layer.sort(key=lambda spot: _middle([at[other] for other in near[spot]], at[spot]))
            left = (widest - sum(map(_width, layer))) / 2
            for spot in layer:
                at[spot] = left + _width(spot) / 2
                left += _width(spot)
    return at, widest


def _width(spot: Spot) -> float:
    """Return how many columns something takes; an arrow's label stands at its first place."""
    if isinstance(spot, str):
        return 1.0
    return max(_LEAST, max(map(len, spot[0].labels)) * _CHAR + _LEAST)


def _middle(places: list[float], own: float) -> float:
    return sum(places) / len(places) if places else own


def _arrows(machine: Machine) -> tuple[Arrow, ...]:
    """Gather the rows by where they lead; ignored and internal ones lead nowhere."""
    found: dict[tuple[str, str], list[str]] = {}
    for row in machine.transitions:
        for source in row.source:
            if row.ignored or row.dest is None or row.dest == source:
                continue
            guards = ", ".join(guard.replace("!", "not ") for guard in row.guards)
            label = f"{row.event} [{guards}]" if guards else row.event
            labels = found.setdefault((source, row.dest), [])
            if label not in labels:
                labels.append(label)
    return tuple(
        Arrow(source=source, dest=dest, labels=tuple(labels))
        for (source, dest), labels in found.items()
    )


def _layers(machine: Machine, arrows: tuple[Arrow, ...]) -> list[list[str]]:
    """Give each state its layer: as many steps from the start as the shortest way takes."""
    depth = {machine.initial: 0}
    front = [machine.initial]
    while front:
        following = [arrow.dest for name in front for arrow in arrows if arrow.source == name]
        front = [state for state in dict.fromkeys(following) if state not in depth]
        depth |= dict.fromkeys(front, max(depth.values()) + 1)
    deepest = max((depth.get(state, 0) for state in machine.live), default=0)
    layers: dict[int, list[str]] = {}
    for state in machine.states:
        at = depth.get(state.name, deepest)
        layers.setdefault(max(at, deepest + 1) if state.is_final else at, []).append(state.name)
    return [layers[at] for at in sorted(layers)]


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
    drawn = [_arrow_of_picture(arrow, layout, ports) for arrow in layout.arrows]
    lines = [path for path, _, _ in drawn]
    lines += _start(machine, layout)
    for state in machine.states:
        is_final = state.name in machine.final
        lines += _box(state.name, layout, state.name in current, is_final, state.doc)
    taken: list[Area] = [(*_center(name, layout), BOX, HEIGHT + 4) for name in layout.places]
    for arrow, (_, x, y) in zip(layout.arrows, drawn, strict=True):
        lines += _labels(arrow.labels, x, y, taken)
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
    for arrow in layout.arrows:
        if not layout.ways[arrow]:
            gap = min(layout.places[arrow.source][1], layout.places[arrow.dest][1])
            lines[gap] = lines.get(gap, 0) + len(arrow.labels)
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
    for arrow in layout.arrows:
        way = layout.ways[arrow]
        for here, there, toward in ((arrow.source, arrow.dest, 0), (arrow.dest, arrow.source, -1)):
            x = way[toward] if way else layout.places[there][0]
            is_below = layout.places[there][1] >= layout.places[here][1]
            sides.setdefault((here, is_below), []).append((x, arrow))
    found: dict[tuple[Arrow, str], float] = {}
    for (state, _), ends in sides.items():
        gap = BOX * 0.8 / (len(ends) + 1)
        for at, (_, arrow) in enumerate(sorted(ends, key=lambda end: end[0]), 1):
            found[arrow, state] = at * gap - BOX * 0.4
    return found


def _arrow_of_picture(
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
        free = [middle for middle in tries if not _covers((x, middle, wide, high), taken)]
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
