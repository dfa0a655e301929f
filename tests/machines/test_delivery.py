"""Whom a cause reaches."""

import ast
import inspect
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from steersman.actors.decisions import stopping
from steersman.machines.delivery import (
    DEFAULT_DELIVERIES,
    NEVER_ASKED,
    Cause,
    Relation,
    deliver,
    in_force,
    never_asked,
)
from steersman.machines.disposition import DEFAULT_DISPOSITIONS
from steersman.proofs.route_check import check_routes

_STOPPING = "actors/decisions/stopping.py"
_ROUTING = "actors/decisions/routing.py"

ASKED_BY = {
    Cause.STOP: (f"{_STOPPING}:stop",),
    Cause.NEW: (f"{_STOPPING}:leave", "actors/decisions/goals.py:paused_by_stop"),
    Cause.BARE_WORD: (f"{_STOPPING}:stop",),
    Cause.MORE_WORD: (f"{_STOPPING}:stop",),
    Cause.MESSAGE: (f"{_STOPPING}:stop",),
    Cause.SIGNAL: (f"{_STOPPING}:leave",),
    Cause.TIMEOUT: ("actors/decisions/children.py:is_timed_out", f"{_STOPPING}:stop"),
    Cause.BUDGET: (f"{_STOPPING}:stop",),
    Cause.NO_PROGRESS: (f"{_STOPPING}:stop",),
    Cause.PROVIDER_LIMIT: (
        "actors/decisions/turning.py:ends_at_provider_limit",
        f"{_STOPPING}:stop",
    ),
    Cause.PARENT: (f"{_STOPPING}:stop",),
    Cause.PARENT_BOUNDARY: (f"{_STOPPING}:stop",),
    Cause.FINALIZE: (f"{_STOPPING}:leave", "actors/decisions/goals.py:paused_by_stop"),
    Cause.TURN_ENDED: (f"{_STOPPING}:ended_turn",),
    Cause.STEER: (f"{_ROUTING}:_steer",),
    Cause.STEER_THROUGH: (f"{_ROUTING}:_steer", f"{_ROUTING}:steer_waiting"),
    Cause.STEER_NAMED: (f"{_ROUTING}:_steer", f"{_ROUTING}:steer_waiting"),
}
"""The places where a cause asks the table, as file and function.

A cause that a route brings is asked for like `message` or like `steer`.
"""

BELOW = ("foreground_child", "background_child", "side_talk")
CHILDREN = ("foreground_child", "detached_child", "background_child")
ALL = (*CHILDREN, "side_talk")


def reached(cause: str) -> dict[str, str]:
    """Map each relation that gets anything to what it gets."""
    got = {relation: deliver(DEFAULT_DELIVERIES, cause, relation).action for relation in Relation}
    return {str(relation): str(action) for relation, action in got.items() if action != "none"}


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        ("stop", dict.fromkeys(("self", *BELOW, "goal"), "cancel")),
        ("bare_word", dict.fromkeys(("self", *BELOW, "goal"), "cancel")),
        ("signal", dict.fromkeys(("self", *ALL, "goal"), "cancel")),
        ("parent", dict.fromkeys(("self", *ALL, "goal"), "cancel")),
        (
            "parent_boundary",
            dict.fromkeys(("self", *CHILDREN), "boundary")
            | dict.fromkeys(("side_talk", "goal"), "cancel"),
        ),
        ("budget", dict.fromkeys(("self", *ALL, "goal"), "cancel")),
        ("no_progress", dict.fromkeys(("self", *BELOW, "goal"), "cancel")),
        ("new", dict.fromkeys(("self", *ALL, "goal"), "finalize")),
        ("finalize", dict.fromkeys(("self", *ALL, "goal"), "finalize")),
        ("timeout", {"self": "cancel", "foreground_child": "cancel"}),
        ("more_word", {"self": "cancel"}),
        ("message", {"self": "cancel"}),
        ("turn_ended", {}),
        ("provider_limit", {"goal": "cancel"}),
        ("steer", {"self": "steer"}),
        ("steer_through", {"foreground_child": "steer", "detached_child": "steer"}),
        ("steer_named", dict.fromkeys(ALL, "steer")),
    ],
)
def test_a_cause_reaches_whom_it_should(cause: str, expected: dict[str, str]) -> None:
    """A cancel reaches all descendants, talk only the turn, the end of a turn no recipient."""
    assert reached(cause) == expected


def test_every_row_says_why() -> None:
    """Every delivery, also none, has a reason that can be printed."""
    for cause in Cause:
        for relation in Relation:
            assert deliver(DEFAULT_DELIVERIES, cause, relation).why.endswith(".")


@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("cause", Cause)
def test_each_cell_is_asked_or_has_a_reason(cause: Cause, relation: Relation) -> None:
    """All cells: the places that ask are there and ask the table, or the reason is a sentence."""
    if (cause, relation) in NEVER_ASKED:
        assert never_asked(cause, relation).endswith(".")
        return
    assert never_asked(cause, relation) == ""
    assert relation in (*stopping.DOWNWARD, Relation.DETACHED_CHILD)
    for place in ASKED_BY[cause]:
        file, _, function = place.partition(":")
        module = import_module(f"steersman.{file.removesuffix('.py').replace('/', '.')}")
        source = inspect.getsource(getattr(module, function))
        assert any(word in source for word in ("reach(", "deliver(", "_steered(")), place


def asking() -> Iterator[tuple[Cause, str]]:
    """Yield each cause that a function of the decisions names when it asks, with its place."""
    folder = Path(inspect.getfile(stopping)).parent
    for file in sorted(folder.glob("*.py")):
        for function in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if not isinstance(function, ast.FunctionDef):
                continue
            calls = [node for node in ast.walk(function) if isinstance(node, ast.Call)]
            for call in calls:
                if ast.unparse(call.func).rpartition(".")[2] in {"deliver", "reach", "_steered"}:
                    causes = re.findall(r"Cause\.([A-Z_]+)", ast.unparse(call))
                    place = f"actors/decisions/{file.name}:{function.name}"
                    yield from ((Cause[name], place) for name in causes)


def test_each_place_that_names_a_cause_when_it_asks_is_listed() -> None:
    """What the page says about a cause leaves out no function that asks for it by name."""
    found = list(asking())
    assert {Cause.TIMEOUT, Cause.STEER_NAMED, Cause.STEER_THROUGH} <= {cause for cause, _ in found}
    assert [(cause, place) for cause, place in found if place not in ASKED_BY[cause]] == []


def test_what_the_session_asks_is_downward() -> None:
    """Parent and sibling are never asked, whatever the cause."""
    asked = {*stopping.DOWNWARD, Relation.DETACHED_CHILD}
    upward = {relation for relation in Relation if relation not in asked}
    assert upward == {Relation.PARENT, Relation.SIBLING}
    assert all((cause, relation) in NEVER_ASKED for cause in Cause for relation in upward)
    assert never_asked("route.mine", "sibling")
    assert never_asked("route.mine", "goal") == ""


def test_patience_is_a_row() -> None:
    """`interrupt_at` and a run put rows in front, where the table cancels; what is spared stays so."""
    patient = in_force(DEFAULT_DELIVERIES, "boundary")
    for relation in ("self", "foreground_child", "background_child"):
        row = deliver(patient, "bare_word", relation)
        assert (row.action, "interrupt_at" in row.why) == ("boundary", True)
        assert deliver(patient, "stop", relation).action == "cancel"
    assert deliver(patient, "bare_word", "detached_child").action == "none"
    assert deliver(patient, "message", "self").action == "boundary"
    assert deliver(patient, "message", "foreground_child").action == "none"
    run = in_force(DEFAULT_DELIVERIES, is_run=True)
    assert deliver(run, "stop", "self").action == "boundary"
    assert deliver(run, "signal", "self").action == "cancel"
    assert deliver(run, "stop", "foreground_child").action == "cancel"
    for table in (patient, run):
        assert check_routes(DEFAULT_DISPOSITIONS, table.settled()) == ()
    assert in_force(DEFAULT_DELIVERIES) is DEFAULT_DELIVERIES
