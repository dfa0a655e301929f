"""A sequence that only grows, and whose earlier versions stay as they were.

A conversation may have a hundred thousand messages, so a version of it must not be a copy. All versions
share one list, of which each sees as many items as it had when it was made: what is appended later lies
behind its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Generic, TypeVar, cast, overload

# An immutable mapping from an item's index, as text, to a value: cheap to change when large -------
# A step of a run may have ten thousand items, and each of their results changes the mapping. So it is
# kept in chunks of a hundred keys, those that differ in their last two digits only, and a change copies
# one chunk and the table of chunks.


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


class Log(Sequence[T], Generic[T]):
    """An immutable sequence; `extended` makes the next version. A slice of it is a tuple.

    Any thread may read a version; versions that share a list are extended by one thread.
    """

    __slots__ = ("_items", "_length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._items: list[T] = list(items)
        self._length = len(self._items)

    def extended(self, items: Iterable[T]) -> Log[T]:
        """Return a version with more items at the end, in time proportional to those alone.

        Only the newest version may append to the shared list. An older one, behind whose end another
        version's items lie, is copied first.
        """
        more = tuple(items)
        if not more:
            return self
        if len(self._items) != self._length:
            return Log((*self, *more))
        after: Log[T] = Log()
        self._items.extend(more)
        after._items, after._length = self._items, self._length + len(more)
        return after

    def extends(self, earlier: Sequence[T]) -> bool:
        """Whether `earlier` is this version or one that it was extended from, as far as is known.

        Takes no longer for a long log; a version that was copied is not recognized.
        """
        if not isinstance(earlier, Log):
            return False
        return self._items is earlier._items and earlier._length <= self._length

    def __len__(self) -> int:
        """Return how many items this version has."""
        return self._length

    def __iter__(self) -> Iterator[T]:
        """Give this version's items, oldest first."""
        return islice(self._items, self._length)

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        """Return an item, or a slice as a tuple. Raises `IndexError` outside this version."""
        places = range(self._length)[index]
        if isinstance(places, range):
            return tuple(map(self._items.__getitem__, places))
        return self._items[places]

    def __eq__(self, other: object) -> bool:
        """Whether the other is a sequence of equal items, in the same order: not a text."""
        if not isinstance(other, Sequence) or isinstance(other, str | bytes):
            return NotImplemented
        return list(self) == list(cast(Sequence[object], other))

    def __repr__(self) -> str:
        """Show the items."""
        return f"Log({list(self)!r})"
