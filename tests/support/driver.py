"""The installed command as a program of its own: started, talked to in lines, killed, looked at.

A `Place` is one home folder and one project folder; a `Chat` is one `steersman chat --json` in it.
Nothing here sleeps: what is waited for is an event, a pipe or the end of a process.
"""

import inspect
import itertools
import json
import os
import re
import signal
import sqlite3
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, NamedTuple, cast

from support.event_kinds import NOT_JSON, check_events
from support.fork_server import SETTINGS, fork_server, interpreter_settings
from support.patience import seconds
from support.readable import readable

from steersman.gateway.commands.registry import NAMES
from steersman.gateway.events.contract import is_receipt
from steersman.machines.errors import UsageError

__all__ = [
    "COMMAND",
    "FROM_ELSEWHERE",
    "WAIT",
    "Chat",
    "Event",
    "Gate",
    "Heard",
    "Place",
    "Process",
    "Ran",
    "processes_with",
    "shape",
    "wait_gone",
]

Event = dict[str, Any]
Ran = subprocess.CompletedProcess[str]

WAIT = 30.0
"""Seconds after which a test gives up, on a quiet machine; each wait passes them through `seconds`."""

_KEYS = itertools.count(1)

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


class Process(subprocess.Popen[Any]):
    """A program whose end is waited for; the installed command is forked from a server where it can be.

    With a bound, `subprocess` looks for the end again and again, with pauses of up to 50 ms. Here the
    kernel reports it.
    """

    _status = -1
    """The pipe from which the exit status of a forked process is read."""

    def _execute_child(self, *given: Any) -> None:
        start = super()._execute_child  # type: ignore[misc]
        call = inspect.signature(start).bind(*given).arguments
        if not _can_be_forked(call):
            start(*given)
            return
        handles = (call["p2cread"], call["c2pwrite"], call["errwrite"])
        files = [own if file == -1 else file for own, file in enumerate(handles)]
        program, *arguments = map(os.fspath, call["args"])
        forked = fork_server(program).fork(arguments, os.fspath(call["cwd"]), call["env"], files)
        if forked is None:
            start(*given)
            return
        self.pid, self._status = forked
        self._child_created = True
        self._close_pipe_fds(  # type: ignore[attr-defined]
            *(call[name] for name in ("p2cread", "p2cwrite", "c2pread", "c2pwrite")),
            *(call[name] for name in ("errread", "errwrite")),
        )

    def _internal_poll(self, *given: Any, **named: Any) -> int | None:
        if self._status == -1:
            return super()._internal_poll(*given, **named)  # type: ignore[misc,no-any-return]
        with self._waitpid_lock:  # type: ignore[attr-defined]
            if self.returncode is None and readable(self._status, timeout=0):
                self._read_status()
        return self.returncode

    def _wait(self, timeout: float | None) -> int:
        if self._status == -1:
            return super()._wait(timeout)  # type: ignore[misc,no-any-return]
        with self._waitpid_lock:  # type: ignore[attr-defined]
            if self.returncode is None:
                self._read_status()
        return self.returncode

    def _read_status(self) -> None:
        (status,) = struct.unpack("i", os.read(self._status, 4))
        os.close(self._status)
        self.returncode = os.waitstatus_to_exitcode(status)

    def wait(self, timeout: float | None = None) -> int:
        """Wait for the end, at most so many seconds; return the exit code."""
        if timeout is not None and self.returncode is None and hasattr(os, "pidfd_open"):
            if not _ends_in(self.pid, timeout):
                raise subprocess.TimeoutExpired(self.args, timeout)
            timeout = None
        return super().wait(timeout)


def _can_be_forked(call: dict[str, Any]) -> bool:
    """Say whether a program is the installed command, given nothing but what a fork takes over."""
    usual = (
        call["executable"] is None
        and call["preexec_fn"] is None
        and not call["pass_fds"]
        and not call["shell"]
        and not call["start_new_session"]
        and call["process_group"] == -1
    )
    if sys.platform != "linux" or not usual or call["env"] is None or call["cwd"] is None:
        return False
    if not _SCRIPT.exists() or os.fspath(call["args"][0]) != str(_SCRIPT):
        return False
    return interpreter_settings(call["env"]) == SETTINGS


def unboxed(rest: str) -> str:
    """Add to a configuration that commands run outside of any sandbox, unless it speaks of one.

    They meet the test by files that are beside the session's folder. `STEERSMAN_TEST_SANDBOX` leaves it
    as it is shipped.
    """
    if "sandbox =" in rest or os.environ.get("STEERSMAN_TEST_SANDBOX"):
        return rest
    head, _, tail = rest.partition("[tools]\n")
    return f'{head}\n[tools]\nsandbox = "off"\n{tail}'


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
        self.programs: list[Process] = []
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

{unboxed(rest)}
"""
        (self.home / "config.toml").write_text(text, "utf-8")

    def chat(self, *arguments: str, prefix: Sequence[str] = (), **options: Any) -> "Chat":
        """Start `steersman chat --json`; `prefix` is a program that runs it."""
        return self._open(*prefix, *self.command, "chat", "--json", *arguments, **options)

    def _open(self, *command: str, **options: Any) -> "Chat":
        chat = Chat(self, command, **options)
        self.chats.append(chat)
        return chat

    def attach(self, session: str = "last", *arguments: str) -> "Chat":
        """Start `steersman attach --json`: one more client of a session."""
        return self._open(*self.command, "attach", session, "--json", *arguments)

    def at_work(self, gate: "Gate", text: str = "work") -> "Chat":
        """Start a chat that asks nobody, and wait until a command of its first turn is at the gate."""
        chat = self.chat("--yes")
        chat.send(text)
        gate.wait()
        return chat

    def job(self, *arguments: str) -> "Chat":
        """Start `steersman run --json`, which is heard as a chat is."""
        return self._open(*self.command, "run", "--json", *arguments)

    def start(self, *arguments: str, **options: Any) -> Process:
        """Start any command with pipes; who asks for it waits for its end."""
        pipe = subprocess.PIPE
        given = {"stdin": pipe, "stdout": pipe, "stderr": pipe, "text": True} | options
        program = Process((*self.command, *arguments), cwd=self.folder, env=self.environ, **given)
        self.programs.append(program)
        return program

    def run(self, *arguments: str, said: str = "", **options: Any) -> Ran:
        """Run any command to its end with `said` as its input."""
        return finish(self.start(*arguments, **options), said)

    def data(self, *arguments: str, code: int = 0, **options: Any) -> Any:
        """Run a command with `--json`, which has to end with `code`, and return what it prints."""
        ran = self.run(*arguments, "--json", **options)
        assert ran.returncode == code, ran.stderr + ran.stdout
        return json.loads(ran.stdout)

    def stored(self, session: str = "last", *options: str) -> dict[str, Any]:
        """Return what `steersman inspect` says of a session."""
        ran = self.run("inspect", session, "--format", "json", *options)
        assert ran.returncode == 0, ran.stderr
        return json.loads(ran.stdout)

    def alter(self, *statements: str) -> None:
        """Run statements in the database of the home, in one transaction."""
        with closing(sqlite3.connect(self.home / "state" / "journal.db")) as home, home:
            for statement in statements:
                home.execute(statement)

    def processes(self) -> dict[int, str]:
        """Return the command lines of the live processes that were started here, by pid.

        Those are the ones with this place in their environment, and whatever descends from a program.
        The process id of one that has ended may be that of a foreign process by now.
        """
        ours = {program.pid for program in self.programs if program.returncode is None}
        found: dict[int, str] = {}
        rows = sorted(_processes(), key=lambda row: row.pid)
        while fresh := [row for row in rows if self._is_ours(row, ours) and row.pid not in found]:
            found |= {row.pid: row.command for row in fresh}
            ours |= found.keys()
        return found

    def left(self) -> list[str]:
        """Return what runs beside the programs, the guards of their processes, and their looks by git."""
        own = ("steersman", "ports/process/__main__.py", "git ls-files", "git diff-files")
        found = self.processes().values()
        return [one for one in found if not any(part in one for part in own)]

    def _is_ours(self, row: "_Process", ours: set[int]) -> bool:
        return row.pid in ours or row.parent in ours or self._mark in row.environ

    def leave(self) -> None:
        """Leave each quiet chat that the test has not ended as a person does: it has to end in order."""
        for chat in self.chats:
            if chat.process.returncode is None and chat.is_quiet():
                assert chat.close() == 0, chat.story()

    def close(self) -> None:
        """End whatever a test left: until nothing is there, or something that cannot be ended."""
        survivors: list[int] = []
        while not survivors and (found := self.processes()):
            for pid in found:
                end(pid)
            survivors = wait_gone(found)
        for chat in self.chats:
            chat.kill()


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
        if not _ends_in(pid, max(0.0, deadline - time.monotonic())):
            left.append(pid)
    return left


def _ends_in(pid: int, limit: float) -> bool:
    """Wait for the end of a process; say whether it came within so many seconds."""
    try:
        watched = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(readable(watched, timeout=limit))
    finally:
        os.close(watched)


class Heard:
    """What one client of a session was told. `events` is all of it; waiting moves a mark through them."""

    diagnostics = ""

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.times: list[float] = []
        self._mark = self._words = 0
        self._results: list[Event] = []
        self._change = threading.Condition()
        self._is_over = False

    def hear(self, event: Event | None) -> None:
        """Take in an event, or the end of all."""
        with self._change:
            if event is None:
                self._is_over = True
            else:
                self.times.append(time.monotonic())
                self.events.append(event)
            self._change.notify_all()

    def send(self, *lines: str | bytes | Event) -> None:
        """Say something, as lines of `chat --json`."""
        raise NotImplementedError

    def wait(self, kind: str, timeout: float = WAIT, **fields: Any) -> Event:
        """Wait for the next event of a kind whose fields are these, from the mark on."""
        check_events([kind], fields)
        return self._next(lambda event: _fits(event, kind, fields), f"`{kind}` {fields}", timeout)

    def _next(self, is_wanted: Callable[[Event], bool], what: str, timeout: float = WAIT) -> Event:
        """Wait for the next event that is wanted, from the mark on, and move the mark behind it.

        A result that `ask` returned is passed over.
        """
        with self._change:
            position = self._mark

            def came() -> bool:
                nonlocal position
                while position < len(self.events):
                    event = self.events[position]
                    if is_wanted(event) and not any(event is result for result in self._results):
                        return True
                    position += 1
                return self._is_over

            self._change.wait_for(came, seconds(timeout))
            if position >= len(self.events):
                raise AssertionError(f"no {what} came.\n{self.story()}")
            self._mark = position + 1
            if "turn" in self.events[position]:  # no word of a turn is both before it and to come
                self._words = self._mark
            return self.events[position]

    def wait_any(self, kind: str, timeout: float = WAIT, **fields: Any) -> Event:
        """Wait for an event of a kind whose fields are these, which may have come; the mark stays."""
        check_events([kind], fields)
        with self._change:
            self._change.wait_for(
                lambda: bool(self.seen(kind, **fields)) or self._is_over, seconds(timeout)
            )
            found = self.seen(kind, **fields)
            assert found, f"no `{kind}` {fields} came.\n{self.story()}"
            return found[0]

    def wait_text(self, text: str, timeout: float = WAIT) -> None:
        """Wait until a command's result, a notice or the model's own words hold `text`.

        The mark says where to look on. A result may come amid the words of a turn: those that were not
        waited for are looked at from the start of the turn on.
        """
        with self._change:
            position = min(self._mark, self._words)
            words = other = ""

            def came() -> bool:
                nonlocal position, words, other
                while text not in words and text not in other and position < len(self.events):
                    one = self.events[position]
                    if one["type"] == "turn_started":
                        words = ""
                    elif one["type"] == "text":
                        words += one["delta"]
                    elif position >= self._mark:
                        other = _text_of(one)
                    position += 1
                return text in words or text in other or self._is_over

            self._change.wait_for(came, seconds(timeout))
            if text not in words and text not in other:
                raise AssertionError(f"nothing said `{text}`.\n{self.story()}")
            last = position - 1  # the same one may hold the next text, too
            self._mark = max(self._mark, last)
            if text in words:
                self._words = last

    def wait_quiet(self, timeout: float = WAIT) -> None:
        """Wait until every turn that has started has ended."""
        with self._change:
            is_quiet = self._change.wait_for(self.is_quiet, seconds(timeout))
            assert is_quiet, f"a turn does not end.\n{self.story()}"

    def is_quiet(self) -> bool:
        """Whether every turn that has started has ended; a crash ended what ran."""
        since = max(
            (at for at, one in enumerate(self.events) if one["type"] == "recovered"), default=0
        )
        kinds = [event["type"] for event in self.events[since:]]
        return kinds.count("turn_started") == kinds.count("turn_ended")

    def ended_without(self, kind: str) -> bool:
        """Wait for the first event of a kind, or the end; say whether it ended without one."""
        check_events([kind])
        with self._change:
            self._change.wait_for(lambda: kind in self.kinds() or self._is_over, seconds(WAIT))
        return not self.seen(kind)

    def forget(self) -> None:
        """Let go of the events up to the mark: a long run needs them no more."""
        with self._change:
            del self.events[: self._mark], self.times[: self._mark]
            self._mark = self._words = 0
            self._results = [result for result in self._results if result in self.events]

    def causes(self, text: str | Event, kind: str, /, **fields: Any) -> Event:
        """Say something, and return the next event of a kind whose fields are these."""
        self.send(text)
        return self.wait(kind, **fields)

    def completes(self, text: str | Event) -> Event:
        """Say something, and return the end of its turn, which has to be completed."""
        return self.causes(text, "turn_ended", status="completed")

    def ask(self, command: str) -> Event:
        """Send a slash command and return its result.

        What the command causes may come before its result or behind it: the mark stays before both.

        Raises `ValueError` for a text that has no result: one that is no command, or is a message. Of a
        command that is not built in, which may be one of a package, the session says what it is.
        """
        require_result(command)
        key = f"ask {next(_KEYS)}"
        self.send({"text": command, "client_id": key})
        receipt = self._result(lambda event: is_receipt(cast(Any, event), key), command)
        if receipt["type"] != "result":
            raise ValueError(f"`{command}` is no command here: {receipt}")
        return receipt

    def _result(self, is_wanted: Callable[[Event], bool], command: str) -> Event:
        """Wait for a result, and move the mark behind the acceptance of its command."""
        with self._change:
            before = self._mark
            result = self._next(is_wanted, f"result of `{command}`")
            self._results.append(result)
            for position in range(before, self._mark):
                event = self.events[position]
                if (event.get("as"), event.get("id")) == ("command", result.get("id")):
                    self._mark = position + 1
            return result

    def answer(self, question: Event | str, choice: str, reason: str = "") -> None:
        """Answer a question, or the one with this id.

        Raises `ValueError` if it is not open, or has other options.
        """
        name = question if isinstance(question, str) else question["id"]
        closed = [event["id"] for event in self.seen("answered")]
        opened = {event["id"]: event for event in self.seen("question")}
        if name not in opened or name in closed:
            still = ", ".join(opened.keys() - closed) or "none"
            raise ValueError(f"question `{name}` is not open; open: {still}")
        options = opened[name]["options"]
        if options and choice not in options:
            raise ValueError(
                f"`{choice}` does not answer `{name}`, but one of {', '.join(options)}"
            )
        self.send({"answer": name, "choice": choice} | ({"reason": reason} if reason else {}))

    def seen(self, *kinds: str, **fields: Any) -> list[Event]:
        """Return the events so far of these kinds, or all kinds, whose fields are these."""
        check_events(kinds, fields)
        return [
            event
            for event in self.events
            if (not kinds or event["type"] in kinds) and _fits(event, event["type"], fields)
        ]

    def kinds(self, *wanted: str) -> list[str]:
        """Return the types of all events so far, in order, or of those wanted."""
        check_events(wanted)
        return [event["type"] for event in self.events if not wanted or event["type"] in wanted]

    def story(self) -> str:
        """Tell what happened, for a failed test."""
        said = "\n".join(json.dumps(event)[:400] for event in self.events)
        return f"events:\n{said}\nstandard error:\n{self.diagnostics}"

    @property
    def session(self) -> str:
        """The id of the session that it began or took up."""
        started = self.seen("session_started")
        return str((started[0] if started else self.wait("session_started"))["session"])


class Chat(Heard):
    """A running `chat --json`."""

    def __init__(
        self,
        place: Place,
        command: Sequence[str],
        environ: dict[str, str] | None = None,
        preexec_fn: Callable[[], None] | None = None,
    ) -> None:
        super().__init__()
        self.place = place
        self._complaints: list[str] = []
        self.process = Process(
            command,
            cwd=place.folder,
            env=place.environ | (environ or {}),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=preexec_fn,
        )
        place.programs.append(self.process)
        self._threads = [
            threading.Thread(target=work, daemon=True) for work in (self._read, self._overhear)
        ]
        for thread in self._threads:
            thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.hear(_parse(line))
        self.hear(None)

    def _overhear(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self._complaints.append(line.decode(errors="replace"))

    def send(self, *lines: str | bytes | Event) -> None:
        """Send lines, together."""
        data = b""
        for line in lines:
            text = json.dumps(line) if isinstance(line, dict) else line
            data += (text.encode() if isinstance(text, str) else text) + b"\n"
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    @property
    def diagnostics(self) -> str:
        """What it wrote to standard error."""
        return "".join(self._complaints)

    # Ending ---------------------------------------------------------------------------------------

    def close(self) -> int:
        """End its input, wait for its end and return the exit code."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        return self.ended()

    def kill(self) -> None:
        """End it by SIGKILL and wait for that. Idempotent."""
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
    return event if isinstance(event, dict) else {"type": NOT_JSON, "line": repr(line[:300])}


def _text_of(event: Event) -> str:
    return str(event.get("text", "")) if event["type"] in ("result", "notice", "error") else ""


def require_result(command: str) -> None:
    """Raise `ValueError` for a text that has no result."""
    if not command.startswith("/"):
        raise ValueError(f"`{command}` is no slash command: `send` it")
    name, *argument = command[1:].split(maxsplit=1) or [""]
    built_in = NAMES.built_in.get(name.lower())
    if built_in is None:
        return
    with suppress(UsageError):  # has a result that says so
        if built_in.parse("".join(argument)).command.says:
            raise ValueError(f"`{command}` is a message, which has no result: `send` it")


def _fits(event: Event, kind: str, fields: dict[str, Any]) -> bool:
    if event["type"] != kind:
        return False
    return all(
        value(event.get(name)) if callable(value) else event.get(name) == value
        for name, value in fields.items()
    )


def shape(events: Iterable[Event], *without: str) -> list[str]:
    """Return events as their types, a row of `text` as one, `queue` and others left out."""
    check_events(without)
    kinds: list[str] = []
    for event in events:
        kind = event["type"]
        if kind not in ("queue", "notice", *without) and (kind != "text" or kinds[-1:] != ["text"]):
            kinds.append(kind)
    return kinds


def outer_pid(pid: int, folder: Path) -> int:
    """Return the process id that we see of a process in `folder`; in a sandbox it sees another."""
    found = [pid]
    for status in Path("/proc").glob("[0-9]*/status"):
        with suppress(OSError):
            ids = re.findall(r"^NSpid:(.*)", status.read_text(), re.MULTILINE)[0].split()
            if ids[1:] and int(ids[-1]) == pid and (status.parent / "cwd").resolve() == folder:
                found.append(int(ids[0]))
    return max(found)


class Gate:
    """Where a shell command stops until a test lets it through: two named pipes in a folder.

    `command` is shell text that says its process id and then waits; `call` is that as a tool call.
    """

    def __init__(self, folder: Path, name: str = "gate") -> None:
        self._folder = folder.resolve()
        self._files: list[int] = []
        for part in ("here", "go"):
            path = folder / f"{name}.{part}"
            os.mkfifo(path)
            self._files.append(os.open(path, os.O_RDWR | os.O_NONBLOCK))
        self.command = f"echo $$ > {name}.here; read word < {name}.go"
        self.call = {"tool": "shell", "arguments": {"command": self.command}}

    def wait(self, timeout: float = WAIT) -> int:
        """Wait until a command has come; return its process id."""
        here = self._files[0]
        came = readable(here, timeout=seconds(timeout))
        assert came, "no command came to the gate"
        return outer_pid(int(os.read(here, 100).split()[0]), self._folder)

    def open(self) -> None:
        """Let one command through."""
        os.write(self._files[1], b"go\n")

    def close(self) -> None:
        """Give the pipes back."""
        for file in self._files:
            os.close(file)
