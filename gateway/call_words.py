"""What a tool call was given, as words on a line."""

from collections.abc import Mapping
from typing import Any

__all__ = ["call_words"]


def call_words(arguments: Mapping[str, Any]) -> list[str]:
    """Return each argument as one line; a switch by its name where it is on, and else not at all."""
    told = (key if value is True else str(value) for key, value in _given(arguments).items())
    return [line for line in (" ".join(one.split()) for one in told) if line]


def _given(arguments: Mapping[str, Any]) -> dict[str, Any]:
    return {
        key: value for key, value in arguments.items() if value is not None and value is not False
    }
