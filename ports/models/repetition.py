"""Notices that a model says the same over and over, as small ones do until their limit.

A text loops if its end is one piece, repeated without a change. The newest `_TAIL` characters are looked
at once for every `_STEP` new ones, so that each costs the same however long the answer is.
"""

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
    for period in range(1, len(text) // _TIMES + 1):
        is_short = period < _SHORT
        least = _LEAST_SHORT if is_short else max(_LEAST, _TIMES * period)
        end = text[-least:]
        if len(end) < least or not _repeats(end, period):
            continue
        if end.strip() if is_short else not any(_repeats(end, part) for part in range(1, _SHORT)):
            return True
    return False


def _repeats(text: str, period: int) -> bool:
    """Whether each character is that of `period` characters before."""
    return text[period:] == text[:-period]
