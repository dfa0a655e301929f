"""A loopback proxy in front of a server's Unix socket that cuts connections at a chosen message."""

import contextlib
import socket
import threading
from pathlib import Path
from typing import Literal

from support.readable import readable

_PIECE = 1 << 16


class CutWire:
    """Forwards connections from a port of loopback; see `cut_at` and `hang`.

    Messages are counted from the client to the server, over all connections. `before`: the message is not
    forwarded; `after`: it is, and the answer is not.
    """

    def __init__(self, target: Path) -> None:
        self._target = str(target)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.count = 0
        self.cuts = 0
        self._cut_at = 0
        self._side: Literal["before", "after"] = "before"
        self._mutex = threading.Lock()
        self._wires: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def cut_at(self, number: int, side: Literal["before", "after"]) -> None:
        """Cut the connection that sends the n-th message from now on; 0: none."""
        with self._mutex:
            self.count, self._cut_at, self._side = 0, number, side

    def close(self) -> None:
        """End all connections."""
        self._listener.close()
        for wire in self._wires:
            with contextlib.suppress(OSError):
                wire.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self._wires.append(client)
                threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client, socket.socket(socket.AF_UNIX) as server, contextlib.suppress(OSError):
            server.connect(self._target)
            while True:
                for source in readable(client, server):
                    if not self._forward(source, client, server):
                        return

    def _forward(self, source: socket.socket, client: socket.socket, server: socket.socket) -> bool:
        """Pass on what came; False ends the connection."""
        data = source.recv(_PIECE)
        if not data:
            return False
        if source is server:
            client.sendall(data)
            return True
        with self._mutex:
            self.count += 1
            is_cut = self.count == self._cut_at
            self.cuts += is_cut
        if is_cut and self._side == "before":
            return False
        server.sendall(data)
        if is_cut:
            server.recv(_PIECE)  # it was carried out
        return not is_cut
