"""The hook log: what the hooks of external agents reported, one append-only file per session of theirs.

A hook writes here while its agent waits, so this takes a millisecond, and next to nothing but the
standard library. `store.py` reads the lines, and `records.py` folds them into restore records.

A line is one `write` to a file opened for appending, so lines of several processes never mix. A line
that makes, moves or ends a record is synced; a lost line about a prompt costs nothing. A shared lock
tells a process that compacts the file that a line is under way; after a compaction the name leads to
another file, and the line is written there.
"""

import fcntl
import os
from _blake2 import blake2b

from ..workflows.durability import make_folders, sync_folder

UNNAMED = "unnamed"
"""Stands for the id of a session that does not report its id."""

_TRIES = 20


def file_of(state: str, agent: str, session: str) -> str:
    """Name the file of a session: any id may be part of it, since only its hash is."""
    known = session or UNNAMED
    key = blake2b(known.encode(errors="surrogatepass"), digest_size=16).hexdigest()
    name = f"{key}.jsonl" if session else f"{UNNAMED}.jsonl"
    return os.path.join(state, "agents", agent, name)


def append(path: str, line: bytes, *, create: bool = False, sync: bool = False) -> bool:
    """Add a line; False, and nothing is written, if there is no file and none is to be made.

    Raises `OSError`.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    if create:
        make_folders(os.path.dirname(path), 0o700)
        flags |= os.O_CREAT
    for _ in range(_TRIES):
        try:
            descriptor = os.open(path, flags, 0o600)
        except FileNotFoundError:
            return False
        try:
            is_locked = _share(descriptor)
            if is_locked and not os.fstat(descriptor).st_nlink:
                continue  # it was compacted in between: the name leads to another file now
            is_new = not os.fstat(descriptor).st_size
            os.write(descriptor, line)
            if sync:
                os.fsync(descriptor)
            if sync and is_new:
                sync_folder(os.path.dirname(path))
            return True
        finally:
            os.close(descriptor)
    return False


def _share(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)  # held elsewhere for the time of one small rewrite
    except OSError:
        return False
    return True
