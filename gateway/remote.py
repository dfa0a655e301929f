"""A connection to the control socket of another process; `RemoteSession` says what goes over it."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..journal.folder import PrivateFolder
from ..journal.lock import Owner
from ..machines.errors import SteersmanError, StoreBusy, StoreError, UnknownSession

if TYPE_CHECKING:
    from .events.contract import Event


SOCKETS = "sockets"
"""The folder of the control sockets, in the state folder of a home."""
INVALID, REFUSED, NOT_HERE, NO_ANSWER, MISTAKE = -32600, -32000, -32001, -32002, -32603
"""Error codes of the control socket (JSON-RPC 2.0)."""


ANSWER_TIMEOUT = 15.0
"""Seconds that another process may take to answer."""


class OwnerGone(UnknownSession):
    """The process that had the session open has ended, before it answered or before it was asked."""


def result_of(answer: Mapping[str, Any]) -> Any:
    """Return the `result` of an answer. Raises `SteersmanError` with the message of an `error`."""
    if "error" in answer:
        error = answer["error"]
        kind = UnknownSession if error.get("code") == NOT_HERE else SteersmanError
        raise kind(error["message"], error.get("data", {}).get("hint", ""))
    return answer["result"]


class ControlConnection:
    """A connection to the process that owns a session; `timeout` in seconds for each answer."""

    def __init__(self, session: str, connection: socket.socket) -> None:
        self.session = session
        self._socket = connection
        self._file = connection.makefile("rb")
        self._made = 0

    @classmethod
    def connect(
        cls, state: Path, session: str, owner: Owner, timeout: float = ANSWER_TIMEOUT
    ) -> ControlConnection:
        """Connect to a session's owner. Raises `OwnerGone`, or `StoreBusy` if it cannot be reached."""
        if not owner.is_here:
            raise StoreBusy(
                f"{owner.process} has session `{session}` open",
                f"attach to it there; from here `steersman send {session} TEXT`, `stop` and `queue` "
                f"reach it, and `steersman sessions show {session}` reads it",
            )
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout)
        try:
            with (
                closing(PrivateFolder.open(state, create=False)) as home,
                closing(home.subfolder(SOCKETS, create=False)) as folder,
            ):
                connection.connect(folder.address(f"{owner.node}.sock"))
        except ConnectionRefusedError as error:
            connection.close()
            raise OwnerGone("the session's owner has ended", "try again") from error
        except OSError as error:
            connection.close()
            why = error.strerror or str(error)
            raise StoreBusy(
                f"{owner.process} has session `{session}` open and does not answer: {why}",
                "wait a moment and try again, or end that process",
            ) from error
        return cls(session, connection)

    def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Return the result of a request. Raises `SteersmanError` with the message of an error answer."""
        self._made += 1
        request = {"jsonrpc": "2.0", "id": self._made, "method": method, "params": params}
        try:
            self._socket.sendall(json.dumps(request).encode() + b"\n")
        except OSError as error:
            raise self._fault(error) from error
        while True:
            answer = self._read()
            if answer.get("id") == self._made:
                return result_of(answer)

    def events(self) -> tuple[int, Iterator[list[Event]]]:
        """Subscribe; return the newest entry that was told of, and what follows until the owner closes.

        The events of an entry come together. The first are the text that has been streamed of an answer
        (`EventBus.follow`).
        """
        subscribed: dict[str, Any] = self.request("subscribe", {"session": self.session})
        self._socket.settimeout(None)
        return subscribed["seq"], self._events()

    def _events(self) -> Iterator[list[Event]]:
        events: list[Event] = []
        while True:
            try:
                message = self._read()
            except StoreError:
                return
            if message.get("method") == "event":
                events.append(message["params"])
            elif message.get("method") == "told":
                yield events
                events = []

    def close(self) -> None:
        """Close the connection; a reader in another thread returns."""
        with suppress(OSError):  # the owner has closed its end
            self._socket.shutdown(socket.SHUT_RDWR)
        self._file.close()
        self._socket.close()

    def _fault(self, error: OSError) -> StoreError:
        if isinstance(error, ConnectionError):
            return OwnerGone("the session's owner has ended", "try again")
        why = error.strerror or str(error)
        return StoreBusy(
            f"the process that has session `{self.session}` open does not answer: {why}",
            "it may be stopped or very busy: check it or end it, then try again",
        )

    def _read(self) -> dict[str, Any]:
        try:
            line = self._file.readline()
        except OSError as error:
            raise self._fault(error) from error
        if not line:
            raise OwnerGone("the session's owner has ended", "try again")
        data: dict[str, Any] = json.loads(line)
        return data
