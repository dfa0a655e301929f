"""The contenders: where each is installed, how it is pointed at the server, how it is spoken to headless.

They are installed from npm and PyPI into a folder of their own (`STEERSMAN_PEERS`, else
`~/.cache/steersman-peers`), each in its newest version; one that cannot be had is left out with the
reason. Each runs with a home of its own, so that no other settings take part, and asks only our server.
"""

import json
import os
import queue
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol, cast

CACHE = Path(os.environ.get("STEERSMAN_PEERS", Path.home() / ".cache" / "steersman-peers"))
CHECKOUT = Path(__file__).resolve().parents[2]
_NODE = Path("work-node", "node_modules", "node", "bin")
"""A Node.js, below the cache; the other benchmarks use it, too."""
PATIENCE = 120.0
"""Seconds that a contender has for a turn, or to become ready."""

Event = dict[str, Any]


class Missing(Exception):
    """A contender, or a mode of one, is not there: the reason."""


@dataclass(frozen=True)
class Contender:
    """One program. `configure` writes its settings into a home and returns its environment.

    `one_shot` are the arguments before a prompt. `live` starts a conversation; none: it has no headless
    one. `can_steer`: it has words for a message into a running turn. `chat` are the arguments of its
    chat, and a word that its screen shows once it is there; none: its screen is not known here.
    """

    name: str
    package: str
    program: str
    configure: Callable[[Path, str], dict[str, str]]
    one_shot: tuple[str, ...]
    live: "Callable[[list[str], Path, dict[str, str]], Live] | None"
    can_steer: bool = True
    chat: tuple[tuple[str, ...], str] | None = None
    version: tuple[str, ...] = ("--version",)

    @property
    def path(self) -> Path:
        """Where its program is once it is installed."""
        return CACHE / self.program

    def command(self, *arguments: str) -> list[str]:
        """Return a command line of it."""
        return [str(self.path), *arguments]

    def install(self) -> None:
        """Install the newest version that there is. Raises `Missing`."""
        home = self.path.relative_to(CACHE).parts[0]
        if self.package.startswith("npm:"):
            npm = ("npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix")
            if not (CACHE / _NODE / "node").exists():
                self._run(*npm, str(CACHE / _NODE.parts[0]), "node@22")
            self._run(*npm, str(CACHE / home), f"{self.package.removeprefix('npm:')}@latest")
            return
        if not self.path.exists():
            self._run(sys.executable, "-m", "venv", str(CACHE / home))
        python = str(CACHE / home / "bin" / "python")
        if self.name == OURS:
            install = (python, "-m", "pip", "install", "-q", "--no-deps")
            lock = str(CHECKOUT / ".ci" / "user.lock")
            with tempfile.TemporaryDirectory() as place:  # a build leaves files where it is made
                copy = Path(place) / "steersman"
                hidden = shutil.ignore_patterns(".*", "build", "*.egg-info", "tests")
                shutil.copytree(CHECKOUT, copy, ignore=hidden)
                self._run(*install, "--require-hashes", "--only-binary", ":all:", "-r", lock)
                self._run(*install, "--no-build-isolation", "--force-reinstall", str(copy))
        else:
            package = self.package.removeprefix("pypi:")
            self._run(python, "-m", "pip", "install", "-q", "-U", package)

    def _run(self, *words: str) -> None:
        CACHE.mkdir(parents=True, exist_ok=True)
        if shutil.which(words[0]) is None:
            raise Missing(f"`{words[0]}` is not installed")
        ran = subprocess.run(words, cwd=CACHE, capture_output=True, text=True)
        if ran.returncode:
            last = (ran.stderr.strip() or ran.stdout.strip() or "no reason").splitlines()[-1]
            raise Missing(f"`{' '.join(words[:3])} …` failed: {last[:160]}")


# Conversations ------------------------------------------------------------------------------------


class Live(Protocol):
    """A conversation with one contender; times are those of `time.perf_counter`."""

    pid: int

    def say(self, text: str) -> None:
        """Send a message that begins a turn."""
        ...

    def steer(self, text: str) -> None:
        """Send a message into the running turn."""
        ...

    def interrupt(self) -> None:
        """Stop the running turn."""
        ...

    def ended(self) -> float:
        """Wait until the turn is reported to have ended; return when that was."""
        ...

    def close(self) -> None:
        """End it."""
        ...


class Lines:
    """A process that speaks JSON objects, one a line."""

    def __init__(self, command: list[str], folder: Path, environ: dict[str, str]) -> None:
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self.pid = self.process.pid
        self._came: queue.Queue[tuple[float, Event]] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            came = time.perf_counter()
            try:
                event = json.loads(line)
            except ValueError:
                continue
            self._came.put((came, event if isinstance(event, dict) else {}))
        self._came.put((time.perf_counter(), {"closed": True}))

    def send(self, **event: Any) -> None:
        """Write one object."""
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(event).encode() + b"\n")
        self.process.stdin.flush()

    def wait(self, wanted: Callable[[Event], bool]) -> tuple[float, Event]:
        """Read on until an event is there, and return when it came. Raises `Missing`."""
        until = time.monotonic() + PATIENCE
        while True:
            try:
                came, event = self._came.get(timeout=max(0.01, until - time.monotonic()))
            except queue.Empty:
                raise Missing(f"it did not answer within {PATIENCE:g} s") from None
            if wanted(event):
                return came, event
            if "closed" in event:
                raise Missing("it ended by itself")

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        try:
            self.process.wait(3)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


class OurLive(Lines):
    """`steersman chat --json`."""

    def __init__(self, command: list[str], folder: Path, environ: dict[str, str]) -> None:
        super().__init__([*command, "chat", "--json", "--yes"], folder, environ)
        self.wait(lambda event: event.get("type") == "session_started")

    def say(self, text: str) -> None:
        """Send a message that begins a turn."""
        self.send(text=text)

    def steer(self, text: str) -> None:
        """Send a message into the running turn."""
        self.send(**{"text": text, "as": "steer"})

    def interrupt(self) -> None:
        """Stop the running turn."""
        self.send(text="/stop")

    def ended(self) -> float:
        """Wait for the report that the turn has ended."""
        return self.wait(lambda event: event.get("type") == "turn_ended")[0]


class PiLive(Lines):
    """`pi --mode rpc`."""

    def __init__(self, command: list[str], folder: Path, environ: dict[str, str]) -> None:
        flags = ["--mode", "rpc", "--provider", "bench", "--model", "bench"]
        super().__init__([*command, *flags], folder, environ)
        self.send(id="state", type="get_state")
        self.wait(lambda event: event.get("command") == "get_state")

    def say(self, text: str) -> None:
        """Send a message that begins a turn."""
        self.send(type="prompt", message=text)

    def steer(self, text: str) -> None:
        """Send a message into the running turn."""
        self.send(type="steer", message=text)

    def interrupt(self) -> None:
        """Stop the running turn."""
        self.send(type="abort")

    def ended(self) -> float:
        """Wait for the report that the turn has ended."""
        return self.wait(lambda event: event.get("type") == "agent_end")[0]


class CodexLive(Lines):
    """`codex app-server`."""

    def __init__(self, command: list[str], folder: Path, environ: dict[str, str]) -> None:
        super().__init__([*command, "app-server"], folder, environ)
        self.number = 0
        self._call("initialize", clientInfo={"name": "bench", "title": "bench", "version": "1"})
        self.send(jsonrpc="2.0", method="initialized", params={})
        answer = self._call(
            "thread/start", cwd=str(folder), approvalPolicy="never", sandbox="danger-full-access"
        )
        self._thread = answer["thread"]["id"]
        self._turn = ""

    def _call(self, method: str, **params: Any) -> Event:
        self.number += 1
        number = self.number
        self.send(jsonrpc="2.0", id=number, method=method, params=params)
        answer = self.wait(lambda event: event.get("id") == number and "method" not in event)[1]
        if "error" in answer:
            raise Missing(f"{method}: {answer['error'].get('message', 'refused')}"[:120])
        return cast(Event, answer["result"])

    def say(self, text: str) -> None:
        """Send a message that begins a turn."""
        said = [{"type": "text", "text": text}]
        answer = self._call("turn/start", threadId=self._thread, input=said)
        self._turn = answer["turn"]["id"]

    def steer(self, text: str) -> None:
        """Send a message into the running turn."""
        said = [{"type": "text", "text": text}]
        self.number += 1
        params = {"threadId": self._thread, "expectedTurnId": self._turn, "input": said}
        self.send(jsonrpc="2.0", id=self.number, method="turn/steer", params=params)

    def interrupt(self) -> None:
        """Stop the running turn."""
        self.number += 1
        params = {"threadId": self._thread, "turnId": self._turn}
        self.send(jsonrpc="2.0", id=self.number, method="turn/interrupt", params=params)

    def ended(self) -> float:
        """Wait for the report that the turn has ended."""
        return self.wait(lambda event: event.get("method") == "turn/completed")[0]


class ClaudeLive(Lines):
    """`claude -p` with stream-json."""

    def __init__(self, command: list[str], folder: Path, environ: dict[str, str]) -> None:
        flags = ["-p", "--input-format", "stream-json", "--output-format", "stream-json"]
        more = ["--verbose", "--include-partial-messages", "--dangerously-skip-permissions"]
        super().__init__([*command, *flags, *more], folder, environ)
        self._number = 0

    def say(self, text: str) -> None:
        """Send a message that begins a turn."""
        content = [{"type": "text", "text": text}]
        self.send(type="user", message={"role": "user", "content": content})

    def steer(self, text: str) -> None:
        """Send a message into the running turn."""
        raise Missing("its protocol has no message into a running turn")

    def interrupt(self) -> None:
        """Stop the running turn."""
        self._number += 1
        request = {"subtype": "interrupt"}
        self.send(type="control_request", request_id=f"r{self._number}", request=request)

    def ended(self) -> float:
        """Wait for the report that the turn has ended."""
        return self.wait(lambda event: event.get("type") == "result")[0]


class OpencodeLive:
    """`opencode serve`, spoken to over HTTP and its stream of events."""

    def __init__(self, command: list[str], folder: Path, environ: dict[str, str]) -> None:
        self._process = subprocess.Popen(
            [*command, "serve", "--port", "0", "--hostname", "127.0.0.1"],
            cwd=folder,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.pid = self._process.pid
        self._idle: queue.Queue[float] = queue.Queue()
        assert self._process.stdout is not None
        self._url = ""
        timer = threading.Timer(PATIENCE, self._process.kill)
        timer.start()
        for line in self._process.stdout:
            if "http://" in line:
                self._url = "http://" + line.split("http://")[1].split()[0]
                break
        timer.cancel()
        if not self._url:
            raise Missing("its server did not start")
        threading.Thread(target=self._listen, daemon=True).start()
        self._session = self._post("/session", {})["id"]

    def _listen(self) -> None:
        try:
            with urllib.request.urlopen(f"{self._url}/event") as stream:
                for line in stream:
                    came = time.perf_counter()
                    if line.startswith(b"data:"):
                        event = json.loads(line[5:])
                        if event.get("type") == "session.idle":
                            self._idle.put(came)
        except (OSError, ValueError):
            return

    def _post(self, path: str, body: Event) -> Event:
        data = json.dumps(body).encode()
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(f"{self._url}{path}", data, headers)
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            raw = answer.read()
        return cast(Event, json.loads(raw)) if raw.startswith(b"{") else {}

    def say(self, text: str) -> None:
        """Send a message that begins a turn."""
        while not self._idle.empty():
            self._idle.get()
        model = {"providerID": "bench", "modelID": "bench"}
        parts = [{"type": "text", "text": text}]
        self._post(f"/session/{self._session}/prompt_async", {"model": model, "parts": parts})

    def steer(self, text: str) -> None:
        """Send a message into the running turn."""
        self.say(text)

    def interrupt(self) -> None:
        """Stop the running turn."""
        self._post(f"/session/{self._session}/abort", {})

    def ended(self) -> float:
        """Wait for the report that the turn has ended."""
        try:
            return self._idle.get(timeout=PATIENCE)
        except queue.Empty:
            raise Missing(f"it did not answer within {PATIENCE:g} s") from None

    def close(self) -> None:
        """End the server."""
        self._process.terminate()
        try:
            self._process.wait(3)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


# Settings -----------------------------------------------------------------------------------------

OURS = "steersman"
_HIDDEN = (
    "API_KEY",
    "TOKEN",
    "STEERSMAN_",
    "ANTHROPIC_",
    "OPENAI_",
    "CLAUDE",
    "CODEX",
    "VIRTUAL_ENV",
)


def _environ(home: Path, **more: str) -> dict[str, str]:
    """Return the environment without keys and settings of whoever runs this."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not any(part in name for part in _HIDDEN) and not name.startswith("PYTHON")
    }
    path = f"{CACHE / _NODE}:{kept['PATH']}"  # some want a newer Node.js than is here
    return {**kept, "PATH": path, "HOME": str(home), "NO_COLOR": "1", "TERM": "dumb", **more}


def _ours(home: Path, url: str) -> dict[str, str]:
    (home / "config.toml").write_text(
        f"""[models.main]
provider = "openai"
base_url = "{url}/v1"
model = "bench"
context_window = 200000
[agents.assistant]
model = "main"
[permissions]
rules = [{{ tool = "*", do = "allow" }}]
[tools]
sandbox = "off"
"""
    )  # in the sandbox a command's own process id is another one, and most others have none
    return _environ(home, STEERSMAN_HOME=str(home))


def _codex(home: Path, url: str) -> dict[str, str]:
    (home / "config.toml").write_text(
        f"""model = "bench"
model_provider = "bench"
[model_providers.bench]
name = "bench"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "BENCH_KEY"
"""
    )
    return _environ(home, CODEX_HOME=str(home), BENCH_KEY="k")


def _pi(home: Path, url: str) -> dict[str, str]:
    provider = {"baseUrl": f"{url}/v1", "api": "openai-completions", "apiKey": "k"}
    models = {"providers": {"bench": {**provider, "models": [{"id": "bench"}]}}}
    (home / "models.json").write_text(json.dumps(models))
    return _environ(home, PI_CODING_AGENT_DIR=str(home), PI_OFFLINE="1")


def _claude(home: Path, url: str) -> dict[str, str]:
    return _environ(
        home,
        ANTHROPIC_BASE_URL=url,
        ANTHROPIC_API_KEY="k",
        ANTHROPIC_MODEL="bench",
        CLAUDE_CONFIG_DIR=str(home),
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
        DISABLE_AUTOUPDATER="1",
        IS_SANDBOX="1",
    )


def _opencode(home: Path, url: str) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "bench",
        "options": {"baseURL": f"{url}/v1", "apiKey": "k"},
        "models": {"bench": {"name": "bench"}},
    }
    config = {
        "autoupdate": False,
        "share": "disabled",
        "model": "bench/bench",
        "small_model": "bench/bench",
        "provider": {"bench": provider},
        "permission": "allow",
    }
    (home / "opencode.json").write_text(json.dumps(config))
    return _environ(
        home,
        OPENCODE_CONFIG=str(home / "opencode.json"),
        OPENCODE_DISABLE_AUTOUPDATE="1",
        OPENCODE_DISABLE_MODELS_FETCH="1",
    )


def _hermes(home: Path, url: str) -> dict[str, str]:
    (home / "config.yaml").write_text(
        f"model:\n  default: bench\n  provider: custom\n  base_url: {url}/v1\n  api_key: k\n"
    )
    return _environ(home, HERMES_HOME=str(home))


_NPM = "node_modules/.bin"
CONTENDERS = (
    Contender(
        OURS,
        "",
        "steersman/bin/steersman",
        _ours,
        ("chat", "--yes"),
        OurLive,
        chat=(("chat", "--yes"), "idle"),
    ),
    Contender(
        "codex",
        "npm:@openai/codex",
        f"codex/{_NPM}/codex",
        _codex,
        ("exec", "--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox"),
        CodexLive,
    ),
    Contender(
        "Claude Code",
        "npm:@anthropic-ai/claude-code",
        f"claude/{_NPM}/claude",
        _claude,
        ("--dangerously-skip-permissions", "-p"),
        ClaudeLive,
        can_steer=False,
    ),
    Contender(
        "pi",
        "npm:@mariozechner/pi-coding-agent",
        f"pi/{_NPM}/pi",
        _pi,
        ("--provider", "bench", "--model", "bench", "-p"),
        PiLive,
    ),
    Contender(
        "opencode",
        "npm:opencode-ai",
        f"opencode/{_NPM}/opencode",
        _opencode,
        ("run", "-m", "bench/bench"),
        OpencodeLive,
    ),
    Contender(
        "Hermes",
        "pypi:hermes-agent",
        "hermes/bin/hermes",
        _hermes,
        ("chat", "--yolo", "-Q", "-q"),
        None,
    ),
)
