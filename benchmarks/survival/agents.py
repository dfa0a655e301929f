"""The adapters: how an agent is installed, given a prompt headless, resumed, and asked what it kept.

An adapter is a subclass of `Agent`. What an agent cannot do is said by its flags, and is not counted as
a loss. Installation and settings are those of benchmarks/work and benchmarks/peers. Where a package
has a native program, that is started, and not the script around it: a fault is to meet the agent.
"""

import json
import signal
import subprocess
import time
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from contender import (
    CHECKOUT,
    CONTENDERS,
    OURS,
    PEERS,
    Contender,
    Missing,
    Place,
    environ_of,
    install_node,
    ours,
)
from contenders import PATIENCE, CodexLive, Lines, Live, OpencodeLive, OurLive, PiLive

__all__ = ["AGENTS", "Agent", "Missing"]

_NPM = "node_modules/.bin"
_WORK = {contender.name: contender for contender in CONTENDERS}


class Agent:
    """One program. `name` is what the report calls it, `contender` how it is installed.

    `resumes`: a later run can continue the conversation. `runs_tools`: it has a tool for commands.
    `lists`: it, or its files, tell which sessions there are. `cannot` says in words what it cannot do.
    """

    name: ClassVar[str]
    contender: ClassVar[Contender]
    resumes: ClassVar[bool] = True
    runs_tools: ClassVar[bool] = True
    lists: ClassVar[bool] = True
    queues: ClassVar[bool] = False
    cannot: ClassVar[str] = ""

    def __init__(self) -> None:
        self.home = self.folder = Path()
        self.environ: dict[str, str] = {}
        self.prefix: list[str] = []

    def install(self) -> str:
        """Install the newest version that there is, and return it. Raises `Missing`."""
        if self.contender.package.startswith("npm:"):
            install_node()
        return self.contender.install()

    def prepare(self, place: Path, url: str, mark: str) -> None:
        """Write the settings of a case into `place`; the model is at `url`, `mark` in the environment."""
        self.home, self.folder = place / "home", place / "project"
        cache = PEERS / "survival-cache" / self.name.replace(" ", "-")
        for path in (self.home, self.folder, cache):
            path.mkdir(parents=True, exist_ok=True)
        where = Place(self.home, url, cache, Path())
        self.environ = environ_of(self.contender, where, mark)
        self.prefix = self.contender.prepare(where)

    def start(self, prompt: str) -> list[str]:
        """Return the command that begins a conversation."""
        return [*self.prefix, prompt]

    def resume(self, prompt: str) -> list[str]:
        """Return the command that continues the newest conversation of the folder."""
        raise NotImplementedError

    def live(self) -> Live:
        """Open a conversation that takes messages during a turn. Only if `queues`."""
        raise NotImplementedError

    def queue(self, live: Live, text: str) -> None:
        """Send a message into the running turn; return when the agent has acknowledged it."""
        raise NotImplementedError

    def waiting(self) -> str:
        """Return what the agent shows of messages that wait for a person's word, if it has such."""
        return ""

    def sessions(self) -> list[str]:
        """Return what the agent lists after all. Only if `lists`."""
        raise NotImplementedError

    def asked(self, *words: str) -> str:
        """Run a command of the agent, and return what it printed; at most a minute."""
        command = [*self.prefix[:1], *words]
        with suppress(subprocess.TimeoutExpired):
            return subprocess.run(
                command,
                cwd=self.folder,
                env=self.environ,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                text=True,
                timeout=60,
            ).stdout
        return ""


_NO_PRODUCT = tuple(f":!{name}" for name in ("benchmarks", "docs", "tests", "Makefile", "*.md"))


class Steersman(Agent):
    """This program, as it is in the checkout."""

    name = OURS
    contender = _WORK[OURS]
    queues = True

    def install(self) -> str:
        """Return the version, with the commit that last changed the product."""
        from steersman import __version__

        words = ("log", "-1", "--format=%h", "--", ".", *_NO_PRODUCT)
        ran = subprocess.run(["git", *words], cwd=CHECKOUT, capture_output=True, text=True)
        return f"{__version__} {ran.stdout.strip()}".strip()

    def prepare(self, place: Path, url: str, mark: str) -> None:
        """Allow all calls, as all others do here."""
        super().prepare(place, url, mark)
        config = self.home / ".config/steersman/config.toml"
        with config.open("a") as file:
            file.write('\n[permissions]\nrules = [{ tool = "*", do = "allow" }]\n')

    def resume(self, prompt: str) -> list[str]:
        """Return the command that continues the newest conversation of the folder."""
        return [*self.prefix, "--continue", prompt]

    def live(self) -> Live:
        """Open `chat --json`."""
        return OurLive(self.prefix[:1], self.folder, self.environ)

    def queue(self, live: Live, text: str) -> None:
        """Wait for the event `accepted` of this message."""
        assert isinstance(live, OurLive)
        live.steer(text)
        live.wait(lambda event: event.get("type") == "accepted" and event.get("as") != "turn")

    def waiting(self) -> str:
        """Ask for the queue of the newest session: after a crash nothing runs by itself."""
        return self.asked("queue", "list")

    def sessions(self) -> list[str]:
        """Ask `sessions list`."""
        listed = json.loads(self.asked("sessions", "list", "--json") or "{}")
        return [str(row["id"]) for row in listed.get("sessions", [])]


class Unboxed(Steersman):
    """This program, which ends processes without the help of a sandbox."""

    name = f"{OURS}, no sandbox"
    contender = ours(name, {"tools": {"sandbox": "off"}})


class Codex(Agent):
    """codex, which asks for responses."""

    name = "codex"
    contender = Contender(
        "codex",
        lambda place: _codex(place),
        "npm:@openai/codex",
        f"survival-codex/{_NPM}/codex",
    )
    queues = True

    def start(self, prompt: str) -> list[str]:
        """Return the command that begins a conversation."""
        return [*self.prefix, "exec", *_CODEX, prompt]

    def resume(self, prompt: str) -> list[str]:
        """Return the command that continues the newest conversation of the folder."""
        return [*self.prefix, "exec", *_CODEX, "resume", "--last", prompt]

    def live(self) -> Live:
        """Open `app-server`."""
        return CodexLive(self.prefix, self.folder, self.environ)

    def queue(self, live: Live, text: str) -> None:
        """Wait for the response to `turn/steer`."""
        assert isinstance(live, CodexLive)
        live.steer(text)
        live.wait(lambda event: event.get("id") == live.number and "method" not in event)

    def sessions(self) -> list[str]:
        """Look for its rollouts: it lists sessions on a screen only."""
        return _files(self.home / ".codex/sessions", "*.jsonl")


_CODEX = ("--skip-git-repo-check", "--dangerously-bypass-approvals-and-sandbox")


def _codex(place: Place) -> list[str]:
    place.write(
        ".codex/config.toml",
        f"""model = "bench"
model_provider = "bench"
[model_providers.bench]
name = "bench"
base_url = "{place.url}/v1"
wire_api = "responses"
env_key = "OPENAI_API_KEY"
""",
    )
    return [_native("survival-codex", "@openai/codex-linux-*/vendor/*/bin/codex")]


def _native(folder: str, pattern: str) -> str:
    """Return the native program of a package, which its script would start."""
    found = sorted((PEERS / folder / "node_modules").glob(pattern))
    if not found:
        raise Missing(f"no program `{pattern}`")
    return str(found[0])


def _files(folder: Path, pattern: str) -> list[str]:
    return sorted(path.stem for path in folder.rglob(pattern))


class Pi(Agent):
    """pi."""

    name = "pi"
    contender = _WORK["pi"]
    queues = True

    def resume(self, prompt: str) -> list[str]:
        """Return the command that continues the newest conversation of the folder."""
        return [*self.prefix[:-1], "--continue", "-p", prompt]

    def live(self) -> Live:
        """Open its mode `rpc`."""
        return PiLive(self.prefix[:1], self.folder, self.environ)

    def queue(self, live: Live, text: str) -> None:
        """Wait for the response to `steer`."""
        assert isinstance(live, PiLive)
        live.steer(text)
        live.wait(lambda event: event.get("command") == "steer")

    def sessions(self) -> list[str]:
        """Look for its files: it lists sessions on a screen only."""
        return _files(self.home / ".pi/agent/sessions", "*.jsonl")


class Opencode(Agent):
    """opencode."""

    name = "opencode"
    contender = _WORK["opencode"]
    queues = True

    def prepare(self, place: Path, url: str, mark: str) -> None:
        """Start the native program."""
        super().prepare(place, url, mark)
        self.prefix[0] = str(Path(self.prefix[0]).resolve())

    def resume(self, prompt: str) -> list[str]:
        """Return the command that continues the newest conversation of the folder."""
        return [*self.prefix, "--continue", prompt]

    def live(self) -> Live:
        """Open `serve`."""
        return OpencodeLive(self.prefix[:1], self.folder, self.environ)

    def queue(self, live: Live, text: str) -> None:
        """Wait for the answer to the request."""
        live.steer(text)

    def sessions(self) -> list[str]:
        """Ask `session list`."""
        return [
            line.split()[0] for line in self.asked("session", "list").splitlines() if "ses_" in line
        ]


class Claude(Agent):
    """Claude Code, which asks for messages."""

    name = "Claude Code"
    contender = Contender(
        "Claude Code",
        lambda place: [str((PEERS / f"survival-claude/{_NPM}/claude").resolve())],
        "npm:@anthropic-ai/claude-code",
        f"survival-claude/{_NPM}/claude",
        {
            "ANTHROPIC_API_KEY": "k",
            "ANTHROPIC_MODEL": "bench",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "DISABLE_AUTOUPDATER": "1",
            "IS_SANDBOX": "1",
        },
    )
    cannot = "acknowledges no message into a running turn"

    def prepare(self, place: Path, url: str, mark: str) -> None:
        """Point it at the server."""
        super().prepare(place, url, mark)
        self.environ["ANTHROPIC_BASE_URL"] = url

    def start(self, prompt: str) -> list[str]:
        """Return the command that begins a conversation."""
        return [*self.prefix, "--dangerously-skip-permissions", "-p", prompt]

    def resume(self, prompt: str) -> list[str]:
        """Return the command that continues the newest conversation of the folder."""
        return [*self.prefix, "--dangerously-skip-permissions", "--continue", "-p", prompt]

    def sessions(self) -> list[str]:
        """Look for its files: it lists sessions on a screen only."""
        return _files(self.home / ".claude/projects", "*.jsonl")


class Qwen(Agent):
    """qwen-code."""

    name = "qwen-code"
    contender = replace(_WORK["qwen-code"], environ={"QWEN_CODE_NO_RELAUNCH": "true"})
    cannot = "takes no message into a running turn when headless"

    def prepare(self, place: Path, url: str, mark: str) -> None:
        """Start the program as its script would."""
        super().prepare(place, url, mark)
        program = str(Path(self.prefix[0]).resolve().with_name("cli.js"))
        self.prefix[:1] = ["node", "--expose-gc", program]

    def resume(self, prompt: str) -> list[str]:
        """Return the command that continues the newest conversation of the folder."""
        return [*self.prefix[:-1], "--continue", "-p", prompt]

    def sessions(self) -> list[str]:
        """Look for its files: it lists sessions on a screen only."""
        return _files(self.home / ".qwen/projects", "*.jsonl")


class Gptme(Agent):
    """gptme, which has its calls in the text of an answer if it is not told otherwise."""

    name = "gptme"
    contender = replace(_WORK["gptme"], environ={"GPTME_TIKTOKEN_TIMEOUT": "0"})
    queues = True

    def prepare(self, place: Path, url: str, mark: str) -> None:
        """Have calls as the protocol has them, and its other programs at hand."""
        super().prepare(place, url, mark)
        self.environ["PATH"] += f":{Path(self.prefix[0]).parent}"
        self.prefix += ["--tool-format", "tool"]

    def resume(self, prompt: str) -> list[str]:
        """Return the command that continues the newest conversation of the folder."""
        return [*self.prefix, "--resume", prompt]

    def live(self) -> Live:
        """Name a conversation, since its queue is found by that."""
        return _GptmeLive([*self.prefix, "--name", "live"], self.folder, self.environ)

    def queue(self, live: Live, text: str) -> None:
        """Wait for the word of `chats send`."""
        if "Queued" not in self.asked("chats", "send", "live", text):
            raise Missing("it did not take the message")

    def sessions(self) -> list[str]:
        """Ask `chats list`."""
        return [str(row["id"]) for row in json.loads(self.asked("chats", "list", "--json") or "[]")]


class _GptmeLive(Lines):
    """`gptme`, which reads its first message to the end of the input, and later ones from a queue."""

    def say(self, text: str) -> None:
        """Send the message that begins the conversation."""
        assert self.process.stdin is not None
        self.process.stdin.write(text.encode())
        self.process.stdin.close()

    def steer(self, text: str) -> None:
        """Raise `Missing`: `Gptme.queue` has another program do this."""
        raise Missing("it reads no more")

    def interrupt(self) -> None:
        """Stop the running turn, and the program."""
        self.process.send_signal(signal.SIGINT)

    def ended(self) -> float:
        """Wait until the program has ended."""
        self.process.wait(PATIENCE)
        return time.perf_counter()


class Mini(Agent):
    """mini-swe-agent."""

    name = "mini-swe-agent"
    contender = _WORK["mini"]
    resumes = lists = False
    cannot = "cannot resume a conversation; takes no message into a running turn; does not stream"


AGENTS: dict[str, type[Agent]] = {
    agent.name: agent
    for agent in (Steersman, Unboxed, Codex, Opencode, Pi, Claude, Qwen, Gptme, Mini)
}
"""All adapters by name."""
