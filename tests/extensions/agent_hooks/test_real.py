"""The real agents, where they are installed: they take our hooks, call them, and can be resumed.

An agent is looked for on PATH, and before it in the folders that STEERSMAN_TEST_AGENTS names (as PATH
does). Each runs in a home of its own, against a model server on loopback.
"""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Generator
from pathlib import Path
from typing import Any

import pytest
from support.answering import AnsweringServer
from support.executed import executed
from support.patience import seconds

pytestmark = pytest.mark.nightly

PROMPT = "say ok"
PLACES = f"{os.environ.get('STEERSMAN_TEST_AGENTS', '')}:{os.environ['PATH']}"
OPENCODE = {
    "npm": "@ai-sdk/openai-compatible",
    "options": {"baseURL": "URL/v1", "apiKey": "x"},
    "models": {"fake": {}},
}
SETTINGS: dict[str, tuple[str, Any]] = {
    "gemini": (".gemini/settings.json", {"security": {"auth": {"selectedType": "gemini-api-key"}}}),
    "opencode": (
        ".config/opencode/opencode.json",
        {"provider": {"fake": OPENCODE}, "model": "fake/fake", "small_model": "fake/fake"},
    ),
    "hermes": (
        ".hermes/config.yaml",
        {"model": {"default": "fake", "provider": "custom", "base_url": "URL/v1"}},
    ),
    "claude": (".claude/settings.json", {}),
    "codex": (".codex/config.toml", None),
}
BARE = ("--skip-git-repo-check", "--dangerously-bypass-hook-trust")
CODEX = 'model_providers.f={name="f",base_url="URL/v1",wire_api="responses"}'
COMMANDS: dict[str, list[str]] = {
    "claude": ["claude", "-p", PROMPT],
    "codex": ["codex", "exec", *BARE, "-c", "model_provider=f", "-c", CODEX, "-m", "fake", PROMPT],
    "copilot": ["copilot", "-p", PROMPT],
    "gemini": ["gemini", "--skip-trust", "-m", "gemini-2.5-flash", "-p", PROMPT],
    "hermes": ["hermes", "--accept-hooks", "chat", "-q", PROMPT, "-Q"],
    "opencode": ["opencode", "run", PROMPT],
}
VARIABLES = {
    "ANTHROPIC_BASE_URL": "URL",
    "ANTHROPIC_API_KEY": "x",
    "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    "COPILOT_PROVIDER_BASE_URL": "URL/v1",
    "COPILOT_PROVIDER_TYPE": "openai",
    "COPILOT_PROVIDER_API_KEY": "x",
    "COPILOT_MODEL": "fake",
    "COPILOT_OFFLINE": "true",
    "GEMINI_API_KEY": "x",
    "GOOGLE_GEMINI_BASE_URL": "URL",
    "OPENAI_API_KEY": "x",
}

Ran = subprocess.CompletedProcess[str]


@pytest.fixture
def server() -> Generator[AnsweringServer]:
    """A model that says ok."""
    with AnsweringServer() as here:
        yield here


@pytest.fixture
def run(user: Path, tmp_path: Path, server: AnsweringServer) -> Callable[..., Ran]:
    """Run a command in the person's home."""
    environ = {name: value.replace("URL", server.url) for name, value in VARIABLES.items()}
    environ |= {"PATH": PLACES, "HOME": str(user), "STEERSMAN_HOME": str(tmp_path / "home")}

    def call(*command: str, folder: Path = user) -> Ran:
        return executed(
            [word.replace("URL", server.url) for word in command],
            env=environ,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            timeout=seconds(200),
        )

    return call


def events(home: Path) -> list[str]:
    """List what was heard, in order."""
    lines = [line for path in home.rglob("*.jsonl") for line in path.read_text().splitlines()]
    said = sorted((json.loads(line) for line in lines), key=lambda one: one["time"])
    return [event["event"] for event in said]


@pytest.mark.timeout(240)
@pytest.mark.parametrize("agent", COMMANDS)
def test_the_real_agent_calls_our_hooks(
    agent: str, run: Callable[..., Ran], user: Path, tmp_path: Path, server: AnsweringServer
) -> None:
    """Installed into its own configuration, our hooks hear its session begin and its turn end."""
    if shutil.which(COMMANDS[agent][0], path=PLACES) is None:
        pytest.skip(f"{agent} is not installed here")
    steersman = [sys.executable, "-m", "steersman"]
    if agent in SETTINGS:
        name, data = SETTINGS[agent]
        (user / name).parent.mkdir(parents=True)
        text = "" if data is None else json.dumps(data)
        (user / name).write_text(text.replace("URL", server.url))
    if agent == "hermes":  # a block is what its own set-up writes
        model = f"  default: fake\n  provider: custom\n  base_url: {server.url}/v1\n"
        (user / ".hermes" / "config.yaml").write_text(f"model:\n{model}")
    installed = run(*steersman, "hooks", "install", agent)
    assert installed.returncode == 0, installed.stderr
    work = user / "work"
    work.mkdir()
    done = run(*COMMANDS[agent], folder=work)
    heard = events(tmp_path / "home")
    assert heard[:1] == ["session-start"], done.stdout + done.stderr
    assert set(heard) & {"agent-response", "session-end"}, done.stdout + done.stderr
