"""When to say that something waits and is held."""

from typing import Any

__all__ = ["Held"]


class Held:
    """Follows a queue's events, and says it when more is held than before: not for what becomes less.

    What stopped a turn and runs next is not held, though it waits for a moment; nor is what steers
    the running turn.
    """

    def __init__(self) -> None:
        self._next: set[str] = set()
        self._steers: set[str] = set()
        self._count = 0

    def hear(self, event: dict[str, Any]) -> str:
        """Take in an event; return the line that it calls for, mostly none."""
        match event["type"]:
            case "accepted" if event["as"] in ("turn", "interrupt"):
                self._next.add(event["id"])
            case "accepted" if event["as"] == "steer":
                self._steers.add(event["id"])
            case "turn_ended":
                self._steers.clear()
            case "accepted" | "requeued":
                self._steers.discard(event["id"])
                self._next.discard(event["id"])
            case "turn_started":
                self._next.discard(event["item"])
            case "session_started":
                self._next, self._count = set(), 0
            case "recovered":
                self._count = self._waiting(event)
            case "queue":
                return self._line(event)
            case _:
                pass
        return ""

    def _line(self, event: dict[str, Any]) -> str:
        before, self._count = self._count, 0
        if event["state"] == "held":
            self._count = self._waiting(event)
        is_more = self._count > before
        return f"Held: {self._count} waiting. /queue resume runs them." if is_more else ""

    def _waiting(self, event: dict[str, Any]) -> int:
        apart = self._next | self._steers
        pending = (one for one in event["items"] if one["state"] == "pending")
        waiting = (
            one for one in pending if not one.get("text", "").startswith("/compact")
        )  # it runs at once
        return sum(one["id"] not in apart and not one.get("children") for one in waiting)
