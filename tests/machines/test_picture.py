"""Machines as pictures: whole, well-formed, and the same each time; and as diagrams in Mermaid."""

import itertools
from xml.etree import ElementTree

import pytest

from steersman.machines.catalogue import MACHINES
from steersman.machines.machine import Machine, State, Transition
from steersman.proofs.picture import lay_out, mermaid, picture

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


DOOR = Machine(
    name="door",
    doc="A door\nwith a lock.",
    initial="closed",
    states=(
        State(name="closed", doc="Shut."),
        State(name="half open", doc="Someone may pass."),
        State(name="end", doc="Bricks.", is_final=True),
    ),
    transitions=(
        Transition(
            event="push",
            source=("closed",),
            dest="half open",
            guards=("has_key", "!bolted"),
            effects=("creak", "swing"),
        ),
        Transition(event="knock", source=("closed",), effects=("listen; wait",)),
        Transition(event="knock", source=("half open",), ignored="it is\nopen"),
        Transition(event="wall", source=("closed", "half open"), dest="end"),
    ),
)


def test_a_machine_becomes_a_state_diagram() -> None:
    """Arrows carry guards and effects, ignored events are comments, odd names are made safe."""
    assert mermaid(DOOR, "closed") == (
        "stateDiagram-v2\n"
        "    %% door: A door with a lock.\n"
        '    state "closed" as closed\n'
        '    state "half open" as half_open\n'
        '    state "end" as end_\n'
        "    [*] --> closed\n"
        "    closed --> half_open : push [has_key, not bolted] / creak, swing\n"
        "    closed --> closed : knock / listen#59; wait\n"
        "    %% half open ignores knock: it is open\n"
        "    closed --> end_ : wall\n"
        "    half_open --> end_ : wall\n"
        "    end_ --> [*]\n"
        "    classDef current fill:#ffd54f,stroke:#e65100,stroke-width:3px,color:#000\n"
        "    class closed current\n"
    )


def test_without_a_current_state_nothing_is_highlighted() -> None:
    """Neither no state nor an unknown one leaves a trace in the diagram."""
    assert "classDef" not in mermaid(DOOR)
    assert mermaid(DOOR, "ajar") == mermaid(DOOR)
