"""The table of what people may do."""

import pytest

from steersman.machines.people import (
    ALLOW,
    DEFAULT_RIGHTS,
    PEOPLE,
    REFUSE,
    Deed,
    Right,
    Whose,
    may,
    objection,
    whose,
)


def test_every_combination_has_a_row_and_every_row_decides_something() -> None:
    """The table has no hole, and no row that is never reached."""
    decided = {PEOPLE.decide(key).name for key in PEOPLE.keys()}
    assert decided == {row.name for row in PEOPLE.rows}


def test_nothing_is_allowed_without_a_right() -> None:
    """Somebody without rights may do nothing, and one right more never takes anything away."""
    for deed in Deed:
        for turn in Whose:
            assert may((), deed, turn).action == REFUSE
            for right in Right:
                others = [other for other in Right if other != right]
                if may(others, deed, turn).action == ALLOW:
                    assert may([*others, right], deed, turn).action == ALLOW


def test_by_default_nobody_can_lose_work_by_another() -> None:
    """Without a choice a person speaks, and stops and steers what they began, and nothing else."""
    allowed = {
        (deed, turn)
        for deed in Deed
        for turn in Whose
        if may(DEFAULT_RIGHTS, deed, turn).action == ALLOW
    }
    speak = {(Deed.SPEAK, turn) for turn in Whose}
    assert allowed == speak | {(Deed.STEER, Whose.OWN), (Deed.STOP, Whose.OWN)}


@pytest.mark.parametrize(
    ("deed", "owner", "said"),
    [
        (Deed.SPEAK, "ann", ""),
        (Deed.STOP, "bo", ""),
        (Deed.STOP, "ann", "it is ann's, and you do not have the right `stop`"),
        (Deed.STOP, "", "you do not have the right `stop`"),
        (Deed.APPROVE, "bo", "you do not have the right `approve`"),
    ],
)
def test_an_objection_says_whose_it_is(deed: Deed, owner: str, said: str) -> None:
    """Why not, in words that name the owner and the right."""
    assert objection(DEFAULT_RIGHTS, deed, "bo", owner) == said


def test_what_nobody_began_is_not_ones_own() -> None:
    """A person without a name owns nothing."""
    assert whose("", "") == Whose.NOBODYS
