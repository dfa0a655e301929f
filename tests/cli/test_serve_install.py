"""What starts the server at login."""

import os
import plistlib
import sys
from pathlib import Path

import pytest

from steersman.cli.commands import serve


def test_on_macos_launchd_starts_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The agent names this interpreter and this home; launchd is told of it, and to forget it."""
    said = tmp_path / "said"
    tool = tmp_path / "launchctl"
    tool.write_text(f'#!/bin/sh\necho "$*" >> "{said}"\n', "utf-8")
    tool.chmod(0o755)
    monkeypatch.setattr(sys, "platform", "darwin")
    for name, value in {"PATH": tmp_path, "HOME": tmp_path, "STEERSMAN_HOME": "/a home"}.items():
        monkeypatch.setenv(
            name, f"{value}{os.pathsep}{os.environ[name]}" if name == "PATH" else str(value)
        )
    assert serve.install() == 0
    path = tmp_path / "Library" / "LaunchAgents" / "io.steersman.serve.plist"
    found = plistlib.loads(path.read_bytes())
    assert found["ProgramArguments"] == [
        sys.executable,
        "-P",
        "-m",
        "steersman",
        "serve",
        "--foreground",
    ]
    assert found["EnvironmentVariables"] == {"STEERSMAN_HOME": "/a home"}
    assert serve.uninstall() == 0
    assert not path.exists()
    domain = f"gui/{os.getuid()}"
    assert said.read_text("utf-8").splitlines() == [
        f"bootstrap {domain} {path}",
        f"bootout {domain}/io.steersman.serve",
    ]
    assert serve.uninstall() == 1
    assert "nothing is installed" in capsys.readouterr().out
