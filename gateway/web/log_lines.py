"""What a server logs as JSON, one object a line: its own messages, and the life of its sessions.

No text of a person or a model is in it.
"""

from __future__ import annotations

import json
import logging
import sys

from ..events.contract import Event
from ..wording.formats import iso

LOGGER = logging.getLogger("serve")
"""Not one below `steersman`, whose warnings a file of the home gets, too."""
TOLD = ("session", "parent", "turn", "status", "reason", "cause", "code", "resumed")
"""Fields of an event that are logged."""
LEVELS = {
    "session_started": logging.INFO,
    "session_suspended": logging.INFO,
    "session_finalized": logging.INFO,
    "turn_ended": logging.INFO,
    "error": logging.WARNING,
}


class JsonLines(logging.Formatter):
    """Writes a record as one JSON object: `time`, `level`, `logger`, `message`, and what it is about."""

    def format(self, record: logging.LogRecord) -> str:
        """Write a record."""
        line = {
            "time": iso(record.created),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "about", {}),
        }
        if record.exc_info:
            line["exception"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def log_as_json() -> None:
    """Have everything that is logged written to standard output as JSON."""
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(JsonLines())
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    LOGGER.setLevel(logging.INFO)
    runtime = logging.getLogger("steersman")
    runtime.addHandler(handler)
    runtime.propagate = False


def log_event(event: Event) -> None:
    """Log an event about the life of a session; any thread."""
    level = LEVELS.get(event["type"])
    if level is None or (event["seq"] is None and event["type"] != "error"):
        return  # not of its life, or told again to one who has just come
    about = {name: value for name in TOLD if (value := event.get(name)) not in (None, "")}
    LOGGER.log(level, event["type"], extra={"about": about})
