"""A session that another process runs, as this one reaches it: through its control socket."""

from __future__ import annotations

import json
import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..journal.folder import PrivateFolder
from ..journal.sqlite import SqliteStore
from ..machines.errors import SteersmanError, StoreBusy
from .control import SOCKETS
from .events import Event

__all__ = ["Remote"]


class Remote:
    """A connection to the process that owns a session; `timeout` in seconds for each answer."""

    def __init__(self, session: str, connection: socket.socket) -> None:
        self.session = session
        self._socket = connection
        self._file = connection.makefile("rb")
        self._made = 0

    @classmethod
    def connect(
        cls, state: Path, store: SqliteStore, session: str, timeout: float = 15.0
    ) -> Remote | None:
        """Connect to a session's owner, or none when nobody owns it.

        Raises `StoreBusy` when a live owner cannot be reached.
        """
        owner = store.owner(session)
        if owner is None:
            return None
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(timeout)
        try:
            folder = PrivateFolder.open(state, create=False).subfolder(SOCKETS, create=False)
            connection.connect(folder.address(f"{owner.node}.sock"))
        except OSError as error:
            connection.close()
            raise StoreBusy(
                f"process {owner.pid} has session `{session}` open and does not answer: {error}",
                "wait a moment and try again, or end that process",
            ) from error
        return cls(session, connection)

    def call(self, method: str, **params: Any) -> Any:
        """Call a method of the owner. Raises `SteersmanError` with what it says."""
        self._made += 1
        request = {
            "jsonrpc": "2.0",
            "id": self._made,
            "method": method,
            "params": {"session": self.session, **params},
        }
        self._socket.sendall(json.dumps(request, ensure_ascii=False).encode() + b"\n")
        while True:
            answer = self._read()
            if answer.get("id") == self._made:
                break
        if "error" in answer:
            error = answer["error"]
            raise SteersmanError(error["message"], error.get("data", {}).get("hint", ""))
        return answer["result"]

    def events(self) -> Iterator[Event]:
        """Subscribe, and yield the session's events until the owner goes."""
        self.call("subscribe")
        self._socket.settimeout(None)
        while True:
            try:
                message = self._read()
            except StoreBusy:
                return
            if message.get("method") == "event":
                yield message["params"]

    def close(self) -> None:
        """Hang up."""
        self._file.close()
        self._socket.close()

    def _read(self) -> dict[str, Any]:
        try:
            line = self._file.readline()
        except OSError as error:
            raise StoreBusy(f"no answer from the owner: {error}", "try again") from error
        if not line:
            raise StoreBusy("the session's owner has ended", "try again: nobody owns it now")
        data: dict[str, Any] = json.loads(line)
        return data
