"""What every interface of a chat or a run does in the same order: subscribe, open, talk, leave, close."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import TextIO, TypeVar

from ..gateway.events.contract import Event
from ..gateway.interface import ChatHost, ChatSession
from .signals import SignalExit
from .streams import Printer

Session = TypeVar("Session", bound=ChatSession)


@contextmanager
def talking(
    host: ChatHost,
    open_it: Callable[[], Session],
    hears: Sequence[Callable[[Event], None]],
    printers: Sequence[Printer] = (),
) -> Generator[Session]:
    """Open a session whose events `hears` get, in this order; at the end, close the host and print all.

    The block leaves the session when its talk is over; a signal leaves it here, and is passed on.
    """
    for hear in hears:
        host.event_bus.subscribe(hear)
    try:
        session = open_it()
        try:
            yield session
        except SignalExit:
            session.leave("signal")
            raise
    finally:
        host.close()
        for printer in printers:
            printer.close()


def start_notices(host: ChatHost) -> list[str]:
    """Return what is to be said at the start, beside the model."""
    return [*host.config.notices, *host.notices]


def has_utf8(stream: TextIO) -> bool:
    """Whether a stream takes all characters."""
    return (stream.encoding or "").lower().replace("-", "") == "utf8"
