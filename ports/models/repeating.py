"""Asks a model again for an answer that broke off, as long as nothing irrevocable happened.

No call of a broken answer runs, so what counts is its text. If none was shown, the answer begins again,
after the pauses of `retry.py`. Text that was shown stays: the model is asked once to go on behind it, and
both parts are one answer, in interfaces and in the journal. An answer of thoughts alone is asked for once
more. What fails before an answer begins is repeated further inside (`served.py`).
"""

from msgspec.structs import replace

from ...machines.conversation import ChatMessage
from .model import AnswerListener, Model, ModelAnswer, ModelRequest, Pause, WrappedModel, dropped
from .retry import BrokenAnswer, RetryPolicy, given_up

GO_ON = (
    "[Your answer was cut off by a lost connection; the person sees what came. Go on exactly behind its "
    "last character, and repeat nothing. No tool call of it was made.]"
)
"""The message behind half an answer; it is not kept."""
GOING_ON = "the answer broke off: the model is asked to go on"


class RepeatingModel(WrappedModel):
    """Asks `inner`, and again where its answer broke off."""

    def __init__(self, inner: Model, retry: RetryPolicy | None = None) -> None:
        super().__init__(inner)
        self._retry = retry or RetryPolicy()

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Return a whole answer. Raises `ModelError`."""
        shown = list[str]()

        def show(piece: str) -> None:
            shown.append(piece)
            listener.on_text(piece)

        is_shown = listener.on_text is not dropped
        number = 0
        while True:
            try:
                return await self.inner.answer(
                    request, replace(listener, on_text=show) if is_shown else listener
                )
            except BrokenAnswer as fault:
                number += 1
                said = "".join(shown)
                if said.strip() and fault.repeats and request.response_schema is None:
                    return await self._continued(request, listener, said)
                if said.strip() or not fault.repeats:
                    raise
                if number > fault.repeats:
                    raise given_up(fault, fault.repeats) from fault
                pause = self._retry.pause(number, None)
                why = "the answer was empty" if fault.is_empty else "the answer broke off"
                said = f"{why}, retry {number} of {fault.repeats} in {pause:.1f} s"
                listener.on_notice(Pause(said, pause))
            await self._retry.sleep(pause)

    async def _continued(
        self, request: ModelRequest, listener: AnswerListener, said: str
    ) -> ModelAnswer:
        """Return what was shown and what the model says behind it, which may be nothing."""
        listener.on_notice(GOING_ON)
        more = ChatMessage(role="assistant", text=said), ChatMessage(role="user", text=GO_ON)
        longer = replace(request, messages=(*request.messages, *more), memory=None)
        try:
            answer = await self.inner.answer(longer, listener)
        except BrokenAnswer as fault:
            if not fault.is_empty:
                raise
            return ModelAnswer(text=said, is_estimated=True)
        return replace(answer, text=said + answer.text)
