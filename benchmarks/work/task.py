"""The tasks: sets that are read from tasks/SET/*.toml, split into two halves, and frozen by a hash.

A file of a set is a family. Of each family the first, third and fifth task belong to the half `tune`,
on which settings may be chosen; the others belong to `held`, which is only looked at to measure. The set
`everyday` was written after the profile for small models, by somebody who did not know it; so were
`second`, `third` and `fourth`, later: a version older than their first figures knew nothing of them.

Keys of a task: `request` is what a person types; `files` are the folder, path to text; `generated` are
orders for more of it (`generated.py`); `changes` are patterns of the files that may change, none for a
question; `check` are what has to hold afterwards (`checks.py`). The reference answer, which only tests
use, is a shell script in `solve`, files in `solution`, or for a question the texts `right` and `wrong`.
"""

import hashlib
import json
import os
import subprocess
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from generated import files_of

HERE = Path(__file__).resolve().parent
FROZEN = {
    "everyday": "0a565e14758674df",
    "second": "6c192061eb7ea0f0",
    "hard": "b2c8445d8fa25608",
    "third": "8f1a9e8e966ed12c",
    "fourth": "b911b4a3d1bf11ba",
    "fifth": "ec6adc7869894ed5",
}
"""The hash of each set, kept with each result: results of different sets cannot be compared."""
FAMILIES = ("lookup", "fix", "write", "everywhere", "data", "trap")
HALVES = ("tune", "held")


@dataclass(frozen=True)
class Task:
    """One task; `files` are texts by path, `checks` tables with a `kind` each."""

    name: str
    set: str
    family: str
    half: str
    request: str
    files: Mapping[str, str]
    changes: tuple[str, ...]
    checks: tuple[dict[str, Any], ...]
    solve: str = ""
    solution: Mapping[str, str] | None = None
    right: str = ""
    wrong: str = ""

    @property
    def is_question(self) -> bool:
        """Whether an answer is asked for, and no change."""
        return not self.changes

    def lay_out(self, folder: Path) -> None:
        """Write the files into a folder, and make it a git repository with one commit."""
        write_files(folder, self.files)
        name = ("-c", "user.name=ann", "-c", "user.email=ann@example.org")
        for words in (("init", "-q"), ("add", "-A"), (*name, "commit", "-qm", "Begin")):
            command = ["git", "-c", "init.defaultBranch=main", *words]
            subprocess.run(command, cwd=folder, check=True, env=_GIT)

    def apply_reference(self, folder: Path) -> str:
        """Do the task in its folder as the reference does; return the answer."""
        write_files(folder, self.solution or {})
        if self.solve:
            subprocess.run(["sh", "-ec", self.solve], cwd=folder, check=True)
        return self.right or "Done."


_GIT = {
    "PATH": os.environ.get("PATH", ""),
    "GIT_CONFIG_GLOBAL": "/dev/null",
    "HOME": "/nonexistent",
}


def write_files(folder: Path, files: Mapping[str, str]) -> None:
    """Write texts by path; what begins like a script can be executed."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)


def _task(of: str, family: str, number: int, table: dict[str, Any]) -> Task:
    files: dict[str, str] = {}
    for order in table.get("generated", ()):
        files |= files_of(order)
    return Task(
        name=table["name"],
        set=of,
        family=family,
        half=HALVES[number % 2],
        request=table["request"],
        files={**files, **table["files"]},
        changes=tuple(table.get("changes", ())),
        checks=tuple(table["check"]),
        solve=table.get("solve", ""),
        solution=table.get("solution"),
        right=table.get("right", ""),
        wrong=table.get("wrong", ""),
    )


def load_tasks(of: str = "hard") -> dict[str, Task]:
    """Read all tasks of a set by name, family by family."""
    tasks: dict[str, Task] = {}
    for family in FAMILIES:
        path = HERE / "tasks" / of / f"{family}.toml"
        for number, table in enumerate(tomllib.loads(path.read_text("utf-8"))["task"]):
            tasks[table["name"]] = _task(of, family, number, table)
    return tasks


def hash_of(tasks: Mapping[str, Task]) -> str:
    """Return the hash of what is measured: requests, folders, checks and the code of the checks."""
    data = [
        [
            task.name,
            task.family,
            task.half,
            task.request,
            sorted(task.files.items()),
            task.changes,
            task.checks,
        ]
        for task in tasks.values()
    ]
    digest = hashlib.sha256(json.dumps(data, sort_keys=True).encode())
    digest.update((HERE / "checks.py").read_bytes())
    return digest.hexdigest()[:16]
