"""The rules that nothing may break: each is broken in a copy of the checkout, where a test has to fail.

`rules.toml` has the rules. Run as a program, it breaks each one and prints which test failed and how long
it took: `python tests/simulation/rules.py [WORDS OF A RULE] [--keep]`. It fails if a test passes all the
same. With `--keep` the seconds go into docs/proof.json, of which docs/promises.md shows them.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from support.patience import seconds

__all__ = ["RULES", "Break", "Rule", "broken", "copy_of_checkout", "failure", "keep"]

ROOT = Path(__file__).resolve().parents[2]
_KEPT = ROOT / "docs" / "proof.json"
_LEFT_OUT = shutil.ignore_patterns(
    *(".git", ".venv", "__pycache__", ".*_cache", "node_modules", "build", "dist", "*.egg-info")
)
_LONGEST = 120.0
"""Seconds that one test takes at most, on a quiet machine."""
_TESTS_FAILED = 1
"""What pytest returns when tests ran and failed; a test that does not exist gives another code."""


@dataclass(frozen=True)
class Break:
    """A replacement of text that occurs once in a file, and the test that fails with it."""

    file: str
    find: str
    put: str
    test: str


@dataclass(frozen=True)
class Rule:
    """A rule in a sentence, and each way to break it."""

    text: str
    breaks: tuple[Break, ...]


def _read() -> tuple[Rule, ...]:
    rows = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))["rule"]
    return tuple(Rule(row["text"], tuple(Break(**one) for one in row["break"])) for row in rows)


RULES = _read()


@contextmanager
def copy_of_checkout() -> Iterator[Path]:
    """Give a folder with a copy of the checkout, which is removed again."""
    with tempfile.TemporaryDirectory(prefix="steersman-rules-") as name:
        copy = Path(name, "steersman")
        shutil.copytree(ROOT, copy, symlinks=True, ignore=_LEFT_OUT)
        yield copy


@contextmanager
def broken(copy: Path, at: Break) -> Iterator[None]:
    """Break a rule in the copy, and put the file back after it.

    Raises `ValueError` if the text that is replaced does not occur once.
    """
    file = copy / at.file
    text = file.read_text(encoding="utf-8")
    if text.count(at.find) != 1:
        raise ValueError(f"{at.file} has `{at.find}` {text.count(at.find)} times")
    file.write_text(text.replace(at.find, at.put), encoding="utf-8")
    try:
        yield
    finally:
        file.write_text(text, encoding="utf-8")


def failure(copy: Path, *tests: str) -> str:
    """Run tests in a copy of the checkout; return how the first one fails, or nothing.

    Raises `RuntimeError` if no test ran.
    """
    plain = ("-x", "-q", "--tb=short", "-p", "no:cacheprovider")
    ran = subprocess.run(
        (sys.executable, "-P", "-B", "-m", "pytest", *plain, *tests),
        cwd=copy,
        env={**os.environ, "PYTHONPATH": str(copy.parent)},
        capture_output=True,
        text=True,
        timeout=seconds(_LONGEST),
    )
    if ran.returncode == 0:
        return ""
    errors = [line[1:].strip() for line in ran.stdout.splitlines() if line.startswith("E ")]
    if ran.returncode != _TESTS_FAILED or not errors:
        raise RuntimeError(f"{' '.join(tests)}: no test ran\n{ran.stdout}{ran.stderr}")
    return errors[0]


def keep(what: str, found: Any) -> None:
    """Keep what was found of something, beside the rest, for the page of promises."""
    kept: dict[str, Any] = json.loads(_KEPT.read_text("utf-8")) if _KEPT.exists() else {}
    kept[what] = found
    _KEPT.write_text(json.dumps(dict(sorted(kept.items())), indent=2) + "\n", encoding="utf-8")


def main(arguments: list[str]) -> int:
    """Break each rule, print a line for each way, and the sum; return 1 if a test noticed nothing."""
    words = " ".join(word for word in arguments if word != "--keep")
    rules = [rule for rule in RULES if words in rule.text]
    if not rules:
        return 0
    tests = {at.test: None for rule in rules for at in rule.breaks}
    count = missed = 0
    noticed: dict[str, float] = {}
    with copy_of_checkout() as copy:
        if error := failure(copy, *tests):
            print(f"a test fails though nothing is broken: {error}")
            return 1
        for rule in rules:
            print(rule.text)
            for at in rule.breaks:
                began = time.monotonic()
                with broken(copy, at):
                    error = failure(copy, at.test)
                count, missed = count + 1, missed + (not error)
                noticed[f"{at.file}: {at.test}"] = round(time.monotonic() - began, 1)
                took = f"{noticed[f'{at.file}: {at.test}']:8.1f} s  {at.file}"
                print(f"{took}: {at.test}\n{'':12}{error[:100] or 'PASSES'}", flush=True)
    print(f"{len(rules)} rules, broken in {count} ways: {count - missed} noticed")
    if "--keep" in arguments:
        keep("rules", noticed)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
