"""What a turn costs: a one-shot chat as a whole, a warm turn, memory, against a real server.

Run it as `python benchmarks/turns.py`, with the package installed. The model is a server on loopback
that answers at once, so that what is measured is ours. `startup.py` has the time to the first request.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import ClassVar

from table import head, row, spread

RUNS = 7
TURNS = 30
COMMAND = [sys.executable, "-m", "steersman", "chat"]
CHUNK = {"choices": [{"index": 0, "delta": {"content": "Hello."}, "finish_reason": "stop"}]}
BODY = f"data: {json.dumps(CHUNK)}\n\ndata: [DONE]\n\n".encode()


class Answer(BaseHTTPRequestHandler):
    """Answers every request with the same word, and notes when it came and when it was done."""

    protocol_version = "HTTP/1.1"
    came: ClassVar[list[float]] = []
    done: ClassVar[list[float]] = []

    def do_POST(self) -> None:
        """Answer."""
        self.came.append(time.perf_counter())
        self.rfile.read(int(self.headers["Content-Length"]))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Content-Length", str(len(BODY)))
        self.end_headers()
        self.wfile.write(BODY)
        self.done.append(time.perf_counter())

    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


def configure(home: Path, port: int) -> dict[str, str]:
    """Write a configuration for this server; return the environment of a chat."""
    (home / "config.toml").write_text(
        f"""[models.main]
provider = "openai"
base_url = "http://127.0.0.1:{port}/v1"
model = "bench"
[agents.assistant]
model = "main"
"""
    )
    environ = {**os.environ, "STEERSMAN_HOME": str(home)}
    environ.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program is compiled
    return environ


def one_shot(environ: dict[str, str], folder: Path) -> tuple[float, float]:
    """Seconds to the end, and the most memory in MiB."""
    began = time.perf_counter()
    process = subprocess.Popen(
        [*COMMAND, "hi"],
        cwd=folder,
        env=environ,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    _, status, usage = os.wait4(process.pid, 0)
    ended = time.perf_counter()
    process.returncode = os.waitstatus_to_exitcode(status)
    assert process.returncode == 0
    scale = 1024 if sys.platform == "linux" else 1024 * 1024
    return ended - began, usage.ru_maxrss / scale


def warm_turns(environ: dict[str, str], folder: Path) -> list[float]:
    """Seconds of each turn of one chat, without the time that the model took."""
    process = subprocess.Popen(
        [*COMMAND, "--json"],
        cwd=folder,
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    spent: list[float] = []
    with process:
        for _ in range(TURNS):
            began = time.perf_counter()
            process.stdin.write("hi\n")
            process.stdin.flush()
            while json.loads(process.stdout.readline())["type"] != "turn_ended":
                continue
            ended = time.perf_counter()
            spent.append(ended - began - (Answer.done[-1] - Answer.came[-1]))
        process.stdin.close()
        process.stdout.read()
    return spent[1:]


def start_of_python() -> float:
    """Return the seconds that an interpreter takes which does nothing: the measure of this machine."""
    spent: list[float] = []
    for _ in range(RUNS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-S", "-c", "pass"], check=True)
        spent.append(time.perf_counter() - began)
    return statistics.median(spent)


def main() -> None:
    """Measure and print."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever, args=(0.05,))
    thread.start()
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        (root / "home").mkdir()
        (root / "project").mkdir()
        environ = configure(root / "home", server.server_address[1])
        one_shot(environ, root / "project")  # not counted: it compiles
        shots = [one_shot(environ, root / "project") for _ in range(RUNS)]
        turns = warm_turns(environ, root / "project")
    server.shutdown()
    server.server_close()
    thread.join()
    head(f"a turn, best or median of {RUNS}")
    row("one message, whole", statistics.median(shot[0] for shot in shots) * 1e3, unit="ms")
    memory = max(shot[1] for shot in shots)
    row("one message, most memory", memory, "<= 60 MiB", ok=memory <= 60)
    turn = spread("warm turn, beside the model's time", [turn * 1e3 for turn in turns], 10)
    row("times the start of python", turn / (start_of_python() * 1e3), unit="x")


if __name__ == "__main__":
    main()
