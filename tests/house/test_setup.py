"""`make` works on a machine whose Python came without pip."""

import functools
import hashlib
import os
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

import pytest
from support.executed import executed
from support.loopback import LoopbackRequest, LoopbackServer
from support.patience import seconds
from support.ports import HeldPort


@pytest.fixture
def index(tmp_path: Path) -> Iterator[str]:
    """A package index on loopback that has two wheels, each a `pip` that says its version."""
    folder = tmp_path / "index" / "pip"
    folder.mkdir(parents=True)
    links = ""
    for version in ("9.1", "26.3", "25.0"):
        wheel = folder / f"pip-{version}-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            program = f"import sys; print('pip {version}', sys.argv[1], '--no-index' in sys.argv)"
            archive.writestr("pip/__main__.py", program)
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        links += f'<a href="{wheel.name}#sha256={digest}">{wheel.name}</a>'
    (folder / "index.html").write_text(links)
    quiet = functools.partial(Quiet, directory=str(tmp_path / "index"))
    with LoopbackServer(quiet) as server:
        yield server.url


class Quiet(LoopbackRequest, SimpleHTTPRequestHandler):
    """Serves files without a word."""


def first_pip(root: Path, tmp_path: Path, **more: str) -> subprocess.CompletedProcess[str]:
    """Run the script with nothing but the given settings, and without Debian's tools."""
    command = [sys.executable, str(root / ".ci" / "first_pip.py")]
    environ = {"HOME": str(tmp_path), "PATH": str(tmp_path), **more}
    return subprocess.run(command, env=environ, capture_output=True, text=True, timeout=seconds(60))


@pytest.mark.parametrize("name", ["PIP_INDEX_URL", "UV_DEFAULT_INDEX", "PIP_CONFIG_FILE"])
def test_newest_pip_of_the_index_that_is_set(
    root: Path, tmp_path: Path, index: str, name: str
) -> None:
    """The newest wheel is fetched from the user's own index and told to install itself."""
    value = index
    if name == "PIP_CONFIG_FILE":
        (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {index}\n")
        value = str(tmp_path / "pip.conf")
    done = first_pip(root, tmp_path, **{name: value})
    assert (done.stdout, done.returncode) == ("pip 26.3 install True\n", 0)


def test_a_wheel_with_another_hash_is_refused(root: Path, tmp_path: Path, index: str) -> None:
    """What isn't what the index announced is never run."""
    with (tmp_path / "index" / "pip" / "pip-26.3-py3-none-any.whl").open("ab") as wheel:
        wheel.write(b"more")
    done = first_pip(root, tmp_path, PIP_INDEX_URL=index)
    assert (done.stdout, done.returncode) == ("", 1)
    assert "does not have the hash" in done.stderr
    assert "install Debian's python3-venv" in done.stderr


@pytest.mark.parametrize("name", ["PIP_INDEX_URL", "PIP_CONFIG_FILE"])
def test_an_index_that_does_not_answer_is_told_at_once(
    root: Path, tmp_path: Path, name: str, index: str
) -> None:
    """One sentence with the address, without the password in it, before pip is run; no log of pip."""
    for path in (".ci/venv", ".ci/first_pip.py", ".ci/user.lock", ".ci/requirements.lock"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_bytes((root / path).read_bytes())
    (tmp_path / "pyproject.toml").write_bytes((root / "pyproject.toml").read_bytes())
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(
        f'#!/bin/sh\ncase "$*" in *"-m pip"*) exit ;; esac\nexec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    with HeldPort() as closed:
        url = f"http://ann:hunter2@127.0.0.1:{closed.number}/simple"
        (tmp_path / "pip.conf").write_text(f"[global]\nindex-url = {url}\n")
        given = {"PIP_INDEX_URL": url, "PIP_CONFIG_FILE": str(tmp_path / "pip.conf")}
        environ = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), name: given[name]}
        command = ["/bin/sh", str(tmp_path / ".ci" / "venv"), "user"]
        ran = executed(command, env=environ)
        lines = ran.stderr.splitlines()
        assert (ran.returncode, len(lines)) == (1, 2), ran.stderr
        assert lines[0].startswith("steersman: installing into .venv")
        assert f"no package index answers at http://127.0.0.1:{closed.number}/simple (" in lines[1]
        assert "HTTPS_PROXY and PIP_INDEX_URL" in lines[1]
    answers = subprocess.run(command, env={**environ, "PIP_INDEX_URL": index}, timeout=seconds(60))
    assert answers.returncode == 0


def test_an_old_python_is_recognized(root: Path, tmp_path: Path) -> None:
    """Where only an old Python is found, the message says what is needed and what is here."""
    for name in ("python3", "python"):
        old = tmp_path / "bin" / name
        old.parent.mkdir(exist_ok=True)
        old.write_text("#!/bin/sh\n[ \"$1\" = --version ] && echo 'Python 3.9.6' && exit\nexit 1\n")
        old.chmod(0o755)
    for tool in ("sh", "dirname", "mktemp", "cksum", "cat", "grep", "sed", "rm"):
        (tmp_path / "bin" / tool).symlink_to(f"/bin/{tool}")
    checkout = tmp_path / "check out"
    (checkout / ".ci").mkdir(parents=True)
    for name in (".ci/venv", ".ci/user.lock", ".ci/requirements.lock", "pyproject.toml"):
        (checkout / name).write_bytes((root / name).read_bytes())
    command = ["/bin/sh", str(checkout / ".ci" / "venv"), "user"]
    environ = {"PATH": str(tmp_path / "bin"), "TMPDIR": os.environ.get("TMPDIR", "/tmp")}
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=seconds(60))
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith(
        "steersman: Python 3.11 or newer is needed, and here is Python 3.9.6;"
    )
