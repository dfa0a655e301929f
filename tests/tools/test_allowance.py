"""The pattern that a question offers for `always`."""

from pathlib import Path
from typing import Any

import pytest

from steersman.ports.tools.permission import offered_pattern


@pytest.mark.parametrize(
    ("command", "pattern"),
    [
        ("git status --short", "git status*"),
        ("npm test", "npm test*"),
        ("npm run build:prod", "npm run build:prod*"),
        ("npm run build:prod -- --watch", ""),
        ("pytest -x tests/a.py", "pytest *"),
        ("ls -la", "ls *"),
        ("ls", "ls *"),
        ("docker compose up", ""),
        ("docker compose ps", "docker compose ps*"),
        ("npx jest", ""),
        ("make", ""),
        ("make -j4 test", "make test*"),
        ("cargo --version", "cargo --version*"),
        ("rm -rf build", ""),
        ("rm build", ""),
        ("sudo apt install x", ""),
        ("timeout 5 npm test", ""),
        ("python3.12 script", ""),
        ("python -m pytest", "python -m pytest*"),
        ("bash script", ""),
        ("git status; rm -rf /", ""),
        ("git log > file", ""),
        ("'git' status", "git status*"),
        ("./configure all", ""),
        ("git  status", "git status*"),
        ("git --no-pager log -1 2>&1", "git log*"),
        ("git log --output=x", ""),
        ("cargo test -- --nocapture", "cargo test*"),
        ("frob status", ""),
        ("A=1 git status", ""),
        ("", ""),
    ],
)
def test_commands(tmp_path: Path, command: str, pattern: str) -> None:
    """A program of the table with its subcommand, if all of the call is known as safe; else this call."""
    assert offered_pattern("shell", {"command": command}, tmp_path) == pattern


@pytest.mark.parametrize(
    ("tool", "arguments", "pattern"),
    [
        ("edit", {"path": "src/a.py"}, "src/*"),
        ("write", {"path": "src/deep/../a.py"}, "src/*"),
        ("read", {"path": "src/deep/a.py"}, "src/deep/*"),
        ("write", {"path": "sr[c]/a*.py"}, "sr[[]c]/*"),
        ("edit", {"path": "a.py"}, ""),
        ("read", {"path": "/etc/passwd"}, ""),
        ("edit", {"path": "../a/b.py"}, ""),
        ("edit", {}, ""),
        ("delegate", {"task": "x"}, ""),
        ("mcp__files__get", {"path": "src/a.py"}, ""),
    ],
)
def test_files(tmp_path: Path, tool: str, arguments: dict[str, Any], pattern: str) -> None:
    """The folder of a file; nothing outside the session's folder, and not all of it."""
    assert offered_pattern(tool, arguments, tmp_path) == pattern
