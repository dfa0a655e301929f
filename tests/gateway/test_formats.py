"""Queue items, calls, ages and times as people read them."""

from datetime import datetime, timedelta
from typing import Any

import pytest

from steersman.gateway.wording.formats import age, call_words, clock, iso, item_line
from steersman.workflows.paths import login_name

DONE = {"done": 23, "total": 50, "unit": "file"}


@pytest.mark.parametrize(
    ("fields", "line"),
    [
        ({"state": "running", "progress": DONE}, "#2 [RUNNING]: use tabs (file 23/50)"),
        ({"state": "pending"}, "#2 [PENDING]: use tabs"),
        ({"state": "pending", "edited": True}, "#2 [PENDING] (being edited): use tabs"),
        ({"state": "pending", "turn": "t4"}, "#2 [STEERING] → turn t4: use tabs"),
        ({"state": "pending", "children": ["kid", "sib"]}, "#2 [STEERING] → kid, sib: use tabs"),
        ({"state": "steered", "children": ["kid"]}, "#2 [STEERED]: use tabs"),
        ({"state": "pending", "user": "ann"}, "#2 [PENDING] from ann: use tabs"),
        ({"state": "pending", "user": login_name()}, "#2 [PENDING]: use tabs"),
        ({"state": "offered"}, "#2 [OFFERED]: use tabs"),
        ({"state": "offered", "answer": "use\ntabs"}, "#2 [OFFERED]: use tabs"),
        ({"state": "offered", "answer": "no,\nnot"}, "#2 [OFFERED]: use tabs -> no, not"),
        ({"state": "offered", "wants": "steer"}, "#2 [STEERING] → when answered: use tabs"),
        ({"state": "offered", "stopped": True, "wants": "steer"}, "#2 [INTERRUPTED]: use tabs"),
    ],
)
def test_a_line_says_what_becomes_of_an_item(fields: dict[str, Any], line: str) -> None:
    """A steer says where it goes; a side talk that was stopped is not offered."""
    item = {"number": 2, "text": "use\ntabs", "progress": None}
    assert item_line(item | fields) == line


TALK = {"task": "count\n the stars", "name": "kid", "background": True}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (TALK, ["count the stars", "kid", "background"]),
        ({"path": "a.py", "offset": 0, "limit": None, "all": False}, ["a.py", "0"]),
        ({"pattern": "", "lines": [1, 2]}, ["[1, 2]"]),
    ],
)
def test_a_call_reads_as_words(arguments: dict[str, Any], words: list[str]) -> None:
    """Each argument is one line; a switch is named where it is on, and nothing where it is off."""
    assert call_words(arguments) == words


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (59, "just now"),
        (60, "1 minute ago"),
        (7_300, "2 hours ago"),
        (-5, "just now"),
        (-400 * 86_400, "400 days ahead"),
    ],
)
def test_ages(seconds: float, words: str) -> None:
    """Also of what was stamped by a clock that has been set back since."""
    assert age(seconds) == words


def test_a_clock_is_the_persons() -> None:
    """Today it is the local time alone; of another day the date goes before it."""
    now = datetime.now().replace(hour=0, minute=3, second=4, microsecond=5_000)
    assert clock(iso(now.timestamp())) == "00:03:04"
    assert clock(iso(now.timestamp()), "milliseconds") == "00:03:04.005"
    before = now - timedelta(days=2)
    assert clock(iso(before.timestamp())) == f"{before.date()} 00:03:04"
