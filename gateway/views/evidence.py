"""Whether a journal, or a file that was exported, is as it was written.

A journal is looked through by the hashes of its entries (`journal/chain.py`), and each snapshot is
compared with what its entries say. The entries of a file have a chain of their own, over what the file
says; a signature of it, by an SSH key as git makes it, lies beside the file.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ...journal.chain import ChainFault, ChainReport, Kept, chained, check_chain
from ...journal.codec import decode_entry, encode
from ...journal.encoding import encode as as_text
from ...journal.record import SessionRecord, apply, without_conversation
from ...journal.store import Store
from ...machines.errors import SteersmanError, UsageError
from ...machines.json_shape import parse_json
from ...workflows.document import is_list, is_table
from ...workflows.foreign_file import read_foreign

_LIMIT = 16 * 1024 * 1024  # bytes of a file of heads
_NAMESPACE = "steersman"
"""Of signatures: one that was made for something else does not hold for a session."""
_KEYGEN = "ssh-keygen"


def verified(store: Store, session: str, kept: Kept | None = None) -> ChainReport:
    """Look through a session's journal, and then its snapshots."""
    position = store.position(session)
    report = check_chain(session, store.links(session), position.seq, position.head, kept)
    if report.fault is None and (seq := _other_snapshot(store, session, position.seq)):
        fault = ChainFault(seq=seq, what="is not what the snapshot after it says")
        return replace(report, fault=fault)
    return report


def _other_snapshot(store: Store, session: str, upto: int) -> int:
    """Return the first entry after which a snapshot says something else than the journal; 0: none."""
    states: dict[int, dict[str, Any]] = {}
    while (found := store.snapshot(session, upto)) is not None:
        states[found.seq] = found.state
        upto = found.seq - 1
    record = SessionRecord()
    for stored in store.entries(session, 0, max(states, default=0)):
        apply(record, decode_entry(stored.data), stored.seq, stored.time)
        state = states.get(stored.seq)
        if state is None:
            continue
        kept = {name: value for name, value in state.items() if name != "held"}
        if kept != encode(without_conversation(record)):
            return stored.seq
    return 0


def kept_heads(path: Path) -> dict[str, Kept]:
    """Read heads that `sessions verify --json` printed earlier. Raises `UsageError`."""
    try:
        data = parse_json(read_foreign(path, _LIMIT))
        rows = data.get("sessions") if is_table(data) else None
        return {
            str(row["session"]): Kept(int(row["entries"]), str(row["head"]))
            for row in (rows if is_list(rows) else [])
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f"`{path}` has no heads: {error}",
            "`steersman sessions verify --all --json` prints them",
        ) from error


# Files --------------------------------------------------------------------------------------------


def with_hashes(session: str, entries: Iterable[Mapping[str, Any]]) -> Iterator[dict[str, Any]]:
    """Add to each entry of a file, with `seq`, `time` and `data`, its hash."""
    before = b""
    for entry in entries:
        [(_, _, _, before)] = chained(before, session, [_text(entry)])
        yield {**entry, "hash": before.hex()}


def check_file(session: str, entries: Iterable[Mapping[str, Any]], file: str) -> None:
    """Raise `UsageError` for the first entry of a file that does not fit its hash."""
    before = b""
    for number, entry in enumerate(entries, 1):
        try:
            [(_, _, _, before)] = chained(before, session, [_text(entry)])
            is_same = before.hex() == entry["hash"]
        except (SteersmanError, KeyError, TypeError, ValueError):
            is_same = False
        if not is_same:
            raise UsageError(
                f"`{file}`: entry {number} is not as it was exported",
                "nothing was imported: get the file again from where it was made",
            )


def _text(entry: Mapping[str, Any]) -> tuple[int, float, str]:
    return int(entry["seq"]), float(entry["time"]), as_text("it", dict(entry["data"]))


def sign(file: Path, key: Path) -> Path:
    """Sign a file with an SSH key; return the signature's file. Raises `SteersmanError`."""
    made = file.with_name(file.name + ".sig")
    made.unlink(missing_ok=True)
    _keygen("-Y", "sign", "-f", str(key), "-n", _NAMESPACE, str(file))
    return made


def check_signature(file: Path, signers: Path) -> str:
    """Return who signed a file, one of the allowed signers. Raises `SteersmanError` if nobody did."""
    signature = str(file.with_name(file.name + ".sig"))
    found = _keygen("-Y", "find-principals", "-s", signature, "-f", str(signers))
    signer = found.splitlines()[0]
    about = ("-f", str(signers), "-I", signer, "-n", _NAMESPACE, "-s", signature)
    _keygen("-Y", "verify", *about, signed=file)
    return signer


def _keygen(*words: str, signed: Path = Path(os.devnull)) -> str:
    try:
        with signed.open("rb") as stdin:
            ran = subprocess.run(
                [_KEYGEN, *words], stdin=stdin, capture_output=True, text=True, errors="replace"
            )
    except OSError as error:
        raise SteersmanError(
            f"`{error.filename}` cannot be used: {error.strerror}",
            "a signature needs the file, and `ssh-keygen` of OpenSSH's client",
        ) from error
    if ran.returncode:
        lines = (ran.stderr.strip() or ran.stdout.strip() or "no reason").splitlines()
        raise SteersmanError(f"the signature does not hold: {lines[-1]}", "nothing was changed")
    return ran.stdout
