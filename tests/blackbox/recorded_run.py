"""Recorded runs of the real program, and what each disk that a power cut may leave must still hold."""

import json
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, get_args

from blackbox.talk import behaviours, converse
from support.driver import Chat, Gate, Place
from support.model_server import Behaviour, ModelServer, Text, Tools
from support.power_loss import Content, Disk, Model, disks
from support.recording import OPTIONS, Operation, recorded

from steersman.journal.record import SessionRecord
from steersman.journal.recovery import load_record
from steersman.journal.sqlite import SqliteStore
from steersman.machines.errors import StoreDamaged

__all__ = [
    "MODELS",
    "STATE",
    "STRACE",
    "Run",
    "conversation",
    "fault_of",
    "told",
    "work_on_files",
    "wrong_file",
]

STRACE = shutil.which("strace")
HOME = "far/off/home"
STATE = f"{HOME}/state"
JOURNAL = [f"{STATE}/journal.db{suffix}" for suffix in ("", "-wal", "-journal")]
MODELS: tuple[Model, ...] = get_args(Model)
MEMORY = Path("/dev/shm")


@dataclass(frozen=True)
class Run:
    """A recorded life of the program, whose home did not exist; `before` is what did."""

    operations: list[Operation]
    before: Content

    def disks(self, model: Model, seed: int = 0) -> list[Disk]:
        """Give what the disk may hold at any moment; what is by chance comes from the seed."""
        return list(disks(self.operations, self.before, model, seed))


def record(
    root: Path,
    minds: Callable[[Gate], Sequence[Behaviour]],
    live: Callable[[Place, Gate, str], None],
) -> Run:
    """Record what `live` does with the program, in a place with a project folder and no home."""
    place = Place(root / "root")
    with closing(Gate(place.folder)) as gate, ModelServer(minds(gate)) as server:
        place.configure(server.base_url)
        place.environ["STEERSMAN_HOME"] = str(root / "root" / HOME)
        place.environ["STEERSMAN_CONFIG"] = str(place.home / "config.toml")
        (place.folder / "old.txt").write_text(OLD)
        try:
            live(place, gate, str(root / "log"))
        finally:
            place.close()
    operations = recorded(root / "log", root / "root", is_wanted)
    return Run(operations, {"project": None, "project/old.txt": OLD.encode()})


def is_wanted(path: str) -> bool:
    """Whether the disks show this path: the journal, the folders above it, and the project."""
    above = path == "." or f"{STATE}/".startswith(f"{path}/")
    return above or path in JOURNAL or f"{path}/".startswith("project/")


def conversation(root: Path) -> Run:
    """Record two lives of the program in one home: a whole conversation, then another message."""

    def live(place: Place, gate: Gate, log: str) -> None:
        prefix = [STRACE or "", "-qq", *OPTIONS, "-o", log]
        converse(place.chat("--yes", prefix=prefix), gate)
        again = place.chat("--continue", prefix=prefix)
        again.completes("once more")
        assert again.close() == 0

    return record(root, behaviours, live)


# A run that writes files ---------------------------------------------------------------------------

OLD = "what was there, and has to stay until something else is there\n" * 15
NEW = "what an agent writes\n" * 300 + "its end"
EDITED = f"{NEW}, and more"
AGAIN = f"{NEW}\n" + "what it writes then\n" * 200
PLACE = "project/a/new/place.txt"
FILES: list[tuple[str, dict[str, str | None]]] = [
    ("", {"project/old.txt": OLD, PLACE: None}),
    ("tool_ended", {"project/old.txt": NEW}),
    ("tool_ended", {PLACE: NEW}),
    ("tool_ended", {"project/old.txt": EDITED}),
    ("tool_ended", {"project/old.txt": AGAIN}),
    ("reverted", {"project/old.txt": EDITED}),
    ("tool_ended", {PLACE: AGAIN}),
]
"""What each of these files holds once the next event of this kind was said."""


def work_on_files(root: Path) -> Run:
    """Record a life in which files are replaced, made in new folders, edited, and brought back."""

    def call(tool: str, path: str, **arguments: str) -> Tools:
        return Tools([{"tool": tool, "arguments": {"path": path, **arguments}}])

    minds = [
        call("write", "old.txt", content=NEW),
        call("write", "a/new/place.txt", content=NEW),
        call("edit", "old.txt", old="its end", new="its end, and more"),
        Text("Written."),
        call("write", "old.txt", content=AGAIN),
        Text("Written again."),
        call("write", "a/new/place.txt", content=AGAIN),
        Text("And once more."),
    ]

    def live(place: Place, _: Gate, log: str) -> None:
        chat = place.chat("--yes", prefix=[STRACE or "", "-qq", *OPTIONS, "-o", log])
        for text in ("write", "write again"):
            finish_turn(chat, text)
        chat.ask("/revert")
        finish_turn(chat, "write once more")
        assert chat.close() == 0

    return record(root, lambda _: minds, live)


def finish_turn(chat: Chat, text: str) -> None:
    """Have a turn from its begin to its end."""
    chat.completes(text)


def expected() -> list[dict[str, bytes | None]]:
    """Return what the files hold after none, one, two ... of the events."""
    found: list[dict[str, bytes | None]] = []
    for _, changed in FILES:
        data = {path: text if text is None else text.encode() for path, text in changed.items()}
        found.append({**(found[-1] if found else {}), **data})
    return found


def wrong_file(disk: Disk, events: Sequence[Mapping[str, Any]]) -> str:
    """Return which file holds what it may not hold any more, or never held; or nothing."""
    kinds = [kind for kind, _ in FILES[1:]]
    done = 0
    for event in events:
        done += done < len(kinds) and event["type"] == kinds[done]
    present = dict(disk.files)
    for path in (PLACE, "project/old.txt"):
        if present.get(path) not in [state[path] for state in expected()[done:]]:
            return f"{path} after {done} events: {(present.get(path) or '')[:30]!r}"
    return ""


# The journal ---------------------------------------------------------------------------------------


def told(run: Sequence[Operation]) -> list[dict[str, Any]]:
    """Return the events that were said in whole lines."""
    said = b"".join(entry.data for entry in run if entry.kind == "said").decode()
    return [json.loads(line) for line in said.split("\n")[:-1]]


def fault_of(disk: Disk, events: Sequence[dict[str, Any]]) -> str:
    """Open a store on this disk; return what is missing of the acknowledged entries, or nothing."""
    sure = [event for event in events if event["seq"] is not None]
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as name:
        disk.write(Path(name))
        try:
            record = found_in(Path(name, STATE))
        except StoreDamaged as fault:
            return str(fault)
    if record is None:
        return "the session" if sure else ""
    if record.seq < max((event["seq"] for event in sure), default=0):
        return f"entries after {record.seq}"
    items = {name: (one.text, one.state) for name, one in record.queue.items.items()}
    for one in sure:
        if one["type"] == "accepted" and items[one["id"]][0] != one["text"]:
            return f"the message {one['id']}"
        if one["type"] == "turn_ended" and items[one["item"]][1] != "done":
            return f"the end of {one['turn']}"
        if one["type"] == "steered" and items[one["id"]][1] != "steered":
            return f"that {one['id']} was taken in"
    return ""


def found_in(folder: Path) -> SessionRecord | None:
    """Open the store, take its session over, and fold it; none if it has none."""
    if not folder.exists():
        return None
    store = SqliteStore.open(folder)
    try:
        for row in store.sessions():
            assert store.claim(row.session, "after")
            record = load_record(store, row.session)
            assert [entry.seq for entry in store.entries(row.session)] == [
                *range(1, record.seq + 1)
            ]
            return record
        return None
    finally:
        store.close()
