"""Where the states of a machine stand in a picture: layers from the initial state down.

After Sugiyama, in its simplest form: a state's layer is the length of its shortest way from the initial
state, final states stand lowest, and within a layer states are ordered by where their neighbours
above stand, over and over. Positions are in cells: column and row, from 0.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

from .machine import Machine

__all__ = ["Arrow", "Layout", "lay_out"]

_SWEEPS = 4


@dataclass(frozen=True, slots=True)
class Arrow:
    """All rows from one state to another; `labels` are their events with guards, in order."""

    source: str
    dest: str
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Layout:
    """`places` gives each state its column and row; `columns` and `rows` count the cells."""

    places: dict[str, tuple[float, int]]
    arrows: tuple[Arrow, ...]
    columns: int
    rows: int


def lay_out(machine: Machine) -> Layout:
    """Place the states of a machine and gather its arrows; pure, the same each time."""
    arrows = _arrows(machine)
    layers = _layers(machine, arrows)
    for _ in range(_SWEEPS):
        for above, here in itertools.pairwise(layers):
            here.sort(key=lambda one: _middle(one, above, arrows))
    columns = max(len(layer) for layer in layers)
    places = {
        name: (at + (columns - len(layer)) / 2, row)
        for row, layer in enumerate(layers)
        for at, name in enumerate(layer)
    }
    return Layout(places, arrows, columns, len(layers))


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


def _middle(name: str, above: list[str], arrows: tuple[Arrow, ...]) -> float:
    """Return the average place of a state's neighbours in the layer above."""
    near = [
        above.index(other)
        for one in arrows
        for other, self in ((one.source, one.dest), (one.dest, one.source))
        if self == name and other in above
    ]
    return sum(near) / len(near) if near else len(above) / 2
