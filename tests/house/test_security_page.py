"""SECURITY.md claims nothing that no test holds."""

import ast
import re
from pathlib import Path

CLAIM = re.compile(r"\[(test_\w+)\]\((tests/[\w/]+\.py)\)")


def functions(path: Path) -> set[str]:
    """Return the names of the tests in a file."""
    tree = ast.parse(path.read_text("utf-8"))
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return {node.name for node in ast.walk(tree) if isinstance(node, kinds)}


def test_each_line_of_the_threat_model_names_a_test_that_exists(root: Path) -> None:
    """In every table, of everybody who might do harm; and no test is named that is not there."""
    text = (root / "SECURITY.md").read_text("utf-8")
    parts = re.split(r"^### ", text.partition("\n## What is installed")[0], flags=re.MULTILINE)[1:]
    rows = {
        part.splitlines()[0]: [line for line in part.splitlines() if line.startswith("| ")][1:]
        for part in parts
    }
    assert len(rows) >= 6
    assert {head: len(lines) for head, lines in rows.items() if len(lines) < 5} == {}
    assert [line for lines in rows.values() for line in lines if not CLAIM.search(line)] == []
    named = CLAIM.findall(text)
    missing = [f"{file}::{name}" for name, file in named if name not in functions(root / file)]
    assert missing == []
    assert len(set(named)) > 40
