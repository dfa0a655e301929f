"""Waiting for files that can be read, of whatever number."""

import selectors
from typing import Any


def readable(*files: Any, timeout: float | None = None) -> list[Any]:
    """Wait until one of these can be read; return those that can, none after `timeout` seconds.

    Unlike `select.select` it takes descriptors above 1,023, which a long run has.
    """
    with selectors.PollSelector() as selector:
        for file in files:
            selector.register(file, selectors.EVENT_READ)
        return [key.fileobj for key, _ in selector.select(timeout)]
