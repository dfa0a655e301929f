"""How large a model is, in parameters: as its server on this machine reports it, or as its name says."""

from __future__ import annotations

import re
import socket
from typing import Any
from urllib.parse import urlsplit

from ...machines.json_shape import parse_json
from ...machines.pattern import lazy_pattern
from .loose_json import count, table, tables

_LISTEN = 0.3  # seconds that a server gets to list its models
_MOST = 1 << 18  # bytes of the list
_SIZE = lazy_pattern(r"(?<![\w.])(\d+(?:\.\d+)?)\s?([bBmM])(?![a-zA-Z0-9])")


def parameters_of(base_url: str, model: str) -> float:
    """Return how many parameters a model has, 0 if that is not known. Blocks for a moment.

    A server on loopback is asked: llama.cpp has `n_params` in `/v1/models`; see
    https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md. Otherwise the name counts.
    """
    url = urlsplit(base_url)
    is_near = url.scheme == "http" and url.hostname in ("127.0.0.1", "localhost", "::1")
    return (_reported(base_url, model) if is_near else 0.0) or parameters_in(model)


def parameters_in(name: str) -> float:
    """Return how many parameters a model's name states, such as `1.5b`; 0 if it states none."""
    found = _SIZE.findall(re.sub(r"[:_/-]", " ", name))
    sizes = [float(number) * (1e9 if unit in "bB" else 1e6) for number, unit in found]
    return max(sizes, default=0.0)


def _reported(base_url: str, model: str) -> float:
    url = urlsplit(base_url)
    host, port = str(url.hostname), url.port or 80
    path = f"{url.path.rstrip('/')}/models"
    asked = f"GET {path} HTTP/1.0\r\nHost: {host}:{port}\r\nAccept: application/json\r\n\r\n"
    received = b""
    try:
        with socket.create_connection((host, port), _LISTEN) as connection:
            connection.sendall(asked.encode())
            while len(received) < _MOST and (piece := connection.recv(65_536)):
                received += piece
        data: Any = parse_json(received.partition(b"\r\n\r\n")[2])
    except (OSError, ValueError):
        return 0.0
    listed = tables(table(data).get("data"))
    fits = [one for one in listed if one.get("id") == model or len(listed) == 1]
    return float(max((count(one, "meta", "n_params") for one in fits), default=0))
