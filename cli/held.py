"""When to say that something waits and is held."""

from ..gateway.events.contract import Event


class HeldNotice:
    """Follows a queue's events, and says it when more is held than before: not for what becomes less."""

    def __init__(self) -> None:
        self._count = 0

    def hear(self, event: Event) -> str:
        """Take in an event; return the line that it calls for, mostly none."""
        before = self._count
        match event["type"]:
            case "session_started":
                self._count = 0
            case "recovered" | "queue":
                self._count = sum(bool(item.get("held")) for item in event["items"])
            case _:
                return ""
        is_more = event["type"] == "queue" and self._count > before
        return f"Held: {self._count} waiting. /queue resume runs them." if is_more else ""
