"""Whom a cause reaches."""

import pytest

from steersman.machines.delivery import DEFAULT_DELIVERIES, Cause, Relation, deliver

BELOW = ("foreground_child", "background_child", "side_talk")


def reached(cause: str) -> dict[str, str]:
    """Map each relation that gets anything to what it gets."""
    got = {relation: deliver(DEFAULT_DELIVERIES, cause, relation).action for relation in Relation}
    return {str(relation): str(action) for relation, action in got.items() if action != "none"}


@pytest.mark.parametrize(
    ("cause", "expected"),
    [
        ("stop", dict.fromkeys(("self", *BELOW, "goal"), "cancel")),
        ("bare_word", dict.fromkeys(("self", *BELOW, "goal"), "cancel")),
        ("signal", dict.fromkeys(("self", *BELOW, "goal"), "cancel")),
        ("parent", dict.fromkeys(("self", *BELOW, "goal"), "cancel")),
        ("budget", dict.fromkeys(("self", *BELOW, "goal"), "cancel")),
        ("new", dict.fromkeys(("self", *BELOW, "goal"), "finalize")),
        ("finalize", dict.fromkeys(("self", *BELOW, "goal"), "finalize")),
        ("timeout", {"self": "cancel", "foreground_child": "cancel"}),
        ("more_word", {"self": "cancel"}),
        ("message", {"self": "cancel"}),
        ("turn_end", {}),
        ("steer", {"self": "steer"}),
        ("steer_through", {"foreground_child": "steer"}),
    ],
)
def test_a_cause_reaches_whom_it_should(cause: str, expected: dict[str, str]) -> None:
    """Cancels reach everybody below, talk only the turn, a turn's end nobody."""
    assert reached(cause) == expected


def test_every_row_says_why() -> None:
    """Nobody is spared or told without a reason that can be printed."""
    for cause in Cause:
        for relation in Relation:
            assert deliver(DEFAULT_DELIVERIES, cause, relation).why.endswith(".")
