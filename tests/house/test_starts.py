"""What a start imports: nothing that it does not use, since most of a start is imports.

`benchmarks/startup.py` measures how long starts take.
"""

import re
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest
from stories.terminal import Terminal
from support.driver import Place
from support.model_server import ModelServer, Text

SLOW = {
    "anyio",
    "email",
    "http",
    "httpcore2",
    "httpx2",
    "importlib.metadata",  # if no package adds anything: its metadata is looked through without it
    "jinja2",
    "mcp",
    "prompt_toolkit",
    "pydantic",
    "typer",
}
"""What takes a tenth of a start or more."""
RARE = {
    "steersman.actors.run",
    "steersman.gateway.commands.registry",
    "steersman.gateway.views.tree",
    "steersman.gateway.library",
    "steersman.gateway.views.restore_service",
    "steersman.ports.tools.function",
    "steersman.workflows.agent_definition",
    "steersman.workflows.flow.template",
    "steersman.workflows.routing",
    "steersman.workflows.schema",
}
"""Parts of ours that a single message does not need."""
ROOMS = {f"steersman.{room}" for room in ("actors", "gateway", "journal", "ports", "workflows")}


@pytest.fixture
def place(tmp_path: Path) -> Iterable[Place]:
    """A home and a folder in which each import is reported on standard error."""
    place = Place(tmp_path)
    place.environ["PYTHONPROFILEIMPORTTIME"] = "1"
    yield place
    place.close()


def imported(report: str) -> set[str]:
    """Read the names of modules in the report of imports."""
    return set(re.findall(r"^import time: .*\| +([\w.]+)$", report, re.MULTILINE))


def within(modules: set[str], packages: set[str]) -> set[str]:
    """Choose the modules that are one of these, or inside one."""
    return {
        module
        for module in modules
        if any(module == package or module.startswith(f"{package}.") for package in packages)
    }


def test_a_single_message(place: Place) -> None:
    """A question and its answer need neither a parser of arguments, nor templates, nor commands."""
    with ModelServer([Text("Hello.")]) as server:
        place.configure(server.base_url)
        ran = place.run("chat", "hi")
    assert (ran.returncode, ran.stdout) == (0, "Hello.\n")
    modules = imported(ran.stderr)
    assert "steersman.actors.session" in modules
    assert within(modules, SLOW | RARE) == set()


def test_a_scripted_message(place: Place) -> None:
    """Without a server, nothing is imported that speaks HTTP."""
    (place.home / "answers.toml").write_text('[[answer]]\ntext = "Hello."\n')
    place.configure("", provider="scripted", model=f'script = "{place.home}/answers.toml"')
    ran = place.run("chat", "hi")
    assert (ran.returncode, ran.stdout) == (0, "Hello.\n")
    assert within(imported(ran.stderr), SLOW | RARE | {"h11"}) == set()


@pytest.mark.skipif(sys.platform == "win32", reason="there are no pseudo terminals")
def test_a_chat_takes_keys(place: Place, tmp_path: Path) -> None:
    """Until something is typed, a chat needs neither slash commands nor what speaks HTTP."""
    report = tmp_path / "report"
    place.configure("http://127.0.0.1:9/v1")
    shell = ("sh", "-c", 'exec "$@" 2> "$0"', str(report))
    terminal = Terminal((*shell, *place.command, "chat"), place.folder, place.environ)
    try:
        terminal.has_bar("idle")
        modules = imported(report.read_text("utf-8"))
    finally:
        terminal.abandon()
    assert "prompt_toolkit.application" in modules
    slow = SLOW - {"prompt_toolkit"} | {"h11"}
    assert within(modules, slow | RARE - {"steersman.gateway.library"}) == set()


def test_the_help(place: Place) -> None:
    """The list of commands needs the parser of arguments, and nothing that commands do."""
    ran = place.run("--help")
    assert ran.returncode == 0
    modules = imported(ran.stderr)
    assert "steersman.cli.app" in modules
    assert within(modules, ROOMS | SLOW - {"typer"} | {"msgspec"}) == set()


def test_the_version(place: Place) -> None:
    """It is answered by the first module."""
    ran = place.run("--version")
    ours = within(imported(ran.stderr), {"steersman"})
    assert ours == {"steersman", "steersman.cli", "steersman.cli.main"}
