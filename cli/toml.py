"""Data as TOML, which has no null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import tomli_w

from ..workflows.document import is_list, is_table
from .page import escaped, show


def show_toml(data: Mapping[str, Any]) -> None:
    """Print TOML; it reads back as the same data, but for nulls."""
    show(toml_document(data))


def toml_document(data: Mapping[str, Any]) -> str:
    """Write TOML in which nothing can move a cursor; what is null is left out."""
    return escaped(tomli_w.dumps(without_nulls(data)).rstrip("\n"))


def without_nulls(value: Any) -> Any:
    """Return data without its nulls; in a list, where each place counts, they become a word."""
    if is_table(value):
        return {name: without_nulls(item) for name, item in value.items() if item is not None}
    if is_list(value):
        return ["null" if item is None else without_nulls(item) for item in value]
    return value
