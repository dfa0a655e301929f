"""Machines as pictures: whole, well-formed, and the same each time."""

from xml.etree import ElementTree

import pytest

from steersman.cli.machines import MACHINES
from steersman.machines.layout import lay_out
from steersman.machines.picture import picture

SVG = "{http://www.w3.org/2000/svg}"


@pytest.mark.parametrize("name", MACHINES)
def test_every_machine_is_drawn_whole(name: str) -> None:
    """Each state has a box and each event a label; nothing overlaps or lies outside."""
    machine = MACHINES[name]
    text = picture(machine, machine.initial)
    assert text == picture(machine, machine.initial)
    drawing = ElementTree.fromstring(text)
    shown = {one.text for one in drawing.iter(f"{SVG}text")}
    assert {state.name for state in machine.states} <= shown
    layout = lay_out(machine)
    assert len(set(layout.places.values())) == len(machine.states)
    labels = {label for one in layout.arrows for label in one.labels}
    assert labels <= shown
    width, height = float(drawing.attrib["width"]), float(drawing.attrib["height"])
    for box in drawing.iter(f"{SVG}rect"):
        left, top = float(box.attrib.get("x", 0)), float(box.attrib.get("y", 0))
        assert left >= -40
        assert top >= 0
        assert left + float(box.attrib["width"]) <= width + 40
        assert top + float(box.attrib["height"]) <= height
    lit = [one for one in drawing.iter(f"{SVG}rect") if one.attrib["fill"] == "#ffd54f"]
    assert len(lit) == 1
