"""The permission modes: every mode, reach and verdict has one decision."""

import itertools

import pytest

from steersman.machines.permission_mode import (
    CYCLE,
    MODES,
    PERMISSION_MODES,
    ModeAction,
    Reach,
    RuleVerdict,
    mode_row,
    next_mode,
)
from steersman.proofs.route_check import check_table


def test_the_table_is_whole() -> None:
    """No row is dead, and each combination is decided."""
    assert check_table(PERMISSION_MODES) == ()


@pytest.mark.parametrize(("mode", "reach"), [*itertools.product(MODES, Reach)])
def test_no_mode_allows_what_a_rule_denies(mode: str, reach: Reach) -> None:
    """A deny stays a deny."""
    assert mode_row(mode, reach, RuleVerdict.DENY).action == ModeAction.KEEP


@pytest.mark.parametrize(
    ("mode", "reach", "verdict", "action"),
    [
        ("ask", Reach.EDIT, RuleVerdict.ASK, ModeAction.KEEP),
        ("edits", Reach.EDIT, RuleVerdict.ASK, ModeAction.ALLOW),
        ("edits", Reach.ACT, RuleVerdict.ASK, ModeAction.KEEP),
        ("plan", Reach.LOOK, RuleVerdict.ASK, ModeAction.KEEP),
        ("plan", Reach.EDIT, RuleVerdict.ALLOW, ModeAction.REFUSE),
        ("plan", Reach.ACT, RuleVerdict.ALLOW, ModeAction.REFUSE),
        ("all", Reach.ACT, RuleVerdict.ASK, ModeAction.ALLOW),
    ],
)
def test_a_mode_changes_what_its_name_says(
    mode: str, reach: Reach, verdict: RuleVerdict, action: ModeAction
) -> None:
    """And nothing else."""
    assert mode_row(mode, reach, verdict).action == action


def test_the_key_never_reaches_all() -> None:
    """It steps through the others, and leads out of `all`."""
    assert [next_mode(mode) for mode in CYCLE] == ["edits", "plan", "ask"]
    assert next_mode("all") == "ask"
