"""What is built, declared and generated agrees with what is here."""

import ast
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
from support.executed import executed
from support.patience import seconds

import steersman
from steersman.workflows.extras import RELEASED

NAMES = {
    "agent-client-protocol": "acp",
    "markdown-it-py": "markdown_it",
    "matrix-nio": "nio",
    "mcp-types": "mcp_types",
    "opentelemetry-sdk": "opentelemetry",
    "python-telegram-bot": "telegram",
    "ruamel.yaml": "ruamel",
    "sse-starlette": "sse_starlette",
    "tomli-w": "tomli_w",
}  # distributions whose module has another name
PARTS = {"pydantic_core"}  # what a distribution of these brings along, of exactly one version


@pytest.fixture
def project(root: Path) -> dict[str, Any]:
    """The parsed pyproject.toml."""
    return tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))


ROOT_MODULES = ("__init__.py", "__main__.py", "chat.py", "models.py", "testing.py")


FROM_AN_INDEX = re.compile(
    r"(?:pipx?|uv tool|uv pip) install [^`\n]*?(?<![/\w.-])steersman(?![\w./-]|\[[^\n]* @ )"
)
FROM_A_CLONE = re.compile(r"pip install '\.\[|(?:pipx|uv tool) install \.|install \.` in a clone")
SETTING = "RELEASED: bool = "


def named(pattern: re.Pattern[str], texts: dict[str, str]) -> list[str]:
    """List the commands of that form in texts, each with the name of its text."""
    found = [(name, match[0]) for name, text in texts.items() for match in pattern.finditer(text)]
    return [f"{name}: {command}" for name, command in found if "--no-index" not in command]


def test_a_package_is_installed_by_its_name_once_it_is_ours(
    project_files: list[Path], root: Path
) -> None:
    """An index has what was registered there: before a release, hints and pages name a clone."""
    texts = {
        path.relative_to(root).as_posix(): path.read_text("utf-8", "replace")
        for path in project_files
        if path.suffix in (".md", ".py", ".toml", ".yaml", ".service") or path.suffix == ""
        if "tests" not in path.relative_to(root).parts and path.name != "installing.py"
    }
    assert named(FROM_A_CLONE if RELEASED else FROM_AN_INDEX, texts) == []
    assert named(FROM_AN_INDEX if RELEASED else FROM_A_CLONE, texts)
    assert FROM_AN_INDEX.search("pip install 'steersman[web]'")
    assert not FROM_AN_INDEX.search("pip install -e '/home/me/steersman[web]'")


@pytest.mark.parametrize(
    ("is_released", "hint", "pattern"),
    [
        (False, "`pip install '.[web]'` in a clone", FROM_AN_INDEX),
        (True, "`pip install 'steersman[web]'`", FROM_A_CLONE),
    ],
)
def test_one_setting_turns_hints_and_pages(
    root: Path, is_released: bool, hint: str, pattern: re.Pattern[str]
) -> None:
    """With the other value, each hint and each page has the other form, and comes back from it."""
    text = (root / "workflows" / "extras.py").read_text("utf-8")
    assert text.count(SETTING) == 1
    module: dict[str, Any] = {}
    exec(re.sub(f"{SETTING}.*", f"{SETTING}{is_released}", text), module)
    assert module["install_command"]("web") == hint
    module = runpy.run_path(str(root / "docs" / "installing.py"))
    installing = module["installing"]
    texts = {path.name: path.read_text("utf-8") for path in module["pages"]()}
    turned = {name: installing(page, is_released=is_released) for name, page in texts.items()}
    assert named(pattern, turned) == []
    assert {name: installing(page, is_released=RELEASED) for name, page in turned.items()} == texts


def test_version_is_said_once_more_only(project: dict[str, Any]) -> None:
    """The version in the code is that of the package."""
    assert steersman.__version__ == project["project"]["version"]


def test_every_folder_of_modules_is_a_declared_package(
    project: dict[str, Any], root: Path, rooms: tuple[str, ...]
) -> None:
    """A new subpackage can't be forgotten in pyproject.toml."""
    here = {path.parent for room in rooms for path in (root / room).rglob("*.py")}
    names = {".".join(["steersman", *path.relative_to(root).parts]) for path in here}
    assert sorted({"steersman", *names}) == sorted(project["tool"]["setuptools"]["packages"])


def test_imports_are_declared(modules: list[Any], project: dict[str, Any]) -> None:
    """What a room imports from outside is a dependency, or of an extra."""
    extras = project["project"]["optional-dependencies"]
    optional = [line for name, lines in extras.items() if name != "dev" for line in lines]
    wanted = [*project["project"]["dependencies"], *optional]
    names = [re.split(r"[<>=!~\[; ]", line)[0] for line in wanted]
    known = {NAMES.get(name, name) for name in names} | set(sys.stdlib_module_names) | PARTS
    for module in modules:
        for node in ast.walk(module.tree):
            found: list[str] = []
            if isinstance(node, ast.Import):
                found = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom) and not node.level:
                found = [node.module or ""]
            for name in found:
                assert name.partition(".")[0] in known, f"{module.name} imports {name}"


def test_generated_docs_are_current(root: Path) -> None:
    """Every generated page is what `make docs` would write."""
    command = [sys.executable, str(root / "docs" / "generate.py"), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds(110))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture
def copied(project_files: list[Path], root: Path, tmp_path: Path) -> Path:
    """The files of the project, in a folder of another name."""
    copy = tmp_path / "x-0.1"
    for path in project_files:
        target = copy / path.relative_to(root)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, target)
    return copy


@pytest.fixture
def wheel(copied: Path, tmp_path: Path) -> Path:
    """The wheel that is built from the files of the project."""
    build = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation"]
    command = [*build, "--no-index", "--wheel-dir", str(tmp_path), str(copied)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=seconds(110))
    assert done.returncode == 0, done.stderr
    (built,) = tmp_path.glob("*.whl")
    return built


@pytest.mark.nightly
def test_wheel_holds_the_rooms_and_nothing_else_and_runs(
    project_files: list[Path], root: Path, rooms: tuple[str, ...], wheel: Path, tmp_path: Path
) -> None:
    """A wheel has every file of every room, the root's own, the pages, and no test, example or tool.

    It is installed from its file into an environment of its own, as `pipx` and `uv tool` do, and its
    command runs there, with the files that are no modules.
    """
    names = [name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name]
    held = {name for name in names if ".data/" not in name}
    own = {root / name for name in (*ROOT_MODULES, "py.typed", "config.toml")}
    inside = {path for path in project_files if path.relative_to(root).parts[0] in rooms} | own
    inside |= {*(root / "docs").glob("*.md")}
    assert held == {f"steersman/{path.relative_to(root).as_posix()}" for path in inside}

    scratch = tmp_path / "scratch"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(scratch)], check=True)
    python = scratch / "bin" / "python"
    install = [sys.executable, "-m", "pip", "--python", str(python), "install", "--quiet"]
    subprocess.run([*install, "--no-deps", "--no-index", str(wheel)], check=True)
    (site,) = scratch.glob("lib/python*/site-packages")
    (site / "dependencies.pth").write_text(f"{Path(pytest.__file__).parents[1]}\n")
    environ = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "STEERSMAN_HOME": str(tmp_path / "home"),
    }
    for words, shown in (
        (("--version",), f"steersman {steersman.__version__}"),
        (("models", "list"), "qwen2.5-coder-0.5b"),
        (("hooks", "list"), "codex"),
        (("workflow", "list"), "codemod"),
        (("docs", "revert"), "# Revert"),
    ):
        command = [str(scratch / "bin" / "steersman"), *words]
        done = executed(command, env=environ, cwd=tmp_path)
        assert shown in done.stdout, done.stderr
    pages = {path.name for path in (root / "docs" / "man").iterdir()}
    assert {path.name for path in (scratch / "share" / "man" / "man1").iterdir()} == pages
    assert (scratch / "share" / "bash-completion" / "completions" / "steersman").is_file()
    assert (scratch / "share" / "zsh" / "site-functions" / "_steersman").is_file()
    assert (scratch / "share" / "fish" / "vendor_completions.d" / "steersman.fish").is_file()
    where = [str(python), "-c", "import steersman; print(steersman.__file__)"]
    assert str(site) in subprocess.run(where, capture_output=True, text=True, check=True).stdout


def test_container_file_uses_what_is_there(root: Path) -> None:
    """It copies files that exist, installs extras that exist, and does not run as root.

    No engine is needed for that: the lines are read as the reference of the format says.
    """
    text = (root / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line.split(None, 1) for line in text.splitlines() if line and line[0] != "#"]
    words = {
        "FROM",
        "ARG",
        "LABEL",
        "WORKDIR",
        "COPY",
        "RUN",
        "USER",
        "ENV",
        "VOLUME",
        "HEALTHCHECK",
    }
    assert {word for word, _ in lines} <= {*words, "ENTRYPOINT"}
    for copied in (rest.split() for word, rest in lines if word == "COPY" and "--from" not in rest):
        assert (root / copied[0]).exists(), copied
    found = re.search(r"steersman\[([\w,]+)\]", text)
    assert found is not None
    declared = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    assert set(found[1].split(",")) <= set(declared["optional-dependencies"])
    order = [word for word, _ in lines]
    assert order.index("USER") < order.index("ENTRYPOINT")
    assert re.search(r"useradd \S+ --uid 1000 steersman", text)
    assert [
        "USER",
        "1000:1000",
    ] in lines  # a number, so that an orchestrator sees that it is not root


@pytest.mark.parametrize(
    ("shell", "typed"),
    [
        ("bash", {"COMP_WORDS": "steersman sess", "COMP_CWORD": "1"}),
        ("zsh", {"_TYPER_COMPLETE_ARGS": "steersman sess"}),
        (
            "fish",
            {
                "_TYPER_COMPLETE_ARGS": "steersman sess",
                "_TYPER_COMPLETE_FISH_ACTION": "get-args",
                "_TYPER_COMPLETE_WORD_TO_COMPLETE": "sess",
            },
        ),
    ],
)
def test_shells_complete_the_commands(shell: str, typed: dict[str, str]) -> None:
    """As the scripts ask that `--install-completion` installs."""
    command = Path(sys.executable).with_name("steersman")
    environ = {**os.environ, **typed, "_STEERSMAN_COMPLETE": f"complete_{shell}"}
    done = executed([str(command)], env=environ)
    assert "sessions" in done.stdout
    assert "queue" not in done.stdout


@pytest.mark.nightly
def test_source_distribution_holds_the_examples(root: Path, copied: Path, tmp_path: Path) -> None:
    """Whoever builds from the source has them, although no wheel does."""
    build = "from setuptools import build_meta; print(build_meta.build_sdist('..'))"
    command = [sys.executable, "-c", build]
    done = subprocess.run(command, cwd=copied, capture_output=True, text=True, timeout=seconds(110))
    assert done.returncode == 0, done.stderr
    (archive,) = tmp_path.glob("*.tar.gz")
    with tarfile.open(archive) as source:
        held = {name.partition("/")[2] for name in source.getnames()}
    examples = {path.relative_to(root).as_posix() for path in (root / "examples").glob("*.py")}
    assert examples
    assert examples <= held
