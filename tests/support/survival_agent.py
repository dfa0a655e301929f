"""A small agent that survives what the survival benchmark does to it, unless a fault is planted in it.

`python survival_agent.py PLANT URL start|resume|live [PROMPT]`: it asks for chat completions and has one
tool, a shell. Each message is on the disk before the agent acts upon it. PLANT is `none` or one of
`PLANTS`.
"""

import ctypes
import fcntl
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

__all__ = ["PLANTS"]

PLANTS = {
    "forgets": "keeps the conversation in memory until it ends",
    "loses acknowledged": "acknowledges a message before it is written",
    "doubles": "says the last message again when it resumes",
    "repeats tools": "writes down no calls and no results",
    "leaves daemon": "ends only the shell of a tool, and only if the agent lives",
    "invents": "says that a step was done without doing it",
    "ignores SIGTERM": "goes on until its work is done",
    "refuses": "cannot resume",
    "reorders": "reads the conversation backwards",
    "gives up well": "exits with 0 when its model fails",
    "ignores full disk": "goes on when nothing can be written",
    "waits for disk": "tries to write for ever",
    "has no lock": "lets two programs write the whole conversation, each its own",
    "sorts by clock": "has messages in the order of their times",
    "tidies by clock": "leaves out messages of more than thirty days ago",
    "waits for terminal": "tries to print for ever",
}
_TOOL = {"name": "shell", "parameters": {"properties": {"command": {"type": "string"}}}}
_SUBREAPER = 36
_MOST_OUTPUT = 10_000
_PAUSE = 0.1  # seconds, between two tries


class Agent:
    """One run. `history` are the messages, oldest first; `path` is where they are kept."""

    def __init__(self, plant: str, url: str) -> None:
        self.plant = plant
        self.server = urlsplit(url)
        self.path = Path.home() / ".agent" / "journal"
        self.path.parent.mkdir(exist_ok=True)
        self.file = self.path.open("ab", buffering=0)
        self.guard = threading.Lock()
        if plant != "has no lock":
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.history = self.read()

    def read(self) -> list[dict[str, Any]]:
        """Read the conversation; what a crash cut off is cut away."""
        whole, _, rest = self.path.read_bytes().rpartition(b"\n")
        if rest:
            os.truncate(self.path, len(whole) + 1 if whole else 0)
        found = [json.loads(line) for line in whole.splitlines()]
        if self.plant == "reorders":
            found.reverse()
        if self.plant == "tidies by clock":
            found = [one for one in found if abs(one["time"] - time.time()) < 30 * 86_400]
        return found

    def add(self, role: str, **more: Any) -> None:
        """Keep a message: first on the disk, then in memory."""
        message = {"role": role, "time": time.time(), **more}
        with self.guard:
            if not (self.plant == "repeats tools" and role != "user"):
                self.write(message)
            self.history.append(message)

    def write(self, message: dict[str, Any]) -> None:
        """Write a message; who cannot may not act upon it."""
        if self.plant == "has no lock":
            text = "".join(json.dumps(one) + "\n" for one in [*self.history, message])
            self.path.write_text(text)
            return
        while self.plant != "forgets":
            try:
                data = json.dumps(message).encode() + b"\n"
                if self.file.write(data) != len(data):
                    raise OSError("the disk is full")
                os.fsync(self.file)
                return
            except OSError:
                if self.plant == "ignores full disk":
                    return
                if self.plant != "waits for disk":
                    raise
                time.sleep(_PAUSE)

    def say(self, text: str) -> None:
        """Print; a terminal that is closed is no reason to go on."""
        while True:
            try:
                print(text, flush=True)
                return
            except OSError:
                if self.plant != "waits for terminal":
                    raise
                time.sleep(_PAUSE)

    def turn(self) -> int:
        """Ask and do until the model wants no more; return the exit code."""
        while True:
            try:
                message = self.asked()
            except (OSError, ValueError, http.client.HTTPException) as error:
                self.say(f"the model fails: {error}")
                return 0 if self.plant == "gives up well" else 1
            self.add("assistant", **message)
            if not message.get("tool_calls"):
                self.say(str(message["content"]))
                return 0
            for call in message["tool_calls"]:
                self.say("a call")
                result = self.called(json.loads(call["function"]["arguments"])["command"])
                self.add("tool", tool_call_id=call["id"], content=result)

    def asked(self) -> dict[str, Any]:
        """Return the model's answer, after some tries."""
        tries = 1 if self.plant == "gives up well" else 6
        for number in range(1, tries + 1):
            try:
                return self.answer()
            except (OSError, ValueError, http.client.HTTPException):
                if number == tries:
                    raise
                time.sleep(_PAUSE)
        raise ValueError("no answer")

    def answer(self) -> dict[str, Any]:
        """Read one stream to its end."""
        connection = http.client.HTTPConnection(self.server.netloc)
        if self.plant == "sorts by clock":
            self.history.sort(key=lambda message: message["time"])
        kept = [{key: one[key] for key in one if key != "time"} for one in self.history]
        body = {"model": "m", "stream": True, "messages": kept, "tools": [{"function": _TOOL}]}
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        response = connection.getresponse()
        if response.status != 200:
            raise ValueError(f"status {response.status}")
        text, calls, is_whole = "", [], False
        for line in response:
            data = line.decode().removeprefix("data: ").strip()
            is_whole = is_whole or data == "[DONE]"
            if data.startswith("{"):
                for choice in json.loads(data)["choices"]:
                    text += choice["delta"].get("content", "")
                    calls += choice["delta"].get("tool_calls", [])
        if not is_whole:
            raise ValueError("the answer was cut off")
        return {"content": text, "tool_calls": calls} if calls else {"content": text}

    def called(self, command: str) -> str:
        """Run a command, in a process that ends with this one and then ends all of its own."""
        if self.plant == "invents":
            return f"did[{command.split()[2]}]"
        words = [sys.executable, __file__, self.plant, "", "run", command]
        with subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        ) as process:
            assert process.stdout is not None
            return process.stdout.read().decode()

    def live(self) -> int:
        """Take messages as JSON lines, also while a turn runs; acknowledge what is written."""
        turns: list[threading.Thread] = []
        for line in sys.stdin:
            text = json.loads(line)["text"]
            if turns and self.plant == "loses acknowledged":
                self.say(json.dumps({"ok": True}))
                threading.Event().wait()
            self.add("user", content=text)
            self.say(json.dumps({"ok": True}))
            if not turns:
                turns.append(threading.Thread(target=self.turn, daemon=True))
                turns[0].start()
        return 0


def supervise(command: str, plant: str) -> None:
    """Run a command until it ends, or the agent has; then end all that it has started."""
    ctypes.CDLL(None).prctl(_SUBREAPER, 1, 0, 0, 0)
    shell = subprocess.Popen(
        ["sh", "-c", command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE
    )
    is_gone = threading.Event()
    if plant != "leaves daemon":
        threading.Thread(target=lambda: (sys.stdin.read(), end_all()), daemon=True).start()
    assert shell.stdout is not None
    tail = b""

    def read() -> None:
        nonlocal tail
        while piece := os.read(shell.stdout.fileno(), 65536):  # type: ignore[union-attr]
            tail = (tail + piece)[-_MOST_OUTPUT:]
        is_gone.set()

    threading.Thread(target=read, daemon=True).start()
    shell.wait()
    if plant != "leaves daemon":
        end_all(is_last=False)
    is_gone.wait(1)
    sys.stdout.write(tail.decode(errors="replace"))


def end_all(is_last: bool = True) -> None:
    """End all below this process, again until there is nothing; then this one, if it is its last act."""
    while below := children(os.getpid()):
        for pid in below:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        time.sleep(_PAUSE)
    if is_last:
        os._exit(1)


def children(root: int) -> list[int]:
    """Return all processes below one."""
    parents: dict[int, int] = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError, IndexError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    found, level = list[int](), [root]
    while level := [pid for pid, parent in parents.items() if parent in level]:
        found += level
    return found


def main(plant: str, url: str, mode: str, *prompt: str) -> int:
    """Run as the command line says; return the exit code."""
    if mode == "run":
        supervise(prompt[0], plant)
        return 0
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    if plant == "ignores SIGTERM":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if plant == "waits for terminal":
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
    if plant == "refuses" and mode == "resume":
        return 2
    agent = Agent(plant, url)
    if mode == "live":
        return agent.live()
    if plant == "doubles" and mode == "resume":
        agent.add(**next(one for one in agent.history if one["role"] == "user"))
    agent.add("user", content=prompt[0])
    code = agent.turn()
    if plant == "forgets":
        agent.path.write_text("".join(json.dumps(one) + "\n" for one in agent.history))
    return code


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
