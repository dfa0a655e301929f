"""A signal asks the program to leave, wherever its main thread is."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

LEAVER = Path(__file__).parent / "leaver.py"


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
@pytest.mark.parametrize("where", ["outside", "in_callback", "in_task"])
def test_a_signal_is_never_lost(where: str, number: signal.Signals) -> None:
    """The first signal ends what runs, also inside an asyncio loop, and gives the exit code."""
    command = [sys.executable, LEAVER, where, str(int(number))]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert (ran.returncode, ran.stdout) == (0, f"{128 + number}\n"), ran.stderr
