"""What it costs to look at a folder around a command and to give files back, beside git and `cp`.

Run it as `python benchmarks/checkpoints.py [FILES] [MEGABYTES]`, with the package installed; without
numbers it takes 10,000 files and 1 GB, and a minute or two to write them. Times are wall clock, in
milliseconds, medians of several rounds in one run; on a busy machine trust the ratios, and where others
sync to the same disk, try one of its own (`TMPDIR`): a rename waits for their syncs. The delay is how
late a loop wakes up while looks run beside it.
"""

import asyncio
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from table import head, row

from steersman.machines import protocol as m
from steersman.ports.workspace import Checkpoints
from steersman.workspace.workspace import Workspace

CHANGED = 45
ROUNDS = 5
TICK = 0.002


def fill(folder: Path, files: int, megabytes: int) -> None:
    """Write text files in a hundred folders, and twenty binary ones that are half of it."""
    dice = random.Random(1)
    words = " ".join(f"{dice.getrandbits(40):x}" for _ in range(20_000)).encode()
    size = megabytes * 500_000 // files
    for number in range(files - 20):
        here = folder / f"d{number % 100}"
        here.mkdir(exist_ok=True)
        start = dice.randrange(len(words) - min(size, len(words) - 1))
        (here / f"f{number}.txt").write_bytes(b"%d\n" % number + words[start : start + size])
    for number in range(20):
        (folder / f"b{number}.bin").write_bytes(dice.randbytes(megabytes * 500_000 // 20))


def git(folder: Path, *arguments: str) -> None:
    """Run git as a person does."""
    who = (
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b",
        "-c",
        "core.compression=0",
        "-c",
        "gc.auto=0",
    )
    subprocess.run(["git", *who, *arguments], cwd=folder, check=True, capture_output=True)


def change(folder: Path) -> None:
    """Change forty-five files."""
    for number in range(CHANGED):
        with open(folder / f"d{number}" / f"f{number}.txt", "ab") as file:
            file.write(b"changed\n")


def timed(work: Callable[[], object]) -> float:
    """Return how long something takes, in milliseconds."""
    begin = time.perf_counter()
    work()
    return (time.perf_counter() - begin) * 1e3


def ours(state: Path, folder: Path) -> dict[str, float]:
    """Measure our own looks and restores."""
    found: dict[str, list[float]] = {"first": [], "same": [], "changed": [], "restore": []}
    for number in range(ROUNDS):
        shutil.rmtree(state, ignore_errors=True)
        space = Workspace(state, folder, "s", os.environ)
        found["first"].append(timed(lambda s=space: s.begin("t1", "c1", "shell", None)))
        space.end("c1")
        found["same"].append(timed(lambda s=space: s.begin("t1", "c2", "shell", None)))
        change(folder)
        found["changed"].append(timed(lambda s=space: s.end("c2")))
        order = m.RestoreFiles(id=f"r{number}", scope="turn")
        found["restore"].append(timed(lambda s=space, o=order: s.revert(o)))
    return {name: statistics.median(times) for name, times in found.items()}


def theirs(folder: Path, elsewhere: Path) -> dict[str, float]:
    """Measure what a person has: a stash of the same changes, and a copy of everything."""
    stash: list[float] = []
    pop: list[float] = []
    for _ in range(ROUNDS):
        change(folder)
        stash.append(timed(lambda: git(folder, "stash", "create")))
        pop.append(timed(lambda: git(folder, "checkout", "-q", "--", ".")))
    copy = timed(lambda: shutil.copytree(folder, elsewhere, symlinks=True))
    return {
        "stash": statistics.median(stash),
        "checkout": statistics.median(pop),
        "copy": copy,
    }


async def idle() -> float:
    """Return the longest time that this machine keeps a loop from its work when nothing runs."""
    worst = 0.0
    for _ in range(200):
        begin = time.perf_counter()
        await asyncio.sleep(TICK)
        worst = max(worst, time.perf_counter() - begin - TICK)
    return worst * 1e3


async def delay(state: Path, folder: Path) -> float:
    """Return the longest time that a loop was kept from its work, in milliseconds."""
    shutil.rmtree(state, ignore_errors=True)
    space = Checkpoints(state, folder, "s")
    await space.begin("t1", "n-1", "shell", None)
    worst = 0.0
    for number in range(ROUNDS):
        change(folder)
        space.end(f"n{number - 1}")
        looking = asyncio.ensure_future(space.begin("t1", f"n{number}", "shell", None))
        while not looking.done():
            begin = time.perf_counter()
            await asyncio.sleep(TICK)
            worst = max(worst, time.perf_counter() - begin - TICK)
    await space.aclose()
    git(folder, "checkout", "-q", "--", ".")
    return worst * 1e3


def main(files: int = 10_000, megabytes: int = 1_000) -> None:
    """Measure and print."""
    root = Path(tempfile.mkdtemp(prefix="steersman-bench-"))
    try:
        folder = root / "project"
        folder.mkdir()
        fill(folder, files, megabytes)
        git(folder, "init", "-q")
        git(folder, "add", "-A")
        git(folder, "commit", "-qm", "all")
        mine = ours(root / "state", folder)
        late = asyncio.run(delay(root / "state", folder))
        alone = asyncio.run(idle())
        others = theirs(folder, root / "copy")
        head(f"{files:,} files, {megabytes:,} MB, in a git repository")
        limits = {"first": 200, "same": 100, "changed": 200, "restore": 200}
        texts = ("first look", "look, nothing changed", "look, 45 changed", "restore of 45")
        for (name, limit), text in zip(limits.items(), texts, strict=True):
            row(text, mine[name], f"<= {limit} ms", "ms", mine[name] <= limit)
        row("longest delay of a loop meanwhile", late, "<= 10 ms more", "ms", late - alone <= 10)
        row("longest delay of a loop that is alone", alone, "", "ms")
        head("beside it")
        row("git stash create, 45 changed", others["stash"], "", "ms")
        row("git checkout of 45", others["checkout"], "", "ms")
        row("a copy of everything", others["copy"], "", "ms")
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:3]))
