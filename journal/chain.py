"""The chain of a journal: with each entry goes a hash of it and of the hash before.

An entry that was changed, taken out, put in or moved since does not fit any more. The newest hash, the
head, stands for the whole journal: whoever has kept a head elsewhere can tell that nothing up to it was
changed. Entries of a version before the chain have no hash, and are passed over.
"""

from collections.abc import Iterable
from hashlib import sha256
from typing import NamedTuple

from ..machines.value import Value

Linked = tuple[int, float, str, bytes]
"""Number, time, JSON and hash of an entry, as they are stored."""


class ChainFault(Value):
    """The first entry that does not fit, and what is wrong with it."""

    seq: int
    what: str


class ChainReport(Value):
    """How many entries a journal has, how many of these without a hash; its head, what does not fit."""

    entries: int
    unproven: int
    head: str
    fault: ChainFault | None


class Kept(NamedTuple):
    """A head that was written down earlier: the hash of entry `seq`, in hexadecimal digits."""

    seq: int
    head: str


def chained(before: bytes, session: str, entries: Iterable[tuple[int, float, str]]) -> list[Linked]:
    """Add their hashes to entries that follow the one with the hash `before`."""
    found: list[Linked] = []
    for seq, time, data in entries:
        before = _hash(before, session, seq, time, data)
        found.append((seq, time, data, before))
    return found


def check_chain(
    session: str, links: Iterable[Linked], length: int, head: bytes, kept: Kept | None = None
) -> ChainReport:
    """Look through all entries of a session, which has `length` of them by its row, and a head."""
    last = unproven = bare = 0
    before = b""

    def report(seq: int, what: str) -> ChainReport:
        fault = ChainFault(seq=seq, what=what)
        return ChainReport(entries=last, unproven=unproven, head=before.hex(), fault=fault)

    for seq, time, data, found in links:
        if seq != last + 1:
            return report(last + 1, "is missing")
        last = seq
        if seq > length:
            return report(seq, "is behind the last one")
        if not found:
            unproven, bare = unproven + 1, bare or seq
            continue
        if found != _hash(before, session, seq, time, data):
            is_bare = bare and before
            return report(bare if is_bare else seq, "has no hash" if is_bare else "was changed")
        before, bare = found, 0
        if kept is not None and seq == kept.seq and found.hex() != kept.head:
            return report(seq, "has another hash than was kept")
    if last < length:
        return report(last + 1, "is missing")
    if before != head:
        return report(bare or last, "does not fit the head")
    if kept is not None and last < kept.seq:
        return report(last + 1, "is missing, of which the hash was kept")
    return ChainReport(entries=last, unproven=unproven, head=before.hex(), fault=None)


def _hash(before: bytes, session: str, seq: int, time: object, data: object) -> bytes:
    moment = float(time) if isinstance(time, int) else time
    text = f"\n{session} {seq} {moment!r}\n{data}"
    return sha256(before + text.encode("utf-8", "surrogatepass")).digest()
