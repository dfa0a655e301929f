"""Asks models for answers and for summaries, on the asyncio loop, and passes on what they say."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from pykka import ActorRef

from ...machines.effects import CallModel, CancelModel, Summarise
from ...machines.errors import ModelError
from ...machines.results import (
    ModelAnswered,
    ModelFailed,
    ModelNoticed,
    ModelText,
    ModelThought,
    Summarised,
)
from ...ports.models.model import ModelRequest, Pause, unheard
from ..mailbox import reply
from .pieces import Pieces
from .start_task import StartTask, fault_of
from .window_watch import WindowWatch

if TYPE_CHECKING:
    from .scene import Scene

__all__ = ["ModelWork"]


class ModelWork:
    """One session's calls of its model, at most one a turn; a call never blocks whoever begins it."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, scene: Scene, start_task: StartTask
    ) -> None:
        self._loop, self._scene, self._start_task = loop, scene, start_task
        self._window = WindowWatch(loop, scene.model)
        self._calls: dict[str, asyncio.Task[None]] = {}

    def __call__(
        self, effect: CallModel | Summarise | CancelModel, reply_to: ActorRef[Any] | None
    ) -> None:
        """Begin an effect; its result goes to `reply_to`."""
        match effect:
            case CallModel():
                self._start_call(effect, reply_to)
            case Summarise():
                self._start_summary(effect, reply_to)
            case CancelModel(turn):
                task = self._calls.pop(turn, None)
                if task is not None:
                    task.cancel()

    def change_scene(self, scene: Scene) -> None:
        """Ask the model of another scene, from the next call on."""
        self._window.close()
        self._scene, self._window = scene, WindowWatch(self._loop, scene.model)

    def close(self) -> None:
        """Stop everything; whoever started the tasks waits for them."""
        for task in self._calls.values():
            task.cancel()
        self._window.close()

    def _start_call(self, effect: CallModel, reply_to: ActorRef[Any] | None) -> None:
        turn, epoch, step = effect.turn, effect.epoch, effect.step

        def fault(error: BaseException) -> None:
            reason = fault_of(error)
            reply(reply_to, ModelFailed(turn, epoch, step, reason, "please report it"))

        self._calls[turn] = self._start_task(self._call(effect, reply_to), fault)

    def _start_summary(self, effect: Summarise, reply_to: ActorRef[Any] | None) -> None:
        turn, epoch, step = effect.turn, effect.epoch, effect.step

        def fault(error: BaseException) -> None:
            reason = fault_of(error)
            reply(reply_to, Summarised(turn, epoch, step, reason=reason))

        self._calls[turn] = self._start_task(self._summarise(effect, reply_to), fault)

    async def _summarise(self, effect: Summarise, reply_to: ActorRef[Any] | None) -> None:
        """Ask for a summary; nobody reads along, so nothing of it is streamed."""
        turn, epoch, step = effect.turn, effect.epoch, effect.step
        try:
            answer = await self._scene.model.answer(
                self._request(effect), unheard, lambda said: _notice(reply_to, effect, said)
            )
        except ModelError as error:
            reply(reply_to, Summarised(turn, epoch, step, reason=error.message))
            return
        finally:
            self._forget(turn)
        text, reason = answer.text.strip(), "the model called a tool instead"
        reply(reply_to, Summarised(turn, epoch, step, text, "" if text else reason, answer.usage))

    async def _call(self, effect: CallModel, reply_to: ActorRef[Any] | None) -> None:
        turn, epoch, step = effect.turn, effect.epoch, effect.step
        text = Pieces(
            self._loop, lambda delta: reply(reply_to, ModelText(turn, epoch, step, delta))
        )
        thoughts = Pieces(
            self._loop, lambda delta: reply(reply_to, ModelThought(turn, epoch, step, delta))
        )
        self._window.begin()
        try:
            answer = await self._scene.model.answer(
                self._request(effect),
                text.add,
                lambda said: _notice(reply_to, effect, said),
                thoughts.add,
            )
        except ModelError as error:
            text.flush()
            window = await self._window.known()
            failed = ModelFailed(
                turn, epoch, step, error.message, error.hint, error.is_too_long, window
            )
            reply(reply_to, failed)
            return
        finally:
            thoughts.close()
            text.close()
            self._forget(turn)
        window = await self._window.known()
        reply(
            reply_to,
            ModelAnswered(
                turn,
                epoch,
                step,
                answer.text,
                answer.tool_calls,
                answer.usage,
                answer.stop_reason,
                window,
                answer.thoughts,
            ),
        )

    def _forget(self, turn: str) -> None:
        """Forget the call that has ended, but not the turn's next one."""
        if self._calls.get(turn) is asyncio.current_task():
            del self._calls[turn]

    def _request(self, effect: CallModel | Summarise) -> ModelRequest:
        return ModelRequest(
            self._scene.system,
            effect.messages,
            self._scene.tools,
            call_prefix=f"{effect.turn}.s{effect.step}.c",
            max_tokens=effect.max_tokens,
        )


def _notice(reply_to: ActorRef[Any] | None, effect: CallModel | Summarise, said: str) -> None:
    seconds = said.seconds if isinstance(said, Pause) else 0.0
    reply(reply_to, ModelNoticed(effect.turn, effect.epoch, str(said), seconds))
