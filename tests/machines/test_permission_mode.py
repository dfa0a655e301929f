"""The permission modes: every mode, reach and verdict has one decision."""

import itertools

import pytest

from steersman.machines.permission_mode import (
    CYCLE,
    MODES,
    PERMISSION_MODES,
    ModeAction,
    Reach,
    Verdict,
    mode_row,
    next_mode,
)
from steersman.machines.route_check import check_table


def test_the_table_is_whole() -> None:
    """No row is dead, and each combination is decided."""
    assert check_table(PERMISSION_MODES) == ()


@pytest.mark.parametrize(("mode", "reach"), [*itertools.product(MODES, Reach)])
def test_no_mode_allows_what_a_rule_denies(mode: str, reach: Reach) -> None:
    """A deny stays a deny."""
    assert mode_row(mode, reach, Verdict.DENY).action == ModeAction.KEEP


@pytest.mark.parametrize(
    ("mode", "reach", "verdict", "action"),
    [
        ("ask", Reach.EDIT, Verdict.ASK, ModeAction.KEEP),
        ("edits", Reach.EDIT, Verdict.ASK, ModeAction.ALLOW),
        ("edits", Reach.ACT, Verdict.ASK, ModeAction.KEEP),
        ("plan", Reach.LOOK, Verdict.ASK, ModeAction.KEEP),
        ("plan", Reach.EDIT, Verdict.ALLOW, ModeAction.REFUSE),
        ("plan", Reach.ACT, Verdict.ALLOW, ModeAction.REFUSE),
        ("all", Reach.ACT, Verdict.ASK, ModeAction.ALLOW),
    ],
)
def test_a_mode_changes_what_its_name_says(
    mode: str, reach: Reach, verdict: Verdict, action: ModeAction
) -> None:
    """And nothing else."""
    assert mode_row(mode, reach, verdict).action == action


def test_the_key_never_reaches_all() -> None:
    """It steps through the others, and leads out of `all`."""
    assert [next_mode(mode) for mode in CYCLE] == ["edits", "plan", "ask"]
    assert next_mode("all") == "ask"
