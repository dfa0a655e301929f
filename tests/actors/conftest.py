"""Actors on a real loop in a thread, and actors stepped by hand."""

import asyncio
import logging
import threading
import time
from collections.abc import Generator

import pytest
from support.cast_of_actors import Hand
from support.patience import seconds

from steersman.actors.kernel.dispatcher import LoopDispatcher
from steersman.actors.kernel.system import ActorSystem
from steersman.simulator.schedule import SimulatedDispatcher


@pytest.fixture
def hand() -> Generator[Hand]:
    """A system without threads."""
    clock = [1_000.0]
    dispatcher = SimulatedDispatcher()
    made = ActorSystem(dispatcher, lambda: clock[0])
    yield Hand(dispatcher, made, clock)
    for actor in made.living():
        made.retire(actor)


@pytest.fixture
def system() -> Generator[ActorSystem]:
    """A system on an asyncio loop in a thread of its own, as in the program."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    made = ActorSystem(LoopDispatcher(loop), time.time)
    yield made
    done = threading.Event()

    def end() -> None:
        for actor in made.living():
            made.retire(actor)
        loop.stop()
        done.set()

    loop.call_soon_threadsafe(end)
    assert done.wait(seconds(5))
    thread.join(seconds(5))
    loop.close()


@pytest.fixture(autouse=True)
def quiet(caplog: pytest.LogCaptureFixture) -> None:
    """Actors that die on purpose need not fill the screen."""
    caplog.set_level(logging.CRITICAL, "steersman")
