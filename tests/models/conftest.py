"""What the tests of models share: a model that is asked on a loop of its own."""

import asyncio
import importlib.util
import os
from collections.abc import Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import pytest
from support.patience import seconds

from steersman.machines.conversation import ChatMessage
from steersman.machines.errors import ModelError
from steersman.ports.models.embedded.download import fetch
from steersman.ports.models.embedded.weights import catalogue, fetched
from steersman.ports.models.model import AnswerListener, Model, ModelAnswer, ModelRequest
from steersman.workflows.paths import Paths

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
    """The weights of the smallest embedded model, from the cache folder of whoever runs the tests.

    `STEERSMAN_TEST_CACHE` names another folder, into which they are also fetched.
    """
    if importlib.util.find_spec("xllamacpp") is None:
        pytest.skip("the package xllamacpp is not installed: pip install 'steersman[local]'")
    entry = catalogue()[0]
    kept = os.environ.get("STEERSMAN_TEST_CACHE")
    if not kept:
        if found := fetched(entry, Paths.of(os.environ).cache):
            return found
        pytest.skip(f"the weights are not here: `steersman models fetch {entry.name}`")
    try:
        return fetch(entry, Path(kept), lambda done, total: None)
    except ModelError as error:
        pytest.skip(f"the weights cannot be had: {error.message}")
