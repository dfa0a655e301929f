"""How long ago, in words."""

import pytest

from steersman.gateway.wording.formats import age


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
