"""What every model behind an HTTP address has in common; a wire format says what a request is there."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...machines.context import CHARACTERS, tokens_of
from ...machines.conversation import ChatMessage, Usage
from .exchange import Exchange
from .model import ModelAnswer, ModelRequest, unheard


class ServedModel(ABC):
    """A model that a server at `host` knows as `model`, and its people as `name`.

    `temperature` and `max_tokens` hold where a request has none of its own.
    """

    def __init__(
        self,
        exchange: Exchange,
        model: str,
        host: str,
        name: str,
        temperature: float | None,
        max_tokens: int | None,
    ) -> None:
        self.name = f"{name} ({model} at {host})" if name else f"{model} at {host}"
        self._exchange = exchange
        self._model = model
        self._temperature = temperature
        self._max_tokens = max_tokens

    async def answer(
        self,
        request: ModelRequest,
        on_text: Callable[[str], None],
        on_notice: Callable[[str], None],
        on_thought: Callable[[str], None] = unheard,
    ) -> ModelAnswer:
        """Stream pieces of text to `on_text` and return the whole. Raises `ModelError`."""
        body = self._body(self._completed(request))
        prefix = request.call_prefix
        answer = await self._exchange.run(body, prefix, on_text, on_notice, on_thought)
        return answer if answer.usage.tokens else _estimated(request, answer)

    @abstractmethod
    async def window(self) -> int:
        """Say how many tokens the model can look at; 0 where nobody knows."""

    async def aclose(self) -> None:
        """Close the connections. Idempotent."""
        await self._exchange.aclose()

    @abstractmethod
    def _body(self, request: ModelRequest) -> dict[str, Any]:
        """Write a request as the server wants it."""

    def _completed(self, request: ModelRequest) -> ModelRequest:
        """Add the settings that the request leaves open; of two limits the smaller counts."""
        limits = [one for one in (request.max_tokens, self._max_tokens) if one is not None]
        is_open = request.temperature is None
        return replace(
            request,
            temperature=self._temperature if is_open else request.temperature,
            max_tokens=min(limits, default=None),
        )


def _estimated(request: ModelRequest, answer: ModelAnswer) -> ModelAnswer:
    """Count for a server that does not, from the text, so that limits hold with it, too."""
    fixed = (len(request.system) + len(str(request.tools))) // CHARACTERS
    said = ChatMessage("assistant", answer.text, answer.tool_calls)
    usage = Usage(fixed + tokens_of(request.messages), tokens_of([said]))
    return replace(answer, usage=usage, is_estimated=True)
