"""The tool `survey`: the files of a folder that a request is about, for models that look for nothing.

A small model answers well from what it is shown and badly from what it would have to ask for. So the
small profile shows it, in one call, the files that a request names, those that are small, and of long
ones the beginning and the lines with words of the request. It is bounded: reading costs seconds.
"""

from __future__ import annotations

import ast
import os
import re
import shlex
import shutil
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import takewhile
from pathlib import Path
from typing import Any

from ...machines import protocol as m
from ...machines.json_shape import parse_json
from ...machines.pattern import lazy_pattern
from ...machines.value import Value
from .arguments import declare
from .place import find_place
from .search_program import content_of, files_below, is_hidden
from .text import counted
from .thread_tool import StopFlag, ThreadTool
from .tool import ToolContext

SURVEY = "survey"
TESTS = "Tests are run with: "
"""Begins the last line of a result, if the folder has tests; the command follows."""
TABLES = (".csv", ".tsv")
DATA = (*TABLES, ".log", ".jsonl", ".ndjson")
"""The ends of files with data, which a script reads better than a small model."""
LONGER = "[… {lines} more]"
"""The line of a file that is not shown whole."""

_ROOM = 6000  # characters of files that are shown, about 1,700 tokens
_UNASKED = 2500  # of which those that have nothing to do with the request take so many at most
_WHOLE = 80  # lines of a file that is shown whole
_WHOLE_NAMED = 150  # of one that the request names
_WHOLE_DATA = 40  # of one with data
_HEAD = 15  # lines of a longer one
_MATCHES = 12  # lines of it with words of the request
_WIDTH = 160  # characters of such a line
_MOST = 2000  # files that are looked at
_LARGEST = 8 << 20  # bytes of a file that is looked into
_LISTED = 40  # names of other files
FOREIGN = ("venv", "node_modules", "target", "dist", "build")
"""Folders of a language's environment."""
_SHOWN_DOTS = (
    *(".github", ".gitlab-ci.yml", ".circleci", ".travis.yml", ".pre-commit-config.yaml"),
    *(".gitignore", ".dockerignore", ".editorconfig"),
)
"""Folders and files with a dot that people ask about; others hold caches and secrets."""


class Found(Value):
    """A text file of the folder, by its path in it."""

    path: str
    text: str


def _survey(arguments: dict[str, Any], context: ToolContext, stop: StopFlag) -> m.ToolResult:
    hidden = [list(pair) for pair in context.hidden]
    found = files_in(find_place(".", context.folder).path, hidden, stop.check)
    text = shown(arguments["request"], found)
    command = command_of_tests(found, arguments["request"])
    text += f"\n\n{TESTS}{command}" if command else ""
    return m.ToolResult(status="ok", text=text)


def files_in(folder: Path, hidden: list[list[Any]], check: Callable[[], None]) -> list[Found]:
    """Read the text files of a folder by path, without those that rules hide or nobody asks about.

    `check` is called before each; what it raises ends the look.
    """
    found: list[Found] = []
    for path in files_below(str(folder)):
        check()
        relative = os.path.relpath(path, folder)
        if len(found) == _MOST:
            break
        parts = Path(relative).parts
        dots = (part for part in parts if part.startswith("."))
        if any(part in FOREIGN for part in parts) or any(dot not in _SHOWN_DOTS for dot in dots):
            continue
        if is_hidden(path, relative, hidden):
            continue
        content = content_of(path, _LARGEST)
        if content or os.path.getsize(path) == 0:
            found.append(Found(path=relative, text=content.decode(errors="replace")))
    return sorted(found, key=lambda file: file.path)


SURVEY_TOOL = ThreadTool(
    declare(
        SURVEY,
        "Show the files of the folder that a request is about.",
        ("request",),
        request={"type": "string", "minLength": 1},
    ),
    _survey,
)


def shown(request: str, files: Sequence[Found]) -> str:
    """Show the files that fit, those first that the request is about.

    In a large folder none of the others, which would be there by chance: reading them costs a minute.
    """
    words, is_large = words_of(request, files), len(files) > _LISTED
    named = {file.path for file in files if _is_named(file.path, request, has_stems=not is_large)}
    if is_large:
        words = [word for word in words if not any(word in path for path in named)]
        if not (words or named):  # what it is about as a whole is in there
            named = {file.path for file in files if file.path.lower().startswith("readme")}
    order = sorted(files, key=lambda file: -_weight(file, words, file.path in named))
    room, taken = _ROOM, dict[str, str]()
    for file in order:
        weight = _weight(file, words, file.path in named)
        if weight <= 0:
            room = min(room, 0 if is_large else _UNASKED)
        elif is_large and file.path not in named and _FILE.search(request):
            room = min(room, _UNASKED)
        most = _WHOLE_NAMED if file.path in named else _WHOLE
        most = min(most, _WHOLE_DATA) if file.path.endswith(DATA) else most
        is_counted = _COUNTS.search(request) is not None
        text = _block(file, most, words, is_counted=is_counted)
        if len(text) > room:
            text = _block(file, 0, words, is_counted=is_counted)
        if len(text) <= room:
            taken[file.path] = text
            room -= len(text)
    others = [file.path for file in files if file.path not in taken]
    blocks = [taken[file.path] for file in files if file.path in taken]
    if others:
        more = f", and {len(others) - _LISTED} more" if len(others) > _LISTED else ""
        listed = others[:_LISTED]
        if is_large:
            tops = (path.partition("/") for path in others)
            listed = list(dict.fromkeys(f"{top}{slash}" for top, slash, _ in tops))[:_LISTED]
            more = f": {len(others)} in all"
        blocks.insert(0, f"Other files: {', '.join(listed)}{more}")
    return "\n\n".join(blocks) or "The folder is empty."


def _block(file: Found, most: int, words: Sequence[str], *, is_counted: bool) -> str:
    """Show a file: whole up to so many lines, else its beginning and what the request is about.

    How many lines have a word is said behind it, where that is asked or the file is not shown whole: a
    small model does not count what it reads.
    """
    lines, facts = file.text.splitlines(), list[str]()
    is_part = len(lines) > most and len(lines) > _HEAD
    hits = {word: [n for n, line in enumerate(lines, 1) if word in line] for word in words}
    hits = {word: numbers for word, numbers in hits.items() if numbers}
    if is_part or is_counted:
        of = f"of the {len(lines)} lines of {file.path}"
        facts = [f"(`{word}` is in {len(numbers)} {of}.)" for word, numbers in hits.items()]
    if is_part:
        rare = {n for numbers in hits.values() if len(numbers) <= _MATCHES for n in numbers}
        first = [n for n in sorted(rare) if n > _HEAD][:_MATCHES]
        rest = LONGER.format(lines=counted(len(lines) - _HEAD, "line"))
        lines = [*lines[:_HEAD], rest, *(f"line {n}: {lines[n - 1]}" for n in first)]
        lines = [line if len(line) <= _WIDTH else f"{line[:_WIDTH]} […]" for line in lines]
    fence = "````" if "```" in file.text else "```"
    shown = "\n".join([file.path, fence, "\n".join(lines).rstrip(), fence])
    return "\n\n".join([shown, *(["\n".join(facts)] if facts else [])])


_TOKEN = re.compile(r"[A-Za-z_][\w.-]*\w|\d{2,}|\"[^\"\n]+\"|'[^'\n]+'|`[^`\n]+`")
_USUAL = frozenset(
    "the and are for from how many much what which when where who why with that this these those there "
    "they them then than into onto over under also all any can could does did done has have had not now "
    "only should would will its it's our your you please make made put set get use using used new old "
    "add change write create fix find show tell list give rename replace remove delete everywhere every "
    "each file files folder line lines function functions code script python program contain contains "
    "bug bugs error errors fail fails failing failed pass passes test tests run runs works about "
    "say says written inside stand stands".split()
)


def subjects(request: str) -> list[str]:
    """Return the words of a request that are more than usual ones; in capitals a word is a name."""
    quoted_or_bare = (found.group().strip("\"'`") for found in _TOKEN.finditer(request))
    words = dict.fromkeys(quoted_or_bare)
    return [w for w in words if len(w) > 2 and (w.isupper() or w.lower() not in _USUAL)]


def words_of(request: str, files: Sequence[Found]) -> list[str]:
    """Return the words of a request that tell files apart: in some of them, but not in most."""
    words = subjects(request)
    most = max(3, len(files) // 2)
    return [w for w in words if 0 < sum(w in file.text for file in files) <= most][:8]


def _is_named(path: str, request: str, *, has_stems: bool) -> bool:
    name = os.path.basename(path)
    stem = name.partition(".")[0]
    is_word = re.search(rf"(?<![\w.]){re.escape(name)}(?!\w)", request) is not None
    has_stem = (
        has_stems
        and len(stem) > 3
        and re.search(rf"\b{re.escape(stem)}\b", request, re.I) is not None
    )
    return is_word or path in request or has_stem


def _weight(file: Found, words: Iterable[str], is_named: bool) -> float:
    """Return how much a request is about a file; among equals the shorter is first."""
    hits = sum(10.0 for word in words if word in file.text or word in file.path)
    return 1000.0 * is_named + hits - len(file.text) / 100_000


_FILE = lazy_pattern(r"[\w-]\.[A-Za-z]\w{0,4}\b")
_COUNTS = lazy_pattern(r"(?i)\bhow (many|often)\b|\bcount\b|\bnumber of\b")


# Tests --------------------------------------------------------------------------------------------


_CHECKS = lazy_pattern(r"(?i)test|check|verify|spec|validate")
_NAMED = lazy_pattern(r"(?:\b(python3?|sh|bash|node)\s+|(?<![\w./-])\./)([\w./-]+\.\w+)")


def command_of_tests(files: Sequence[Found], request: str = "") -> str:
    """Return the command by which a change is checked: one that the request names, or the tests.

    Empty if there seems to be none.
    """
    by_path = {file.path: file.text for file in files}
    for program, path in _NAMED.findall(request):
        if path in by_path and _CHECKS.search(path):
            return f"{program or 'sh'} {path}"
    if re.search(r"^test\s*:", by_path.get("Makefile", ""), re.M) and shutil.which("make"):
        return "make test"
    try:
        scripts: Any = parse_json(by_path.get("package.json", "{}")).get("scripts", {})
    except (ValueError, AttributeError):
        scripts = {}
    if "test" in scripts and shutil.which("npm"):
        return "npm test --silent"
    tests = [file for file in files if re.fullmatch(r"(test_.*|.*_test)\.py", Path(file.path).name)]
    if tests:
        is_pytest = any(re.search(r"^(import|from) pytest|^def test_", t.text, re.M) for t in tests)
        if is_pytest and shutil.which("pytest"):
            return "pytest -q"
        beside = all("/" not in test.path for test in tests)
        place = "" if beside else f" discover -s {Path(tests[0].path).parts[0]} -t ."
        python = "python3" if shutil.which("python3") else "python"
        return f"{python} -B -m unittest{place} -q"
    script = next((path for path in by_path if path in ("test.sh", "run_tests.sh")), "")
    if script:
        return f"sh {script}"
    if "Cargo.toml" in by_path and shutil.which("cargo"):
        return "cargo test -q"
    if any(path.endswith("_test.go") for path in by_path) and shutil.which("go"):
        return "go test ./..."
    return command_of_example(request) or command_of_call(request, by_path)


EXAMPLE = "python3 -B -c "
"""Begins the command that checks what a request gives as an example."""
_EXAMPLE = lazy_pattern(
    r"(?<![\w.])((?P<name>[A-Za-z_]\w*)\((?P<given>[^()\n]{1,100})\))[`'\"]?\s{0,2}"
    r"(?:(?:should|must|shall|would|to)? ?(?:returns?|gives?|be|is|equals?)|==|->|=>|→)[ `:]{1,3}"
    r"(?P<value>\"[^\"\n]*\"|'[^'\n]*'|-?\d[\d.]*\d|-?\d|\[[^\]\n]*\]|\{[^}\n]*\}|True|False|None)"
)
_MODULE = lazy_pattern(r"(?<![\w./-])[A-Za-z_]\w*\.py\b")


_CALL = lazy_pattern(
    r"\b(python3?|bash|sh|node) ([\w-]{1,60}\.(?:py|sh|js))((?: [^\s,;()`'\"]{1,60}){1,6})"
)
_VALUE = lazy_pattern(r"-.*|.*\d.*|.*[/.]\w.*")


def command_of_call(request: str, paths: Collection[str]) -> str:
    """Return how a request says that the script which it wants is called; empty if it does not.

    Its arguments are options, numbers, dates, and files and folders that are there.
    """
    found = _CALL.search(request)
    if found is None or request.count(found[2]) < 2 or not shutil.which(found[1]):
        return ""
    there = {part for path in paths for part in (path, path.partition("/")[0])}
    given = takewhile(
        lambda word: _VALUE.fullmatch(word) or word.rstrip(".") in there, found[3].split()
    )
    values = [word.rstrip(".") for word in given]
    return shlex.join([found[1], found[2], *values]) if values else ""


def is_example(tests: str) -> bool:
    """Whether the command that checks a change comes from the request, not from the folder."""
    return tests.startswith(EXAMPLE) or _CALL.match(tests) is not None


def function_of_example(request: str) -> str:
    """Return the function of which a request gives its first example; empty if it gives none."""
    found = _EXAMPLE.search(request)
    return found["name"] if found else ""


def command_of_example(request: str) -> str:
    """Return the command that checks the examples of a request: `f(1) should return 2`, in one file.

    Empty if it has none.
    """
    modules = {*_MODULE.findall(request)}
    if len(modules) != 1 or not shutil.which("python3"):
        return ""
    module = modules.pop().removesuffix(".py")
    checks: list[str] = []
    for found in _EXAMPLE.finditer(request):
        call, value = found[1], found["value"]
        try:
            ast.literal_eval(f"[{found['given']}]")
            ast.literal_eval(value)
        except (ValueError, SyntaxError):
            continue
        told = f"{call} should be {value}, and is "
        checks.append(f"got = {module}.{call}; assert got == {value}, {told!r} + repr(got)")
    return EXAMPLE + shlex.quote("; ".join([f"import {module}", *checks])) if checks else ""
