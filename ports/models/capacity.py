"""The context window of a model and its number of parameters, as far as its server or its name tells.

vLLM, OpenRouter, LM Studio and newer llama.cpp report the window in `/v1/models`, llama.cpp in `/props`,
ollama in `/api/ps` for loaded models. OpenAI and Anthropic only document it. llama.cpp has `n_params` in
`/v1/models`; see https://github.com/ggml-org/llama.cpp/blob/master/tools/server/README.md.
"""

import re
import socket
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlsplit

from ...machines.json_shape import parse_json
from ...machines.pattern import lazy_pattern
from .loose_json import count, table, tables

Get = Callable[[str], Awaitable[Any]]
"""Fetches the JSON at an address; none on any failure."""

_KNOCK = 0.05  # seconds that a port of this machine gets to accept
_LISTEN = 0.5  # seconds that an open port gets to list its models
_PATIENCE = 3.0  # the same for the server of the model that is used: it may be at work
_MOST = 1 << 18  # bytes of the list
_SIZE = lazy_pattern(r"(?<![\w.])(\d+(?:\.\d+)?)\s?([bBmM])(?![a-zA-Z0-9])")
_FIELDS = (
    "max_model_len",
    "loaded_context_length",
    "context_length",
    "context_window",
    "max_context_length",
    "n_ctx",
)
_PUBLISHED = (
    ("claude-", 200_000),
    ("gpt-5", 272_000),
    ("gpt-4.1", 1_000_000),
    ("gpt-4o", 128_000),
    ("o3", 200_000),
    ("o4-mini", 200_000),
)


def published_window(model: str) -> int:
    """Return the published window of a hosted model, 0 for an unknown model."""
    return next((window for start, window in _PUBLISHED if model.startswith(start)), 0)


async def asked_window(get: Get, base_url: str, model: str, *, is_near: bool) -> int:
    """Ask a server for a model's window; 0 if it does not report it.

    `is_near`: addresses beside the API may be asked, too.
    """
    for entry in _about(model, tables(table(await get(f"{base_url}/models")).get("data"))):
        places = (entry, table(entry.get("meta")), table(entry.get("top_provider")))
        windows = (count(place, name) for place in places for name in _FIELDS)
        if found := next(filter(None, windows), 0):
            return found
    if not is_near:
        return 0
    root = base_url.removesuffix("/v1")
    props = table(await get(f"{root}/props"))
    if found := count(props, "default_generation_settings", "n_ctx"):
        return found
    for entry in tables(table(await get(f"{root}/api/ps")).get("models")):
        if entry.get("name") == model and (found := count(entry, "context_length")):
            return found
    return 0


def parameters_of(base_url: str, model: str) -> float:
    """Return how many parameters a model has, 0 if that is not known. Blocks for a moment.

    A server on loopback is asked; otherwise the name counts.
    """
    url = urlsplit(base_url)
    if url.scheme == "http" and url.hostname in ("127.0.0.1", "localhost", "::1"):
        path = f"{url.path.rstrip('/')}/models"
        listed = listed_here(url.hostname, url.port or 80, path, _PATIENCE)
        sizes = [count(entry, "meta", "n_params") for entry in _about(model, listed)]
        if found := max(sizes, default=0):
            return float(found)
    return parameters_in(model)


def parameters_in(name: str) -> float:
    """Return how many parameters a model's name states, such as `1.5b`; 0 if it states none."""
    found = _SIZE.findall(re.sub(r"[:_/-]", " ", name))
    sizes = [float(number) * (1e9 if unit in "bB" else 1e6) for number, unit in found]
    return max(sizes, default=0.0)


def listed_here(host: str, port: int, path: str, patience: float = _LISTEN) -> list[dict[str, Any]]:
    """Return the models that a server on this machine lists; none without an answer. Blocks.

    A closed port costs well under a millisecond, and no HTTP client is imported. One that is open gets
    `patience` seconds to answer.
    """
    asked = f"GET {path} HTTP/1.0\r\nHost: {host}:{port}\r\nAccept: application/json\r\n\r\n"
    received = b""
    try:
        with socket.create_connection((host, port), _KNOCK) as connection:
            connection.settimeout(patience)
            connection.sendall(asked.encode())
            while len(received) < _MOST and (piece := connection.recv(65_536)):
                received += piece
                if received.endswith(b"\r\n0\r\n\r\n"):
                    break
        return tables(table(parse_json(_body(received))).get("data"))
    except (OSError, ValueError):
        return []


def _body(answer: bytes) -> bytes:
    """Return what an answer carries, also in chunks that nobody asked for. Raises `ValueError`."""
    head, _, rest = answer.partition(b"\r\n\r\n")
    if b"transfer-encoding: chunked" not in head.lower():
        return rest
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        count = int(size.partition(b";")[0], 16)
        body, rest = body + rest[:count], rest[count + 2 :]
        if not count:
            break
    return body


def _about(model: str, listed: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what a list of models has of one of them; the only one is the one."""
    return [entry for entry in listed if entry.get("id") == model or len(listed) == 1]
