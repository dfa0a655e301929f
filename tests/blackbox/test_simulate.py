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
FLAWED = """
[workflow]
name = "flawed"

[[step]]
id = "first"
run = ["true"]

[[step]]
id = "second"
needs = ["first"]
run = ["echo", "{{ steps.first.stderr | no_such_filter }}"]
"""


@pytest.mark.checks_data("simulate")
def test_a_workflow_is_played_and_nothing_runs(place: Place) -> None:
    """The line has the seeds that were asked for; a file that cannot be played is refused."""
    file = place.folder / "count.toml"
    file.write_text(COUNT, "utf-8")
    ran = place.run("simulate", "count.toml", "--seeds", "7", "--seed", "11")
    assert ran.returncode == 0, ran
    assert ran.stdout.startswith("7 seeds")
    assert not (place.folder / "really").exists()
    file.write_text(FLAWED, "utf-8")
    refused = place.run("simulate", "count.toml", "--seeds", "1")
    assert refused.returncode != 0
    assert "no_such_filter" in refused.stdout + refused.stderr
