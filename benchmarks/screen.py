"""How the chat screen feels: ready, a key, a busy stream, much output, and doing nothing.

Run it as `python benchmarks/screen.py`, with the package installed. The program is the real one in a
pty; the model is a server on loopback in a process of its own, which sends 200 tokens a second: words,
or tables and code, which are drawn and coloured. A
key's time is from the write of its byte to the first read that shows it. The baseline, in the same
run and in turn: a bare prompt_toolkit prompt in the same pty, with nothing else going on.
"""

from __future__ import annotations

import json
import os
import pty
import select
import statistics
import string
import subprocess
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from pathlib import Path

from table import head, row

TESTS = Path(__file__).resolve().parent.parent / "tests"
KEYS = 200
STARTS = 7
PAUSE = 0.037
"""Seconds between two keys, as somebody types who is in a hurry; not in step with the drawing."""
TOKENS = 200
"""Tokens a second."""
QUIET = 5.0
"""Seconds for which an idle chat is watched."""
BARE = "from prompt_toolkit import PromptSession; PromptSession().prompt('> ')"
BIG = 10_000_000
"""Characters of a session that is opened again."""
PART = """
| name{n} | what is it? | how large |
|---|:---:|---:|
| `word{n}` | a cell that is wide enough to be broken in two or three rows of the terminal | {n} |
| [page](https://example.org/{n}) | **bold**, *italic*, and plain words to the end of the row | {n} |

```python
class Word{n}(Base):
    '''A class with a comment.'''
    def method(self, value: int = {n}) -> str:
        return f"{{value}} of {{self.name}}"  # as text
```
"""
"""A part of the answer with tables and code."""
SIGNS = string.ascii_uppercase
"""What is typed; the model says none of them."""


class Pty:
    """A program in a pty, and what it writes."""

    def __init__(self, command: Sequence[str], folder: Path, environ: dict[str, str]) -> None:
        self._ours, theirs = pty.openpty()
        termios.tcsetwinsize(theirs, (40, 100))
        settings = termios.tcgetattr(theirs)
        settings[3] &= ~termios.ECHO  # a key that is shown was shown by the program
        termios.tcsetattr(theirs, termios.TCSANOW, settings)
        self.began = time.monotonic()
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environ | {"TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)

    def type(self, text: str) -> None:
        """Type it."""
        os.write(self._ours, text.encode())

    def read(self, seconds: float) -> bytes:
        """Return what comes next within so many seconds, nothing for nothing."""
        if not select.select([self._ours], [], [], max(0.0, seconds))[0]:
            return b""
        data = os.read(self._ours, 1 << 16)
        if b"\x1b[6n" in data:  # where is the cursor?
            self.type("\x1b[1;1R")
        return data

    def until(self, text: str, seconds: float = 60.0) -> float:
        """Read until a text was shown; return the time of that."""
        end, seen = time.monotonic() + seconds, b""
        while text.encode() not in seen:
            data = self.read(end - time.monotonic())
            assert data, f"`{text}` was not shown: {seen[-500:]!r}"
            seen = seen[-200:] + data
        return time.monotonic()

    def key(self, sign: str) -> float:
        """Press a key and return the seconds until it is shown."""
        while self.read(0.0):
            continue
        began = time.monotonic()
        self.type(sign)
        return self.until(sign) - began

    def keys(self, count: int) -> list[float]:
        """Press so many, one after another, and return their times."""
        times = list[float]()
        for at in range(count):
            if at % len(SIGNS) == 0:
                self.type("\x15")
                self.rest(0.3)
            times.append(self.key(SIGNS[at % len(SIGNS)]))
            self.rest(PAUSE)
        return times

    def rest(self, seconds: float) -> None:
        """Read away what comes for so long."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self.read(left)

    def cpu(self) -> float:
        """Return the seconds of processor time that it has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def close(self) -> None:
        """End it."""
        self.process.kill()
        self.process.wait()
        os.close(self._ours)


class Scene:
    """A home, a folder, and a model server in a process of its own."""

    def __init__(self, root: Path) -> None:
        words = " ".join(f"word{n}," if n % 9 else f"**word{n}**\n" for n in range(40_000))
        parts = "".join(PART.format(n=n) for n in range(2_000))
        flood = {"command": "seq -f 'a line of output, number %.0f, and more' 100000"}
        script = [
            {"do": "text", "match": "stream", "times": 0, "text": words, "pause": 1 / TOKENS},
            {"do": "text", "match": "parts", "times": 0, "text": parts, "pause": 1 / TOKENS},
            {"do": "text", "match": "big", "times": 0, "text": "a line of words\n" * (BIG // 160)},
            {
                "do": "tools",
                "match": "flood",
                "text": "",
                "calls": [{"tool": "shell", "arguments": flood}],
            },
            {"do": "text", "text": "that was all."},
        ]
        (root / "script.json").write_text(json.dumps(script))
        command = [
            sys.executable,
            "-m",
            "support.model_server",
            "--script",
            str(root / "script.json"),
        ]
        pipe = subprocess.PIPE
        self.server = subprocess.Popen(
            [*command, "--port", "0"], stdin=pipe, stdout=pipe, text=True, cwd=TESTS
        )
        assert self.server.stdout is not None
        url = f"http://127.0.0.1:{int(self.server.stdout.readline())}/v1"
        self.folder, home = root / "project", root / "home"
        self.folder.mkdir()
        home.mkdir()
        model = f'[models.main]\nprovider = "openai"\nbase_url = "{url}"\nmodel = "m"\n'
        (home / "config.toml").write_text(f'{model}[agents.assistant]\nmodel = "main"\n')
        self.environ = {**os.environ, "STEERSMAN_HOME": str(home), "PYTHONIOENCODING": "utf-8"}

    def chat(self, *arguments: str) -> Pty:
        """Open a chat."""
        command = [sys.executable, "-m", "steersman", "chat", "--yes", *arguments]
        return Pty(command, self.folder, self.environ)

    def fill(self) -> None:
        """Have a session of ten messages with long answers."""
        command = [sys.executable, "-m", "steersman", "chat", "--yes"]
        said = "".join(f"big {n}\n" for n in range(10))
        nowhere = subprocess.DEVNULL
        subprocess.run(
            command,
            input=said,
            text=True,
            cwd=self.folder,
            env=self.environ,
            stdout=nowhere,
            stderr=nowhere,
            check=True,
        )

    def bare(self) -> Pty:
        """Open the baseline."""
        return Pty([sys.executable, "-c", BARE], self.folder, self.environ)

    def close(self) -> None:
        """End the server."""
        self.server.kill()
        self.server.communicate()


def worst(times: list[float]) -> float:
    """Return the 99th percentile."""
    return sorted(times)[int(0.99 * len(times))]


def starts(scene: Scene) -> None:
    """Measure from the start of the process until the prompt is there."""
    ours, bare = list[float](), list[float]()
    for _ in range(STARTS):
        for open_it, sign, times in ((scene.bare, ">", bare), (scene.chat, "idle", ours)):
            one = open_it()
            times.append(one.until(sign) - one.began)
            one.close()
    baseline, value = statistics.median(bare), statistics.median(ours)
    row("bare prompt is ready", baseline * 1e3, unit="ms")
    row("chat is ready", value * 1e3, "<= 400 ms", ok=value <= 0.4)
    row("chat is ready, as times of the baseline", value / baseline)


def resumes(scene: Scene) -> None:
    """Measure from the start of the process until a long session takes keys."""
    scene.fill()
    ours, bare = list[float](), list[float]()
    for _ in range(STARTS):
        for chat, times in ((scene.bare(), bare), (scene.chat("--resume", "last"), ours)):
            chat.type("Q")
            times.append(chat.until("Q") - chat.began)
            chat.close()
    baseline, value = statistics.median(bare), statistics.median(ours)
    row(f"a session of {BIG // 10**6} MB takes keys", value * 1e3, "<= 600 ms", ok=value <= 0.6)
    row("the same, as times of the baseline", value / baseline)


def echoes(scene: Scene) -> None:
    """Measure keys: with nothing going on, in a stream, behind a flood of output."""
    bare = scene.bare()
    bare.until(">")
    baseline = bare.keys(KEYS)
    bare.close()
    show("a key, bare prompt", baseline)
    chat = scene.chat()
    chat.until("idle")
    show("a key, chat at rest", chat.keys(KEYS), baseline)
    chat.type("\x15flood\r")
    chat.until("that was all.")
    show("a key, behind 100,000 lines of output", chat.keys(KEYS), baseline)
    chat.type("\x15stream\r")
    chat.until("word20")
    show(f"a key, {TOKENS} tokens a second", chat.keys(KEYS), baseline)
    chat.close()
    chat = scene.chat()
    chat.until("idle")
    chat.type("\x15parts\r")
    chat.until("Word3")
    show(f"a key, {TOKENS} tokens a second of tables and code", chat.keys(KEYS), baseline)
    chat.close()


def show(name: str, times: list[float], baseline: list[float] | None = None) -> None:
    """Print the median and the 99th percentile."""
    row(f"{name}, median", statistics.median(times) * 1e3, unit="ms")
    if baseline is None:
        row(f"{name}, 99th percentile", worst(times) * 1e3, unit="ms")
        return
    value = worst(times)
    row(f"{name}, 99th percentile", value * 1e3, "<= 16 ms", ok=value <= 0.016)
    row(f"{name}, as times of the baseline", value / worst(baseline))


def idleness(scene: Scene) -> None:
    """Measure what a chat costs in which nothing happens."""
    chat = scene.chat()
    chat.until("idle")
    chat.rest(1.0)
    before = chat.cpu()
    chat.rest(QUIET)
    share = (chat.cpu() - before) / QUIET * 100
    row("an idle chat, of one core", share, "< 1 %", ok=share < 1)
    chat.close()


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as name:
        scene = Scene(Path(name))
        try:
            head("the chat screen, in a pty")
            starts(scene)
            resumes(scene)
            echoes(scene)
            idleness(scene)
        finally:
            scene.close()


if __name__ == "__main__":
    main()
