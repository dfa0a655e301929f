"""The recipes of CONTRIBUTING.md, each applied to a scratch copy of this checkout."""

import os
import re
import shutil
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from support.executed import executed
from support.patience import seconds

pytestmark = pytest.mark.nightly

ROOT = Path(__file__).resolve().parents[2]
RECIPES = {
    "Add a slash command": 3,
    "Add a tool": 3,
    "Add a provider of models": 3,
    "Add an agent of another maker": 1,
    "Rename what is stable": 1,
}
"""The sections whose examples are whole changes, and how many files of the product each may touch."""
COVERED = ("Add an agent of another maker", "Rename what is stable")
"""Those whose change the tests that are there look at, and which need no page."""

BLOCK = re.compile(
    r"^```(?:python|toml|diff)\n(?:# |\+\+\+ )(\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)


@dataclass(frozen=True)
class Example:
    """One block of a recipe: a new file, or (`is_change`) lines that are added and taken away."""

    path: str
    text: str
    is_change: bool

    @property
    def is_test(self) -> bool:
        """Whether it is in tests/."""
        return self.path.startswith("tests/")

    @property
    def is_page(self) -> bool:
        """Whether it is documentation."""
        return self.path.startswith("docs/") or self.path.endswith(".md")

    def apply(self, checkout: Path) -> None:
        """Write the file, or change it where the other lines of the block are, which must be once."""
        file = checkout / self.path
        if not self.is_change:
            assert not file.exists()
            file.write_text(self.text, "utf-8")
            return
        text = file.read_text("utf-8")
        for part in self.text.split("@@\n"):
            lines = part.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if not line.startswith("+"))
            after = "".join(line[1:] for line in lines if not line.startswith("-"))
            assert text.count(before) == 1, f"{self.path} does not hold, once:\n{before}"
            text = text.replace(before, after)
        file.write_text(text, "utf-8")


def recipe(heading: str) -> list[Example]:
    """Read the examples of a section of CONTRIBUTING.md."""
    text = (ROOT / "CONTRIBUTING.md").read_text("utf-8")
    section = text.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return [
        Example(match[1], match[2], match[0].startswith("```diff"))
        for match in BLOCK.finditer(section)
    ]


@dataclass(frozen=True)
class Scratch:
    """A copy of the checkout, as the package that `import steersman` finds."""

    checkout: Path

    def run(self, *command: str, folder: Path | None = None) -> str:
        """Run a Python program in it; return what it says if it fails, else nothing."""
        environ = {**os.environ, "PYTHONPATH": str(self.checkout.parent)}
        ran = executed(
            (sys.executable, *command),
            cwd=folder or self.checkout,
            env=environ,
            timeout=seconds(200),
        )
        return ran.stdout[-3000:] + ran.stderr[-3000:] if ran.returncode else ""

    def check(self) -> str:
        """Run the fast parts of `make check`; return what they say."""
        return (
            self.run("-m", "ruff", "check", ".")
            + self.run("-m", "ruff", "format", "--check", ".")
            + self.run("docs/generate.py", "--check")
        )

    def check_types(self, changed: set[str]) -> str:
        """Run the type checker of `make check` on files; return what it says."""
        config = f"--config-file={self.checkout.name}/pyproject.toml"
        files = [f"{self.checkout.name}/{path}" for path in sorted(changed)]
        return self.run("-m", "mypy", config, *files, folder=self.checkout.parent)

    def write_docs(self) -> None:
        """Run what `make docs` runs."""
        fault = self.run("docs/generate.py")
        assert not fault, fault

    def test(self, *tests: str) -> str:
        """Run tests of it; return what they say if one fails."""
        return self.run("-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", *tests)


HOUSE = (
    "tests/house/test_registries.py",
    "tests/house/test_commands.py",
    "tests/house/test_links.py",
    "tests/config/test_shipped.py",
)


@pytest.fixture
def scratch(tmp_path: Path, project_files: list[Path]) -> Scratch:
    """A copy of all files of the project, and of nothing that a tool remembers."""
    checkout = tmp_path / "steersman"
    for path in project_files:
        copy = checkout / path.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(path, copy)
    return Scratch(checkout)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("heading", RECIPES)
def test_a_recipe_is_a_whole_change(scratch: Scratch, heading: str) -> None:
    """Applied to the letter, it touches few files, works, and passes what `make check-fast` runs."""
    examples = recipe(heading)
    product = {example.path for example in examples if not example.is_test and not example.is_page}
    assert 1 <= len(product) <= RECIPES[heading]
    for example in examples:
        example.apply(scratch.checkout)
    scratch.write_docs()
    fault = scratch.check()
    assert not fault, fault
    tests = [example.path for example in examples if example.is_test] or [
        "tests/cli/test_external_agents.py"
    ]
    fault = scratch.test(*HOUSE, *tests)
    assert not fault, fault


@pytest.mark.timeout(600)
def test_the_code_of_all_recipes_has_types(scratch: Scratch) -> None:
    """The type checker finds nothing; it reads the package once, for all recipes together."""
    examples = [example for heading in RECIPES for example in recipe(heading)]
    for example in examples:
        example.apply(scratch.checkout)
    files = {
        example.path for example in examples if example.path.endswith(".py") and not example.is_test
    }
    assert len(files) > len(RECIPES)
    fault = scratch.check_types(files)
    assert not fault, fault


@pytest.mark.nightly
@pytest.mark.timeout(600)
@pytest.mark.parametrize("left_out", ["test", "page"])
@pytest.mark.parametrize("heading", [name for name in RECIPES if name not in COVERED])
def test_a_recipe_without_its_test_or_page_is_refused(
    scratch: Scratch, heading: str, left_out: str
) -> None:
    """Without the test, or without the page, a check fails."""
    examples = recipe(heading)
    for example in examples:
        if not (example.is_test if left_out == "test" else example.is_page):
            example.apply(scratch.checkout)
    if left_out == "test" or any(
        example.is_page for example in examples
    ):  # else `make docs` writes it
        scratch.write_docs()
    assert scratch.run("docs/generate.py", "--check") or scratch.test(*HOUSE[:2])
