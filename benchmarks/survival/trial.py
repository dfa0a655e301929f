"""A trial: one agent has one case. What happened is written down as it was seen from outside.

Witnesses are the model server, the log that the steps write, the process table, the folder, and what
the agent lists afterwards. Only processes are ended that bear the mark of the trial in their environment,
have its folder in their command line, or work in it.
"""

import os
import pty
import select
import shutil
import signal
import subprocess
import tempfile
import termios
import threading
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agents import Agent, Missing
from faults import ERRORS, Faults
from plan import SIGNALS, Case
from scripted import Heard, ScriptedServer, prompt

__all__ = ["Trial", "heed_signals", "marked", "try_case"]

LIMIT = 90.0
"""Seconds that an agent has for a run."""
PATIENCE = 20.0
"""Seconds that it has to end after it was signalled."""
_GONE = 8.0
"""Seconds that processes have to be gone after their agent has ended."""
_PAUSE = 2.5
_FIRST, _LAST = 80, 20
"""Requests that are kept of an agent that asks for ever."""
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


def _ends(heard: list[Heard]) -> list[Heard]:
    return heard if len(heard) <= _FIRST + _LAST else heard[:_FIRST] + heard[-_LAST:]


class Terminal(threading.Thread):
    """A terminal that writes what is printed to `output`, until it is closed."""

    def __init__(self, output: Path) -> None:
        super().__init__(daemon=True)
        self.output = output
        self._master, self.slave = pty.openpty()
        termios.tcsetwinsize(self.slave, (24, 80))
        self._is_closed = threading.Event()

    def run(self) -> None:
        """Read what is printed; only who reads can close it, or it stays open."""
        with self.output.open("ab") as file:
            while not self._is_closed.is_set():
                if select.select([self._master], [], [], 0.02)[0]:
                    try:
                        file.write(os.read(self._master, 65536))
                    except OSError:  # nobody has it open any more
                        break
        os.close(self._master)

    def close(self) -> None:
        """Hang up."""
        self._is_closed.set()
        self.join()


@dataclass
class _Running:
    process: "subprocess.Popen[bytes]"
    output: Path
    begun: float
    ended: float = 0.0

    def poll(self) -> bool:
        """Whether it has ended; remembers when that was seen."""
        if not self.ended and self.process.poll() is not None:
            self.ended = time.time()
        return bool(self.ended)


class Trial:
    """One agent with one case in a place of its own. `run` returns the trajectory."""

    def __init__(self, agent: Agent, case: Case, place: Path) -> None:
        self.agent = agent
        self.case = case
        self.place = place
        self.mark = f"survival-{os.getpid()}-{place.name}"
        self._target = f"m1.{case.step}"
        self._pid = 0
        self._fault_at = 0.0
        self._runs: list[Data] = []
        self._open: list[_Running] = []
        self._faults = Faults(place) if case.kind.needs_library else None
        self._grown: list[str] | None = None
        self._terminal: Terminal | None = None
        self._there: list[str] = []

    def run(self) -> Data:
        """Have the case, and resume the conversation; return what was seen, for a JSON line."""
        (self.place / "project").mkdir()
        shutil.copy(_SCRIPT, self.place / "project")
        (self.place / "project" / "log").touch()
        marks = {"m1": self.case.steps}
        with ScriptedServer() as server:
            self.agent.prepare(self.place, server.url, self.mark)
            if self._faults:
                self.agent.environ |= self._faults.environ
            server.target, server.when = self._target, self.case.kind.when
            server.tool, server.words = self.case.kind.tool, self.case.words
            server.fault = self.case.kind.act if self.case.kind.is_server else ""
            server.met = self._fault
            try:
                self._first()
                if self.case.kind.when == "queued" or self.case.kind.act == "second":
                    marks["m2"] = 1
                after = self._settle()
                if self._faults and self.case.kind.act == "clock":
                    self._faults.shift_times(self._fault_at, int(self.case.amount))
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
                "requests": [heard.as_data() for heard in _ends(server.heard)],
                **({"met": self._faults.met(self._pid)} if self._faults else {}),
                **({"grown": self._grown} if self._grown is not None else {}),
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
            begun = time.time()
            live = self.agent.live()
            self._pid = live.pid
            live.say(prompt("m1", self.case.steps))
            self._until(lambda: self._began(self._target))
            self.agent.queue(live, prompt("m2", 1))
            self._fault()
            with suppress(OSError):
                live.close()
            self._note(-9, "ended", begun, time.time())
            return
        if self.case.kind.act == "close":
            self._terminal = Terminal(self.place / "output-0")
            self._terminal.start()
        running = self._start(self.agent.start(prompt("m1", self.case.steps)))
        self._pid = running.process.pid
        if self.case.kind.when in ("tool", "ended"):
            word = "begin" if self.case.kind.when == "tool" else "end"
            self._until(lambda: self._began(self._target, word) or running.poll())
            if not running.poll():
                self._fault()
        self._wait()
        self._repair()
        if self._terminal:
            self._terminal.close()

    def _resumed(self, server: ScriptedServer, text: str) -> None:
        """Continue the conversation with one more message."""
        began, known = time.time(), len(server.heard)
        self._start(self.agent.resume(text))
        self._wait()
        first = [heard.time for heard in server.heard[known:] if "m3" in heard.marks]
        self._runs[-1]["asked"] = round(first[0] - began, 2) if first else None

    def _start(self, command: list[str]) -> _Running:
        """Start a program of the agent; the first one in the terminal, if the case has one."""
        number = len(self._runs) + len(self._open)
        path = self.place / f"output-{number}"
        terminal = None if number else self._terminal
        with path.open("ab") as output:
            process = subprocess.Popen(
                ["setsid", "--ctty", *command] if terminal else command,
                cwd=self.agent.folder,
                env=self.agent.environ,
                stdin=terminal.slave if terminal else subprocess.DEVNULL,
                stdout=terminal.slave if terminal else output,
                stderr=subprocess.STDOUT,
                start_new_session=not terminal,
            )
        if terminal:
            os.close(terminal.slave)
        running = _Running(process, path, time.time())
        self._open.append(running)
        return running

    def _wait(self) -> None:
        """Wait until all that was started has ended, and note how; what does not end is ended."""
        until = time.monotonic() + LIMIT
        while [one for one in self._open if not one.poll()] and time.monotonic() < until:
            time.sleep(0.02)
            is_signalled = self._fault_at and self.case.kind.ends and not self._runs
            if is_signalled and time.time() - self._fault_at > PATIENCE:
                break
        while self._open:
            running, how = self._open.pop(0), "ended"
            if not running.poll():
                how = "had to be ended"
                self._group(signal.SIGKILL, running.process.pid)
                running.process.wait()
            output = running.output.read_bytes()[-300:].decode(errors="replace")
            ended = running.ended or time.time()
            self._note(running.process.returncode, how, running.begun, ended, output)

    def _note(self, code: int, how: str, begun: float, ended: float, output: str = "") -> None:
        """Write down how a run ended; times in seconds since the epoch."""
        times = {"begun": round(begun, 3), "ended": round(ended, 3)}
        self._runs.append({"code": code, "how": how, **times, "output": output})

    # The fault ------------------------------------------------------------------------------------

    def _fault(self) -> None:
        """Have the fault; called when its moment has come."""
        time.sleep(self.case.delay)
        kind = self.case.kind
        if kind.when == "tool":  # in other moments it would come late by it
            self._there = sorted(marked(self.mark, self.place).values())
        self._fault_at = time.time()
        if kind.act == "pause":
            self._group(signal.SIGSTOP, self._pid)
            threading.Timer(_PAUSE, self._group, (signal.SIGCONT, self._pid)).start()
        elif self._faults and kind.act == "clock":
            self._faults.switch(shift=int(self.case.amount))
        elif self._faults:
            self._faults.fail(ERRORS[kind.act])
            if self.case.amount:
                threading.Timer(self.case.amount, self._repair).start()
        elif kind.act == "second":
            self._start(self.agent.resume(prompt("m2", 1)))
        elif self._terminal:
            self._terminal.close()
        elif kind.ends:
            number = signal.Signals[SIGNALS[kind.act]]
            if kind.group:
                self._group(number, self._pid)
            else:
                with suppress(ProcessLookupError):
                    os.kill(self._pid, number)

    def _repair(self) -> None:
        """Let the disk be right again, once."""
        is_failing = self._fault_at and self._grown is None and self.case.kind.act in ERRORS
        if self._faults and is_failing:
            self._grown = self._faults.grown()
            self._faults.switch()

    def _group(self, number: signal.Signals, pid: int) -> None:
        with suppress(ProcessLookupError):
            os.killpg(pid, number)

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
