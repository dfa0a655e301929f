"""How work ends, as exit codes: one table for all commands, which help and docs print, too.

A command that waits for work (`chat`, `chat --json`, `run`, `send --wait`) says by it how the work
ended; any other ends with 0, 1 or 2. The exceptions of `machines/errors.py` carry their codes.
"""

from __future__ import annotations

import signal

DONE, FAILED, WRONG, LIMITED, UNANSWERED = 0, 1, 2, 3, 4
INTERRUPTED = 128 + signal.SIGINT
HUNG_UP = 128 + signal.SIGHUP
UNREAD = 128 + signal.SIGPIPE

EXIT_CODES = {
    DONE: "done",
    FAILED: "failed or refused",
    WRONG: "a wrong usage or configuration",
    LIMITED: "a limit or the want of progress ended the work",
    UNANSWERED: "a question that nobody could answer",
    INTERRUPTED: "interrupted: by Ctrl-C, SIGINT, or a stop from elsewhere",
    HUNG_UP: "ended by SIGHUP",
    UNREAD: "the reader of the output was gone",
    128 + signal.SIGTERM: "ended by SIGTERM",
}
"""Each exit code, and what it says."""
OF_RUNS = {"succeeded": DONE, "failed": FAILED, "interrupted": INTERRUPTED}
"""The exit code of a workflow's run, by its result."""
OF_GOALS = {"achieved": DONE, "active": DONE, "impossible": FAILED, "paused": FAILED}
"""The exit code of a single message that sets a goal, by how the goal stands at the end."""
OF_PAUSES = {
    "budget": LIMITED,
    "no_progress": LIMITED,
    "user": INTERRUPTED,
    "interrupt": INTERRUPTED,
}
"""That of a paused goal, by the reason."""


def in_words() -> str:
    """List the codes in one sentence: `0 done; 1 failed or refused`."""
    return "; ".join(f"{code} {meaning}" for code, meaning in EXIT_CODES.items())
