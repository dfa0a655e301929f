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
    """Run a test, if it is a coroutine function; others are left to pytest."""
    test = pyfuncitem.obj
    if not inspect.iscoroutinefunction(test):
        return None
    run(test(**{name: pyfuncitem.funcargs[name] for name in inspect.signature(test).parameters}))
    return True
