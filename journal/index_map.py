"""An immutable mapping from an item's index, written as text, to a value: cheap to change when large.

A step of a run may have ten thousand items, and each of their results changes the mapping. So it is
kept in chunks of a hundred keys, those that differ in their last two digits only, and a change copies
one chunk and the table of chunks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

__all__ = ["IndexMap"]

T = TypeVar("T")


class IndexMap(Mapping[str, T], Generic[T]):
    """A mapping by index as text; `with_item` and `without` return changed versions of it."""

    __slots__ = ("_chunks", "_length")

    def __init__(self, items: Mapping[str, T] | None = None) -> None:
        self._chunks: dict[str, dict[str, T]] = {}
        for key, value in (items or {}).items():
            self._chunks.setdefault(key[:-2], {})[key] = value
        self._length = len(items or ())

    def with_item(self, key: str, value: T) -> IndexMap[T]:
        """Return a version in which `key` has this value."""
        chunk = self._chunks.get(key[:-2], {})
        return self._with_chunk(key[:-2], {**chunk, key: value})

    def without(self, key: str) -> IndexMap[T]:
        """Return a version without `key`; this one if it has none."""
        chunk = self._chunks.get(key[:-2], {})
        if key not in chunk:
            return self
        return self._with_chunk(key[:-2], {other: chunk[other] for other in chunk if other != key})

    def _with_chunk(self, start: str, chunk: dict[str, T]) -> IndexMap[T]:
        after: IndexMap[T] = IndexMap()
        after._length = self._length + len(chunk) - len(self._chunks.get(start, ()))
        after._chunks = {**self._chunks, start: chunk}
        return after

    def __getitem__(self, key: str) -> T:
        """Return the value of a key. Raises `KeyError` where there is none."""
        return self._chunks[key[:-2]][key]

    def __iter__(self) -> Iterator[str]:
        """Give the keys, those of one chunk after another."""
        return (key for chunk in self._chunks.values() for key in chunk)

    def __len__(self) -> int:
        """Return how many keys there are."""
        return self._length

    def __repr__(self) -> str:
        """Show the items."""
        return f"IndexMap({dict(self)!r})"
