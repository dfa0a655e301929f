"""One attempt: a fresh folder and home, a harness that is given the request, its end, and the verdict."""

import json
import os
import random
import re
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

from checks import judge
from contender import (
    MOST_CALLS,
    Contender,
    Place,
    cache_of,
    environ_of,
    journal_calls,
    program_of_ours,
)
from proxy import OUTPUT, Attempt, Call, Proxy
from task import Task

SECONDS = 180.0
"""How long an attempt may take."""
NEVER_ENDED = "never ended"
SOLVED = ("solved", NEVER_ENDED)
"""How an attempt ends whose work was done; in the second case the harness had to be ended."""
ENDS = (*SOLVED, "wrong", "looped", "timeout", "crashed")


@dataclass(frozen=True)
class Result:
    """What came of an attempt; counts in calls and tokens, `seconds` with everything but the checks.

    `kill` is after how many seconds it was killed and resumed, 0 if it had ended before; none if it was
    not to be killed.
    """

    contender: str
    task: str
    seed: int
    how: str
    why: str
    seconds: float
    calls: int
    read: int
    cached: int
    written: int
    malformed: int
    repeated: int
    kill: float | None = None


@dataclass
class Lab:
    """What all attempts share; `log` is a folder for what harnesses print, if it is to be kept.

    Each attempt has new folders below `root`, whose names are always the same: a harness that tells its
    model where it works sends the same beginning again, as it would for a person. An attempt has
    `seconds`, `calls` of the model and `tokens` in each answer, at most.
    """

    proxy: Proxy
    weights: Path
    root: Path
    seconds: float = SECONDS
    calls: int = MOST_CALLS
    tokens: int = OUTPUT
    log: Path | None = None


class Run:
    """The process of a harness; it and all that it started bear a mark in their environment.

    `killed` is how many seconds an earlier one had, of which this is the resumption; else 0.
    """

    def __init__(
        self,
        command: Sequence[str],
        folder: Path,
        environ: Mapping[str, str],
        killed: float = 0.0,
    ) -> None:
        self.killed = killed
        self.begun = time.monotonic()
        self.mark = environ["STEERSMAN_WORK"]
        self.output = tempfile.TemporaryFile()
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environ,
            stdin=subprocess.DEVNULL,
            stdout=self.output,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def wait(self, until: float, attempt: Attempt) -> int | None:
        """Return its exit code; none if it did not end until then, or wanted a call too many."""
        while time.monotonic() < until and not attempt.is_over:
            with suppress(subprocess.TimeoutExpired):
                return self._process.wait(0.1)
        return self._process.poll()

    def kill(self) -> None:
        """Kill its process group by SIGKILL, as a crash does; others that it started go on."""
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()

    def end(self) -> str:
        """End all that is left of it, and return what it printed."""
        self.kill()
        for pid in marked(self.mark):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with self.output:
            self.output.seek(0)
            printed = self.output.read().decode(errors="replace")
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", printed)


def marked(mark: str) -> list[int]:
    """Return the processes whose environment has the mark of an attempt."""
    sign, found = f"STEERSMAN_WORK={mark}".encode(), list[int]()
    for path in Path("/proc").glob("[0-9]*/environ"):
        with suppress(OSError):
            if sign in path.read_bytes().split(b"\0"):
                found.append(int(path.parent.name))
    return found


def attempt_task(
    lab: Lab, contender: Contender, task: Task, seed: int, kill: float | None = None
) -> Result:
    """Have a contender do a task; with `kill`, kill it after so many seconds, and resume it."""
    home, folder = lab.root / "home", lab.root / "work"
    for path in (home, folder):
        shutil.rmtree(path, ignore_errors=True)
        path.mkdir(parents=True)
    task.lay_out(folder)
    attempt = lab.proxy.begin(secrets.token_hex(6), seed, lab.calls, lab.tokens)
    place = Place(home, lab.proxy.url_of(attempt), cache_of(contender), lab.weights)
    environ = environ_of(contender, place, attempt.key)
    began = time.monotonic()
    run = Run([*contender.prepare(place), task.request], folder, environ)
    if kill is not None:
        run = _killed(run, began + kill, attempt, task, folder, environ)
    code = run.wait(began + lab.seconds, attempt)
    seconds = time.monotonic() - began
    printed = run.end()
    lab.proxy.end(attempt)
    calls = journal_calls(environ, folder) if contender.is_embedded else attempt.calls
    why = judge(task, folder, printed if contender.prints_answer else last_text(calls))
    said = [call.said for call in calls if call.said]
    rejected = sum(bool(re.search(contender.rejected, call.prompt)) for call in calls)
    result = Result(
        contender=contender.name,
        task=task.name,
        seed=seed,
        how=how_it_ended(why, code, said, attempt.is_over or len(calls) >= lab.calls),
        why=why,
        seconds=round(seconds, 1),
        calls=len(calls),
        read=sum(call.read for call in calls),
        cached=sum(call.cached for call in calls),
        written=sum(call.written for call in calls),
        malformed=sum(call.malformed for call in calls) + (rejected if contender.rejected else 0),
        repeated=len(said) - len(set(said)),
        kill=run.killed if kill is not None else None,
    )
    if lab.log:
        keep(lab.log, result, printed, calls)
    return result


def _killed(
    run: Run, until: float, attempt: Attempt, task: Task, folder: Path, environ: Mapping[str, str]
) -> Run:
    """Kill a run at its time, and return the one that goes on as a person would have it; see `Result`."""
    if run.wait(until, attempt) is not None or attempt.is_over:
        return run
    run.kill()
    run.output.close()
    return Run(resumption(folder, environ, task.request), folder, environ, killed=until - run.begun)


def resumption(folder: Path, environ: Mapping[str, str], request: str) -> list[str]:
    """Return the command of a person after a crash: go on, or ask again if nothing was kept."""
    listed = subprocess.run(
        [program_of_ours(), "queue", "list", "--json"],
        cwd=folder,
        env=environ,
        capture_output=True,
        text=True,
        timeout=60,
    )
    is_kept = bool(json.loads(listed.stdout or "{}").get("items"))
    words = ["--continue", "/queue resume"] if is_kept else [request]
    return [program_of_ours(), "chat", "--yes", *words]


def last_text(calls: Sequence[Call]) -> str:
    """Return the last words of the model; commands of its last call are among them."""
    texts = [call.text for call in calls if call.text.strip()]
    uses = [arguments for call in calls[-1:] for _, arguments in call.uses]
    return "\n".join([*texts[-1:], *uses])


def how_it_ended(why: str, code: int | None, said: Sequence[str], is_over: bool) -> str:
    """Name the end of an attempt: see `ENDS`.

    `code` is the exit code, none if it had to be ended. A loop is an attempt that used up its calls,
    or its time with the same answer three times at the end.
    """
    if not why:
        return NEVER_ENDED if code is None else "solved"
    if is_over or (code is None and len(said) > 2 and len(set(said[-3:])) == 1):
        return "looped"
    if code is None:
        return "timeout"
    return "crashed" if code else "wrong"


def moment(task: Task, seed: int, seconds: float) -> float:
    """Return when to kill an attempt that takes so many seconds without: drawn from task and seed."""
    return random.Random(f"{task.name} {seed}").uniform(0.05, 0.95) * seconds


def keep(log: Path, result: Result, printed: str, calls: Sequence[Call]) -> None:
    """Keep what was printed and what the model said, to look at it."""
    sheet = "killed" if result.kill is not None else "plain"
    name = re.sub(r"\W+", "-", f"{result.contender} {result.task} {result.seed} {sheet}")
    log.mkdir(parents=True, exist_ok=True)
    (log / f"{name}.txt").write_text(printed)
    lines = [json.dumps(asdict(call), ensure_ascii=False) for call in calls]
    (log / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
