"""A trial: one agent has one case. What happened is written down as it was seen from outside.

Witnesses are the model server, the log that the steps write, the process table, the folder, and what
the agent lists afterwards. Only processes are ended that bear the mark of the trial in their environment,
have its folder in their command line, or work in it.
"""

import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from agents import Agent, Missing
from plan import SIGNALS, Case
from scripted import ScriptedServer, prompt

__all__ = ["Trial", "heed_signals", "marked", "try_case"]

LIMIT = 90.0
"""Seconds that an agent has for a run."""
PATIENCE = 20.0
"""Seconds that it has to end after it was signalled."""
_GONE = 8.0
"""Seconds that processes have to be gone after their agent has ended."""
_PAUSE = 2.5
_SCRIPT = Path(__file__).with_name("step.sh")
Data = dict[str, Any]


def marked(mark: str, place: Path) -> dict[int, str]:
    """Return the command lines of the processes of a trial that have not ended, by pid."""
    sign, where, found = f"STEERSMAN_WORK={mark}".encode(), str(place).encode(), dict[int, str]()
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError, IndexError):
            words = (path / "cmdline").read_bytes()
            is_one = where in words or sign in (path / "environ").read_bytes().split(b"\0")
            is_one = is_one or os.readlink(path / "cwd").startswith(str(place))
            state = (path / "stat").read_text().rpartition(")")[2].split()[0]
            if is_one and state != "Z" and int(path.name) != os.getpid():
                found[int(path.name)] = words.replace(b"\0", b" ").decode(errors="replace")[:120]
    return found


class Trial:
    """One agent with one case in a place of its own. `run` returns the trajectory."""

    def __init__(self, agent: Agent, case: Case, place: Path) -> None:
        self.agent = agent
        self.case = case
        self.place = place
        self.mark = f"survival-{os.getpid()}-{place.name}"
        self._target = f"m1.{case.step}"
        self._pid = 0
        self._fault_at = self._begun = 0.0
        self._runs: list[Data] = []
        self._there: list[str] = []

    def run(self) -> Data:
        """Have the case, and resume the conversation; return what was seen, for a JSON line."""
        (self.place / "project").mkdir()
        shutil.copy(_SCRIPT, self.place / "project")
        (self.place / "project" / "log").touch()
        marks = {"m1": self.case.steps}
        with ScriptedServer() as server:
            self.agent.prepare(self.place, server.url, self.mark)
            server.target, server.when = self._target, self.case.kind.when
            server.tool, server.words = self.case.kind.tool, self.case.words
            server.fault = self.case.kind.act if self.case.kind.is_server else ""
            server.met = self._fault
            try:
                self._first()
                if self.case.kind.when == "queued":
                    marks["m2"] = 1
                after = self._settle()
                if self.agent.resumes and self._fault_at:
                    marks["m3"] = 1
                    self._resumed(server, prompt("m3", 1))
                left = self._settle()
                sessions = self.agent.sessions() if self.agent.lists else None
                shown = self.agent.waiting()
            finally:
                self._end_all()
            return {
                "case": asdict(self.case),
                "resumes": self.agent.resumes,
                "marks": marks,
                "fault": round(self._fault_at, 3),
                "runs": self._runs,
                "requests": [heard.as_data() for heard in server.heard],
                "log": self._log(),
                "there": self._there,
                "after": sorted(after.values()),
                "left": sorted(left.values()),
                "files": self._files(marks),
                "sessions": sessions,
                "waiting": [mark for mark in marks if f"TASK[{mark}:" in shown],
            }

    # The two runs --------------------------------------------------------------------------------

    def _first(self) -> None:
        """Run the first message until the agent has ended, with the fault at its moment."""
        if self.case.kind.when == "queued":
            self._begun = time.time()
            live = self.agent.live()
            self._pid = live.pid
            live.say(prompt("m1", self.case.steps))
            self._until(lambda: self._began(self._target))
            self.agent.queue(live, prompt("m2", 1))
            self._fault()
            with suppress(OSError):
                live.close()
            self._note(-9, "ended")
            return
        process = self._start(self.agent.start(prompt("m1", self.case.steps)))
        if self.case.kind.when in ("tool", "ended"):
            word = "begin" if self.case.kind.when == "tool" else "end"
            self._until(lambda: self._began(self._target, word) or process.poll() is not None)
            if process.poll() is None:
                self._fault()
        self._wait(process)

    def _resumed(self, server: ScriptedServer, text: str) -> None:
        """Continue the conversation with one more message."""
        began, known = time.time(), len(server.heard)
        process = self._start(self.agent.resume(text))
        self._wait(process)
        first = [heard.time for heard in server.heard[known:] if "m3" in heard.marks]
        self._runs[-1]["asked"] = round(first[0] - began, 2) if first else None

    def _start(self, command: list[str]) -> "subprocess.Popen[bytes]":
        output = (self.place / f"output-{len(self._runs)}").open("wb")
        with output:
            process = subprocess.Popen(
                command,
                cwd=self.agent.folder,
                env=self.agent.environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self._pid = process.pid
        self._begun = time.time()
        return process

    def _wait(self, process: "subprocess.Popen[bytes]") -> None:
        """Wait until it has ended, and note how; it is ended if it does not end by itself."""
        until = time.monotonic() + LIMIT
        how = "ended"
        while process.poll() is None and time.monotonic() < until:
            time.sleep(0.02)
            is_signalled = self._fault_at and self.case.kind.ends and not self._runs
            if is_signalled and time.time() - self._fault_at > PATIENCE:
                break
        if process.poll() is None:
            how = "had to be ended"
            self._group(signal.SIGKILL)
            process.wait()
        self._note(process.returncode, how)

    def _note(self, code: int, how: str) -> None:
        """Write down how a run ended; times in seconds since the epoch."""
        path = self.place / f"output-{len(self._runs)}"
        output = path.read_bytes()[-300:].decode(errors="replace") if path.exists() else ""
        begun, ended = round(self._begun, 3), round(time.time(), 3)
        self._runs.append(
            {"code": code, "how": how, "begun": begun, "ended": ended, "output": output}
        )

    # The fault ------------------------------------------------------------------------------------

    def _fault(self) -> None:
        """Have the fault; called when its moment has come."""
        time.sleep(self.case.delay)
        kind = self.case.kind
        if kind.when == "tool":  # in other moments it would come late by it
            self._there = sorted(marked(self.mark, self.place).values())
        self._fault_at = time.time()
        if kind.act == "pause":
            self._group(signal.SIGSTOP)
            threading.Timer(_PAUSE, self._group, (signal.SIGCONT,)).start()
        elif kind.ends:
            number = signal.Signals[SIGNALS[kind.act]]
            if kind.group:
                self._group(number)
            else:
                with suppress(ProcessLookupError):
                    os.kill(self._pid, number)

    def _group(self, number: signal.Signals) -> None:
        with suppress(ProcessLookupError):
            os.killpg(self._pid, number)

    # What is seen ---------------------------------------------------------------------------------

    def _log(self) -> list[list[Any]]:
        """Return what the steps wrote: word, step, pid, seconds since the epoch."""
        found: list[list[Any]] = []
        for line in (self.place / "project" / "log").read_text().splitlines():
            words = line.split()
            if len(words) == 4:
                found.append([words[0], words[1], int(words[2]), round(float(words[3]), 3)])
        return found

    def _began(self, step: str, word: str = "begin") -> bool:
        return f"{word} {step} " in (self.place / "project" / "log").read_text()

    def _until(self, is_so: Any) -> None:
        until = time.monotonic() + LIMIT
        while not is_so():
            if time.monotonic() > until:
                raise Missing("the moment of the fault never came")
            time.sleep(0.005)

    def _settle(self) -> dict[int, str]:
        """Give what is left time to end, and return what has not."""
        until = time.monotonic() + _GONE
        while (left := marked(self.mark, self.place)) and time.monotonic() < until:
            time.sleep(0.1)
        return left

    def _files(self, marks: dict[str, int]) -> dict[str, str]:
        """Return for each step whether its file is `right`, `wrong` or `missing`."""
        found: dict[str, str] = {}
        for mark, steps in marks.items():
            for number in range(1, steps + 1):
                step = f"{mark}.{number}"
                path = self.place / "project" / f"{step}.txt"
                there = path.read_text() if path.exists() else None
                right = f"step {step}\n"
                found[step] = "missing" if there is None else "right" if there == right else "wrong"
        return found

    def _end_all(self) -> None:
        """End what is left of the trial."""
        for _ in range(20):
            left = marked(self.mark, self.place)
            for pid in left:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if not left:
                return
            time.sleep(0.1)


def heed_signals() -> None:
    """Have agents start with the signals of `SIGNALS` heeded, as in a terminal.

    A job in the background has SIGINT ignored, and one of `nohup` SIGHUP; all that it starts has so, too.
    """
    for number in (signal.Signals[name] for name in SIGNALS.values() if name != "SIGKILL"):
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, lambda *_: None)  # what is handled is not ignored in a child


def try_case(agent: Agent, case: Case, keep: Path | None = None) -> Data:
    """Have an agent try a case in a new folder, which `keep` receives; return the trajectory.

    Raises `Missing` if the moment of the fault never comes.
    """
    heed_signals()
    place = Path(tempfile.mkdtemp(prefix="survival-"))
    try:
        return Trial(agent, case, place).run()
    finally:
        if keep:
            with suppress(shutil.Error):  # of sockets
                shutil.copytree(place, keep, symlinks=True, dirs_exist_ok=True)
        shutil.rmtree(place, ignore_errors=True)
