"""The kinds of events, and the fields of each, as the event contract declares them.

A test that waits for an event that cannot come fails only when its bound has passed, which is minutes
on a busy machine; one that looks for such an event finds none and passes. So the drivers of programs
check here what they are asked for, before they wait or look.
"""

from collections.abc import Collection, Iterable
from difflib import get_close_matches
from functools import cache
from typing import get_args, get_type_hints

from steersman.gateway.events import contract

__all__ = ["NOT_JSON", "check_events", "nearest"]

NOT_JSON = "not json"
"""The kind that a driver gives a line that is no JSON object; its one field is `line`."""


@cache
def _fields() -> dict[str, frozenset[str]]:
    """Return the fields that an event of a kind may have, by kind."""
    found = {NOT_JSON: frozenset({"type", "line"})}
    for event in get_args(contract.Event):
        hints = get_type_hints(event)
        for kind in get_args(hints["type"]):
            found[kind] = found.get(kind, frozenset()) | hints.keys()
    return found


def check_events(kinds: Collection[str], fields: Iterable[str] = ()) -> None:
    """Refuse kinds that no event has, and fields that no event of these kinds has; no kind means all.

    Raises `ValueError`, also for a test that expects an `AssertionError`: the mistake is the test's own.
    """
    known = _fields()
    for kind in kinds:
        if kind not in known:
            raise ValueError(f"no event is a `{kind}`{nearest(kind, known)}")
    for field in fields:
        there = frozenset().union(*(known[kind] for kind in kinds or known))
        if field not in there:
            events = " or ".join(f"`{kind}`" for kind in kinds) or "event"
            raise ValueError(f"no {events} has a field `{field}`{nearest(field, there)}")


def nearest(name: str, known: Iterable[str]) -> str:
    """Return the end of a message about an unknown name: the nearest one, if there is one."""
    found = get_close_matches(name, sorted(known), 1)
    return f"; did you mean `{found[0]}`?" if found else ""
