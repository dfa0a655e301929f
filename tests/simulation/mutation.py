"""Mutants by rule: one small change of the code each, which a test or a simulated run has to notice.

`catalogue` lists every mutant of the files in `FILES`, always in the same order: a comparison turned, a
condition negated, an entry left out, a constant exchanged, a call or a match arm without effect. Each is
made in a copy of the checkout, where the tests run that belong to its file, and then a short simulation.
`equivalent.toml` has those that nothing can notice, each with the reason.

    python tests/simulation/mutation.py mutants [--minutes N] [--sample N] [--seed N] [--only WORDS]
"""

import argparse
import ast
import os
import random
import resource
import subprocess
import sys
import time
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from simulation.rules import ROOT, copy_of_checkout
from support.patience import seconds

__all__ = ["EQUIVALENT", "FILES", "Equivalent", "Mutant", "catalogue", "mutants_of"]

_ACTORS = (
    "tests/actors",
    "tests/simulation/test_corners.py",
    "tests/simulation/test_deliveries.py",
)
_RUNS = tuple(
    f"tests/simulation/test_{name}.py" for name in ("simulation", "goals", "workflow", "wakes")
)
_PAGES = "tests/house/test_package.py::test_generated_docs_are_current"
"""The pages of tables and machines, which people read and change together with them."""
_TABLES = ("tests/machines/test_disposition.py", "tests/machines/test_delivery.py")
_ROUTES = "tests/machines/test_route_check.py"
_MACHINES = ("tests/machines/test_machine.py", "tests/machines/test_machine_check.py")
_OUTSIDE = ("tests/gateway/test_saved_queue.py", "tests/cli/test_restore.py")

FILES: dict[str, tuple[str, ...]] = {
    "machines/classification.py": ("tests/machines/test_classification.py",),
    "machines/delivery.py": (*_TABLES, _ROUTES, *_ACTORS, *_RUNS, _PAGES),
    "machines/disposition.py": (*_TABLES, _ROUTES, *_ACTORS, *_RUNS, _PAGES),
    "machines/lifecycles.py": (
        *(*_MACHINES, "tests/machines/test_goal.py", *_OUTSIDE, *_ACTORS, *_RUNS, _PAGES),
    ),
    "machines/result_routing.py": (_ROUTES, *_ACTORS, *_RUNS, _PAGES),
    "machines/routing.py": ("tests/machines/test_routing.py", *_TABLES, *_ACTORS),
    "actors/ledger.py": (*_ACTORS, *_RUNS),
    "actors/wakes.py": (*_ACTORS, *_RUNS),
    "actors/kernel/supervisor.py": (*_ACTORS, *_RUNS),
    **{
        f"actors/decisions/{name}.py": (*_ACTORS, *_RUNS)
        for name in sorted(path.stem for path in (ROOT / "actors" / "decisions").glob("[a-z]*.py"))
    },
}
"""The files that are mutated, and the tests that belong to each, the nearest first."""

SEEDS = 150
"""Runs of the simulator that a mutant has to survive, behind the tests."""
_LONGEST = 150.0
"""Seconds that the tests of one mutant take at most, on a quiet machine: one that hangs is noticed."""
_MEMORY = 4 << 30
"""Bytes that the tests of one mutant may take: one that grows without end is noticed."""


@dataclass(frozen=True)
class Mutant:
    """A change of `file` in the function or class `place`: what is from `begin` to `end` becomes `after`.

    `number` tells apart those of a place that read the same.
    """

    file: str
    place: str
    line: int
    begin: int
    end: int
    before: str
    after: str
    number: int = 0

    def __str__(self) -> str:
        return (
            f"{self.file}:{self.line} {self.place}: {_brief(self.before)} -> {_brief(self.after)}"
        )

    def applied(self, text: str) -> str:
        """Return the file's text with the change."""
        data = text.encode()
        assert data[self.begin : self.end].decode() == self.before
        return (data[: self.begin] + self.after.encode() + data[self.end :]).decode()


def _brief(code: str) -> str:
    text = " ".join(code.split())
    return f"`{text if len(text) <= 60 else text[:57] + '...'}`"


# Equivalent mutants -------------------------------------------------------------------------------


@dataclass(frozen=True)
class Equivalent:
    """A mutant that changes nothing that could be noticed; `why` says so in a sentence.

    `before` is a pattern, in which `*` stands for anything; `number` -1 for any.
    """

    file: str
    place: str
    before: str
    after: str
    why: str
    number: int = 0

    def is_of(self, mutant: Mutant) -> bool:
        """Whether this is about the mutant."""
        before, after = (" ".join(code.split()) for code in (mutant.before, mutant.after))
        is_there = (self.file, self.place, self.after) == (mutant.file, mutant.place, after)
        is_meant = self.number in (-1, mutant.number) and fnmatchcase(before, self.before)
        return is_there and is_meant


def _equivalent() -> tuple[Equivalent, ...]:
    text = Path(__file__).with_name("equivalent.toml").read_text(encoding="utf-8")
    return tuple(Equivalent(**row) for row in tomllib.loads(text)["mutant"])


EQUIVALENT = _equivalent()


# The changes --------------------------------------------------------------------------------------

_COMPARISONS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}


class _Finder(ast.NodeVisitor):
    """Finds every change of one file."""

    def __init__(self, file: str, text: str) -> None:
        self._file, self._data = file, text.encode()
        starts, at = [0], 0
        for row in self._data.splitlines(keepends=True):
            at += len(row)
            starts.append(at)
        self._starts = starts
        self._place: list[str] = []
        self._enums: dict[str, list[str]] = {}
        tree = ast.parse(text)
        for node in ast.walk(tree):
            if _is_member(node):
                assert isinstance(node, ast.Attribute)
                assert isinstance(node.value, ast.Name)
                self._enums.setdefault(node.value.id, []).append(node.attr)
        self.found: list[Mutant] = []
        self._seen: dict[tuple[str, str, str], int] = {}
        self.visit(tree)

    def _span(self, node: ast.AST) -> tuple[int, int]:
        assert isinstance(node, ast.expr | ast.stmt | ast.pattern | ast.keyword)
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        begin = self._starts[node.lineno - 1] + node.col_offset
        return begin, self._starts[node.end_lineno - 1] + node.end_col_offset

    def _change(self, node: ast.AST, after: str, span: tuple[int, int] | None = None) -> None:
        begin, end = span or self._span(node)
        before = self._data[begin:end].decode()
        place = ".".join(self._place) or "module"
        key = place, " ".join(before.split()), " ".join(after.split())
        number = self._seen[key] = self._seen.get(key, -1) + 1
        line = self._data[:begin].count(b"\n") + 1
        self.found.append(Mutant(self._file, place, line, begin, end, before, after, number))

    def _text(self, node: ast.AST) -> str:
        begin, end = self._span(node)
        return self._data[begin:end].decode()

    # Where nothing is changed: annotations, texts for people, names that modules give out ----------

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        """Change the body and the defaults, not the annotations."""
        self._place.append(node.name)
        for part in (
            *node.args.defaults,
            *(default for default in node.args.kw_defaults if default),
            *node.body,
        ):
            self.visit(part)
        self._place.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        """Change what is in the class."""
        self._place.append(node.name)
        for part in node.body:
            self.visit(part)
        self._place.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        """Change the value, not the annotation."""
        if node.value is not None:
            self._assigned(node.target, node.value)

    def visit_Assign(self, node: ast.Assign) -> None:
        """Change the value of anything but `__all__`."""
        self._assigned(node.targets[0], node.value)

    def _assigned(self, target: ast.expr, value: ast.expr) -> None:
        name = target.id if isinstance(target, ast.Name) else ""
        if name != "__all__":
            is_named = not self._place and name
            self._place += [name] if is_named else []
            self.visit(value)
            if is_named:
                self._place.pop()

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Leave texts alone."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """Leave assertions alone: they are for the type checker."""

    # What is changed ------------------------------------------------------------------------------

    def visit_keyword(self, node: ast.keyword) -> None:
        """Leave `zip(…, strict=True)` alone: it asserts what the callers see to."""
        if node.arg != "strict":
            self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        """Turn a comparison around, or move its border."""
        if len(node.ops) == 1:
            old, new = _COMPARISONS[type(node.ops[0])]
            begin, end = self._span(node.left)[1], self._span(node.comparators[0])[0]
            between = self._data[begin:end].decode()
            if between.count(old) == 1:
                self._change(node, between.replace(old, new), (begin, end))
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        """Take a part out of a conjunction or disjunction."""
        values = node.values
        for number, value in enumerate(values):
            if number:
                span = self._span(values[number - 1])[1], self._span(value)[1]
            else:
                span = self._span(value)[0], self._span(values[1])[0]
            if _is_balanced(self._data[span[0] : span[1]].decode()):
                self._change(value, "", span)
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        """Negate a condition."""
        if _is_for_types(node.test):
            return
        self._negate(node.test)
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        """Negate the condition of an expression."""
        self._negate(node.test)
        self.generic_visit(node)

    def visit_comprehension(self, node: ast.comprehension) -> None:
        """Negate what a comprehension keeps."""
        for test in node.ifs:
            self._negate(test)
        self.generic_visit(node)

    def _negate(self, test: ast.expr) -> None:
        if not (isinstance(test, ast.Compare) and len(test.ops) == 1):  # turned around anyway
            self._change(test, f"not ({self._text(test)})")

    def visit_Tuple(self, node: ast.Tuple) -> None:
        """Leave an entry out."""
        if isinstance(node.ctx, ast.Load) and self._data[self._span(node)[0]] == ord("("):
            self._leave_out(node.elts, is_tuple=True)
        self.generic_visit(node)

    def visit_Set(self, node: ast.Set) -> None:
        """Leave an entry out."""
        if len(node.elts) > 1:
            self._leave_out(node.elts)
        self.generic_visit(node)

    def visit_List(self, node: ast.List) -> None:
        """Leave an entry out."""
        if isinstance(node.ctx, ast.Load):
            self._leave_out(node.elts)
        self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> None:
        """Leave an entry out."""
        for key, value in zip(node.keys, node.values, strict=True):
            begin = self._span(key)[0] if key is not None else self._span(value)[0] - 2
            self._change(value, "", self._with_comma((begin, self._span(value)[1])))
        self.generic_visit(node)

    def _leave_out(self, entries: Sequence[ast.expr], *, is_tuple: bool = False) -> None:
        for entry in entries:
            span = self._span(entry)
            last_two = is_tuple and len(entries) == 2
            self._change(
                entry, "", span if last_two and entry is entries[1] else self._with_comma(span)
            )

    def _with_comma(self, span: tuple[int, int]) -> tuple[int, int]:
        end = span[1]
        while self._data[end : end + 1].isspace():
            end += 1
        return (span[0], end + 1) if self._data[end : end + 1] == b"," else span

    def visit_Constant(self, node: ast.Constant) -> None:
        """Exchange a truth value or a number."""
        if isinstance(node.value, bool):
            self._change(node, str(not node.value))
        elif isinstance(node.value, int | float):
            self._change(node, repr(node.value + 1))

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Exchange a member of an enumeration for the next one that the file names."""
        if _is_member(node):
            assert isinstance(node.value, ast.Name)
            members = sorted(set(self._enums[node.value.id]))
            if len(members) > 1:
                new = members[(members.index(node.attr) + 1) % len(members)]
                self._change(node, f"{node.value.id}.{new}")
        self.generic_visit(node)

    def visit_Expr(self, node: ast.Expr) -> None:
        """Leave a call out."""
        if isinstance(node.value, ast.Call | ast.Yield | ast.YieldFrom):
            self._change(node, "pass" if isinstance(node.value, ast.Call) else "yield from ()")
        if not isinstance(node.value, ast.Constant):
            self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        """Leave an addition out."""
        self._change(node, "pass")
        self.generic_visit(node)

    def visit_match_case(self, node: ast.match_case) -> None:
        """Take the effect of an arm away."""
        if not (len(node.body) == 1 and isinstance(node.body[0], ast.Pass | ast.Expr)):
            span = self._span(node.body[0])[0], self._span(node.body[-1])[1]
            self._change(node.body[0], "pass", span)
        if node.guard is not None:
            self._negate(node.guard)
        self.generic_visit(node)

    def visit_MatchOr(self, node: ast.MatchOr) -> None:
        """Leave an alternative out."""
        first, second = node.patterns[:2]
        self._change(first, "", (self._span(first)[0], self._span(second)[0]))
        for before, after in zip(node.patterns, node.patterns[1:], strict=False):
            self._change(after, "", (self._span(before)[1], self._span(after)[1]))

    def visit_MatchValue(self, node: ast.MatchValue) -> None:
        """Leave the values of patterns alone."""


def _is_member(node: ast.AST) -> bool:
    """Whether it reads like a member of an enumeration."""
    if not isinstance(node, ast.Attribute) or not isinstance(node.value, ast.Name):
        return False
    return node.attr.isupper() and node.value.id[0].isupper() and not node.value.id.isupper()


def _is_balanced(text: str) -> bool:
    return all(text.count(left) == text.count(right) for left, right in ("()", "[]", "{}"))


def _is_for_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def mutants_of(file: str, text: str) -> list[Mutant]:
    """Return the mutants of one file, in the order of its text: those that can be compiled."""
    return [one for one in _Finder(file, text).found if _compiles(one.applied(text))]


def _compiles(text: str) -> bool:
    try:
        ast.parse(text)
    except SyntaxError:
        return False
    return True


def catalogue() -> Iterator[Mutant]:
    """Yield every mutant, file by file."""
    for file in FILES:
        yield from mutants_of(file, (ROOT / file).read_text(encoding="utf-8"))


# Running them -------------------------------------------------------------------------------------


def _limited() -> None:
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))


def _run(copy: Path, *arguments: str) -> str:
    """Run the interpreter in the copy; return what it says when it fails, nothing if all is well."""
    try:
        ran = subprocess.run(
            (sys.executable, *arguments),
            cwd=copy,
            env={**os.environ, "PYTHONPATH": str(copy.parent), "STEERSMAN_SEEDS": "1"},
            capture_output=True,
            text=True,
            timeout=seconds(_LONGEST),
            preexec_fn=_limited,
        )
    except subprocess.TimeoutExpired:
        return "it does not end"
    if ran.returncode == 0:
        return ""
    lines = [
        line for line in ran.stdout.splitlines() if line.startswith(("FAILED", "ERROR", "seed"))
    ]
    return (lines or ran.stdout.splitlines()[-1:] or ran.stderr.splitlines()[-1:] or ["it fails"])[
        0
    ]


def _checked(copy: Path, tests: Sequence[str], *options: str) -> str:
    """Run tests, then the simulator, in a copy of the checkout; return what failed first."""
    plain = ("-x", "-q", "--tb=no", "-p", "no:cacheprovider", "-m", "not nightly")
    if noticed := _run(copy, *options, "-m", "pytest", *plain, *tests):
        return noticed
    if not any("simulation" in test for test in tests):
        return ""
    return _run(copy, *options, "-m", "steersman", "simulate", "--seeds", str(SEEDS), "--seed", "0")


def noticed_by(copy: Path, mutant: Mutant) -> str:
    """Make a mutant in the copy and return what notices it; nothing if it survives."""
    file = copy / mutant.file
    text = file.read_text(encoding="utf-8")
    file.write_text(mutant.applied(text), encoding="utf-8")
    for compiled in (file.parent / "__pycache__").glob(f"{file.stem}.*"):
        compiled.unlink()
    try:
        return _checked(copy, FILES[mutant.file], "-B")
    finally:
        file.write_text(text, encoding="utf-8")


def main(arguments: Sequence[str]) -> int:
    """Try a sample of the mutants; print a line for each, and the sum; return 1 if one survived."""
    parser = argparse.ArgumentParser("make prove ARGS=mutants", description=__doc__)
    parser.add_argument("what", choices=["mutants"])
    parser.add_argument(
        "--minutes", type=float, default=0.0, help="try no more after so long (no end)"
    )
    parser.add_argument("--sample", type=int, default=0, help="so many of them, at random (all)")
    parser.add_argument("--seed", type=int, default=1, help="of the sample and the order (1)")
    parser.add_argument("--only", default="", help="those whose line has these words")
    parser.add_argument("--list", action="store_true", help="print the lines, and try none")
    asked = parser.parse_args(arguments)
    mutants = [mutant for mutant in catalogue() if asked.only in str(mutant)]
    print(f"{len(mutants):,} mutants of {len(FILES)} files", flush=True)
    random.Random(asked.seed).shuffle(mutants)
    mutants = mutants[: asked.sample or None]
    if asked.list:
        print("\n".join(map(str, mutants)))
        return 0
    began, tried, equivalent, survived = time.monotonic(), 0, 0, list[Mutant]()
    with copy_of_checkout() as copy:
        for tests in dict.fromkeys(FILES[mutant.file] for mutant in mutants):
            if error := _checked(copy, tests):
                print(f"a test fails though nothing is changed: {error}")
                return 1
        for mutant in mutants:
            if asked.minutes and time.monotonic() - began > 60 * asked.minutes:
                break
            tried += 1
            if any(known.is_of(mutant) for known in EQUIVALENT):
                equivalent += 1
                print(f"{'same':9} {mutant}", flush=True)
                continue
            begins = time.monotonic()
            noticed = noticed_by(copy, mutant)
            if not noticed:
                survived.append(mutant)
            took = f"{time.monotonic() - begins:7.1f} s"
            print(f"{took} {mutant}: {noticed or 'SURVIVES'}", flush=True)
    killed = tried - equivalent - len(survived)
    print(f"{tried} tried: {killed} noticed, {equivalent} change nothing, {len(survived)} survived")
    return 1 if survived else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
