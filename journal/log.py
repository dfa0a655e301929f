"""A sequence that only grows, and whose earlier versions stay as they were.

A conversation may have a hundred thousand messages, so a version of it must not be a copy. All versions
share one list, of which each sees as many items as it had when it was made: what is appended later lies
behind its end.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Generic, TypeVar, cast, overload

__all__ = ["Log"]

T = TypeVar("T")


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
