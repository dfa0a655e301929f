"""Notices that a model says the same over and over, as small ones do until their limit.

A text loops if its end is one piece, repeated without a change. The newest `_TAIL` characters are looked
at once for every `_STEP` new ones, so that each costs the same however long the answer is.
"""

from __future__ import annotations

import asyncio

from msgspec.structs import replace

from ...machines.context import CHARACTERS, tokens_of
from ...machines.conversation import Usage
from .model import AnswerListener, ModelAnswer, ModelRequest, WrappedModel

_TAIL = 3_000  # characters that are looked at
_STEP = 250  # characters between two looks
_SHORT = 20  # characters; a shorter piece may be a ruler, a table or data
_TIMES = 5  # so often a longer piece has to be repeated ...
_LEAST = 500  # ... over at least so many characters
_LEAST_SHORT = 2_000  # the same for a short piece
_ENDS = (400, 800, 1_200)
"""Characters at the end that also stand one piece earlier: for pieces of up to 200, 400 and 600.

Each is at most four times the shortest piece and twice the longest one, so that where the end of a
looping text is found again first, it is found by its piece (or by a part that the piece consists of).
"""

NOTICE = "the model repeated itself, so its answer was ended"


class UnrepeatedModel(WrappedModel):
    """Ends an answer that only repeats itself, with a notice: what was said till then is the answer."""

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Ask the inner model. Raises `ModelError`."""
        guard, said = RepetitionGuard(), list[str]()
        now, limit, looped = asyncio.get_running_loop().time, asyncio.timeout(None), False

        def hear(piece: str) -> None:
            nonlocal looped
            if looped:
                return
            said.append(piece)
            listener.on_text(piece)
            looped = guard.feed(piece)
            if looped:
                limit.reschedule(now())

        try:
            async with limit:
                answer = await self.inner.answer(request, replace(listener, on_text=hear))
            if not looped:
                return answer
        except TimeoutError:
            if not looped:
                raise
        listener.on_notice(NOTICE)
        text = "".join(said)
        used = Usage(
            input=tokens_of(request.messages) + len(request.system) // CHARACTERS,
            output=len(text) // CHARACTERS,
        )
        return ModelAnswer(text=text, usage=used, stop_reason="length", is_estimated=True)


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
    back = text[::-1]
    for size in _ENDS:
        period = back.find(back[:size], 1)
        if period < 0:
            return False
        least = _LEAST_SHORT if period < _SHORT else max(_LEAST, _TIMES * period)
        end = back[:least]
        if len(end) == least and end[period:] == end[:-period]:
            if period < _SHORT:
                return bool(end.strip())
            return True
    return False
