"""Reads rows out of a damaged SQLite file, page by page and without SQLite; the file is only read.

A row is where its page is, whatever became of the pages that lead to it: so what a broken header, a torn
index or a cut-off end leaves is found. Rows of old copies of a page, in unused pages, are found, too: the
caller takes the newest. Source of the format: https://sqlite.org/fileformat2.html
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from typing import Any

from ..machines.value import Value
from .encoding import readable
from .store import Occurrence, Watch

_MAGIC = b"SQLite format 3\0"
_PAGE = 4096  # bytes, as SQLite makes it unless told otherwise
_LEAF_OF_KEYS, _INNER_OF_KEYS, _LEAF_OF_ROWS = 0x0A, 0x02, 0x0D
_FRAME, _HEAD = 24, 32  # bytes before each page of a log, and before all of them
_INTEGERS = {1: 1, 2: 2, 3: 3, 4: 4, 5: 6, 6: 8}  # bytes by serial type
_LONGEST = 1 << 30  # bytes of a row

Row = tuple[Any, ...]


class SalvagedRows(Value):
    """What was found: rows of sessions as stored, entries by session and number, messages by id.

    An entry is (time, JSON); a message is (session, lane, client id, time, JSON).
    """

    rows: dict[str, Row]
    entries: dict[str, dict[int, tuple[float, str]]]
    messages: dict[int, tuple[str, int, str, float, str]]
    watches: list[Watch]
    occurrences: list[Occurrence]


def salvaged(database: bytes, log: bytes) -> SalvagedRows:
    """Sort the rows that a database and its write-ahead log hold, by what they look like."""
    found = SalvagedRows(rows={}, entries={}, messages={}, watches=[], occurrences=[])
    read: set[int] = set()
    for key, row in records(pages_of(database, log)):
        match row:
            case (str(session), int(seq), int() | float() as time, str(text), *hashes) if (
                seq > 0 and not any(isinstance(one, str) for one in hashes)
            ):
                found.entries.setdefault(session, {}).setdefault(seq, (float(time), text))
            case (str(session), int(), str(), int(seq), int() | float(), str(), *_) if len(row) in (
                6,
                8,
                9,
                13,
            ):
                known = found.rows.get(session)
                if known is None or known[3] <= seq:
                    found.rows[session] = row
            case (
                None,
                str(session),
                int(lane),
                str(client),
                int() | float() as time,
                str(text),
                *rest,
            ):
                if rest and rest[0]:
                    read.add(key)
                found.messages[key] = (session, lane, client, float(time), text)
            case (str(), str(), int() | float(), int() | float()):
                found.watches.extend(readable(Watch, Watch.__struct_fields__, [row]))
            case (str(), int() | float(), str(), str(), int() | float(), str(), int()):
                names = Occurrence.__struct_fields__
                found.occurrences.extend(readable(Occurrence, names, [row]))
            case _:
                pass
    for key in read:
        del found.messages[key]
    return found


def pages_of(database: bytes, log: bytes) -> dict[int, bytes]:
    """Return the pages by number, from 1; those that the log holds replace those of the file."""
    size = int.from_bytes(database[16:18], "big")
    size = 65536 if size == 1 else size
    if not database.startswith(_MAGIC) or size < 512 or size & (size - 1):
        size = _PAGE
    pages = {
        at // size + 1: database[at : at + size].ljust(size, b"\0")
        for at in range(0, len(database), size)
    }
    salts = log[16:24]
    waiting: dict[int, bytes] = {}
    for at in range(_HEAD, len(log) - size - _FRAME + 1, size + _FRAME):
        number, is_commit = struct.unpack_from(">II", log, at)
        if log[at + 8 : at + 16] != salts:
            break  # of an earlier round of the log
        waiting[number] = log[at + _FRAME : at + _FRAME + size]
        if is_commit:
            pages |= waiting
            waiting = {}
    return pages


def records(pages: dict[int, bytes]) -> Iterator[tuple[int, Row]]:
    """Yield the rows of all pages, each with its row number, which is 0 where a key leads to it."""
    for number, page in pages.items():
        start = 100 if number == 1 else 0
        kind = page[start]
        if kind not in (_LEAF_OF_KEYS, _INNER_OF_KEYS, _LEAF_OF_ROWS):
            continue
        begin = start + (12 if kind == _INNER_OF_KEYS else 8)
        count = int.from_bytes(page[start + 3 : start + 5], "big")
        for at in range(begin, min(begin + 2 * count, len(page) - 1), 2):
            cell = int.from_bytes(page[at : at + 2], "big")
            try:
                yield _cell(pages, page, cell, kind)
            except (IndexError, ValueError, KeyError, struct.error):
                continue  # this row is damaged, others of the page may not be


def _cell(pages: dict[int, bytes], page: bytes, at: int, kind: int) -> tuple[int, Row]:
    if kind == _INNER_OF_KEYS:
        at += 4
    length, at = _varint(page, at)
    key = 0
    if kind == _LEAF_OF_ROWS:
        key, at = _varint(page, at)
    if not 0 < length <= _LONGEST:
        raise ValueError("no length")
    usable = len(page)
    most = usable - 35 if kind == _LEAF_OF_ROWS else (usable - 12) * 64 // 255 - 23
    here = length
    if length > most:
        least = (usable - 12) * 32 // 255 - 23
        here = least + (length - least) % (usable - 4)
        here = here if here <= most else least
    parts = [page[at : at + here]]
    following = int.from_bytes(page[at + here : at + here + 4], "big") if length > here else 0
    left = length - here
    while left > 0:
        further = pages[following]
        parts.append(further[4 : 4 + left])
        left -= len(parts[-1])
        following = int.from_bytes(further[:4], "big")
    payload = b"".join(parts)
    if len(payload) != length:
        raise ValueError("cut off")
    return key, _record(payload)


def _record(payload: bytes) -> Row:
    head, at = _varint(payload, 0)
    types: list[int] = []
    while at < head:
        kind, at = _varint(payload, at)
        types.append(kind)
    values: list[Any] = []
    for kind in types:
        value, at = _value(payload, at, kind)
        values.append(value)
    if at != len(payload):
        raise ValueError("no record")
    return tuple(values)


def _value(payload: bytes, at: int, kind: int) -> tuple[Any, int]:
    match kind:
        case 0:
            return None, at
        case 7:
            return struct.unpack_from(">d", payload, at)[0], at + 8
        case 8 | 9:
            return kind - 8, at
        case _ if kind in _INTEGERS:
            end = at + _INTEGERS[kind]
            return int.from_bytes(payload[at:end], "big", signed=True), end
        case _ if kind >= 12:
            end = at + (kind - 12) // 2
            piece = payload[at:end]
            return (piece.decode() if kind % 2 else piece), end
        case _:
            raise ValueError("no serial type")


def _varint(data: Sequence[int], at: int) -> tuple[int, int]:
    """Read a number of 1 to 9 bytes, and return where it ends."""
    value = 0
    for _ in range(8):
        byte, at = data[at], at + 1
        value = value << 7 | byte & 0x7F
        if byte < 0x80:
            return value, at
    return value << 8 | data[at], at + 1
