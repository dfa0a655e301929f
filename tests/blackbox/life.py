"""A life of the installed command that may end at any of its calls to the system.

A point is the n-th call of a kind on one of the store's files, by whichever thread makes it first.
A run that nobody disturbs tells which points there are.
"""

import os
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import NamedTuple

from blackbox.talk import behaviours, converse
from support.driver import Chat, Gate, Place
from support.model_server import Mind, ModelServer

__all__ = ["COMMIT", "IS_WHOLE", "STRACE", "Life", "Point", "calls_of"]

STRACE = shutil.which("strace")
IS_WHOLE = os.environ.get("STEERSMAN_SWEEP") == "all"
CALLS = "write,pwrite64,fsync,fdatasync,ftruncate,rename,unlink,unlinkat,mkdir,mkdirat"
NAMED = (".", "journal.db", "journal.db-wal", "journal.db-shm", "journal.db-journal")
"""Files whose names are known before the run, relative to the state folder."""
COMMIT = ("fdatasync", "journal.db-wal")


class Point(NamedTuple):
    """The n-th call on a file, an empty name standing for all files, in a new or a used home."""

    is_fresh: bool
    call: str
    file: str
    number: int


class Life:
    """A place, a model and a gate of their own, with a program that may be killed.

    `used`: a state folder to begin with, of a program that came and went. `settings` are keys of the
    configuration, `mind` is what its model does, `converse` what is said.
    """

    settings = ""

    def __init__(self, root: Path, used: Path | None = None) -> None:
        self.place = Place(root)
        self.gate = Gate(self.place.folder)
        self.server = ModelServer(self.mind())
        self.place.configure(self.server.base_url, rest=self.settings)
        self.state = self.place.home / "state"
        if used is not None:
            shutil.copytree(used, self.state)

    def __enter__(self) -> "Life":
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """End everything that was started here."""
        self.place.close()
        self.server.close()
        self.gate.close()

    def mind(self) -> Mind:
        """Return what its model does."""
        return behaviours(self.gate)

    def converse(self, chat: Chat) -> None:
        """Say everything, to the end."""
        converse(chat, self.gate)

    def run(self, *options: str) -> Chat:
        """Hold the conversation under strace, until its end or the program's."""
        chat = self.place.chat("--yes", prefix=[STRACE or "", "-f", "-qq", *options])
        try:
            self.converse(chat)
        except (AssertionError, BrokenPipeError):
            assert chat.ended() != 0, chat.story()
        return chat

    def run_until(self, point: Point) -> Chat:
        """Hold the conversation; kill the program as it begins this call."""
        path = ["-P", str(self.state / point.file)] if point.file else []
        inject = f"inject={point.call}:signal=KILL:when={point.number}"
        return self.run("-o", "/dev/null", *path, "-e", f"trace={point.call}", "-e", inject)


def calls_of(life: Life) -> Counter[tuple[str, str]]:
    """Run without a kill; count the calls by kind and file, of the thread that makes most of them.

    Of a fresh home only the opening is of interest, which the first thread does.
    """
    is_fresh = not life.state.exists()
    log = life.place.home / "log"
    chat = life.run("-y", "-o", str(log), "-e", f"trace={CALLS}")
    assert chat.process.returncode == 0, chat.story()
    counts: Counter[tuple[str, str, str]] = Counter()
    lines = log.read_text().splitlines()
    for line in lines:
        called = re.match(rf"(\d+) +(\w+)\((.*{re.escape(str(life.state))}/?([^\"<>,]*))?", line)
        if called is None or (is_fresh and called[1] != lines[0].split()[0]):
            continue
        file = "." if called[3] and not called[4] else called[4] or ""
        counts[called[1], called[2], file if file in NAMED else ""] += 1
    most: Counter[tuple[str, str]] = Counter()
    for (_, call, file), count in counts.items():
        most[call, file] = max(count, most[call, file])
    return most
