"""The control socket's methods that say something, in the words of the one command registry."""

from __future__ import annotations

import shlex
from typing import Any

__all__ = ["SPOKEN", "spoken"]

_COMMANDS = {"stop": "/stop", "goal": "/goal", "agents": "/agents", "finalize": "/finalize"}
_WAYS = ("queue", "steer", "interrupt")
SPOKEN = ("say", "send", *_WAYS, *_COMMANDS, "answer")
"""`queue` without a text lists, and is none of these."""


def spoken(method: str, params: dict[str, Any]) -> tuple[str, str]:
    """Return what a method says, and as what. Raises `KeyError` for a parameter that is missing."""
    match method:
        case "interrupt" if not params.get("text"):
            return "/stop", "auto"
        case "queue" | "steer" | "interrupt":
            return str(params["text"]), method
        case "answer":
            reason = f" {params['reason']}" if params.get("reason") else ""
            return f"/answer {params['id']} {params['choice']}{reason}", "auto"
        case "stop" | "goal" | "agents" | "finalize":
            words = str(params.get("text") or shlex.join(map(str, params.get("words", ()))))
            return f"{_COMMANDS[method]} {words}".strip(), "auto"
        case _:
            return str(params["text"]), str(params.get("as") or "auto")
