"""How the program that serves a home is found: the sessions of other programs can be opened there.

It holds a lock in the state folder for as long as it lives, in which it stands with its control socket.
"""

from __future__ import annotations

import json
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from ..journal.folder import PrivateFolder
from ..journal.lock import Lock, Owner
from ..machines.errors import UsageError
from ..workflows.paths import make_private, write_private
from .remote import ControlConnection

SERVING = "serve"
"""The name of the lock, and of the file with the address."""
OPENING = 120.0
"""Seconds that the opening of a session may take: its model may have to be loaded."""


@contextmanager
def alone(folder: Path, name: str, owner: Owner, does: str, hint: str) -> Generator[None]:
    """Be the one program that holds a lock. Raises `UsageError` if another one `does` that."""
    with closing(PrivateFolder.open(make_private(folder), create=True)) as place:
        lock = Lock(place, name)
        if not lock.take():
            other = lock.owner()
            who = other.process if other is not None else "another process"
            raise UsageError(f"{who} {does} already", hint)
        try:
            lock.sign(owner)
            yield
        finally:
            lock.release()


def server_of(state: Path) -> Owner | None:
    """Return the program that serves a home; none if none does."""
    if not (state / f"{SERVING}.lock").exists():
        return None
    with closing(PrivateFolder.open(state, create=False)) as folder:
        return Lock(folder, SERVING).owner()


def open_there(state: Path, owner: Owner, **params: Any) -> tuple[str, list[str]]:
    """Have the program that serves a home open a session; return its id, and what to tell of it.

    Raises `SteersmanError`.
    """
    with closing(ControlConnection.connect(state, "", owner, OPENING)) as connection:
        opened = connection.request("begin", params)
        return str(opened["session"]), [str(notice) for notice in opened["notices"]]


def write_address(state: Path, address: str) -> None:
    """Write down where the home is served."""
    write_private(state / f"{SERVING}.json", json.dumps({"address": address}).encode())


def address_of(state: Path) -> str:
    """Return the address of the program that serves a home; empty if it is not known."""
    try:
        return str(json.loads((state / f"{SERVING}.json").read_bytes())["address"])
    except (OSError, ValueError, KeyError, TypeError):
        return ""
