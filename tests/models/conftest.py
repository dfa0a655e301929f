"""What the tests of models share: a model that is asked on a loop of its own."""

import asyncio
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from support.patience import seconds
from support.weights import weights_of

from steersman.machines.conversation import ChatMessage
from steersman.ports.models.model import AnswerListener, Model, ModelAnswer, ModelRequest
from steersman.ports.models.weights import catalogue

T = TypeVar("T")


@dataclass
class Asker:
    """Asks models and keeps what they said: pieces of text, notices."""

    pieces: list[str] = field(default_factory=list)
    notices: list[str] = field(default_factory=list)

    async def ask(self, model: Model, request: ModelRequest | str) -> ModelAnswer:
        """Ask once on the running loop."""
        if isinstance(request, str):
            request = ModelRequest(
                system="Be brief.",
                messages=(ChatMessage(role="user", text=request),),
                call_prefix="t1.c",
            )
        return await model.answer(
            request, AnswerListener(on_text=self.pieces.append, on_notice=self.notices.append)
        )

    def __call__(self, model: Model, *requests: ModelRequest | str) -> list[ModelAnswer]:
        """Ask one after the other on one loop, and close the model."""

        async def all_of_them() -> list[ModelAnswer]:
            try:
                return [await self.ask(model, request) for request in requests]
            finally:
                await model.aclose()

        return self.run(all_of_them())

    def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Run on a loop of its own, at most a minute."""

        async def bounded() -> T:
            async with asyncio.timeout(seconds(60)):
                return await coroutine

        return asyncio.run(bounded())


@pytest.fixture
def asker() -> Asker:
    """A fresh one that has heard nothing."""
    return Asker()


@pytest.fixture(scope="session")
def weights() -> Path:
    """The weights of the smallest embedded model."""
    return weights_of(catalogue()[0].name)
