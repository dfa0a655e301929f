"""Garbage is collected in every program, however long it runs."""

import subprocess
import sys

from support.patience import seconds

from steersman.cli.main import COLLECTS

PROGRAM = """
import gc, sys
from steersman.cli import main, program
def run(_):
    print(gc.isenabled(), gc.get_threshold())
    return 0
program.run = run
sys.argv = ["steersman", "serve"]
main.main()
"""


def test_a_command_collects_garbage() -> None:
    """A server that never does keeps whatever is part of a circle until it ends."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        capture_output=True,
        text=True,
        timeout=seconds(10),
        check=True,
    )
    assert done.stdout == f"True {COLLECTS}\n"
