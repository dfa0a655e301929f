"""What `steersman inspect` is asked for."""

from __future__ import annotations

from datetime import datetime

from ...machines.errors import UsageError
from ...machines.value import Value

FORMATS = ("tree", "toml", "json", "mermaid", "svg")


class InspectOptions(Value):
    """What to look at, and how: `diff` are two moments, `kinds` and what follows filter events."""

    session: str
    form: str = "tree"
    at: str = ""
    diff: tuple[str, str] | None = None
    watches: bool = False
    lists_events: bool = False
    kinds: tuple[str, ...] = ()
    since: str = ""
    until: str = ""
    turn: str = ""
    item: str = ""
    last: int = 0

    def require_sense(self) -> None:
        """Raise `UsageError` if what is asked for does not go together."""
        if self.form not in FORMATS:
            raise UsageError(f"there is no format `{self.form}`", f"formats: {', '.join(FORMATS)}")
        ways = {
            "--events": self.lists_events,
            "--diff": self.diff,
            "--at": self.at,
            "--watch": self.watches and not self.lists_events,
        }
        asked = [name for name, value in ways.items() if value]
        if len(asked) > 1:
            raise UsageError(f"{' and '.join(asked)} exclude each other", "ask for one of them")
        if asked and asked[0] != "--at" and self.form in ("mermaid", "svg"):
            raise UsageError(f"{asked[0]} has no format `{self.form}`", "formats: tree, toml, json")
        filters = (self.kinds, self.since, self.until, self.turn, self.item, self.last)
        if any(filters) and not self.lists_events:
            raise UsageError("this filters the journal", "add `--events`")


def now() -> datetime:
    """Return the person's time, with its zone."""
    return datetime.now().astimezone()
