"""Rows, entries and messages as text, and back: JSON in UTF-8, the same for every store.

A commit is encoded before the store is locked, so that a value which is no JSON stops no other commit.
"""

import json
import zlib
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import isfinite
from typing import Any, TypeVar, cast

from msgspec import ValidationError, convert
from msgspec.json import Encoder

from ..machines.errors import MachineError, StoreDamaged
from ..machines.value import Value
from .store import DAMAGED, Commit, Lease, Posted, SessionRow, StoredEntry, check_identifier

_PLAIN = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
_ESCAPED = json.JSONEncoder(separators=(",", ":"))
_FAST = Encoder()
"""Writes the same in a twentieth of the time. But it also takes what is no JSON, and writes `null` for a
number that is none: it is given `_is_plain` data only."""
_LEVEL = 3  # of compression; higher ones take much longer for a few percent
_ROW_FIELDS = SessionRow.__struct_fields__
T = TypeVar("T")


Listing = tuple[str, str, int, int]
"""The columns by which rows are found: folder, name, hour of the newest activity, may it have work?"""
_HOUR = 3600


def listing_of(row: SessionRow) -> Listing:
    """Return the columns by which a row is found.

    The hour changes seldom, so that an index of it costs a commit nothing. What a database cannot hold
    of folder and name is replaced: whoever looks for them compares the row itself.
    """
    hour = int(row.updated // _HOUR)
    return column_text(row.folder), column_text(row.name), hour, int(row.may_have_work)


def column_text(text: str) -> str:
    """Return a text as a column has it."""
    return text.replace("\0", " ").encode(errors="backslashreplace").decode()


class EncodedCommit(Value):
    """A commit as text: entries are (seq, time, JSON), the snapshot (seq, compressed JSON) or none.

    `consumed` are the ids of all consumed messages, each with its reply as JSON, or none.

    `last` is the sequence number after it, which is the lease's business: see `check_follows`.
    """

    lease: Lease
    entries: tuple[tuple[int, float, str], ...]
    row: str
    listing: Listing
    state: str
    updated: float
    consumed: tuple[tuple[int, str | None], ...]
    snapshot: tuple[int, bytes] | None

    def check_follows(self, last: int) -> int:
        """Return the last sequence number after this commit; raise `MachineError` on a gap.

        `last` is the session's sequence number before it.
        """
        session = self.lease.session
        for expected, (seq, _, _) in enumerate(self.entries, last + 1):
            if seq != expected:
                raise MachineError(f"session `{session}`: entry {seq} where {expected} is next")
        last += len(self.entries)
        if self.snapshot is not None and not 0 <= self.snapshot[0] <= last:
            raise MachineError(
                f"session `{session}`: a snapshot at {self.snapshot[0]}, past entry {last}"
            )
        return last


def encode_commit(commit: Commit) -> EncodedCommit:
    """Turn a commit into text; raises `MachineError` for what is no JSON or names two sessions."""
    session = check_identifier("session", commit.lease.session)
    if commit.row.session != session:
        raise MachineError(f"session `{session}`: a row of session `{commit.row.session}`")
    snapshot = commit.snapshot
    return EncodedCommit(
        lease=commit.lease,
        entries=tuple(
            (entry.seq, entry.time, encode(f"entry {entry.seq} of `{session}`", entry.data))
            for entry in commit.entries
        ),
        row=encode_row(commit.row),
        listing=listing_of(commit.row),
        state=commit.row.state,
        updated=commit.row.updated,
        consumed=(
            *((id, None) for id in commit.consumed),
            *((id, encode_reply(session, id, reply)) for id, reply in commit.answers.items()),
        ),
        snapshot=(snapshot.seq, _packed(encode(f"snapshot of `{session}`", snapshot.state)))
        if snapshot
        else None,
    )


def encode_reply(session: str, message: int, reply: Mapping[str, Any]) -> str:
    """Write the reply to a message."""
    return encode(f"the reply of `{session}` to message {message}", reply)


def encode(what: str, data: Mapping[str, Any]) -> str:
    """Write data as one line of JSON; raises `MachineError` that says `what` is no JSON."""
    try:
        if _is_plain(data):
            return _FAST.encode(data).decode()
    except (ValueError, OverflowError, RecursionError):
        pass  # half a surrogate pair, a number of more than 64 bits, or a fault that is reported below
    try:
        text = _PLAIN.encode(data)
        text.encode()
    except UnicodeEncodeError:
        # Half a surrogate pair, from a file name or a model's broken escape: kept, as an escape.
        return _ESCAPED.encode(data)
    except (TypeError, ValueError, RecursionError) as fault:
        raise MachineError(f"{what} is not JSON: {fault}") from fault
    return text


def _is_plain(value: Any) -> bool:
    """Whether data consists of what JSON has, and nothing else."""
    kind = value.__class__
    if kind is str or kind is int or kind is bool or value is None:
        return True
    if kind is dict:
        return all(map(_is_text, value)) and all(map(_is_plain, value.values()))
    if kind is list or kind is tuple:
        return all(map(_is_plain, value))
    return kind is float and isfinite(value)


def _is_text(value: Any) -> bool:
    return value.__class__ is str


def _packed(text: str) -> bytes:
    """Compress a snapshot: its fifty turns and fifty messages repeat each other's words."""
    return zlib.compress(text.encode(), _LEVEL)


def decode(what: str, text: object) -> dict[str, Any]:
    """Read what `encode` wrote, compressed or not; raises `StoreDamaged` that names `what`."""
    data: Any = None
    if isinstance(text, bytes):
        with suppress(zlib.error, UnicodeDecodeError):
            text = zlib.decompress(text).decode()
    if isinstance(text, str):
        with suppress(ValueError):
            data = json.loads(text)
    if not isinstance(data, dict):
        raise StoreDamaged(f"{what} is not a JSON object", "Restore the home from a copy.")
    return cast("dict[str, Any]", data)


def encode_row(row: SessionRow) -> str:
    """Write the row that a list of sessions shows."""
    try:
        return _FAST.encode(row).decode()
    except UnicodeEncodeError:
        data = {name: getattr(row, name) for name in _ROW_FIELDS}
        return encode(f"the row of `{row.session}`", data)


def decode_row(
    session: str, text: object, seq: object, root: str, place: str, updated: object
) -> SessionRow:
    """Read a row, or make one that `is_damaged`, so that no list fails because of one of its rows.

    `seq`, `root`, `place` and `updated` are the store's own; the first three win over those in the text.
    """
    with suppress(StoreDamaged, ValidationError):
        data = decode(session, text) | {"seq": seq, "root": root, "place": place}
        if data.get("session") == session:
            return convert(data, SessionRow)
    return SessionRow(
        session=session,
        folder="",
        state=DAMAGED,
        seq=seq if isinstance(seq, int) else 0,
        updated=updated if isinstance(updated, float) else 0.0,
        root=root,
        place=place,
    )


def readable(kind: type[T], names: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[T]:
    """Make values of a table's rows, with the columns `names`; leaves out what cannot be read."""
    found: list[T] = []
    for row in rows:
        with suppress(ValidationError):
            found.append(convert(dict(zip(names, row, strict=True)), kind))
    return found


def readable_entries(
    rows: Iterable[tuple[str, int, float, object]],
) -> list[tuple[str, StoredEntry]]:
    """Make the entries that a search found; leaves out what cannot be read."""
    found: list[tuple[str, StoredEntry]] = []
    for session, seq, time, text in rows:
        with suppress(StoreDamaged):
            found.append((session, StoredEntry(seq=seq, time=time, data=decode("an entry", text))))
    return found


def posted(session: str, rows: Iterable[tuple[int, int, object, str, float]]) -> tuple[Posted, ...]:
    """Make the messages of an inbox, whose columns are id, lane, message, client id and time.

    Leaves out what cannot be read: it stays unread, and `steersman home check` names it.
    """
    found: list[Posted] = []
    for id, lane, message, client_id, time in rows:
        with suppress(StoreDamaged):
            data = decode(f"message {id} of `{session}`", message)
            found.append(
                Posted(
                    id=id, session=session, lane=lane, message=data, client_id=client_id, time=time
                )
            )
    return tuple(found)
