"""Diagrams of machines."""

from steersman.machines.machine import Machine, State, Transition
from steersman.proofs.picture import mermaid

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
