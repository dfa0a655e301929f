"""A Ray cluster of several raylets on this machine, as a program of its own, and its client.

`.ci/ray` installs Ray into an environment of its own; `STEERSMAN_TEST_RAY` names the Python of another
one. The program takes a folder and the number of workers, each a raylet with one processor, prints one
JSON object with the address and the process ids, and ends with everything that it started when its input
does.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

PATIENCE = 60

ROOT = Path(__file__).parents[2]


def python() -> Path | None:
    """Return the interpreter that has Ray; none if it is not installed."""
    own = ROOT / ".venv" / "ray" / "bin" / "python"
    chosen = Path(os.environ.get("STEERSMAN_TEST_RAY", own))
    return chosen if chosen.exists() else None


def environment(home: Path) -> dict[str, str]:
    """Return the environment of a cluster and of those that use it: they share a token."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    return {
        **kept,
        "HOME": str(home),
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "disabled",
        "RAY_TMPDIR": str(home),
        "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
        "RAY_health_check_period_ms": "500",
        "RAY_health_check_failure_threshold": "4",
        "RAY_health_check_timeout_ms": "1000",
        "RAY_health_check_initial_delay_ms": "1000",
    }


class RayCluster:
    """A cluster that runs, in a scratch folder. `raylets` are process ids, the head's first."""

    def __init__(self, folder: Path, workers: int) -> None:
        found = python()
        if found is None:
            raise RuntimeError("Ray is not installed: `.ci/ray` does that")
        self.environment = environment(folder)
        self._process = subprocess.Popen(
            [found, __file__, str(folder), str(workers)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=self.environment,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.about: dict[str, Any] = json.loads(self._process.stdout.readline() or "{}")
        assert self.about, "the cluster did not start"
        self.address: str = self.about["address"]
        self.raylets: list[int] = self.about["raylets"]

    def close(self) -> None:
        """End it and everything that belongs to it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()


@contextmanager
def running_cluster(workers: int) -> Iterator[RayCluster]:
    """Start a cluster, and end it. Its folder has a short path, since sockets are made in it."""
    folder = Path("/tmp", f"sr-{os.urandom(4).hex()}")
    folder.mkdir(mode=0o700)
    try:
        cluster = RayCluster(folder, workers)
        try:
            yield cluster
        finally:
            cluster.close()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def main() -> None:
    """Start a cluster, and keep it."""
    from ray.cluster_utils import Cluster

    workers = int(sys.argv[2])
    os.makedirs(os.path.join(os.environ["RAY_TMPDIR"], "ray"), exist_ok=True)
    out = os.dup(1)
    os.dup2(2, 1)
    common = {"object_store_memory": 80 << 20, "include_dashboard": False}
    cluster = Cluster(
        initialize_head=True,
        head_node_args={"num_cpus": 0, "node_ip_address": "127.0.0.1", **common},
    )
    nodes = [cluster.head_node]
    nodes += [cluster.add_node(num_cpus=1, **common) for _ in range(workers)]
    cluster.wait_for_nodes()
    about = {
        "address": cluster.address,
        "raylets": [node.all_processes["raylet"][0].process.pid for node in nodes],
        "gcs": cluster.head_node.all_processes["gcs_server"][0].process.pid,
    }
    os.write(out, json.dumps(about).encode() + b"\n")
    sys.stdin.read()
    cluster.shutdown()


if __name__ == "__main__":
    main()
