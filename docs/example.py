"""What the docs show of the program at work: commands that are run, and a session that is spoken."""

import contextlib
import functools
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Generator
from pathlib import Path

from steersman.cli.program import run

__all__ = ["example_session", "run_examples"]

SCRIPT = """\
[[answer]]
text = "I look."
[[answer.tool_calls]]
tool = "list"
arguments = { path = "." }
[[answer]]
text = "One file."
"""


def run_examples(text: str) -> str:
    """Run each command of each `console` block, and put what it prints below it.

    They run in an empty folder with an empty home; a `toml` block whose first line is a comment with
    a file's name is put there for those below it.
    """
    with _empty_home():
        return re.sub(r"```(toml|console)\n(.*?)```\n", _run_block, text, flags=re.DOTALL)


def _run_block(block: re.Match[str]) -> str:
    if block[1] == "toml":
        if name := re.match(r"# (\S+\.toml)\n", block[2]):
            Path(name[1]).write_text(block[2], encoding="utf-8")
        return block[0]
    lines: list[str] = []
    for command in re.findall(r"^\$ steersman (.*)$", block[2], re.MULTILINE):
        lines.append(f"$ steersman {command}\n{_said(*shlex.split(command))}")
    return f"```console\n{''.join(lines)}```\n"


@functools.cache
def example_session() -> tuple[str, str]:
    """Have a scripted conversation; its dump and its last turn, without what differs each time."""
    with _empty_home() as folder:
        Path("notes.txt").touch()
        home = Path(os.environ["STEERSMAN_HOME"])
        home.mkdir()
        (home / "answers.toml").write_text(SCRIPT, encoding="utf-8")
        (home / "config.toml").write_text(
            f'[models.main]\nprovider = "scripted"\nscript = "{home / "answers.toml"}"\n'
            '[agents.assistant]\nmodel = "main"\n',
            encoding="utf-8",
        )
        chat = [sys.executable, "-m", "steersman", "chat", "what is in here?"]
        subprocess.run(chat, check=True, capture_output=True, stdin=subprocess.DEVNULL)
        dump, turn = (_said("inspect", "last", "--format", one) for one in ("json", "mermaid"))
        session = json.loads(dump)["id"]
    dump = dump.replace(os.path.realpath(folder), "~/project").replace(session, "5e55101f")
    dump = re.sub(r'("input": )[1-9]\d*', r"\g<1>261", dump)  # the folder's name counts, too
    return dump, re.sub(r" *%% entry.*\n", "", turn)


@contextlib.contextmanager
def _empty_home() -> Generator[str]:
    """Be in an empty folder, with an empty home."""
    before = dict(os.environ)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        os.environ["STEERSMAN_HOME"] = str(Path(folder, ".home"))
        os.environ.pop("STEERSMAN_CONFIG", None)
        try:
            yield folder
        finally:
            os.environ.clear()
            os.environ.update(before)


def _said(*arguments: str) -> str:
    """Run a command in this process, and return what it prints."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        run(list(arguments))
    return said.getvalue()
