"""How a tool call reads on one line."""

from typing import Any

import pytest

from steersman.gateway.wording.formats import call_words

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
