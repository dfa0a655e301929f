"""Retries of failed model calls: which calls, after how long, and the notice for people meanwhile.

`with_retries` repeats a call that failed before the first piece of its answer. The pause doubles from
attempt to attempt, with a jitter (Marc Brooker, "Exponential Backoff And Jitter", 2015), unless the
server sets it by `Retry-After` (RFC 9110, 10.2.3).

`RepeatingModel` asks again for an answer that broke off, as long as nothing irrevocable happened. No call
of a broken answer runs, so what counts is its text. If none was shown, the answer begins again, after the
same pauses. Text that was shown stays: the model is asked once to go on behind it, and both parts are one
answer, in interfaces and in the journal. An answer of thoughts alone is asked for once more.
"""

import asyncio
import random
import re
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from msgspec.structs import replace

from ...machines.conversation import ChatMessage
from ...machines.errors import ModelError
from ...machines.value import Value
from .model import AnswerListener, Model, ModelAnswer, ModelRequest, Pause, WrappedModel, dropped

T = TypeVar("T")

GO_ON = (
    "[Your answer was cut off by a lost connection; the person sees what came. Go on exactly behind its "
    "last character, and repeat nothing. No tool call of it was made.]"
)
"""The message behind half an answer; it is not kept."""
GOING_ON = "the answer broke off: the model is asked to go on"


class ServerFault(ModelError):
    """A call that a server failed; `brief` gives the reason in a few words if it may be retried."""

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        brief: str = "",
        retryable: bool = False,
        retry_after: float | None = None,
        is_too_long: bool = False,
    ) -> None:
        super().__init__(message, hint, retryable=retryable or bool(brief))
        self.brief, self.retry_after, self.is_too_long = brief, retry_after, is_too_long


class BrokenAnswer(ServerFault):
    """An answer that began, and is of no use: it broke off, or has neither text nor calls.

    `repeats` is how often the model may be asked again if nothing of it was shown. `is_empty`: the server
    ended it, so that nothing is missing behind it.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        repeats: int,
        is_empty: bool = False,
        is_too_long: bool = False,
    ) -> None:
        super().__init__(message, hint, retryable=bool(repeats), is_too_long=is_too_long)
        self.repeats = repeats
        self.is_empty = is_empty


class RetryPolicy(Value):
    """The number of retries and their pauses; all times in seconds, `jitter` returns 0.0 to 1.0.

    `longest_wait` bounds the sum of all pauses of a call, also of those that a server asks for.
    """

    retries: int = 4
    first_pause: float = 0.5
    longest_pause: float = 30.0
    longest_wait: float = 300.0
    jitter: Callable[[], float] = random.random
    sleep: Callable[[float], Awaitable[object]] = asyncio.sleep

    def pause(self, number: int, asked: float | None) -> float:
        """Return the seconds before retry `number` (from 1); `asked` are those of the server."""
        if asked is not None:
            return max(asked, 0.0)
        full = min(self.longest_pause, self.first_pause * 2.0 ** (number - 1))
        return full * (0.5 + 0.5 * self.jitter())


def parse_retry_after(value: str | None, now: Callable[[], float] = time.time) -> float | None:
    """Return the seconds of a `Retry-After` header, a number or a date; none if it is unclear."""
    if not value:
        return None
    try:
        if re.fullmatch(r"\s*-?\d+(\.\d+)?\s*", value):
            return max(0.0, float(value))
        from email.utils import parsedate_to_datetime  # few servers send a date

        return max(0.0, parsedate_to_datetime(value).timestamp() - now())
    except ValueError:
        return None


async def with_retries(
    attempt: Callable[[], Awaitable[T]], policy: RetryPolicy, on_notice: Callable[[str], None]
) -> T:
    """Run `attempt` until it succeeds, fails with an error that is not retried, or retries run out."""
    number, waited = 0, 0.0
    while True:
        try:
            return await attempt()
        except ServerFault as fault:
            number += 1
            if not fault.brief or policy.retries == 0:
                raise
            if number > policy.retries:
                raise given_up(fault, policy.retries) from fault
            pause = policy.pause(number, fault.retry_after)
            waited += pause
            if waited > policy.longest_wait:
                wait = f"{pause / 60:.0f} minutes" if pause > 90 else f"{pause:.0f} seconds"
                raise ServerFault(
                    f"{fault.message} (it wants to be asked again in {wait})",
                    f"try again in {wait}, or choose another model with `/model` or `--model`",
                    retry_after=fault.retry_after,
                ) from fault
            notice = f"{fault.brief}, retry {number} of {policy.retries} in {pause:.1f} s"
            on_notice(Pause(notice, pause))
        await policy.sleep(pause)


def given_up(fault: ServerFault, retries: int) -> ServerFault:
    """Say in a fault that a call is not repeated any more."""
    return ServerFault(
        f"{fault.message} (gave up after {retries} {'retry' if retries == 1 else 'retries'})",
        fault.hint,
        retryable=True,
        retry_after=fault.retry_after,
    )


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
