"""Reads JSON of unknown shape: a value of another type than expected counts as missing."""

from typing import Any, cast


def table(value: object) -> dict[str, Any]:
    """Return a JSON object, or an empty one."""
    return cast(dict[str, Any], value) if isinstance(value, dict) else {}


def tables(value: object) -> list[dict[str, Any]]:
    """Return the JSON objects of a list, or nothing."""
    items = cast(list[object], value) if isinstance(value, list) else []
    return [table(item) for item in items if table(item)]


def count(value: object, *path: str) -> int:
    """Return the whole number at the end of a path of names, or 0."""
    for name in path:
        value = table(value).get(name)
    return value if isinstance(value, int) else 0
