"""Copies a text: with a clipboard program of this machine, else by the terminal itself (OSC 52).

A program is used only if the person sits at this machine: over SSH its clipboard is not theirs.
OSC 52: https://invisible-island.net/xterm/ctlseqs/ctlseqs.html#h3-Operating-System-Commands.
"""

from __future__ import annotations

import base64
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping

PROGRAMS = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
)
"""The variable of the environment that shows a desktop, and the command."""
CLIPBOARD_TIMEOUT = 5.0
"""Seconds that a program has."""
MOST = 74_000
"""Bytes that most terminals take by OSC 52."""


def copy_text(text: str, environ: Mapping[str, str], send: Callable[[str], None]) -> str:
    """Copy a text and say how; `send` writes an escape sequence to the terminal. May block."""
    data = text.encode()
    for command in _programs(environ):
        try:
            done = subprocess.run(
                command,
                input=data,
                timeout=CLIPBOARD_TIMEOUT,
                check=False,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        if done.returncode == 0:
            return f"copied with {command[0]}"
    if len(data) > MOST:
        return f"not copied: more than {MOST // 1000} kB, and no clipboard program is here"
    send(f"\x1b]52;c;{base64.b64encode(data).decode()}\x07")
    return "sent to the terminal's clipboard (OSC 52; some terminals forbid it)"


def _programs(environ: Mapping[str, str]) -> list[tuple[str, ...]]:
    """Return the commands that can be tried here, in order."""
    if environ.get("SSH_CONNECTION") or environ.get("SSH_TTY"):
        return []
    known = [command for variable, command in PROGRAMS if environ.get(variable)]
    if sys.platform == "darwin":
        known = [("pbcopy",)]
    return [command for command in known if shutil.which(command[0])]
