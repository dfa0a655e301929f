"""How a saved queue is announced: the words people know."""

from typing import Any

import pytest

from steersman.gateway.views.saved_queues import announce

NOW = 1_800_000_000.0
ITEMS: list[dict[str, Any]] = [
    {
        "number": 1,
        "state": "interrupted",
        "text": "use zod",
        "progress": {"done": 23, "total": 50, "unit": "file"},
    },
    {"number": 2, "state": "pending", "text": "and\nthe tests", "progress": None},
    {"number": 3, "state": "pending", "text": "docs", "progress": None},
]
REST = """
Last active: 23 minutes ago
Saved items:
#1 [INTERRUPTED]: use zod (file 23/50)
#2 [PENDING]: and the tests
#3 [PENDING]: docs
Use `/queue restore` to list, `/queue resume` to continue, or `/queue discard` to delete"""


@pytest.mark.parametrize(
    ("cause", "can_utf8", "first"),
    [
        ("crash", True, "📥 Found saved queue from crashed session (3 items, not auto-resuming)"),
        ("exit", True, "📥 Found 3 queued items from previous session (not auto-resuming)"),
        ("crash", False, "Found saved queue from crashed session (3 items, not auto-resuming)"),
    ],
)
def test_announcement(cause: str, can_utf8: bool, first: str) -> None:
    """What a crash or an exit left is announced in the literal words, plain without UTF-8."""
    event: Any = {
        "cause": cause,
        "items": ITEMS,
        "last_active": "2027-01-15T07:37:00.000Z",
        "unknown": [],
    }
    assert announce(event, NOW, can_utf8=can_utf8) == first + REST
