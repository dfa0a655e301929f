"""How long the program takes to start, as whole processes, against `python -c pass`.

Run it as `python benchmarks/startup.py`, with the package installed. Everything is measured in a virtual
environment that is made for it, as `pip install` makes one: the finder of an editable installation makes
each start of Python slower, and so the ratios smaller. The baseline is measured in the same run, in turn
with the others. The model is a server on loopback.

Times are medians beside the shortest ones. Ratios are those of processor time up to the same moment,
where the system tells it (Linux): on a busy machine the clock measures mostly the others.
"""

import os
import shutil
import statistics
import subprocess
import tempfile
import threading
import time
import tomllib
import venv
from collections.abc import Callable
from http.server import ThreadingHTTPServer
from importlib.metadata import distribution
from pathlib import Path
from typing import NamedTuple

from pip._vendor.packaging.requirements import Requirement
from screen import Pty
from table import head, row
from turns import Answer, configure

RUNS = 15
ROOT = Path(__file__).resolve().parents[1]
SCRIPT = "#!{python}\nimport sys\nfrom steersman.cli.main import main\nsys.exit(main())\n"


class Spent(NamedTuple):
    """What a start took up to some moment, in seconds: by the clock, and of processors."""

    wall: float
    cpu: float


class Place:
    """A virtual environment with the program and what it requires, a home and a folder to work in."""

    def __init__(self, root: Path) -> None:
        venv.create(root / "venv", symlinks=True)
        self.python = str(root / "venv" / "bin" / "python")
        (site,) = (root / "venv" / "lib").glob("python*/site-packages")
        for name in required("steersman", set()) - {"steersman"}:
            link(name, site)
        copy_package(site / "steersman")
        script = root / "venv" / "bin" / "steersman"
        script.write_text(SCRIPT.format(python=self.python))
        script.chmod(0o755)
        self.program = str(script)
        self.folder, self.home = root / "project", root / "home"
        self.folder.mkdir()
        self.home.mkdir()
        self.environ = {**os.environ, "STEERSMAN_HOME": str(self.home)}


def required(name: str, found: set[str]) -> set[str]:
    """List the distributions that one needs, with itself."""
    name = name.lower().replace("_", "-").replace(".", "-")
    if name not in found:
        found.add(name)
        for line in distribution(name).requires or ():
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                required(requirement.name, found)
    return found


def link(name: str, site: Path) -> None:
    """Link what a distribution installed."""
    found = distribution(name)
    for top in {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}:
        (site / top).symlink_to(Path(str(found.locate_file(top))))


def copy_package(into: Path) -> None:
    """Copy the package as its wheel has it."""
    tools = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    data = tools["setuptools"]["package-data"]
    for package in tools["setuptools"]["packages"]:
        folder = ROOT.joinpath(*package.split(".")[1:])
        for pattern in ("*.py", *data.get(package, ())):
            for file in folder.glob(pattern):
                place = into / file.relative_to(ROOT)
                place.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(file, place)


def cpu_of(pid: int) -> float:
    """Return the seconds of processors that a process has used; 0 if the system does not tell."""
    used = 0
    for file in Path(f"/proc/{pid}/task").glob("*/schedstat"):
        used += int(file.read_text().split()[0])
    return used / 1e9


class FirstRequest(Answer):
    """Answers as its base does, and notes what the process that asks has used until then."""

    process: subprocess.Popen[bytes]
    used = 0.0

    def do_POST(self) -> None:
        """Answer."""
        FirstRequest.used = cpu_of(self.process.pid)
        super().do_POST()


def whole(command: list[str]) -> Callable[[Place], Spent]:
    """Measure a process from its start to its end."""

    def measure(place: Place) -> Spent:
        began = time.perf_counter()
        process = subprocess.Popen(
            [part.format(place=place) for part in command],
            env=place.environ,
            cwd=place.folder,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        assert process.returncode == 0
        return Spent(time.perf_counter() - began, usage.ru_utime + usage.ru_stime)

    return measure


def first_request(place: Place) -> Spent:
    """Measure a question until the model is asked."""
    began = time.perf_counter()
    quiet = subprocess.DEVNULL
    FirstRequest.process = subprocess.Popen(
        [place.program, "chat", "hi"],
        env=place.environ,
        cwd=place.folder,
        stdout=quiet,
        stderr=quiet,
    )
    assert FirstRequest.process.wait() == 0
    return Spent(Answer.came[-1] - began, FirstRequest.used)


def takes_keys(place: Place) -> Spent:
    """Measure a chat in a terminal until its input line is there."""
    chat = Pty([place.program, "chat"], place.folder, place.environ)
    shown = chat.until("idle")
    spent = Spent(shown - chat.began, cpu_of(chat.process.pid))
    chat.close()
    return spent


BASELINE = "python -c pass"
STARTS: dict[str, tuple[Callable[[Place], Spent], float | None]] = {
    BASELINE: (whole(["{place.python}", "-c", "pass"]), None),
    "--version": (whole(["{place.program}", "--version"]), 3),
    "--help": (whole(["{place.program}", "--help"]), 7.5),
    "sessions list": (whole(["{place.program}", "sessions", "list"]), None),
    "first request": (first_request, 19),
    "chat takes keys": (takes_keys, 23),
}
"""How each start is measured, and how many times the baseline it may take."""


def main() -> None:
    """Measure and print."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), FirstRequest)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    found: dict[str, list[Spent]] = {name: [] for name in STARTS}
    with tempfile.TemporaryDirectory() as name:
        place = Place(Path(name))
        place.environ = configure(place.home, server.server_address[1])
        for run in range(RUNS + 1):
            for start, (measure, _) in STARTS.items():
                spent = measure(place)
                if run:  # the first one compiles
                    found[start].append(spent)
    server.shutdown()
    server.server_close()
    thread.join()
    head(f"starts, median of {RUNS}; ratios by processor time")
    used = {
        start: statistics.median(one.cpu or one.wall for one in found[start]) for start in STARTS
    }
    for start, (_, limit) in STARTS.items():
        walls = [one.wall * 1e3 for one in found[start]]
        row(start, statistics.median(walls), unit="ms")
        row(f"{start}, shortest", min(walls), unit="ms")
        if start != BASELINE:
            ratio = used[start] / used[BASELINE]
            said = f"<= {limit}" if limit else "x"
            row(f"{start}, x {BASELINE}", ratio, said, ok=None if not limit else ratio <= limit)


if __name__ == "__main__":
    main()
