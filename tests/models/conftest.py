"""What the tests of models share: a model that is asked on a loop of its own."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from support.coroutines import run
from support.weights import weights_of

from steersman.machines.conversation import ChatMessage
from steersman.machines.errors import ModelError
from steersman.ports.models.model import AnswerListener, Model, ModelAnswer, ModelRequest
from steersman.ports.models.retry import RetryPolicy
from steersman.ports.models.weights import catalogue


async def no_pause(pause: float) -> None:
    """Wait no time at all."""


NONE = RetryPolicy(retries=0)
QUICK = RetryPolicy(retries=4, jitter=lambda: 1.0, sleep=no_pause)


class Printing:
    """Answers with texts in order, fails with errors, hangs at none, and keeps what it was asked."""

    name = "printing"

    def __init__(self, *answers: str | Exception | None) -> None:
        self.answers, self.asked = list(answers), list[ModelRequest]()

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Do the next thing."""
        self.asked.append(request)
        answer = self.answers.pop(0)
        if answer is None:
            await asyncio.Event().wait()
        if isinstance(answer, Exception):
            raise answer
        return ModelAnswer(text=str(answer))

    async def window(self) -> int:
        """Return none."""
        return 0

    async def aclose(self) -> None:
        """There is nothing to close."""


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

    def fault(self, model: Model, request: ModelRequest | str = "Hi") -> ModelError:
        """Ask once; return the error with which the answer ends."""
        with pytest.raises(ModelError) as caught:
            self(model, request)
        return caught.value


@pytest.fixture
def asker() -> Asker:
    """A fresh one that has heard nothing."""
    return Asker()


@pytest.fixture(scope="session")
def weights() -> Path:
    """The weights of the smallest embedded model."""
    return weights_of(catalogue()[0].name)
