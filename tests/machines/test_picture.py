"""Machines as pictures: whole, well-formed, and the same each time."""

import itertools
from xml.etree import ElementTree

import pytest

from steersman.machines.catalogue import MACHINES
from steersman.proofs.picture import lay_out, picture

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", MACHINES)
def test_every_machine_is_drawn_whole(name: str) -> None:
    """Each state has a box and each event a label, all inside; none of them covers another."""
    machine = MACHINES[name]
    text = picture(machine, machine.initial)
    assert text == picture(machine, machine.initial)
    drawing = ElementTree.fromstring(text)
    shown = {one.text for one in drawing.iter(f"{SVG}text")}
    assert {state.name for state in machine.states} <= shown
    labels = {label for arrow in lay_out(machine).arrows for label in arrow.labels}
    assert labels <= shown
    paper, *boxes = (_edges(one) for one in drawing.iter(f"{SVG}rect"))
    width, height = float(drawing.attrib["width"]), float(drawing.attrib["height"])
    assert paper == (0, 0, width, height)
    assert all(0 <= a and 0 <= b and c <= width and d <= height for a, b, c, d in boxes)
    alone = [
        _edges(one) for one in drawing.iter(f"{SVG}rect") if one.attrib.get("rx") in ("9", "3")
    ]
    assert len(alone) == len(machine.states) + len(lay_out(machine).arrows)
    for (a, b, c, d), (e, f, g, h) in itertools.combinations(alone, 2):
        assert c <= e + 0.2 or g <= a + 0.2 or d <= f or h <= b
    lit = [one for one in drawing.iter(f"{SVG}rect") if one.attrib["fill"] == "#ffd54f"]
    assert len(lit) == 1


def _edges(box: ElementTree.Element) -> tuple[float, float, float, float]:
    """Return the left, top, right and bottom edge of a rectangle."""
    left, top = float(box.attrib.get("x", 0)), float(box.attrib.get("y", 0))
    return left, top, left + float(box.attrib["width"]), top + float(box.attrib["height"])
