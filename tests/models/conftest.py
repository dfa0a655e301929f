"""What the tests of models share: a model that is asked on a loop of its own."""

from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.coroutines import run
from support.weights import weights_of

from steersman.machines.conversation import ChatMessage
from steersman.ports.models.model import AnswerListener, Model, ModelAnswer, ModelRequest
from steersman.ports.models.weights import catalogue


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

        return run(all_of_them())


@pytest.fixture
def asker() -> Asker:
    """A fresh one that has heard nothing."""
    return Asker()


@pytest.fixture(scope="session")
def weights() -> Path:
    """The weights of the smallest embedded model."""
    return weights_of(catalogue()[0].name)
