"""A model of which more is configured than its server tells: what it costs, how much it can look at."""

from collections.abc import Callable
from dataclasses import replace

from ...machines.limits import Price
from .model import Model, ModelAnswer, ModelRequest, unheard


class MeteredModel:
    """Asks the model beneath, and adds the cost to the usage of its answers.

    `window` counts tokens; 0 leaves it to the model.
    """

    def __init__(self, inner: Model, price: Price | None = None, window: int = 0) -> None:
        self._inner = inner
        self._price = price or Price()
        self._window = window
        self.name = inner.name

    async def answer(
        self,
        request: ModelRequest,
        on_text: Callable[[str], None],
        on_notice: Callable[[str], None],
        on_thought: Callable[[str], None] = unheard,
    ) -> ModelAnswer:
        """Ask the model beneath. Raises `ModelError`."""
        answer = await self._inner.answer(request, on_text, on_notice, on_thought)
        usage = replace(answer.usage, cost=self._price.cost(answer.usage))
        return replace(answer, usage=usage)

    async def window(self) -> int:
        """Say what is configured, else what the model beneath says."""
        return self._window or await self._inner.window()

    async def aclose(self) -> None:
        """Close the model beneath. Idempotent."""
        await self._inner.aclose()
