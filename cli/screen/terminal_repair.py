"""Repairs a terminal whose settings a killed program did not restore.

While the screen is open, a file in the state folder holds the terminal's former settings. A program
that ends in any way but by SIGKILL or a power cut deletes its file; the next start in the same
terminal restores the settings of a file whose program is dead.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import re
import sys
import termios
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ...ports.process.ancestry import is_alive
from ...workflows.paths import make_private, write_private

RESET = "\x1b[?1004l\x1b[?2004l\x1b[?25h\x1b[?7h\x1b[0m"
"""No reports of the focus, no bracketed paste, a visible cursor, wrapped lines, no styles (xterm)."""


@contextmanager
def restored_terminal(folder: Path) -> Generator[None]:
    """Repair the terminal of standard input if necessary, and restore its present settings at the end."""
    try:
        name = os.ttyname(sys.stdin.fileno())
        repair(folder, name)
        before: list[Any] = termios.tcgetattr(sys.stdin.fileno())
    except (OSError, termios.error):
        yield
        return
    mark = _mark(folder, name)
    with contextlib.suppress(OSError):
        *numbers, signs = before
        coded = [
            base64.b64encode(sign).decode() if isinstance(sign, bytes) else sign for sign in signs
        ]
        saved = {"pid": os.getpid(), "settings": [*numbers, coded]}
        write_private(mark, json.dumps(saved).encode())
    try:
        yield
    finally:
        with contextlib.suppress(OSError, termios.error):  # it may be gone
            termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, before)
        with contextlib.suppress(OSError):
            mark.unlink(missing_ok=True)


def repair(folder: Path, name: str) -> bool:
    """Restore the settings that a killed program found; False if there is nothing to restore."""
    mark = _mark(folder, name)
    try:
        saved = json.loads(mark.read_text("utf-8"))
        pid, (*numbers, coded) = int(saved["pid"]), saved["settings"]
        signs = [base64.b64decode(sign) if isinstance(sign, str) else int(sign) for sign in coded]
        attributes: list[Any] = [*map(int, numbers), signs]
    except FileNotFoundError:
        return False
    except (OSError, ValueError, KeyError, TypeError):
        mark.unlink(missing_ok=True)
        return False
    if is_alive(pid):
        return False
    termios.tcsetattr(sys.stdin.fileno(), termios.TCSANOW, attributes)
    sys.stdout.write(f"\r\x1b[J{RESET}")
    sys.stdout.flush()
    mark.unlink(missing_ok=True)
    return True


def _mark(folder: Path, name: str) -> Path:
    return make_private(folder) / (re.sub(r"\W+", "-", name).strip("-") + ".json")
