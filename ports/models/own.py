"""A model that a program brings along: it is asked on the program's own asyncio loop.

There its connections belong, and one that blocks holds up that program and no session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from msgspec.structs import replace

from ...machines.errors import ModelError
from .model import AnswerListener, Model, ModelAnswer, ModelRequest
from .wire import without_pictures

T = TypeVar("T")


class OwnModel:
    """Asks `inner` on another loop, for the loop of the runtime; see `Model`."""

    def __init__(self, inner: Model, loop: asyncio.AbstractEventLoop) -> None:
        self.name = str(getattr(inner, "name", "") or type(inner).__name__)
        self.takes_pictures = bool(getattr(inner, "takes_pictures", False))
        self._inner = inner
        self._loop = loop

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Ask the inner model, and pass its pieces on in their order. Raises `ModelError`."""
        here = asyncio.get_running_loop()

        def passed(on: Callable[[str], None]) -> Callable[[str], None]:
            def later(text: str) -> None:
                if not here.is_closed():  # else its reader has gone
                    here.call_soon_threadsafe(on, text)

            return later

        relay = AnswerListener(
            on_text=passed(listener.on_text),
            on_notice=passed(listener.on_notice),
            on_thought=passed(listener.on_thought),
        )
        messages = request.messages if self.takes_pictures else without_pictures(request.messages)
        request = replace(request, messages=tuple(messages), memory=None)
        answer = await self._there(self._inner.answer(request, relay))
        if not isinstance(answer, ModelAnswer):  # pyright: ignore[reportUnnecessaryIsInstance]
            message = f"the model `{self.name}` returned a {type(answer).__name__}"
            raise ModelError(message, "`answer` returns a `ModelAnswer`")
        return answer

    async def window(self) -> int:
        """Return the inner model's context window in tokens; 0 where it has none to tell."""
        if not hasattr(self._inner, "window"):
            return 0
        return await self._there(self._inner.window())

    async def aclose(self) -> None:
        """Do nothing: the program that brought the model closes it."""

    async def _there(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine on the program's loop; a cancel of the caller cancels it there."""
        try:
            task = asyncio.run_coroutine_threadsafe(work, self._loop)
        except RuntimeError as error:
            work.close()
            raise ModelError(
                f"the model `{self.name}` cannot be asked: the event loop of its program is closed"
            ) from error
        return await asyncio.wrap_future(task)
