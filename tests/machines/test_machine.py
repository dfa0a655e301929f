"""One step of a machine."""

from itertools import product

import pytest

from steersman.machines.errors import MachineError
from steersman.machines.lifecycles import (
    CALL,
    CHILD,
    ITEM,
    QUEUE,
    SESSION,
    SUBAGENT,
    TURN,
    meant,
)
from steersman.machines.machine import Machine, Refusal, State, Step, Transition, compiled, step

DOOR = Machine(
    name="door",
    doc="A door with a lock.",
    initial="closed",
    states=(
        State(name="closed", doc="Shut."),
        State(name="open", doc="Anyone may pass."),
        State(name="walled", doc="Bricks.", is_final=True),
    ),
    transitions=(
        Transition(
            event="push",
            source=("closed",),
            dest="open",
            guards=("has_key", "!bolted"),
            effects=("creak", "swing"),
        ),
        Transition(
            event="push", source=("closed",), dest=None, guards=("!has_key",), effects=("rattle",)
        ),
        Transition(event="push", source=("open",), dest="closed"),
        Transition(event="knock", source=("closed",), effects=("listen",)),
        Transition(event="knock", source=("open",), ignored="it is open"),
        Transition(event="paint", source=("open",), dest="open", effects=("dry",)),
        Transition(event="wall", source=("closed", "open"), dest="walled"),
    ),
)
SHIPPED = (CALL, CHILD, ITEM, QUEUE, SESSION, SUBAGENT, TURN)


@pytest.mark.parametrize(
    ("state", "event", "facts", "expected"),
    [
        (
            "closed",
            "push",
            {"has_key"},
            Step(state="open", effects=("creak", "swing"), changed=True),
        ),
        ("closed", "push", set[str](), Step(state="closed", effects=("rattle",))),
        ("closed", "push", {"bolted"}, Step(state="closed", effects=("rattle",))),
        (
            "closed",
            "push",
            {"has_key", "warm"},
            Step(state="open", effects=("creak", "swing"), changed=True),
        ),
        ("open", "push", set[str](), Step(state="closed", changed=True)),
        ("closed", "knock", set[str](), Step(state="closed", effects=("listen",))),
        ("open", "knock", set[str](), Step(state="open", ignored="it is open")),
        ("open", "paint", set[str](), Step(state="open", effects=("dry",))),
        ("open", "wall", set[str](), Step(state="walled", changed=True)),
    ],
)
def test_the_first_row_whose_guards_hold_decides(
    state: str, event: str, facts: set[str], expected: Step
) -> None:
    """A step gives the next state and the effects of the row that fired, in order."""
    assert step(DOOR, state, event, facts) == expected


@pytest.mark.parametrize(
    ("state", "event", "facts", "reason"),
    [
        ("ajar", "push", set[str](), "`door` has no state `ajar`"),
        ("closed", "kick", set[str](), "`door` has no event `kick`"),
        (
            "closed",
            "paint",
            set[str](),
            "`door` does not accept `paint` while `closed`; it accepts `push`, `knock`, `wall`",
        ),
        (
            "walled",
            "knock",
            set[str](),
            "`door` is `walled`, which is final: `knock` is not accepted",
        ),
        (
            "closed",
            "push",
            {"has_key", "bolted"},
            "`door` accepts `push` while `closed` only if `has_key` and not `bolted`, "
            "or not `has_key`",
        ),
    ],
)
def test_what_is_not_accepted_is_refused_with_a_reason(
    state: str, event: str, facts: set[str], reason: str
) -> None:
    """A refusal is a value that names machine, state, event and the reason."""
    assert step(DOOR, state, event, facts) == Refusal(
        machine="door", state=state, event=event, reason=reason
    )


@pytest.mark.parametrize("machine", SHIPPED, ids=lambda machine: machine.name)
def test_every_state_meets_every_event(machine: Machine) -> None:
    """Each pair gives a step along a declared row or a refusal, and the rows agree with both."""
    for state, event in product([each.name for each in machine.states], machine.events):
        rows = [row for row in machine.transitions if state in row.source and row.event == event]
        named = {guard.lstrip("!") for row in rows for guard in row.guards}
        for facts in (frozenset[str](), frozenset(named)):
            got = step(machine, state, event, facts)
            passing = [row for row in rows if _holds(row, facts)]
            if isinstance(got, Refusal):
                assert passing == []
            else:
                first = passing[0]
                assert (got.state, got.effects) == (first.dest or state, first.effects)


def test_the_shared_machine_is_built_once_and_holds_no_model() -> None:
    """All sessions share one machine of a kind; a step leaves nothing behind in it."""
    before = compiled(TURN)
    step(TURN, "boundary", "finish")
    assert compiled(TURN) is before
    assert before.models == []


def test_many_generated_machines_do_not_pile_up() -> None:
    """Compiled machines are kept for a while; one that was dropped is simply built again."""
    for number in range(600):
        other = Machine(
            name=f"m{number}",
            doc="",
            initial="a",
            states=(State(name="a", doc=""),),
            transitions=(Transition(event="e", source=("a",)),),
        )
        assert step(other, "a", "e") == Step(state="a")
    assert step(DOOR, "open", "push") == Step(state="closed", changed=True)


@pytest.mark.parametrize(
    ("initial", "row"),
    [
        ("nowhere", Transition(event="e", source=("a",), dest="a")),
        ("a", Transition(event="e", source=("nowhere",), dest="a")),
        ("a", Transition(event="e", source=("a",), dest="nowhere")),
        ("a", Transition(event="e", source=("*",), dest="a")),
        ("a", Transition(event="state", source=("a",), dest="a")),
    ],
)
def test_a_machine_that_contradicts_itself_is_not_built(initial: str, row: Transition) -> None:
    """A row that names what is not declared is an error of the machine, named at its first use."""
    broken = Machine(
        name="broken",
        doc="",
        initial=initial,
        states=(State(name="a", doc=""),),
        transitions=(row,),
    )
    with pytest.raises(MachineError, match="broken"):
        step(broken, "a", "e")


def _holds(row: Transition, facts: frozenset[str]) -> bool:
    """Evaluate guards the plain way."""
    return all((guard.lstrip("!") in facts) is not guard.startswith("!") for guard in row.guards)


@pytest.mark.parametrize(
    ("at_work", "expected"),
    [
        (("kid-2", "kid-x", "kidder-2", "other", "kid-"), ("kid-2",)),
        (("kid", "kid-2"), ("kid",)),
        (("kid-2", "kid-3"), ("kid-2", "kid-3")),
        ((), ()),
    ],
)
def test_a_name_means_its_bearer_or_those_that_it_was_given_on_to(
    at_work: tuple[str, ...], expected: tuple[str, ...]
) -> None:
    """A number behind the name tells them apart; any other word makes another name."""
    assert meant(at_work, "kid") == expected
