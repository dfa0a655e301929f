"""Whether the configured models can be reached: all at once, and none keeps the doctor waiting."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import util
from pathlib import Path
from urllib.parse import urlsplit

from ..ports.models.settings import ModelConfig
from .options import Finding

_PATIENCE = 2.0  # seconds until a model server has accepted a connection
_NAMING = 1.0  # seconds more, for finding its address


def reach(models: Sequence[tuple[str, ModelConfig]], environ: Mapping[str, str]) -> list[Finding]:
    """Look at models, each given with what it is called for people; in the same order."""
    found: dict[int, Finding] = {}

    def look(at: int, line: str, config: ModelConfig) -> None:
        found[at] = _reached(line, config, environ)

    # Daemons: one that hangs in the name service must not hold up the end of the program.
    threads = [
        threading.Thread(target=look, args=(at, line, config), daemon=True)
        for at, (line, config) in enumerate(models)
    ]
    for thread in threads:
        thread.start()
    until = time.monotonic() + _PATIENCE + _NAMING
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    return [
        found.get(at) or _silent(line, config, "no answer in time")
        for at, (line, config) in enumerate(models)
    ]


def _reached(line: str, config: ModelConfig, environ: Mapping[str, str]) -> Finding:
    match config.provider:
        case "local":
            return _engine(line)
        case "scripted":
            is_there = Path(config.script).is_file()
            hint = "" if is_there else f"there is no file `{config.script}`"
            return Finding("model", "ok" if is_there else "bad", line, hint)
        case _:
            return _server(line, config, environ)


def _engine(line: str) -> Finding:
    if util.find_spec("xllamacpp") is None:
        return Finding("model", "warn", line, "pip install 'steersman[local]'")
    return Finding("model", "ok", line)


def _server(line: str, config: ModelConfig, environ: Mapping[str, str]) -> Finding:
    """Open a connection to the server and close it; nothing is asked, nothing costs."""
    host, port = _address(config)
    try:
        socket.create_connection((host, port), _PATIENCE).close()
    except OSError as error:
        return _silent(line, config, error.strerror or str(error))
    if config.api_key_env and not environ.get(config.api_key_env):
        return Finding("model", "warn", line, f"{config.api_key_env} is not set: no key is sent")
    return Finding("model", "ok", f"{line}; it answers")


def _silent(line: str, config: ModelConfig, why: str) -> Finding:
    host, port = _address(config)
    text = f"{line}; {host}:{port} does not answer ({why})"
    return Finding("model", "bad", text, "start the server, or look at the network")


def _address(config: ModelConfig) -> tuple[str, int]:
    own = (
        "https://api.anthropic.com" if config.provider == "anthropic" else "https://api.openai.com"
    )
    url = urlsplit(config.base_url or own)
    return url.hostname or "", url.port or (443 if url.scheme == "https" else 80)
