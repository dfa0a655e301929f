"""Whether the configured models can be reached: all at once, and none keeps the doctor waiting."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping, Sequence

from ..ports.models.provider import ModelConfig, Reach, provider_of
from .options import Finding

_PATIENCE = 2.0  # seconds until a model server has accepted a connection
_NAMING = 1.0  # seconds more, for finding its address


def reach(models: Sequence[tuple[str, ModelConfig]], environ: Mapping[str, str]) -> list[Finding]:
    """Look at models, each given with what it is called for people; in the same order."""
    found: dict[int, Reach] = {}

    def look(at: int, config: ModelConfig) -> None:
        found[at] = provider_of(config).reach(config, environ, _PATIENCE)

    # Daemons: one that hangs in the name service must not hold up the end of the program.
    threads = [
        threading.Thread(target=look, args=(at, config), daemon=True)
        for at, (_, config) in enumerate(models)
    ]
    for thread in threads:
        thread.start()
    until = time.monotonic() + _PATIENCE + _NAMING
    for thread in threads:
        thread.join(max(0.0, until - time.monotonic()))
    late = Reach("bad", "no answer in time", "start the server, or check the network")
    return [_finding(line, found.get(at, late)) for at, (line, _) in enumerate(models)]


def _finding(line: str, reached: Reach) -> Finding:
    text = f"{line}; {reached.text}" if reached.text else line
    return Finding(name="model", verdict=reached.status, text=text, hint=reached.hint)
