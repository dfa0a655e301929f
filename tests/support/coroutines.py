"""A pytest plugin: a test that is a coroutine function runs on a loop of its own, within bounds."""

import asyncio
import inspect
from collections.abc import Coroutine
from typing import Any, TypeVar

import pytest
from support.patience import seconds

T = TypeVar("T")


def run(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine of a test on a loop of its own, within bounds."""

    async def bounded() -> T:
        async with asyncio.timeout(seconds(90)):
            return await work

    return asyncio.run(bounded())


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Run a test that is a coroutine function, which has to leave no task; pytest runs the others."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    given = {name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}

    async def tried() -> None:
        await test(**given)
        others = asyncio.all_tasks() - {asyncio.current_task()}
        assert not [task for task in others if not task.cancelling()]

    run(tried())
    return True
