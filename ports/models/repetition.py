"""Notices that a model says the same over and over, as small ones do until their limit.

A text loops if its end is one piece, repeated without a change. The newest `_TAIL` characters are looked
at once for every `_STEP` new ones, in time that is linear in them, so that each costs the same however
long the answer is.
"""

from collections.abc import Sequence

_TAIL = 3_000  # characters that are looked at
_STEP = 250  # characters between two looks
_SHORT = 20  # characters; a shorter piece may be a ruler, a table or data
_TIMES = 5  # so often a longer piece has to be repeated ...
_LEAST = 500  # ... over at least so many characters
_LEAST_SHORT = 2_000  # the same for a short piece

NOTICE = "the model repeated itself, so its answer was ended"


class RepetitionGuard:
    """Follows one answer; `feed` says when it has begun to loop."""

    def __init__(self) -> None:
        self._tail = ""
        self._new = 0

    def feed(self, piece: str) -> bool:
        """Take the next piece; True once the newest text is a repetition."""
        self._tail = (self._tail + piece)[-_TAIL:]
        self._new += len(piece)
        if self._new < _STEP:
            return False
        self._new = 0
        return is_repetition(self._tail)


def is_repetition(text: str) -> bool:
    """Whether a text ends with one piece that is repeated often enough."""
    backwards = text[::-1]
    borders = _borders(backwards)
    for length, border in enumerate(borders, 1):
        period = length - border
        if period < _SHORT:
            if length >= _LEAST_SHORT and backwards[:period].strip():
                return True
        elif length >= max(_LEAST, _TIMES * period):
            return True
    return False


def _borders(text: str) -> Sequence[int]:
    """Return for each beginning of a text its longest proper part that is both its start and its end.

    The table of Knuth, Morris and Pratt: a beginning of length n with border b has the period n - b.
    """
    table = [0] * len(text)
    border = 0
    for at in range(1, len(text)):
        while border and text[at] != text[border]:
            border = table[border - 1]
        border += text[at] == text[border]
        table[at] = border
    return table
