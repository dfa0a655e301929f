"""A home that is served, and browsers that were paired with it."""

import re
import ssl
from collections.abc import Callable, Generator
from contextlib import ExitStack
from itertools import count

import pytest
from blackbox.conftest import echoed, gate, place, serve, start
from support.driver import Place
from support.ports import HeldPort
from support.served import Served

from .browser import MISSING, Browser, Driver

__all__ = ["Open", "Start", "echoed", "gate", "place", "port", "serve", "served", "start"]

Start = Callable[..., Served]
Open = Callable[..., Browser]


@pytest.fixture
def served(place: Place) -> Generator[Start]:
    """Start programs that serve the place, and end them; none of them may complain."""
    lives = count(1)
    with ExitStack() as after:

        def start(*options: str, name: str = "", trusted: ssl.SSLContext | None = None) -> Served:
            one = Served(place, *options, trusted=trusted)
            life = next(lives)
            one.pair(name or ("desk" if life == 1 else f"desk {life}"))

            def close() -> None:
                said = one.close()
                assert "Traceback" not in said, said

            after.callback(close)
            return one

        yield start


@pytest.fixture
def port() -> Generator[str]:
    """A port that a program which serves, and the next one after a power cut, listen on."""
    with HeldPort() as held:
        yield str(held.number)


@pytest.fixture(scope="session")
def driver() -> Generator[Driver]:
    """Start the program that drives browsers."""
    if MISSING:
        pytest.skip(f"not installed here: {', '.join(MISSING)}")
    found = Driver()
    yield found
    found.close()


@pytest.fixture
def browser(driver: Driver, place: Place) -> Generator[Open]:
    """Open browsers of a size, paired under a name unless that is empty, and close them."""
    with ExitStack() as after:

        def start(
            web: Served, name: str = "phone", scope: str = "approve", width: int = 1440
        ) -> Browser:
            one = Browser(driver, width, 900 if width > 500 else 844)
            after.callback(one.close)
            one.go(f"http://{web.address}/#pair={code_for(place, name, scope)}")
            one.wait("document.querySelector('.sessions')")
            one.complaints()
            return one

        yield start


def code_for(place: Place, name: str, scope: str = "approve") -> str:
    """Return a code that pairs a device."""
    ran = place.run("devices", "pair", name, "--scope", scope)
    found = re.search(r"#pair=([\w-]+)", ran.stdout)
    assert found, ran
    return found[1]
