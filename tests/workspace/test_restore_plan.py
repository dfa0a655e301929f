"""To which version a path goes back, where not only the agent has written it."""

from steersman.workspace.restore_plan import UNSURE, KeptFile, PathChange, PathWrite, make_plan
from steersman.workspace.scan import PathState

PARTIAL, MINE, AGAIN = (PathState(kind="file", content=name) for name in ("one", "two", "three"))
CRASH = PathChange(
    turn="t1", call="c1", tool="shell", path="f", before=None, after=MINE, is_unsure=True
)
LATER = PathChange(
    turn="t2", call="c2", tool="shell", path="f", before=MINE, after=AGAIN, is_shared=True, window=1
)


def test_what_changed_around_a_crash_stays() -> None:
    """Nobody knows whose it is, so only a person who insists gets what was before it."""
    plan = make_plan([CRASH], {"f": MINE})
    assert plan.kept == (KeptFile(path="f", why=UNSURE),)
    forced = make_plan([CRASH], {"f": MINE}, force=True)
    assert forced.puts == (PathWrite(path="f", now=MINE, target=None),)


def test_what_changed_around_a_crash_is_what_a_later_change_goes_back_to() -> None:
    """It may be of a person, who wrote after the crash, and is not called the work of the agent."""
    plan = make_plan([CRASH, LATER], {"f": AGAIN})
    assert plan.puts == (PathWrite(path="f", now=AGAIN, target=MINE),)
    assert (plan.yours, plan.shared, plan.kept) == (("f",), (), ())


def test_a_version_that_went_back_is_not_said_to_be_lost() -> None:
    """Where a person wrote between two changes, theirs is back: no advice to undo that."""
    first = PathChange(turn="t1", call="c1", tool="write", path="f", before=None, after=PARTIAL)
    plan = make_plan([first, LATER], {"f": AGAIN})
    assert (plan.yours, plan.shared) == (("f",), ())
