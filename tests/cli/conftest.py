"""What the command line's tests share: a home, a folder, and two ways to run a command.

`program` runs the real thing as a process of its own; `command` runs the same code in this process,
for tests that need no process and are many.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.executed import executed

SECRET = "sk-proj-0123456789abcdefghijkl"
ANSWERS = f"""
[[answer]]
text = "I look."
[[answer.tool_calls]]
tool = "list"
arguments = {{ path = "." }}
[[answer]]
text = "The key is {SECRET}, the other hunter2hunter2; \\u001b]0;owned\\u0007\\u001b[31mred."
"""


@dataclass(frozen=True)
class Done:
    """What a command did."""

    code: int
    out: str
    err: str


Run = Callable[..., Done]


def environment(home: Path, **more: str) -> dict[str, str]:
    """Make the environment of a person who has set up nothing but a home."""
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(home.parent),
        "STEERSMAN_HOME": str(home),
        "LANG": "C.UTF-8",
        "COLUMNS": "80",
    }
    if "PYTHONPATH" in os.environ:
        environ["PYTHONPATH"] = os.environ["PYTHONPATH"]
    return {**environ, **more}


def write_config(home: Path, script: str, more: str = "") -> None:
    """Configure a scripted model as the assistant's."""
    home.mkdir(mode=0o700, exist_ok=True)
    answers = home / "answers.toml"
    answers.write_text(script)
    model = f'[models.main]\nprovider = "scripted"\nscript = "{answers}"\n'
    (home / "config.toml").write_text(f'{model}[agents.assistant]\nmodel = "main"\n{more}')


def run_program(environ: Mapping[str, str], folder: Path, *arguments: str) -> Done:
    """Run the program as a process of its own and wait for its end."""
    done = executed(
        [sys.executable, "-m", "steersman", *arguments],
        env=dict(environ),
        cwd=folder,
        stdin=subprocess.DEVNULL,
    )
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project folder to work in."""
    path = tmp_path / "project"
    path.mkdir()
    return path


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """A home that nothing was written into."""
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    return path


@pytest.fixture(scope="session")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with one chat; copy it before changing it."""
    home = tmp_path_factory.mktemp("spoken") / "home"
    write_config(home, ANSWERS)
    folder = home.parent / "project"
    folder.mkdir()
    done = run_program(environment(home), folder, "chat", "what is in here?")
    assert done.code == 0, done.err
    return home


@pytest.fixture(scope="session")
def canaries(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, str]]:
    """A home with a chat in which three secrets were said, also where texts are cut, and the secrets.

    They are environment variables: a token, an address with a password, and the key of a configured
    model, whose name says nothing. Do not change the home.
    """
    token, password, key = "canary-of-the-variable", "canary-of-the-address", "canary-of-the-model"
    home = tmp_path_factory.mktemp("said") / "home"
    lead = "x" * 50
    write_config(
        home,
        f"""
[[answer]]
text = "{lead} {token} {password} {key}"
[[answer.tool_calls]]
tool = "list"
arguments = {{ path = "{lead}/{token}/{password}/{key}" }}
[[answer]]
text = "{lead * 2} {token} {password} {key}"
""",
        '[models.other]\nprovider = "openai"\nmodel = "m"\nbase_url = "http://127.0.0.1:1/v1"\n'
        'api_key_env = "COMPANY_MODEL"\n',
    )
    folder = home.parent / "project"
    folder.mkdir()
    done = run_program(
        environment(home), folder, "chat", f"{lead} {token} {key} {lead[:9]} {password}"
    )
    assert done.code == 0, done.err
    address = f"postgres://u:{password}@h/db"
    return home, {"DATABASE_URL": address, "MY_SECRET_TOKEN": token, "COMPANY_MODEL": key}


@pytest.fixture
def told(spoken: Path, home: Path) -> Path:
    """A copy of that home, as this test's own."""
    shutil.copytree(spoken, home, dirs_exist_ok=True)
    return home


@pytest.fixture
def program(home: Path, folder: Path) -> Run:
    """Run `steersman` as a process; keywords are environment variables."""

    def run(*arguments: str, **more: str) -> Done:
        return run_program(environment(home, **more), folder, *arguments)

    return run


@pytest.fixture
def command(
    home: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Run:
    """Run a command in this process; keywords are environment variables."""
    from steersman.cli.program import run as run_app

    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_TOKEN")) or name.startswith("STEERSMAN_"):
            monkeypatch.delenv(name)
    monkeypatch.chdir(folder)

    def run(*arguments: str, **more: str) -> Done:
        for name, value in environment(home, **more).items():
            monkeypatch.setenv(name, value)
        capsys.readouterr()
        code = run_app(list(arguments))
        said = capsys.readouterr()
        return Done(code, said.out, said.err)

    return run


@pytest.fixture
def secret() -> str:
    """The key that the scripted model says."""
    return SECRET


@pytest.fixture
def configure(home: Path) -> Callable[..., None]:
    """Write the configuration: the script of the model, and more of it."""

    def write(script: str = ANSWERS, more: str = "") -> None:
        write_config(home, script, more)

    return write


@pytest.fixture
def environ(home: Path) -> dict[str, str]:
    """The environment in which `program` runs."""
    return environment(home)
