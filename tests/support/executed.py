"""A command that a test runs to its end, and what it printed."""

import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from support.patience import seconds


def executed(command: Sequence[str | Path], **options: Any) -> "subprocess.CompletedProcess[str]":
    """Run a command whose output is read as text; it has to end, whatever its exit code."""
    usual = {"capture_output": True, "text": True, "timeout": seconds(60), "check": False}
    return subprocess.run(command, **(usual | options))
