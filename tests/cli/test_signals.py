"""Signals that ask the program to leave."""

import subprocess
import sys

from support.patience import seconds

SCRIPT = """
import signal, threading
from steersman.cli.signals import SignalExit, leave_on_signals

class Thrown:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

with leave_on_signals():
    Thrown()
    print("lost")
    threading.Event().wait(10)
    print("not asked again")
"""


def test_a_signal_in_a_finalizer_is_not_lost() -> None:
    """One that comes while the interpreter throws something away is raised a moment later."""
    ran = subprocess.run(
        (sys.executable, "-c", SCRIPT),
        capture_output=True,
        text=True,
        timeout=seconds(30),
        check=False,
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (143, "lost\n", "")
