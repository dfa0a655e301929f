"""Where the states of a machine stand in a picture: layers from the initial state down.

After Sugiyama, in its simplest form: a state's layer is the length of its shortest way from the initial
state, final states stand lowest, and within a layer states are ordered by where their neighbours
and below stand, over and over. An arrow that passes layers gets a place of its own in each, so that it
goes between the states and not behind them. Positions are in cells: column (the middle) and row.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from .machine import Machine

__all__ = ["Arrow", "Layout", "lay_out"]

_SWEEPS = 8
_CHAR, _LEAST = 0.026, 0.12  # columns that a character of a label takes, and a line without one


@dataclass(frozen=True, slots=True)
class Arrow:
    """All rows from one state to another; `labels` are their events with guards, in order."""

    source: str
    dest: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
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
"""What stands in a layer: a state, or the place of a passing arrow with the layer's number."""


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
        for one, other in itertools.pairwise(chain):
            near.setdefault(one, []).append(other)
            near.setdefault(other, []).append(one)
    at, columns = _columns(layers, near)
    ways = {one: tuple(at[spot] for spot in _passed(one, row_of)) for one in arrows}
    places = {name: (at[name], row) for name, row in row_of.items()}
    return Layout(places, arrows, ways, columns, len(layers))


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
                layer.sort(key=lambda spot: _middle([at[one] for one in near[spot]], at[spot]))
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
            guards = ", ".join(one.replace("!", "not ") for one in row.guards)
            label = f"{row.event} [{guards}]" if guards else row.event
            labels = found.setdefault((source, row.dest), [])
            if label not in labels:
                labels.append(label)
    return tuple(Arrow(*ends, tuple(labels)) for ends, labels in found.items())


def _layers(machine: Machine, arrows: tuple[Arrow, ...]) -> list[list[str]]:
    """Give each state its layer: as many steps from the start as the shortest way takes."""
    depth = {machine.initial: 0}
    front = [machine.initial]
    while front:
        following = [one.dest for name in front for one in arrows if one.source == name]
        front = [one for one in dict.fromkeys(following) if one not in depth]
        depth |= dict.fromkeys(front, max(depth.values()) + 1)
    deepest = max((depth.get(one, 0) for one in machine.live), default=0)
    layers: dict[int, list[str]] = {}
    for state in machine.states:
        at = depth.get(state.name, deepest)
        layers.setdefault(max(at, deepest + 1) if state.is_final else at, []).append(state.name)
    return [layers[at] for at in sorted(layers)]
