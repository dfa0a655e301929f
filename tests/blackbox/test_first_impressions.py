"""What a newcomer types, on a machine where something is missing: each command says so, and what to do.

The commands are those that the first pages name, and the example of every command's help. Some machines
have no home folder, or none that can be written, some no network, and some no terminal.
"""

import json
import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from support import many_commands
from support.driver import COMMAND, Place
from support.executed import executed
from support.patience import seconds
from support.ports import HeldPort

from steersman.cli.app import whole_program

ROOT = Path(__file__).resolve().parents[2]
PAGES = ("README.md", "docs/overview.md", "docs/getting-started.md", "cli/commands/tour.py")
PROGRAM: Any = whole_program()
NOBODY = 54_321
"""A user id without an entry."""
OTHER_USER = (
    *("setpriv", "--reuid", str(NOBODY), "--regid", str(NOBODY), "--clear-groups"),
    *("--inh-caps", "-all,+dac_read_search", "--ambient-caps", "-all,+dac_read_search"),
)
"""Runs a program as that user, who may read everything: the interpreter may lie in root's home."""
GO_ON = ({"serve"}, {"node"}, {"gateway", "run"}, {"simulate"}, {"--watch"})
"""They run until they are ended, or for long, or leave something running, where nothing hinders them."""


def examples(command: Any) -> Iterator[str]:
    """Yield the examples in the helps of all commands."""
    yield from re.findall(r"Example: (steersman .*)", command.help or "")
    for inner in getattr(command, "commands", {}).values():
        yield from examples(inner)


def named() -> list[list[str]]:
    """List the command lines that a newcomer reads, without their first word."""
    lines = set(examples(PROGRAM)) | {f"steersman {name}" for name in PROGRAM.commands}
    for page in PAGES:
        text = (ROOT / page).read_text("utf-8")
        for found in re.finditer(r"(?m)(?:^ {4}(?:\$ )?|`|\| )(steersman(?: [^`\n]*)?)", text):
            lines.add(re.split(r"\s{2,}|\s+#| < | \| | > ", found[1])[0].strip())
    commands = sorted({tuple(shlex.split(line)[1:]) for line in lines})
    assert len(commands) > 100
    elsewhere = re.compile(r"--install-completion|://")
    return [list(words) for words in commands if not elsewhere.search(" ".join(words))]


def faults(words: list[str], result: Mapping[str, Any]) -> Iterator[str]:
    """Say what a newcomer would stumble over."""
    code, output = result["code"], result["output"]
    shown = f"`steersman {shlex.join(words)}` ({code}): {output[-400:]}"
    if "Traceback" in output:
        yield f"a trace: {shown}"
    if code not in (0, 1, 2):
        yield f"no documented exit code: {shown}"
    if code and not output.strip():
        yield f"not a word: {shown}"
    if result["silent"] and words[:1] != ["chat"]:  # a message without a terminal: only its answer
        yield f"silent before it connects to {result['silent']}: {shown}"
    for hint in re.findall(r"`(steersman [^`…]*)`", output):
        if reason := dead(hint):
            yield f"a dead hint `{hint}`, {reason}: {shown}"
    for page in re.findall(r"docs/\w[\w-]*\.md", output):
        if not (ROOT / page).is_file():
            yield f"no page {page}: {shown}"


def dead(hint: str) -> str:
    """Say why a command line that was printed cannot be right; empty if it can."""
    command = PROGRAM
    words = shlex.split(hint)[1:]
    while words and hasattr(command, "commands"):
        name = words.pop(0)
        if name.startswith("-"):
            break
        if name not in command.commands:
            return f"there is no command `{name}`"
        command = command.commands[name]
    options = {option for param in command.params for option in param.opts} | {"--help"}
    unknown = [
        word for word in words if word.startswith("--") and word.split("=")[0] not in options
    ]
    return f"there is no option {unknown}" if unknown else ""


def ran(environ: Mapping[str, str], folder: Path, commands: list[list[str]], *prefix: str) -> str:
    """Run the commands under an environment; say what is wrong with any of them."""
    program = [*prefix, sys.executable, many_commands.__file__, str(int(seconds(10)))]
    done = executed(
        program,
        cwd=folder,
        env={
            **{"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "COLUMNS": "200"},
            **{"PIP_INDEX_URL": "http://127.0.0.1:1/simple", **environ},
        },
        input=json.dumps(commands),
        timeout=seconds(120),
    )
    assert done.returncode == 0, done.stderr
    results = json.loads(done.stdout)
    assert len(results) == len(commands)
    pairs = zip(commands, results, strict=True)
    return "\n\n".join(fault for pair in pairs for fault in faults(*pair))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder that another user may work in."""
    folder = tmp_path / "project"
    folder.mkdir()
    folder.chmod(0o777)
    for above in (tmp_path, *tmp_path.parents[:2]):
        above.chmod(above.stat().st_mode | 0o005)
    return folder


NIGHTLY = pytest.mark.nightly
needs_root = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("setpriv") is None,
    reason="needs root and setpriv, to run as a user without an entry",
)


@needs_root
@pytest.mark.timeout(240)
@pytest.mark.parametrize("part", [slice(0, None, 4), pytest.param(slice(None), marks=NIGHTLY)])
def test_another_user_without_a_home(project: Path, part: slice) -> None:
    """Neither HOME nor an entry for the account."""
    assert ran({}, project, named()[part], *OTHER_USER) == ""


@needs_root
@NIGHTLY
@pytest.mark.timeout(240)
@pytest.mark.parametrize("home", ["not mine", "/proc/none"])
def test_another_user_with_a_home_of_no_use(project: Path, home: str) -> None:
    """It may not be written, or cannot be."""
    (project.parent / "not mine").mkdir()
    environ = {"HOME": str(project.parent / home)}  # an absolute one stays as it is
    assert ran(environ, project, named(), *OTHER_USER) == ""


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_a_home_that_is_a_file(project: Path) -> None:
    """Nothing can be kept below it."""
    (project.parent / "file").touch()
    assert ran({"HOME": str(project.parent / "file")}, project, named()) == ""


@pytest.mark.nightly
@pytest.mark.timeout(240)
def test_no_network_and_no_terminal(project: Path) -> None:
    """An empty home, and every address but those of this machine is out of reach."""
    with HeldPort() as closed:
        address = f"http://127.0.0.1:{closed.number}"
        environ = {"HOME": str(project.parent), "PIP_INDEX_URL": address, "NO_PROXY": "127.0.0.1"}
        environ |= {"HTTPS_PROXY": address, "HTTP_PROXY": address}
        commands = [words for words in named() if not any(some <= set(words) for some in GO_ON)]
        commands += [
            ["models", "fetch", "qwen2.5-coder-0.5b"],
            ["chat", "hi", "--model", "openai:m"],
        ]
        commands += [["setup", "--base-url", f"{address}/v1"]]
        assert ran(environ, project, commands) == ""


@pytest.mark.parametrize("command", ["chat hi", "sessions list", "doctor"])
def test_a_folder_that_is_gone(place: Place, command: str) -> None:
    """A command that is started in it says so, and what to do."""
    line = f"mkdir gone && cd gone && rmdir ../gone && exec {shlex.join(COMMAND)} {command}"
    done = executed(["sh", "-c", line], cwd=place.folder, env=place.environ)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        "steersman: the current folder is gone (No such file or directory)\n  `cd` into another one\n"
    )


@pytest.mark.parametrize(
    ("arguments", "shown", "keys"),
    [
        (("--help",), "Commands:", ""),
        (("doctor",), "python", ""),
        (("models", "list"), "CATALOGUE", ""),
        (("setup",), "Number or name", "\x03"),
        (("chat",), "? keys", "\x04"),
        (("tour",), "scratch folder", "\x03\x03"),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_small_terminal(at_keyboard, arguments: tuple[str, ...], shown: str, keys: str) -> None:
    """In 40 columns and 20 rows the first screens come, and can be left."""
    terminal = at_keyboard(*arguments, size=(20, 40))
    terminal.wait(shown)
    for key in keys:
        terminal.type(key)
    assert terminal.process.wait(seconds(30)) in (0, 1, 130)
    assert "Traceback" not in terminal.shown()
