"""Asks models for answers and for summaries, on the asyncio loop, and passes on what they say."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ...machines import protocol as m
from ...machines.errors import ModelError
from ...ports.models.model import (
    AnswerListener,
    ConversationMemory,
    Model,
    ModelRequest,
    Pause,
)
from ...ports.tools.deferral import meant
from ...workflows.durability import replace_file
from ..kernel.mailbox import reply
from .resources import StartTask, fault_of

if TYPE_CHECKING:
    from .resources import SessionResources


# Streamed text, gathered so that a fast model does not flood the clients --------------------------


COALESCE = 0.03
"""Seconds for which pieces of text are gathered before they are passed on."""
KEPT = 1.0
"""Seconds of a long answer that a crash may lose."""


class TextBatcher:
    """Gathers streamed text: the first piece goes at once, later ones every `COALESCE` seconds."""

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Callable[[str], None]) -> None:
        self._loop = loop
        self._send = send
        self._gathered: list[str] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, piece: str) -> None:
        """Take a piece."""
        self._gathered.append(piece)
        if self._timer is None:
            self.flush()
            self._timer = self._loop.call_later(COALESCE, self._tick)

    def flush(self) -> None:
        """Pass on what has gathered."""
        if self._gathered:
            self._send("".join(self._gathered))
            self._gathered.clear()

    def close(self) -> None:
        """Pass on the rest and end."""
        self.flush()
        if self._timer is not None:
            self._timer.cancel()

    def _tick(self) -> None:
        self._timer = None
        if self._gathered:
            self.flush()
            self._timer = self._loop.call_later(COALESCE, self._tick)


# The model's window, asked for once, beside the first call, so that no call waits ------------------


WINDOW_TIMEOUT = 0.5
"""Seconds that an answer may wait for the window to be known."""


class WindowWatch:
    """Asks `model` for its window; on one loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, model: Model) -> None:
        self._loop = loop
        self._model = model
        self._task: asyncio.Task[int] | None = None

    def begin(self) -> None:
        """Ask, unless that was done."""
        if self._task is None:
            self._task = self._loop.create_task(self._model.window())

    async def known(self) -> int:
        """Return the window, 0 while or where it is not known."""
        if self._task is None:
            return 0
        if not self._task.done():
            await asyncio.wait([self._task], timeout=WINDOW_TIMEOUT)
        if not self._task.done() or self._task.cancelled() or self._task.exception():
            return 0
        return self._task.result()

    def close(self) -> None:
        """Stop asking. Idempotent."""
        if self._task is not None:
            self._task.cancel()


class ModelWork:
    """One session's calls of its model, at most one a turn; a call never blocks the caller."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, resources: SessionResources, start_task: StartTask
    ) -> None:
        self._loop, self._resources, self._start_task = loop, resources, start_task
        self._window = WindowWatch(loop, resources.model)
        self._memory = ConversationMemory()
        self._calls: dict[str, asyncio.Task[None]] = {}

    def __call__(self, effect: m.CallModel | m.CancelModel, reply_to: ActorRef[Any] | None) -> None:
        """Begin an effect; its result goes to `reply_to`."""
        match effect:
            case m.CallModel(is_summary=True):
                self._start_summary(effect, reply_to)
            case m.CallModel():
                self._start_call(effect, reply_to)
            case m.CancelModel(turn=turn):
                task = self._calls.pop(turn, None)
                if task is not None:
                    task.cancel()

    def change_resources(self, resources: SessionResources) -> None:
        """Ask the model of these resources, from the next call on."""
        self._window.close()
        self._resources, self._window = resources, WindowWatch(self._loop, resources.model)
        self._memory = ConversationMemory()

    def close(self) -> None:
        """Stop everything; the caller waits for the tasks."""
        for task in self._calls.values():
            task.cancel()
        self._window.close()

    def _start_call(self, effect: m.CallModel, reply_to: ActorRef[Any] | None) -> None:
        turn, epoch, step = effect.turn, effect.epoch, effect.step

        def fault(error: BaseException) -> None:
            reason = fault_of(error)
            reply(
                reply_to,
                m.ModelFailed(
                    turn=turn, epoch=epoch, step=step, reason=reason, hint="please report it"
                ),
            )

        self._calls[turn] = self._start_task(self._call(effect, reply_to), fault)

    def _start_summary(self, effect: m.CallModel, reply_to: ActorRef[Any] | None) -> None:
        turn, epoch, step = effect.turn, effect.epoch, effect.step

        def fault(error: BaseException) -> None:
            reason = fault_of(error)
            reply(reply_to, m.Summarised(turn=turn, epoch=epoch, step=step, reason=reason))

        self._calls[turn] = self._start_task(self._summarise(effect, reply_to), fault)

    async def _summarise(self, effect: m.CallModel, reply_to: ActorRef[Any] | None) -> None:
        """Ask for a summary; nothing of it is streamed."""
        turn, epoch, step = effect.turn, effect.epoch, effect.step
        try:
            listener = AnswerListener(on_notice=lambda said: _notice(reply_to, effect, said))
            answer = await self._resources.model.answer(self._request(effect), listener)
        except ModelError as error:
            reply(reply_to, m.Summarised(turn=turn, epoch=epoch, step=step, reason=error.message))
            return
        finally:
            self._forget(turn)
        text, reason = answer.text.strip(), "the model called a tool instead"
        reply(
            reply_to,
            m.Summarised(
                turn=turn,
                epoch=epoch,
                step=step,
                text=text,
                reason="" if text else reason,
                usage=answer.usage,
            ),
        )

    async def _call(self, effect: m.CallModel, reply_to: ActorRef[Any] | None) -> None:
        turn, epoch, step = effect.turn, effect.epoch, effect.step
        kept = 0.0

        def stream(delta: str) -> None:
            nonlocal kept
            now = self._loop.time()
            kept = kept or now
            is_due = now - kept >= KEPT
            kept = now if is_due else kept
            reply(
                reply_to,
                m.ModelText(turn=turn, epoch=epoch, step=step, delta=delta, is_due=is_due),
            )

        text = TextBatcher(self._loop, stream)
        thoughts = TextBatcher(
            self._loop,
            lambda delta: reply(
                reply_to, m.ModelThought(turn=turn, epoch=epoch, step=step, delta=delta)
            ),
        )
        self._window.begin()
        try:
            listener = AnswerListener(
                on_text=text.add,
                on_notice=lambda said: _notice(reply_to, effect, said),
                on_thought=thoughts.add,
            )
            answer = await self._resources.model.answer(self._request(effect), listener)
        except ModelError as error:
            text.flush()
            window = await self._window.known()
            failed = m.ModelFailed(
                turn=turn,
                epoch=epoch,
                step=step,
                reason=error.message,
                hint=error.hint,
                is_too_long=error.is_too_long,
                window=window,
                again=error.retry_after or 0.0,
            )
            reply(reply_to, failed)
            return
        finally:
            thoughts.close()
            text.close()
            self._forget(turn)
        await self._keep(answer.text)
        window = await self._window.known()
        reply(
            reply_to,
            m.ModelAnswered(
                turn=turn,
                epoch=epoch,
                step=step,
                text=answer.text,
                tool_calls=tuple(map(meant, answer.tool_calls)),
                usage=answer.usage,
                stop_reason=answer.stop_reason,
                window=window,
                thoughts=answer.thoughts,
            ),
        )

    def _forget(self, turn: str) -> None:
        """Forget the call that has ended, but not the turn's next one."""
        if self._calls.get(turn) is asyncio.current_task():
            del self._calls[turn]

    async def _keep(self, text: str) -> None:
        """Write a child's answer that its parent receives in part to its file, for `read`."""
        file = self._resources.answer_file
        if file is None or len(text) <= self._resources.answer_limit:
            return

        def write() -> None:
            file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(file, text.encode("utf-8", "replace"), mode=0o600)

        with suppress(OSError):  # the answer itself is in the child's journal
            await asyncio.to_thread(write)

    def _request(self, effect: m.CallModel) -> ModelRequest:
        return ModelRequest(
            system=self._resources.system,
            messages=effect.messages,
            tools=self._resources.tools,
            unusable=effect.unusable,
            call_prefix=f"{effect.turn}.s{effect.step}.c",
            max_tokens=effect.max_tokens,
            memory=self._memory,
            is_plain=effect.is_summary,
        )


def _notice(reply_to: ActorRef[Any] | None, effect: m.CallModel, said: str) -> None:
    seconds = said.seconds if isinstance(said, Pause) else 0.0
    reply(
        reply_to,
        m.ModelNoticed(turn=effect.turn, epoch=effect.epoch, text=str(said), seconds=seconds),
    )
