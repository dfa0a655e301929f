"""What has to hold after a task; each check returns an empty text, or why the task is not solved.

The checks run on a copy of the agent's folder, outside of it. What is executed there gets the tests as
they were given, 20 seconds, and no more than 4 MiB of output.
"""

import csv
import fnmatch
import io
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from task import Task, write_files

SECONDS = 20.0
OUTPUT = 4 << 20
"""Bytes."""
TAIL = 1500
"""Characters at the end of an answer that count: a dump of files is no answer."""
_HIDDEN_TEST = "test_of_the_checker_itself"


def judge(task: Task, folder: Path, answer: str) -> str:
    """Return why a folder and an answer do not solve a task; empty if they do."""
    with tempfile.TemporaryDirectory(prefix="check-", ignore_cleanup_errors=True) as place:
        copy = Path(place) / "copy"
        shutil.copytree(folder, copy, symlinks=True, ignore=shutil.ignore_patterns(".git"))
        try:
            why = damage(task, copy) or next(
                filter(None, (KINDS[one["kind"]](task, copy, answer, one) for one in task.checks)),
                "",
            )
        except (OSError, ValueError) as error:
            why = f"{type(error).__name__}: {error}"
    return why.replace(f"{copy}/", "")[:200]


def fits(path: str, pattern: str) -> bool:
    """Whether a path is of a pattern; a `*` does not reach over a slash."""
    names, wanted = path.split("/"), pattern.split("/")
    return len(names) == len(wanted) and all(map(fnmatch.fnmatchcase, names, wanted))


def _put_back(task: Task) -> set[str]:
    return {
        path
        for check in task.checks
        for key in ("given", "put_back")
        for path in check.get(key, ())
    }


def damage(task: Task, folder: Path) -> str:
    """Return which file was changed or removed that had to stay; new files are no damage."""
    spared = _put_back(task)
    for path, text in task.files.items():
        if path in spared or any(fits(path, pattern) for pattern in task.changes):
            continue
        file = folder / path
        if not file.is_file():
            return f"{path} was removed"
        if file.read_bytes() != text.encode():
            return f"{path} was changed"
    return ""


# Kinds of checks ----------------------------------------------------------------------------------


def _answer(task: Task, folder: Path, answer: str, check: dict[str, Any]) -> str:
    """The end of the answer has each of the patterns `has`."""
    end = answer.strip()[-TAIL:]
    missing = [one for one in check["has"] if not re.search(one, end, re.IGNORECASE)]
    return f"the answer lacks {missing[0]}" if missing else ""


def _text(task: Task, folder: Path, answer: str, check: dict[str, Any]) -> str:
    """A file has each of the patterns `has`, or `is` a text, spaces at the ends of lines aside."""
    text = (folder / check["path"]).read_text()
    if "is" in check and _lines(text) != _lines(check["is"]):
        return f"{check['path']} is {text[:80]!r}"
    missing = [one for one in check.get("has", ()) if not re.search(one, text)]
    return f"{check['path']} lacks {missing[0]}" if missing else ""


def _lines(text: str) -> list[str]:
    return [line.rstrip() for line in text.strip().splitlines()]


def _value(read: Callable[[str], Any], expect: Callable[[str], Any]) -> Callable[..., str]:
    def check_value(task: Task, folder: Path, answer: str, check: dict[str, Any]) -> str:
        found = read((folder / check["path"]).read_text())
        return "" if found == expect(check["is"]) else f"{check['path']} is {str(found)[:80]}"

    return check_value


def _rows(text: str) -> list[list[str]]:
    return [row for row in csv.reader(io.StringIO(text)) if row]


def _nowhere(task: Task, folder: Path, answer: str, check: dict[str, Any]) -> str:
    """No file, hidden ones aside, has the pattern; `files` are patterns of paths to look at."""
    for path, text in _texts(folder):
        wanted = check.get("files")
        is_meant = path in task.files or any(fits(path, pattern) for pattern in task.changes)
        if is_meant and (not wanted or any(fits(path, one) for one in wanted)):
            if found := re.search(check["pattern"], text):
                return f"{path} still has {found[0]}"
    return ""


def _texts(folder: Path) -> Iterator[tuple[str, str]]:
    for path in sorted(folder.rglob("*")):
        name = path.relative_to(folder).as_posix()
        if path.is_file() and not re.search(r"(^|/)(\.|__pycache__)", name):
            yield name, path.read_text(errors="replace")


def _absent(task: Task, folder: Path, answer: str, check: dict[str, Any]) -> str:
    """None of these paths is there."""
    there = [path for path in check["paths"] if (folder / path).exists()]
    return f"{there[0]} is there" if there else ""


def _same(task: Task, folder: Path, answer: str, check: dict[str, Any]) -> str:
    """Files that would be put back have been left as they are, because the request says so."""
    for path in check["paths"]:
        if (folder / path).read_text() != task.files[path]:
            return f"{path} was changed"
    return ""


def _run(task: Task, folder: Path, answer: str, check: dict[str, Any]) -> str:
    """A command prints what it has to print."""
    write_files(folder, {path: task.files[path] for path in check.get("put_back", ())})
    _, printed = execute(check["command"], folder)
    return "" if _lines(printed) == _lines(check["prints"]) else f"prints {printed[-120:]!r}"


def _tests(task: Task, folder: Path, answer: str, check: dict[str, Any]) -> str:
    """The tests pass as they were given, and the hidden ones."""
    write_files(folder, {path: task.files[path] for path in check["given"]})
    write_files(folder, {f"{_HIDDEN_TEST}.py": check.get("hidden", "import unittest\n")})
    names = [path.removesuffix(".py").replace("/", ".") for path in check["given"]]
    if "hidden" in check:
        names.append(_HIDDEN_TEST)
    for name in names:
        code, printed = execute([sys.executable, "-m", "unittest", "-q", name], folder)
        if code or not re.search(r"^Ran [1-9]", printed, re.MULTILINE):
            last = printed.strip().splitlines()[-1:] or ["nothing was printed"]
            return f"{name}: {last[0][:120]}"
    return ""


KINDS: dict[str, Callable[..., str]] = {
    "answer": _answer,
    "text": _text,
    "json": _value(json.loads, json.loads),
    "toml": _value(tomllib.loads, json.loads),
    "csv": _value(_rows, _rows),
    "nowhere": _nowhere,
    "absent": _absent,
    "same": _same,
    "run": _run,
    "tests": _tests,
}


def execute(command: list[str], folder: Path) -> tuple[int, str]:
    """Run a command in a folder, bounded; return its exit code and all that it printed."""
    paths = f"{Path(sys.executable).parent}:{os.environ.get('PATH', '')}"
    environ = {
        "PATH": paths,
        "HOME": str(folder),
        "PYTHONDONTWRITEBYTECODE": "1",
        "LANG": "C.UTF-8",
    }
    with tempfile.TemporaryFile() as printed:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            start_new_session=True,
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (OUTPUT, OUTPUT)),
        )
        try:
            code = process.wait(SECONDS)
        except subprocess.TimeoutExpired:
            code = -1
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        printed.seek(0)
        return code, printed.read(OUTPUT).decode(errors="replace")
