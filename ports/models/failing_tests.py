"""What a small model is asked for after tests have failed: which answer is next, and of which code.

The same words give the same answer. So it writes single functions again, without a look at the wrong
ones, then in plain words, each time with another word on how, and at last the files; the tests tell
which one is right.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping

from ...machines.pattern import lazy_pattern
from ..tools.survey import EXAMPLE, function_of_example
from .failure_text import cases_in, has_failed
from .fragments import functions_of, statements_of, used_by, words_about
from .said_files import is_test
from .spoken_request import words_in
from .turn_view import TurnView, is_named

ROUNDS = 4
"""Answers with files that the tests may fail; after each the model is asked in another way."""
MORE = 3
"""Answers besides where a new class fails: its methods become right one by one."""
VARIANTS = 6
"""Answers in plain words, before these."""
FUNCTIONS = 3
"""Functions that the model writes again, before these."""
_CHECKS = 8  # lines of tests that are told about one function
_AT_FAULT = 3  # files that the model sees again after a failure
_CALLED = lazy_pattern(r"\b([A-Za-z_]\w*)\(")


class FailingTests:
    """What the tests of a turn have failed, and which answer the model is to be asked for now."""

    def __init__(self, view: TurnView) -> None:
        self.view = view
        self.failures = [text for text in view.runs if has_failed(text)]

    # Which answer ---------------------------------------------------------------------------------

    @property
    def tries(self) -> int:
        """How many answers the tests have failed, or were refused."""
        return sum(bool(self.view.fault_of(each)) for each in self.view.rounds)

    @property
    def may_try(self) -> bool:
        """Whether the last answer has failed, and the model is to be asked for another one."""
        rounds = self.view.rounds
        if not rounds or not self.view.fault_of(rounds[-1]):
            return False
        is_refused = any(each.refusal for each in rounds)
        more = MORE if self.is_class else self._alone
        return self.tries < (2 if is_refused else ROUNDS + more)

    @property
    def _functions(self) -> int:
        """How many functions the model is asked for alone."""
        return len(self.suspects()) or int(self.new_function is not None)

    @property
    def _alone(self) -> int:
        """How many answers are asked for without the files: functions, and in plain words."""
        functions = self._functions
        is_alone = functions or (self.new_module() and not self.is_class)
        return functions + VARIANTS if is_alone else 0

    @property
    def tries_of_files(self) -> int:
        """How many answers have failed behind those that were asked for without the files."""
        return self.tries - self._alone

    @property
    def variant(self) -> int | None:
        """Which of the answers in plain words is to be asked for, from 0; none where none of them is."""
        number = self.tries - 1 - self._functions
        return number if self._alone and 0 <= number < VARIANTS else None

    # Of which code --------------------------------------------------------------------------------

    @property
    def newest(self) -> str:
        """What failing tests printed for the files that the model is shown."""
        return self.failures[0] if self.suspects() else self.view.tested or ""

    def suspects(self) -> list[tuple[str, str]]:
        """Return functions that may be wrong, with their files: those first that most checks come to.

        Where what has failed calls some, or at least names them, others of their file count only if these
        use them.
        """
        if not self.view.request.mends or self.new_function:
            return []
        told = cases_in(self.failures[:1])
        called = Counter(_CALLED.findall(told)) or Counter(words_in(told))
        found = list[tuple[int, bool, str, str]]()
        for path in self.files():
            text = self.view.before.get(path) if path.endswith(".py") else None
            names = functions_of(text or "")
            named = [name for name in names if called[name]] or names
            uses = {name: used_by(text or "", [name]) for name in named}
            for name in names:
                weight = sum(called[of] or 1 for of, used in uses.items() if name in used)
                if weight:
                    found.append((-weight, name not in named, path, name))
        ranked = sorted(found, key=lambda each: each[:2])
        return [(path, name) for _, _, path, name in ranked][:FUNCTIONS]

    def suspect(self) -> tuple[str, str] | None:
        """Return the function that the model is to write again now, and its file."""
        suspects = self.suspects() if self.may_try and not self.view.since else []
        if suspects and self.variant is not None:
            return suspects[self.variant % len(suspects)]
        return suspects[self.tries - 1] if 0 < self.tries <= len(suspects) else None

    def new_module(self) -> tuple[str, list[str]] | None:
        """Return a Python file that was not there, and the names that the tests import from it."""
        files = self.view.files
        tests = "\n".join(text for name, text in files.items() if text and is_test(name))
        for path in files.keys() - self.view.before.keys():
            stem = re.escape(path.rpartition("/")[2].removesuffix(".py"))
            found = re.search(rf"^from {stem} import ([\w, ]+)$", tests, re.M)
            if found and path.endswith(".py"):
                return path, re.findall(r"\w+", found[1])
        return None

    @property
    def is_class(self) -> bool:
        """Whether the new module holds a class: written again alone it would lose its other methods."""
        path, names = self.new_module() or ("", [])
        text = self.view.files.get(path) or ""
        return any(re.search(rf"^class {name}\b", text, re.M) for name in names)

    @property
    def new_function(self) -> tuple[str, str] | None:
        """The function that an example or the tests ask for, once it is there, and its file before it."""
        now, before, request = self.view.files, self.view.before, self.view.request
        paths = [path for path in self.files() if path.endswith(".py")]
        found = [(path, name) for path in paths for name in functions_of(now[path] or "")]
        new = [(p, name) for p, name in found if name not in functions_of(before.get(p) or "")]
        if self.view.tests.startswith(EXAMPLE):
            name = function_of_example(request.text)
            return next((of for of in (new if request.mends else found) if of[1] == name), None)
        called = {*_CALLED.findall(cases_in(self.failures[:1]))}
        return next((of for of in new if of[1] in called and of[0] in before), None)

    def new_suspect(self) -> tuple[str, str] | None:
        """Return the function that is new, and is to be written again now, and its file."""
        is_next = self.tries == 1 or self.variant is not None
        return self.new_function if is_next and self.may_try and not self.view.since else None

    def checks_of(self, name: str) -> str:
        """Return what tests say of a function, in words and line by line, else what has failed."""
        tests = [text for path, text in self.view.files.items() if text and is_test(path)]
        lines = [line for text in tests for line in statements_of(text)]
        told = [line for line in lines if "assert" in line and re.search(rf"\b{name}\(", line)]
        whole = [line for line in dict.fromkeys(told) if line.count("(") == line.count(")")]
        words = [line for text in tests for line in words_about(text, name)]
        checks = whole[:_CHECKS]
        return "\n".join([*words[:_CHECKS], *checks]) if checks else cases_in(self.failures[:1])

    @property
    def known(self) -> Mapping[str, str | None]:
        """The files that an answer changes: as they were at first, where one has made them worse."""
        now, before = self.view.files, self.view.before
        if not (self.may_try and self.suspects()):
            return now
        return now | {path: before[path] for path in self.files() if path in before}

    def files(self) -> list[str]:
        """Return the files that failing tests are about: those that were written, named or tested."""
        files = self.view.files.items()
        told = "\n".join([self.view.request.text, *self.failures[:1]])
        tests = [text for path, text in files if text and is_test(path) and is_named(path, told)]
        kept = self.view.request.kept
        found = [
            path
            for path, text in files
            if text
            and not (is_test(path) or any(is_named(name, path) for name in kept))
            and (
                path in self.view.written
                or is_named(path, told)
                or any(_imports(test, path) for test in tests)
            )
        ]
        return found[:_AT_FAULT]


def _imports(test: str, path: str) -> bool:
    stem = path.rpartition("/")[2].partition(".")[0]
    return re.search(rf"^\s*(?:from|import)\b.*\b{re.escape(stem)}\b", test, re.M) is not None
