"""`steersman simulate`: a workflow is played, and what it would break is found."""

import pytest
from support.driver import Place

COUNT = """
[workflow]
name = "count"

[[step]]
id = "count"
run = ["sh", "-c", "echo run >> really"]
"""


@pytest.mark.checks_data("simulate")
def test_a_workflow_is_played_and_nothing_runs(place: Place) -> None:
    """The line has the seeds that were asked for; what is refused has a test of its own in tests/cli."""
    (place.folder / "count.toml").write_text(COUNT, "utf-8")
    ran = place.run("simulate", "count.toml", "--seeds", "7", "--seed", "11")
    assert ran.returncode == 0, ran
    assert ran.stdout.startswith("7 seeds")
    assert not (place.folder / "really").exists()
