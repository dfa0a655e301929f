"""Nodes of one home, as programs of their own."""

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable
from typing import Any

from support.driver import Place
from support.patience import seconds

ALLOWED = '[permissions]\nrules = [{ tool = "shell", do = "allow" }]\n'
TIMES = "[home]\nlease = {lease}\nfence = {fence}\n"


def settings(lease: float = 6.0, fence: float = 4.0) -> str:
    """Return the configuration of a home with nodes, whose times are in seconds."""
    return ALLOWED + TIMES.format(lease=lease, fence=fence)


class FleetNode:
    """A running `steersman node`."""

    def __init__(self, place: Place, *arguments: str) -> None:
        self.place = place
        self.process = place.start("node", *arguments, stderr=subprocess.STDOUT)
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert " takes sessions of " in line, line + self.process.stdout.read()
        self.name = line.split()[1]

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal."""
        self.process.send_signal(number)

    def ended(self) -> int:
        """Wait for its end and return its exit code; all that it said is in `said`."""
        self.said, _ = self.process.communicate(timeout=seconds(60))
        return self.process.returncode

    def abandon(self) -> None:
        """End it in any way."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.process.kill()
        self.process.communicate()


def until(ask: Callable[[], Any], what: str, timeout: float = 60.0) -> Any:
    """Ask again and again until the answer is true, and return it."""
    deadline = time.monotonic() + seconds(timeout)
    while not (answer := ask()):
        assert time.monotonic() < deadline, f"it never came about: {what}"
        os.sched_yield()
    return answer


def listed(place: Place) -> dict[str, dict[str, Any]]:
    """Return what `node list` says, by node."""
    ran = place.run("node", "list", "--json")
    assert ran.returncode == 0, ran.stderr
    return {row["node"]: row for row in json.loads(ran.stdout)["nodes"]}


def states(place: Place) -> dict[str, str]:
    """Return the state of each session, as `sessions list` says."""
    ran = place.run("sessions", "list", "--json")
    assert ran.returncode == 0, ran.stderr
    return {row["id"]: row["state"] for row in json.loads(ran.stdout)["sessions"]}
