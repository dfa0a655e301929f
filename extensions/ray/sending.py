"""The contents of input files, by their hash: each is read once while it is unchanged, and sent once."""

from __future__ import annotations

import asyncio
import hashlib
import os
from collections.abc import Iterable
from typing import Any

from .library import ray

_SMALL = 1 << 18
"""Bytes of a content that is sent with the command; a larger one goes through the object store."""
_PIECE = 32 << 20
_KEPT = 256 << 20  # bytes of small contents that are kept
_STORED = 2 << 30  # bytes of large contents that are kept in the object store


Contents = dict[str, Any]
"""By hash: the bytes of a small content, or the references to the pieces of a large one."""


class Sending:
    """Reads contents, and keeps the newest."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, int, int, int], str] = {}
        self._small: dict[str, bytes] = {}
        self._large: dict[str, tuple[int, list[Any]]] = {}
        self._kept = self._stored = 0

    async def read(
        self, inputs: Iterable[tuple[str, str]]
    ) -> tuple[list[tuple[str, int, str]], Contents]:
        """Read files, given by where they go and where they are.

        Returns path, mode and hash of each, and their contents. Raises `OSError`.
        """
        found: list[tuple[str, int, str]] = []
        contents: Contents = {}
        for path, source in inputs:
            state = os.stat(source)
            key = (source, state.st_ino, state.st_size, state.st_mtime_ns)
            digest = self._known.get(key, "")
            if digest not in self._small and digest not in self._large:
                is_small = state.st_size <= _SMALL
                digest = self._read(source) if is_small else await self._store(source)
                self._known[key] = digest
            is_kept = digest in self._small
            contents[digest] = self._small[digest] if is_kept else self._large[digest][1]
            found.append((path, state.st_mode & 0o777, digest))
        self._thin()
        return found, contents

    def _read(self, source: str) -> str:
        with open(source, "rb") as file:
            data = file.read(_SMALL + 1)
        digest = hashlib.sha256(data).hexdigest()
        if digest not in self._small:
            self._small[digest] = data
            self._kept += len(data)
        return digest

    async def _store(self, source: str) -> str:
        """Put a large content into the object store, in pieces that it can keep or spill."""
        hashed, pieces, size = hashlib.sha256(), list[Any](), 0
        with open(source, "rb") as file:
            while data := await asyncio.to_thread(file.read, _PIECE):
                await asyncio.to_thread(hashed.update, data)
                pieces.append(ray.put(data))
                size += len(data)
        if hashed.hexdigest() not in self._large:
            self._large[hashed.hexdigest()] = (size, pieces)
            self._stored += size
        return hashed.hexdigest()

    def _thin(self) -> None:
        """Forget the oldest; commands on their way keep what they need."""
        while self._kept > _KEPT:
            self._kept -= len(self._small.pop(next(iter(self._small))))
        while self._stored > _STORED:
            size, _ = self._large.pop(next(iter(self._large)))
            self._stored -= size
