"""What pykka promises of any actor holds for ours, and its extension points are where we expect."""

import inspect
import threading
from typing import Any

import pykka
import pytest
from pykka import ActorDeadError, ActorRegistry
from support.cast_of_actors import Boom, Data, Echo, Recorder
from support.patience import seconds

from steersman.actors.kernel.system import ActorSystem


@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("_create_actor_inbox", []),
        ("_create_future", []),
        ("_start_actor_loop", ["self"]),
        ("_handle_receive", ["self", "message"]),
        ("_stop", ["self"]),
        ("on_failure", ["self", "exception_type", "exception_value", "traceback"]),
    ],
)
def test_extension_points(name: str, parameters: list[str]) -> None:
    """The methods of `pykka.Actor` that ours replaces exist, with the parameters it relies on."""
    assert list(inspect.signature(getattr(pykka.Actor, name)).parameters) == parameters


def test_start_registers(system: ActorSystem) -> None:
    """A started actor is in the registry, by address and by class, until it is stopped."""
    ref = Echo.start(system)
    assert ActorRegistry.get_by_urn(ref.actor_urn) is ref
    assert ref in ActorRegistry.get_by_class(Echo)
    assert ref.stop() is True
    assert ActorRegistry.get_by_urn(ref.actor_urn) is None


def test_an_asker_gets_the_exception(system: ActorSystem) -> None:
    """An exception of a handler goes to the asker, and the actor continues."""
    ref = Recorder.start(system)
    with pytest.raises(ValueError, match="wrong"):
        ref.ask(Boom(ValueError("wrong")), timeout=seconds(5))
    assert ref.is_alive()


def test_proxy(system: ActorSystem) -> None:
    """Attributes and methods are reached through a proxy."""
    proxy: Any = Recorder.start(system).proxy()
    assert proxy.greet("you").get(timeout=seconds(5)) == "hello you"
    proxy.greeting = "good day"
    assert proxy.greeting.get(timeout=seconds(5)) == "good day"


def test_stop_waits_for_what_came_before(system: ActorSystem) -> None:
    """Messages before the stop are handled; a later ask gets `ActorDeadError`."""
    heard: list[Any] = []
    ref = Recorder.start(system, heard)
    for number in range(100):
        ref.tell(Data(number))
    assert ref.stop(timeout=seconds(5)) is True
    assert heard == list(range(100))
    with pytest.raises(ActorDeadError):
        ref.ask(Data())
    assert ref.stop() is False


def test_asks_that_race_with_the_stop_are_all_answered(system: ActorSystem) -> None:
    """Asks from several threads around a stop get a reply or `ActorDeadError`: none hangs."""
    for _ in range(20):
        ref = Echo.start(system)
        futures: list[Any] = []

        def ask(ref: Any = ref, futures: list[Any] = futures) -> None:
            futures.extend(ref.ask(number, block=False) for number in range(50))

        threads = [threading.Thread(target=ask) for _ in range(4)]
        for thread in threads:
            thread.start()
        ref.stop(block=False)
        for thread in threads:
            thread.join()
        outcomes = 0
        for future in futures:
            try:
                future.get(timeout=seconds(5))
            except ActorDeadError:
                pass
            outcomes += 1
        assert outcomes == 200


def test_stop_all(system: ActorSystem) -> None:
    """Pykka's `stop_all` stops ours, too."""
    refs = [Echo.start(system) for _ in range(5)]
    ActorRegistry.stop_all(block=False)
    for ref in refs:
        ref.stop(timeout=seconds(5))
    assert not any(ref.is_alive() for ref in refs)


def test_on_failure_is_called(system: ActorSystem) -> None:
    """An actor that a `tell` kills gets `on_failure` first, as pykka's do."""
    heard: list[Any] = []
    called = threading.Event()

    class Mourner(Recorder):
        def on_failure(self, *failure: Any) -> None:
            heard.append(failure[1])
            called.set()

    error = ValueError("wrong")
    Mourner.start(system).tell(Boom(error))
    assert called.wait(seconds(5))
    assert heard == [error]
