"""The installed command as a program of its own: started, talked to in lines, killed, looked at.

A `Place` is one home folder and one project folder; a `Chat` is one `steersman chat --json` in it.
Nothing here sleeps: what is waited for is an event, a pipe or the end of a process.
"""

import json
import os
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from support.patience import seconds

__all__ = [
    "COMMAND",
    "FROM_ELSEWHERE",
    "WAIT",
    "Chat",
    "Event",
    "Gate",
    "Place",
    "Ran",
    "processes_with",
    "shape",
    "wait_gone",
]

Event = dict[str, Any]
Ran = subprocess.CompletedProcess[str]

WAIT = 30.0
"""Seconds after which a test gives up, on a quiet machine; each wait passes them through `seconds`."""

_SCRIPT = Path(sys.executable).with_name("steersman")
COMMAND = (str(_SCRIPT),) if _SCRIPT.exists() else (sys.executable, "-m", "steersman")

FROM_ELSEWHERE = (
    sys.executable,
    "-c",
    """
import os, sys
system = os.uname()
os.uname = lambda: os.uname_result((system.sysname, "elsewhere", *system[2:]))
from steersman.cli.main import main
sys.exit(main())
""",
)
"""The program on a machine of another name: all others are on another machine for it, and it for them."""


class Place:
    """One home and one project folder; `HOME` in the environment tells what was started here.

    `command` is what runs the program, before its arguments.
    """

    def __init__(self, root: Path) -> None:
        self.command: tuple[str, ...] = COMMAND
        self.home, self.folder = root / "home", root / "project"
        self.home.mkdir(parents=True)
        self.folder.mkdir()
        self._mark = f"HOME={root}".encode()
        self.chats: list[Chat] = []
        kept = ("PATH", "PYTHONPATH", "LANG", "LC_ALL", "TMPDIR")
        self.environ = {name: os.environ[name] for name in kept if name in os.environ}
        self.environ |= {
            "HOME": str(root),
            "STEERSMAN_HOME": str(self.home),
            "PYTHONWARNINGS": "default",
        }

    def configure(
        self, url: str, *, top: str = "", rest: str = "", provider: str = "openai", model: str = ""
    ) -> None:
        """Write a configuration whose one model is at `url`.

        `top` are keys before any table, `model` more keys of the model.
        """
        text = f"""{top}
[models.main]
provider = "{provider}"
base_url = "{url}"
model = "test-model"
{model}

[agents.assistant]
model = "main"

{rest}
"""
        (self.home / "config.toml").write_text(text, "utf-8")

    def chat(self, *arguments: str, prefix: Sequence[str] = (), **options: Any) -> "Chat":
        """Start `steersman chat --json`; `prefix` is a program that runs it."""
        chat = Chat(self, (*prefix, *self.command, "chat", "--json", *arguments), **options)
        self.chats.append(chat)
        return chat

    def start(self, *arguments: str, **options: Any) -> "subprocess.Popen[str]":
        """Start any command with pipes; who asks for it waits for its end."""
        pipe = subprocess.PIPE
        given = {"stdin": pipe, "stdout": pipe, "stderr": pipe} | options
        return subprocess.Popen(
            (*self.command, *arguments), cwd=self.folder, env=self.environ, text=True, **given
        )

    def run(self, *arguments: str, said: str = "", **options: Any) -> Ran:
        """Run any command to its end with `said` as its input."""
        return finish(self.start(*arguments, **options), said)

    def stored(self, session: str = "last") -> dict[str, Any]:
        """Return what `steersman inspect` says of a session."""
        ran = self.run("inspect", session, "--format", "json")
        assert ran.returncode == 0, ran.stderr
        data: dict[str, Any] = json.loads(ran.stdout)
        return data

    def processes(self) -> dict[int, str]:
        """Return the command lines of the live processes that were started here, by pid.

        Those are the ones with this place in their environment, and whatever descends from a chat. The
        process id of a chat that has ended may be that of a foreign process by now.
        """
        ours = {chat.process.pid for chat in self.chats if chat.process.returncode is None}
        found: dict[int, str] = {}
        rows = sorted(_processes(), key=lambda row: row.pid)
        while fresh := [row for row in rows if self._is_ours(row, ours) and row.pid not in found]:
            found |= {row.pid: row.command for row in fresh}
            ours |= found.keys()
        return found

    def _is_ours(self, row: "_Process", ours: set[int]) -> bool:
        return row.pid in ours or row.parent in ours or self._mark in row.environ

    def close(self) -> None:
        """End whatever a test left."""
        for chat in self.chats:
            chat.abandon()
        left = self.processes()
        for pid in left:
            end(pid)
        wait_gone(left)


class _Process(NamedTuple):
    """A row of the system's process table."""

    pid: int
    parent: int
    command: str
    environ: list[bytes]


def processes_with(variable: str) -> list[int]:
    """Return the live processes that have `NAME=VALUE` in their environment."""
    return [row.pid for row in _processes() if variable.encode() in row.environ]


def _processes() -> Iterator[_Process]:
    """Read the process table, without zombies and what has let go of its memory, on its way there.

    Processes that began before this one are left out: a leftover of an earlier run may have had a place
    of the same name. Those that vanish meanwhile, or that this user may not read, are left out as well.
    """
    began = _began(Path("/proc/self"))
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if _began(folder) < began:
                continue
            state, parent = _stat(folder)[:2]
            command = (
                (folder / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            )
            environ = (folder / "environ").read_bytes().split(b"\0")
        except OSError:
            continue
        if state not in "ZX" and command:
            yield _Process(int(folder.name), int(parent), command.strip(), environ)


def _stat(folder: Path) -> list[str]:
    """Return what `/proc/PID/stat` says behind the name of the program; see proc(5)."""
    return (folder / "stat").read_text(errors="replace").rpartition(")")[2].split()


def _began(folder: Path) -> int:
    """Return when a process began, in clock ticks since the machine did."""
    return int(_stat(folder)[19])


def finish(process: "subprocess.Popen[str]", said: str = "", timeout: float = WAIT) -> Ran:
    """Give a process its input and wait for its end."""
    with process:
        try:
            out, err = process.communicate(said, timeout=seconds(timeout))
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return Ran(process.args, process.returncode, out, err)


def end(pid: int) -> None:
    """Kill a process, if it is still there."""
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        return


def wait_gone(pids: Iterable[int], timeout: float = WAIT) -> list[int]:
    """Wait until these processes have ended; return those that had not in so many seconds."""
    deadline = time.monotonic() + seconds(timeout)
    left: list[int] = []
    for pid in pids:
        try:
            watched = os.pidfd_open(pid)
        except ProcessLookupError:
            continue
        try:
            rest = max(0.0, deadline - time.monotonic())
            if not select.select([watched], [], [], rest)[0]:
                left.append(pid)
        finally:
            os.close(watched)
    return left


class Chat:
    """A running `chat --json`. `events` is all that it said; waiting moves a mark through them."""

    def __init__(
        self,
        place: Place,
        command: Sequence[str],
        environ: dict[str, str] | None = None,
        preexec_fn: Callable[[], None] | None = None,
    ) -> None:
        self.place = place
        self.events: list[Event] = []
        self.times: list[float] = []
        self._mark = 0
        self._change = threading.Condition()
        self._is_over = False
        self._complaints: list[str] = []
        self.process = subprocess.Popen(
            command,
            cwd=place.folder,
            env=place.environ | (environ or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=preexec_fn,
        )
        self._threads = [threading.Thread(target=work) for work in (self._read, self._overhear)]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            with self._change:
                self.times.append(time.monotonic())
                self.events.append(_parse(line))
                self._change.notify_all()
        with self._change:
            self._is_over = True
            self._change.notify_all()

    def _overhear(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._complaints.append(line.decode(errors="replace"))

    # Talking --------------------------------------------------------------------------------------

    def send(self, *lines: str | bytes | Event) -> None:
        """Send lines, together."""
        data = b""
        for line in lines:
            text = json.dumps(line) if isinstance(line, dict) else line
            data += (text.encode() if isinstance(text, str) else text) + b"\n"
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def wait(self, kind: str, timeout: float = WAIT, **fields: Any) -> Event:
        """Wait for the next event of a kind whose fields are these, from the mark on."""
        with self._change:
            position = self._mark

            def came() -> bool:
                nonlocal position
                while position < len(self.events):
                    if _fits(self.events[position], kind, fields):
                        return True
                    position += 1
                return self._is_over

            self._change.wait_for(came, seconds(timeout))
            if position >= len(self.events) or not _fits(self.events[position], kind, fields):
                raise AssertionError(f"no `{kind}` {fields} came.\n{self.story()}")
            self._mark = position + 1
            return self.events[position]

    def wait_any(self, kind: str, timeout: float = WAIT, **fields: Any) -> Event:
        """Wait for an event of a kind whose fields are these, which may have come; the mark stays."""
        with self._change:
            self._change.wait_for(
                lambda: bool(self.seen(kind, **fields)) or self._is_over, seconds(timeout)
            )
            found = self.seen(kind, **fields)
            assert found, f"no `{kind}` {fields} came.\n{self.story()}"
            return found[0]

    def wait_text(self, text: str, timeout: float = WAIT) -> None:
        """Wait until a command's result, a notice or the model's own words hold `text`."""
        with self._change:
            position = self._mark
            said = ""

            def came() -> bool:
                nonlocal position, said
                while text not in said and position < len(self.events):
                    one = self.events[position]
                    position += 1
                    said = said + one["delta"] if one["type"] == "text" else _text_of(one)
                return text in said or self._is_over

            self._change.wait_for(came, seconds(timeout))
            if text not in said:
                raise AssertionError(f"nothing said `{text}`.\n{self.story()}")
            self._mark = position - 1  # the same one may hold the next text, too

    def wait_quiet(self, timeout: float = WAIT) -> None:
        """Wait until every turn that has started has ended."""
        with self._change:
            turns = {"turn_started": 1, "turn_ended": -1}
            is_quiet = self._change.wait_for(
                lambda: not sum(turns.get(one["type"], 0) for one in self.events), seconds(timeout)
            )
            assert is_quiet, f"a turn does not end.\n{self.story()}"

    def ended_without(self, kind: str) -> bool:
        """Wait for the first event of a kind, or the end; say whether it ended without one."""
        with self._change:
            self._change.wait_for(lambda: kind in self.kinds() or self._is_over, seconds(WAIT))
        return not self.seen(kind)

    def forget(self) -> None:
        """Let go of the events up to the mark: a long run needs them no more."""
        with self._change:
            del self.events[: self._mark], self.times[: self._mark]
            self._mark = 0

    def ask(self, command: str) -> Event:
        """Send a slash command and return its result."""
        name = command.split()[0].removeprefix("/")
        self.send(command)
        return self.wait("result", name=name)

    def seen(self, *kinds: str, **fields: Any) -> list[Event]:
        """Return the events so far of these kinds, or all kinds, whose fields are these."""
        return [
            one
            for one in self.events
            if (not kinds or one["type"] in kinds) and _fits(one, one["type"], fields)
        ]

    def kinds(self, *wanted: str) -> list[str]:
        """Return the types of all events so far, in order, or of those wanted."""
        return [one["type"] for one in self.events if not wanted or one["type"] in wanted]

    def story(self) -> str:
        """Tell what happened, for a failed test."""
        said = "\n".join(json.dumps(one)[:400] for one in self.events)
        return f"events:\n{said}\nstandard error:\n{self.diagnostics}"

    @property
    def diagnostics(self) -> str:
        """What it wrote to standard error."""
        return "".join(self._complaints)

    @property
    def session(self) -> str:
        """The id of the session that it began or took up."""
        started = self.seen("session_started")
        return str((started[0] if started else self.wait("session_started"))["session"])

    # Ending ---------------------------------------------------------------------------------------

    def close(self) -> int:
        """End its input, wait for its end and return the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.ended()

    def kill(self) -> None:
        """End it by SIGKILL and wait for that."""
        self.process.kill()
        self.ended()

    def signal(self, number: signal.Signals) -> int:
        """Send it a signal, wait for its end and return the exit code."""
        self.process.send_signal(number)
        return self.ended()

    def ended(self, timeout: float = WAIT) -> int:
        """Wait for its end, and for the last that it said; return the exit code."""
        try:
            code = self.process.wait(seconds(timeout))
        except subprocess.TimeoutExpired:
            raise AssertionError(f"it does not end.\n{self.story()}") from None
        for thread in self._threads:
            thread.join(seconds(WAIT))
        self._shut()
        return code

    def abandon(self) -> None:
        """End it in any way."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        for pid in self.place.processes():
            end(pid)
        for thread in self._threads:
            thread.join(seconds(WAIT))
        self._shut()

    def _shut(self) -> None:
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            try:
                stream.close()
            except BrokenPipeError:
                continue


def _parse(line: bytes) -> Event:
    try:
        event = json.loads(line)
    except ValueError:
        event = None
    return event if isinstance(event, dict) else {"type": "not json", "line": repr(line[:300])}


def _text_of(event: Event) -> str:
    return str(event.get("text", "")) if event["type"] in ("result", "notice", "error") else ""


def _fits(event: Event, kind: str, fields: dict[str, Any]) -> bool:
    if event["type"] != kind:
        return False
    return all(
        value(event.get(name)) if callable(value) else event.get(name) == value
        for name, value in fields.items()
    )


def shape(events: Iterable[Event], *without: str) -> list[str]:
    """Return events as their types, a row of `text` as one, `queue` and others left out."""
    kinds: list[str] = []
    for one in events:
        kind = one["type"]
        if kind not in ("queue", "notice", *without) and (kind != "text" or kinds[-1:] != ["text"]):
            kinds.append(kind)
    return kinds


class Gate:
    """Where a shell command stops until a test lets it through: two named pipes in a folder.

    `command` is shell text that says its process id and then waits.
    """

    def __init__(self, folder: Path, name: str = "gate") -> None:
        self._files: list[int] = []
        for part in ("here", "go"):
            path = folder / f"{name}.{part}"
            os.mkfifo(path)
            self._files.append(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        self.command = f"echo $$ > {name}.here; read word < {name}.go"

    def wait(self, timeout: float = WAIT) -> int:
        """Wait until a command has come; return its process id."""
        here = self._files[0]
        came = select.select([here], [], [], seconds(timeout))[0]
        assert came, "no command came to the gate"
        return int(os.read(here, 100).split()[0])

    def open(self) -> None:
        """Let one command through."""
        os.write(self._files[1], b"go\n")

    def close(self) -> None:
        """Give the pipes back."""
        for file in self._files:
            os.close(file)
