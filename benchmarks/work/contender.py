"""The contenders: how each is installed, configured for the proxy, and given a request, headless.

Other programs are installed from npm and PyPI into folders of their own (`STEERSMAN_PEERS`, else
`~/.cache/steersman-peers`), in the newest version that the registry has at the time of the run. One that
cannot be had is named with the reason, and not counted. Each attempt has a new home; the cache folder is
one for all attempts of a contender, as it is for a person.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tomli_w
from proxy import OUTPUT, Call, malformed
from server import WINDOW

PEERS = Path(os.environ.get("STEERSMAN_PEERS", Path.home() / ".cache" / "steersman-peers"))
CHECKOUT = Path(__file__).resolve().parents[2]
OURS = "steersman"
MOST_CALLS = 24
_NPM = "node_modules/.bin"
_NODE = "work-node/node_modules/node/bin"
_INSTALL = 1200.0  # seconds
_TRIES = 6
"""How many of the newest versions are tried: a registry may lack what the newest needs."""


class Missing(Exception):
    """A contender is not there: the reason."""


@dataclass(frozen=True)
class Place:
    """Where an attempt runs: its new home, the proxy's address, the contender's cache, the weights."""

    home: Path
    url: str
    cache: Path
    weights: Path

    def write(self, name: str, text: str) -> Path:
        """Write a file of the home."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path


@dataclass(frozen=True)
class Contender:
    """One harness.

    `prepare` writes its settings and returns its command without the request, which comes last. What it
    prints is its answer if `prints_answer`; else the last text of the model is, because it prints tools'
    outputs, too. `rejected` is found in a request that tells the model that its last answer was no call.
    `is_embedded`: it asks no server, and its calls are read from its journal.
    """

    name: str
    prepare: Callable[[Place], list[str]]
    package: str = ""
    program: str = ""
    environ: dict[str, str] = field(default_factory=dict[str, str])
    prints_answer: bool = False
    rejected: str = ""
    is_embedded: bool = False

    @property
    def is_ours(self) -> bool:
        """Whether it is steersman, in one of its forms."""
        return self.name.startswith(OURS)

    @property
    def is_peer(self) -> bool:
        """Whether it is a program of other people."""
        return bool(self.package)

    def install(self) -> str:
        """Install its newest version, and return that. Raises `Missing`."""
        if self.is_ours:
            return our_version()
        if not self.package:
            return ""
        kind, name = self.package.split(":")
        home = PEERS / self.program.split("/")[0]
        missed = (_npm if kind == "npm" else _pip)(home, name)
        if not (PEERS / self.program).exists():
            raise Missing(f"`{name}` has no program `{Path(self.program).name}`")
        return _version(home, kind, name) + missed


def _npm(home: Path, name: str) -> str:
    """Install the newest version that can be; remark if that is not the newest. Raises `Missing`."""
    newest, why = "", Missing(f"`{name}` has no versions")
    versions = json.loads(_run(["npm", "view", name, "versions", "--json"]))
    tried = versions[-_TRIES:] if isinstance(versions, list) else [versions]
    for version in reversed(tried):
        words = ["--no-audit", "--no-fund", "--loglevel=error", "--prefix", str(home)]
        try:
            _run(["npm", "install", *words, f"{name}@{version}"])
            return f" ({newest} cannot be installed)" if newest else ""
        except Missing as error:
            newest, why = newest or str(version), error
    raise why


def _pip(home: Path, name: str) -> str:
    if not (home / "bin" / "python").exists():
        _run([sys.executable, "-m", "venv", str(home)])
    _run([str(home / "bin" / "python"), "-m", "pip", "install", "-q", "-U", name])
    return ""


def _version(home: Path, kind: str, name: str) -> str:
    if kind == "npm":
        path = home / "node_modules" / name / "package.json"
        return str(json.loads(path.read_text())["version"])
    code = f"import importlib.metadata as m; print(m.version({name!r}))"
    return _run([str(home / "bin" / "python"), "-c", code]).strip()


def _run(words: list[str]) -> str:
    PEERS.mkdir(parents=True, exist_ok=True)
    if shutil.which(words[0]) is None:
        raise Missing(f"`{words[0]}` is not installed")
    try:
        ran = subprocess.run(words, cwd=PEERS, capture_output=True, text=True, timeout=_INSTALL)
    except subprocess.TimeoutExpired:
        raise Missing(f"`{words[0]}` took more than {_INSTALL:g} s") from None
    if ran.returncode:
        last = (ran.stderr.strip() or ran.stdout.strip() or "no reason").splitlines()[-1]
        raise Missing(f"`{' '.join(words[:3])} …` failed: {last[:160]}")
    return ran.stdout


def install_node() -> None:
    """Install a Node.js for those that need a newer one than is here. Raises `Missing`."""
    if not (PEERS / _NODE / "node").exists():
        _run(["npm", "install", "--prefix", str(PEERS / "work-node"), "node@22"])


def our_version() -> str:
    """Return the version of this checkout, with its commit and a mark of what is not committed."""
    from steersman import __version__

    def git(*words: str) -> str:
        command = ["git", "-C", str(CHECKOUT), *words]
        return subprocess.run(command, capture_output=True, text=True).stdout

    changed = git("diff", "HEAD", "--", ":!benchmarks", ":!docs", ":!tests")
    mark = f"+{hashlib.sha256(changed.encode()).hexdigest()[:6]}" if changed else ""
    return f"{__version__} {git('log', '-1', '--format=%h').strip()}{mark}"


def environ_of(contender: Contender, place: Place, mark: str) -> dict[str, str]:
    """Return the environment of an attempt: nothing of the caller's but paths and language."""
    home = place.home
    tools = tools_folder()
    return {
        "PATH": f"{tools}:{PEERS / _NODE}:{os.environ.get('PATH', '')}",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
        "NO_COLOR": "1",
        "CI": "1",
        "HOME": str(home),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "XDG_DATA_HOME": str(home / ".local/share"),
        "XDG_STATE_HOME": str(home / ".local/state"),
        "XDG_CACHE_HOME": str(place.cache),
        "OPENAI_API_KEY": "k",
        "OPENAI_BASE_URL": f"{place.url}/v1",
        "OPENAI_MODEL": "bench",
        "DO_NOT_TRACK": "1",
        "GIT_CONFIG_NOSYSTEM": "1",
        "STEERSMAN_WORK": mark,
        **{
            f"GIT_{who}_{what}": "ann@example.org"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        },
        **contender.environ,
    }


def tools_folder() -> Path:
    """Return a folder with `python` and `python3`, the interpreter that also runs the checks."""
    folder = PEERS / "work-tools"
    folder.mkdir(parents=True, exist_ok=True)
    for name in ("python", "python3"):
        if not (folder / name).exists():
            (folder / name).symlink_to(Path(sys.executable).resolve())
    return folder


def cache_of(contender: Contender) -> Path:
    """Return the cache folder of a contender, which outlives its attempts."""
    return PEERS / "work-cache" / re.sub(r"\W+", "-", contender.name)


# The adapters -------------------------------------------------------------------------------------


def _blocks(place: Place) -> list[str]:
    return ["python3", str(Path(__file__).with_name("blocks.py")), place.url]


def _mini(settings: str, kind: str = "") -> Callable[[Place], list[str]]:
    def prepare(place: Place) -> list[str]:
        sets = [
            settings,
            f"model.model_kwargs.api_base={place.url}/v1",
            "model.cost_tracking=ignore_errors",
        ]
        words = [word for one in sets for word in ("-c", one)]
        words += ["--model-class", kind] if kind else []
        program = str(PEERS / "work-mini/bin/mini")
        out = str(place.home / "run.traj.json")
        return [
            program,
            "-y",
            "--exit-immediately",
            "-l",
            "0",
            *words,
            "-m",
            "openai/bench",
            "-o",
            out,
            "-t",
        ]

    return prepare


def _aider(place: Place) -> list[str]:
    flags = (
        "yes-always no-show-model-warnings no-check-update analytics-disable no-pretty no-gitignore \
        no-suggest-shell-commands no-show-release-notes no-auto-commits"
    )
    window = {
        "max_input_tokens": WINDOW,
        "max_output_tokens": OUTPUT,
        "litellm_provider": "openai",
        "mode": "chat",
    }
    known = place.write("models.json", json.dumps({"openai/bench": window}))
    where = ["--model-metadata-file", str(known), "--openai-api-base", f"{place.url}/v1"]
    words = [f"--{flag}" for flag in flags.split()]
    return [
        str(PEERS / "work-aider/bin/aider"),
        "--model",
        "openai/bench",
        *where,
        *words,
        "--message",
    ]


def _pi(place: Place) -> list[str]:
    model = {"id": "bench", "contextWindow": WINDOW, "maxTokens": OUTPUT}
    compat = {"supportsDeveloperRole": False, "supportsReasoningEffort": False}
    provider = {"baseUrl": f"{place.url}/v1", "api": "openai-completions", "apiKey": "k"}
    models = {"providers": {"bench": {**provider, "compat": compat, "models": [model]}}}
    place.write(".pi/agent/models.json", json.dumps(models))
    keep = {"compaction": {"enabled": True, "reserveTokens": 2048, "keepRecentTokens": 8000}}
    place.write(".pi/agent/settings.json", json.dumps(keep))
    return [str(PEERS / f"work-pi/{_NPM}/pi"), "--provider", "bench", "--model", "bench", "-p"]


def _opencode(place: Place) -> list[str]:
    limit = {"context": WINDOW, "output": OUTPUT}
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "name": "bench",
        "options": {"baseURL": f"{place.url}/v1", "apiKey": "k"},
        "models": {"bench": {"name": "bench", "limit": limit}},
    }
    more = {
        "autoupdate": False,
        "share": "disabled",
        "small_model": "bench/bench",
        "permission": "allow",
    }
    settings = {"model": "bench/bench", "provider": {"bench": provider}, **more}
    place.write(".config/opencode/opencode.json", json.dumps(settings))
    return [str(PEERS / f"work-opencode/{_NPM}/opencode"), "run", "-m", "bench/bench"]


def _qwen(place: Place) -> list[str]:
    program = str(PEERS / f"work-qwen/{_NPM}/qwen")
    return [program, "--auth-type", "openai", "--model", "bench", "--yolo", "-p"]


def _gptme(place: Place) -> list[str]:
    return [str(PEERS / "work-gptme/bin/gptme"), "--non-interactive", "-m", "local/bench"]


def _steersman(place: Place, more: dict[str, Any]) -> list[str]:
    model = {
        "provider": "openai",
        "base_url": f"{place.url}/v1",
        "model": "bench",
        "context_window": WINDOW,
    }
    return _ours(place, model, more)


def _embedded(place: Place, more: dict[str, Any]) -> list[str]:
    link = place.cache / "steersman" / "models" / place.weights.name
    if not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(place.weights)
    model = {"provider": "local", "model": place.weights.stem, "temperature": 0.0}
    return _ours(place, model, more)


def _ours(place: Place, model: dict[str, Any], more: dict[str, Any]) -> list[str]:
    agent = {"model": "main", "max_steps": MOST_CALLS}
    settings = {"models": {"main": model}, "agents": {"assistant": agent}}
    place.write(".config/steersman/config.toml", tomli_w.dumps(merged(settings, more)))
    return [program_of_ours(), "chat", "--yes"]


def program_of_ours() -> str:
    """Return the path of the installed command."""
    return str(Path(sys.executable).with_name("steersman"))


def merged(under: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    """Lay settings over others, table by table."""
    found = dict(under)
    for key, value in over.items():
        both = isinstance(value, dict) and isinstance(found.get(key), dict)
        found[key] = merged(found[key], value) if both else value
    return found


def _variants() -> list[Contender]:
    tables = tomllib.loads(Path(__file__).with_name("variants.toml").read_text("utf-8"))
    found: list[Contender] = []
    for name, table in tables.items():
        is_embedded = bool(table.pop("embedded", False))
        found.append(ours(f"{OURS}, {name}", table, is_embedded))
    return found


def ours(name: str, more: dict[str, Any], is_embedded: bool = False) -> Contender:
    """Return steersman with settings of its own, over HTTP or embedded."""
    adapter = _embedded if is_embedded else _steersman
    return Contender(
        name, lambda place: adapter(place, more), prints_answer=True, is_embedded=is_embedded
    )


CONTENDERS = (
    Contender("blocks", _blocks, prints_answer=True),
    Contender(
        "mini",
        _mini("mini.yaml"),
        "pypi:mini-swe-agent",
        "work-mini/bin/mini",
        {
            "MSWEA_CONFIGURED": "true",
            "MSWEA_SILENT_STARTUP": "1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
        rejected="Tool call error|No tool calls found|Expected exactly",
    ),
    Contender(
        "mini-text",
        _mini("mini_textbased.yaml", "litellm_textbased"),
        "pypi:mini-swe-agent",
        "work-mini/bin/mini",
        {
            "MSWEA_CONFIGURED": "true",
            "MSWEA_SILENT_STARTUP": "1",
            "LITELLM_LOCAL_MODEL_COST_MAP": "True",
        },
        rejected="Expected exactly",
    ),
    Contender(
        "aider",
        _aider,
        "pypi:aider-chat",
        "work-aider/bin/aider",
        {"LITELLM_LOCAL_MODEL_COST_MAP": "True"},
        rejected="did not conform to the edit format|failed to match",
    ),
    Contender(
        "pi",
        _pi,
        "npm:@earendil-works/pi-coding-agent",
        f"work-pi/{_NPM}/pi",
        {"PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1", "PI_TELEMETRY": "0"},
        prints_answer=True,
    ),
    Contender(
        "opencode",
        _opencode,
        "npm:opencode-ai",
        f"work-opencode/{_NPM}/opencode",
        {
            "OPENCODE_DISABLE_AUTOUPDATE": "1",
            "OPENCODE_DISABLE_MODELS_FETCH": "1",
            "OPENCODE_DISABLE_LSP_DOWNLOAD": "1",
        },
    ),
    Contender(
        "qwen-code",
        _qwen,
        "npm:@qwen-code/qwen-code",
        f"work-qwen/{_NPM}/qwen",
        prints_answer=True,
    ),
    Contender("gptme", _gptme, "pypi:gptme", "work-gptme/bin/gptme"),
    ours(OURS, {}),
    ours(f"{OURS} embedded", {}, is_embedded=True),
    *_variants(),
)


# The journal of steersman -------------------------------------------------------------------------


def journal_calls(environ: dict[str, str], folder: Path) -> list[Call]:
    """Read the model calls of all sessions of a home from steersman's own exports, oldest first."""

    def ask(*words: str) -> Any:
        ran = subprocess.run(
            [program_of_ours(), "sessions", *words],
            cwd=folder,
            env=environ,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return json.loads(ran.stdout or "{}")

    listed = ask("list", "--json").get("sessions", [])
    entries = [
        entry
        for row in listed
        for entry in ask("export", row["id"], "--format", "json").get("entries", [])
    ]
    return calls_of(sorted(entries, key=lambda entry: entry["time"]))


def calls_of(entries: list[dict[str, Any]]) -> list[Call]:
    """Return the calls that entries of journals tell of; one without an answer counts, too."""
    calls: list[Call] = []
    tools: list[dict[str, Any]] = []
    for entry in entries:
        data = entry["data"]
        if data["kind"] == "session_opened":
            tools += [{"function": {"name": name}} for name in data.get("tools", ())]
        elif data["kind"] == "model_called":
            calls.append(Call())
        elif data["kind"] == "answered" and calls:
            usage, call = data.get("usage", {}), calls[-1]
            call.read, call.written = usage.get("input", 0), usage.get("output", 0)
            call.cached = usage.get("cache_read", 0)
            for said in data.get("messages", ()):
                call.text += said.get("text", "")
                call.uses += [
                    (call["tool"], json.dumps(call["arguments"]))
                    for call in said.get("tool_calls", ())
                ]
            call.malformed = malformed(call, tools)
    return calls
