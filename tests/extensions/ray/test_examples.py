"""The cluster of the examples is one for Ray's launcher, by Ray's own schema."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from support.driver import Ran
from support.ray_cluster import python

pytestmark = pytest.mark.skipif(python() is None, reason="Ray is not installed: `.ci/ray` does")

EXAMPLE = Path(__file__).parents[3] / "examples" / "ray-cluster.yaml"
CHECK = """
import sys, yaml
from ray.autoscaler._private.util import prepare_config, validate_config
validate_config(prepare_config(yaml.safe_load(sys.stdin)))
"""


def checked(text: str, home: Path) -> Ran:
    """Have Ray look at the text of a cluster's file, as `ray up` does before it starts anything."""
    command = [str(python()), "-c", CHECK]
    environ = {"HOME": str(home), "RAY_USAGE_STATS_ENABLED": "0"}
    return subprocess.run(
        command, input=text, env=environ, capture_output=True, text=True, check=False
    )


def test_ray_takes_the_example(tmp_path: Path) -> None:
    """Ray finds nothing wrong with it, and something wrong with a key that there is not."""
    text = EXAMPLE.read_text("utf-8")
    right = checked(text, tmp_path)
    assert right.returncode == 0, right.stderr
    wrong = checked(f"{text}\nworker_ips: []\n", tmp_path)
    assert wrong.returncode != 0
    assert "worker_ips" in wrong.stderr
