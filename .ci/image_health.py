"""Whether the program of a container is well: the health check of the image.

A server is well if it is there and `GET /readyz` says so: its store answers, and its node is not fenced.
Any other command, as a chat, waits for a person most of the time and cannot be asked: its store has to
answer. What is wrong is printed, and the exit code is 1. `PID` names the process, by default the first.
"""

import json
import ssl
import subprocess
import sys
import urllib.request
from pathlib import Path

SECONDS = 15.0
"""How long each question may take; the image allows 30 seconds for all of them."""


def asked(*words: str) -> subprocess.CompletedProcess[str]:
    """Run a command of the program."""
    command = [str(Path(sys.executable).with_name("steersman")), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=SECONDS)


def fault(pid: str) -> str:
    """Say what is wrong with a process; empty if nothing is."""
    served = json.loads(asked("serve", "status", "--json").stdout)
    if served["serving"]:
        # The certificate is for the name that others know the server by: here it is asked by its address.
        unchecked = ssl._create_unverified_context()
        urllib.request.urlopen(f"{served['address']}/readyz", timeout=SECONDS, context=unchecked)
        return ""
    if b"serve" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
        return "the server does not serve"
    listed = asked("sessions", "list", "--json")
    return listed.stderr if listed.returncode else ""


if __name__ == "__main__":
    try:
        found = fault((sys.argv[1:] or ["1"])[0])
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        found = str(error)
    sys.exit(found.strip() or 0)
