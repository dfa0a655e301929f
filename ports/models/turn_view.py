"""One turn of a small model as its messages show it: what was asked, looked at, done and tested.

Everything is read from the conversation alone, so that a turn goes on after a crash like any other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from ...machines.conversation import ChatMessage, ToolRequest
from ...machines.pattern import lazy_pattern
from ...machines.value import Value
from ..tools.survey import DATA, EXAMPLE, SURVEY, TESTS, function_of_example
from .failure_text import TAIL, cases_in, has_failed, tail_of
from .fragments import functions_of, used_by, words_about
from .renames import after_move, moving, renaming, with_name
from .said_files import blocks, is_test

REMARKS = ("[No progress]", "[Facts]")
"""Begin what the program itself says to the model."""
_GOES_ON = "[You were interrupted"  # begins a line of a message that is said again
_CUT = ("[Unknown outcome", "[The program died", "[Not run:")  # begin results that a crash left
ROUNDS = 4
"""Answers that the tests may fail; after each the model is asked in another way."""
VARIANTS = 6
"""Answers after these, each asked for with another word on how: tests tell which one is right."""
FUNCTIONS = 3
"""Functions that the model writes again, without a look at the wrong one, before these."""
FILES = 8
"""Files of a turn, of those that a change has left something over in; the model sees one at a time."""
MAKES = lazy_pattern(r"(?i)\b(write|create|make|add|put|convert|generate|save)\b")
"""A request for something new."""
MOVES = lazy_pattern(
    r"(?i)\b((rename|move|delete|remove) +((the|old|file) +){0,2}[\w./-]*\w\.\w{1,5}|delete +(it|them))\b"
)
"""A request about a file as a whole."""
VERSION = lazy_pattern(r"\d+(\.\d+)+")
"""The number of a version."""

_MENDS = lazy_pattern(r"(?i)\b(fix|bugs?|fails?|failing|broken|repair)\b")
"""A request to repair something."""
_FAULT = lazy_pattern(
    r"(?i)\b(correct|wrong(ly)?|incorrect(ly)?|mistakes?|crash(es|ed|ing)?|\w*(error|exception)s?|"
    r"too (many|much|few|little|early|late)|doesn'?t|does not|isn'?t|never|pass(es)?)\b"
)
"""What else tells of a fault, where it is no question."""
_CHECKS = 8  # lines of tests that are told about one function
_AT_FAULT = 3  # files that the model sees again after a failure
_WROTE = ("Created", "Replaced", "Unchanged")
_EVERYWHERE = lazy_pattern(r"(?i)\b(every ?where|all over|every|all|each|rename|bump|refers?)\b")
_INSTEAD = lazy_pattern(r"(?i)\b(replace|instead of)\b")
_CALLED = lazy_pattern(r"\b([A-Za-z_]\w*)\(")
_WORDS = lazy_pattern(r"[A-Za-z_][\w-]{2,}|\d+(?:\.\d+)*")
_CLAUSE = lazy_pattern(r"[,;:!?\n]|\.(?!\w)|\b(?:and|then|so that)\b")
_CHANGED = "update|edit|change|fix|correct"
_TAKEN = "move|take|remove|delete|extract|pull|split"
_CHANGES = lazy_pattern(
    rf"(?i)\b({_CHANGED}|{_TAKEN}|add|put|mention|import|note|document|insert|append|set)\b"
)
"""A clause that says what to change."""
_ASKS = lazy_pattern(
    r"(?i)\W*((at|by|for|from|in|of|on|since|to|until|with) +)?"
    r"(what|whats|which|who|whose|where|when|why|how|is|are|does|did)\b"
)
_ONE_SENTENCE = lazy_pattern(r"(?i)(?:[^?.;\n]|\.\w)*+\?*(?:\s*(?:see|look)\b[^?;\n]*+)?\W*")
"""A question and no order behind it; where to look may stand there."""
_LOOKS = lazy_pattern(r"(?i)\W*(tell|list|show|count|find)\b|.*\?\s*$")


class Round(Value):
    """An answer of the model in this turn, and each of its calls with the result."""

    text: str
    pairs: tuple[tuple[ToolRequest, str], ...]

    @property
    def writes(self) -> bool:
        """Whether a call of it writes a file."""
        return any(call.tool == "write" for call, _ in self.pairs)

    @property
    def refusal(self) -> str:
        """What came of a write that was not done; empty if each was."""
        wrote = (result for call, result in self.pairs if call.tool == "write")
        return next((text for text in wrote if not text.startswith(_WROTE)), "")


class TurnView:
    """One turn as its messages show it: the request, what was looked at, and what the model did.

    `files` are those that the newest survey shows, by path, none for one that is not shown whole; `tests`
    is the command that runs the folder's tests, empty if it has none; `tested` is what it printed last;
    `rounds` are the answers to the newest message; `names` are the old and the new one, where something
    is to be renamed and nothing else. `mends`: something is to be repaired; `wants_no_change`: something
    is asked, and nothing else; `is_lookup`: nothing in it speaks of a change.
    """

    def __init__(self, messages: Sequence[ChatMessage]) -> None:
        start = _start_of_turn(messages)
        self.earlier, turn = messages[:start], messages[start:]
        results = {said.call: said.text for said in turn if said.role == "tool"}
        asked = [said.text for said in turn if said.role == "user" and _is_request(said)]
        self.request = "\n".join(dict.fromkeys(map(_without_opening, asked)))
        self.remarks = remarks_of(turn)
        last = max((n for n, said in enumerate(turn) if _is_request(said)), default=0)
        newest = max((n for n, said in enumerate(turn) if _is_new(said)), default=last)
        rounds, at = list[tuple[int, Round]](), -1
        surveys = [""]
        for n, said in enumerate(turn):
            pairs = tuple((call, results.get(call.call, "")) for call in said.tool_calls)
            is_whole = not any(result.startswith(_CUT) for _, result in pairs)
            if said.role == "assistant" and pairs and said.text and is_whole:
                rounds.append((n, Round(text=said.text, pairs=pairs)))
            looks = [result for call, result in pairs if call.tool == SURVEY]
            surveys += [] if said.text else looks
            at = n if looks else at
        self.first_shown, self.shown = (_shown_in(surveys[1:][:1]), _shown_in(surveys[-1:]))
        end = surveys[-1].rpartition("\n")[2]
        self.tests = end.removeprefix(TESTS) if end.startswith(TESTS) else ""
        self.files, self.before = _files_in(surveys[-1]), _files_in(self.first_shown)
        self.rounds = [each for n, each in rounds if n > newest]
        self.since = [
            each for n, each in rounds if n > max(at, newest) and not self.is_test_run(each)
        ]
        runs = [text for _, each in rounds for call, text in each.pairs if self.runs_tests(call)]
        self.tested = runs[-1] if runs else None
        self.failures = [text for text in runs if has_failed(text)]
        self.written = {
            str(call.arguments.get("path"))
            for _, each in rounds
            for call, _ in each.pairs
            if call.tool == "write"
        }
        self.is_surveyed = at >= last
        self.names = renaming(self.request, self.before)
        self.move = moving(self.request, self.before)
        self.is_question = _is_question(self.request)
        faults = (_MENDS,) if self.is_question else (_MENDS, _FAULT)
        self.mends = any(of.search(self.request) for of in faults)
        is_alone = _ASKS.match(self.request) and _ONE_SENTENCE.fullmatch(self.request)
        self.is_lookup = self.is_question and not _changes(self.request)
        self.wants_no_change = bool(is_alone) and not _changes(self.request)

    @property
    def has_others(self) -> bool:
        """Whether the folder has files that are not shown."""
        return self.shown.startswith("Other files:")

    def runs_tests(self, call: ToolRequest) -> bool:
        """Whether a call runs the folder's tests."""
        return call.tool == "shell" and call.arguments.get("command") == self.tests

    def is_test_run(self, round: Round) -> bool:
        """Whether nothing but the tests was run."""
        return all(self.runs_tests(call) for call, _ in round.pairs)

    def is_command(self, round: Round) -> bool:
        """Whether a command of the model was run."""
        return any(call.tool == "shell" and not self.runs_tests(call) for call, _ in round.pairs)

    @property
    def tries(self) -> int:
        """How many answers the tests have failed, or were refused."""
        return sum(bool(self.fault_of(each)) for each in self.rounds)

    @property
    def may_try(self) -> bool:
        """Whether the last answer has failed, and the model is to be asked for another one."""
        if not self.rounds or not self.fault_of(self.rounds[-1]):
            return False
        is_refused = any(each.refusal for each in self.rounds)
        return self.tries < (2 if is_refused else ROUNDS + self._alone)

    @property
    def _functions(self) -> int:
        """How many functions the model is asked for alone."""
        return len(self.suspects()) or int(self.new_function is not None)

    @property
    def _alone(self) -> int:
        """How many answers are asked for without the files: functions, and in plain words."""
        functions = self._functions
        return functions + VARIANTS if functions or self.wanted() else 0

    @property
    def tries_of_files(self) -> int:
        """How many answers have failed behind those that were asked for without the files."""
        return self.tries - self._alone

    @property
    def variant(self) -> int | None:
        """Which of the answers in plain words is to be asked for, from 0; none where none of them is."""
        number = self.tries - 1 - self._functions
        return number if self._alone and 0 <= number < VARIANTS else None

    def fault_of(self, round: Round) -> str:
        """Say what went wrong with the files of an answer; empty if nothing did."""
        if round.refusal:
            return f"This was not done: {round.refusal[:TAIL]}"
        for call, result in round.pairs:
            if self.runs_tests(call) and has_failed(result):
                return f"The tests (`{self.tests}`) still fail:\n{tail_of(result)}"
        return ""

    @property
    def newest_failure(self) -> str:
        """What failing tests printed for the files that the model is shown."""
        return self.failures[0] if self.suspects() else self.tested or ""

    def suspects(self) -> list[tuple[str, str]]:
        """Return functions that may be wrong, with their files: those first that most checks come to.

        Where what has failed calls some, or at least names them, others of their file count only if these
        use them.
        """
        if not self.mends or self.new_function:
            return []
        told = cases_in(self.failures[:1])
        called = Counter(_CALLED.findall(told)) or Counter(_WORDS.findall(told))
        found = list[tuple[int, bool, str, str]]()
        for path in self.at_fault():
            text = self.before.get(path) if path.endswith(".py") else None
            names = functions_of(text or "")
            named = [name for name in names if called[name]] or names
            uses = {name: used_by(text or "", [name]) for name in named}
            for name in names:
                weight = sum(called[of] or 1 for of, used in uses.items() if name in used)
                if weight:
                    found.append((-weight, name not in named, path, name))
        ranked = sorted(found, key=lambda each: each[:2])
        return [(path, name) for _, _, path, name in ranked][:FUNCTIONS]

    def wanted(self) -> tuple[str, list[str]] | None:
        """Return a Python file that was not there, and the names that the tests import from it."""
        tests = "\n".join(text for name, text in self.files.items() if text and is_test(name))
        for path in self.files.keys() - self.before.keys():
            stem = re.escape(path.rpartition("/")[2].removesuffix(".py"))
            found = re.search(rf"^from {stem} import ([\w, ]+)$", tests, re.M)
            if found and path.endswith(".py"):
                return path, re.findall(r"\w+", found[1])
        return None

    @property
    def new_function(self) -> tuple[str, str] | None:
        """The function that an example or the tests ask for, once it is there, and its file before it."""
        paths = [path for path in self.at_fault() if path.endswith(".py")]
        found = [(path, name) for path in paths for name in functions_of(self.files[path] or "")]
        new = [(p, name) for p, name in found if name not in functions_of(self.before.get(p) or "")]
        if self.tests.startswith(EXAMPLE):
            name = function_of_example(self.request)
            return next((of for of in (new if self.mends else found) if of[1] == name), None)
        called = {*_CALLED.findall(cases_in(self.failures[:1]))}
        return next((of for of in new if of[1] in called and of[0] in self.before), None)

    def checks_of(self, name: str) -> str:
        """Return what tests say of a function, in words and line by line, else what has failed."""
        tests = [text for path, text in self.files.items() if text and is_test(path)]
        lines = [line.strip() for text in tests for line in text.splitlines()]
        told = [line for line in lines if "assert" in line and re.search(rf"\b{name}\(", line)]
        whole = [line for line in dict.fromkeys(told) if line.count("(") == line.count(")")]
        words = [line for text in tests for line in words_about(text, name)]
        checks = whole[:_CHECKS]
        return "\n".join([*words[:_CHECKS], *checks]) if checks else cases_in(self.failures[:1])

    @property
    def known(self) -> Mapping[str, str | None]:
        """The files that an answer changes: as they were at first, where one has made them worse."""
        if not (self.may_try and self.suspects()):
            return self.files
        return self.files | {
            path: self.before[path] for path in self.at_fault() if path in self.before
        }

    def suspect(self) -> tuple[str, str] | None:
        """Return the function that the model is to write again now, and its file."""
        suspects = self.suspects() if self.may_try and not self.since else []
        if suspects and self.variant is not None:
            return suspects[self.variant % len(suspects)]
        return suspects[self.tries - 1] if 0 < self.tries <= len(suspects) else None

    def at_fault(self) -> list[str]:
        """Return the files that failing tests are about: those that were written, named or tested."""
        told = "\n".join([self.request, *self.failures[:1]])
        tests = [
            text
            for path, text in self.files.items()
            if text and is_test(path) and is_named(path, told)
        ]
        found = [
            path
            for path, text in self.files.items()
            if text
            and not is_test(path)
            and (
                path in self.written
                or is_named(path, told)
                or any(_imports(t, path) for t in tests)
            )
        ]
        return found[:_AT_FAULT]

    @property
    def is_wide(self) -> bool:
        """Whether the request may be about files that it does not name."""
        named = any(is_named(path, self.request) for path in self.written)
        return (
            self.names is not None
            or bool(self.due)
            or bool(_EVERYWHERE.search(self.request))
            or (bool(_INSTEAD.search(self.request)) and not named)
        )

    @property
    def due(self) -> dict[str, str]:
        """The files that are as they were, each with the words that say what to change in it."""
        if self.is_question or not self.rounds:
            return {}
        clauses = [text for text in _CLAUSE.split(self.request) if _CHANGES.search(text)]
        found = dict[str, str]()
        for path, text in self.files.items():
            name = path.rpartition("/")[2]
            word = "readme" if name.lower().startswith("readme") else re.escape(name)
            place = rf"(?i)\b(in|to|into|{_CHANGED}|({_TAKEN}) .{{0,80}}(from|of))( the)? [`'\"]?{word}\b"
            is_same = text and self.before.get(path) == text and path not in self.written
            says = next((clause for clause in clauses if re.search(place, clause)), "")
            if says and is_same and not (is_test(path) or path.endswith(DATA)):
                found[path] = says.strip()
        return found

    def renamed(self) -> dict[str, str]:
        """Return the files in which nothing but a name is to change, without those that were written."""
        found = dict[str, str]()
        for path, text in self.files.items():
            if text and path not in self.written and self.names:
                found[path] = with_name(path, text, self.names)
            elif text and path not in self.written and self.move:
                found[path] = after_move(path, text, *self.move)
        return {path: text for path, text in found.items() if text != self.files[path]}

    def left_over(
        self, writes: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[str, str, str] | None:
        """Return the next file in which a change has left something over, what, and what that is now.

        The last is empty if it may be different things. With `writes`, after these. A file that was
        written has been looked at.
        """
        if not self.is_wide or (self.since and not writes):
            return None
        now = {**self.files, **writes}
        done = self.written | writes.keys()
        if not (done or now.keys() != self.before.keys()) or len(done) > FILES:
            return None
        names = [(*self.names, "")] if self.names else []
        for old, new, beside in (*names, *self._moved(now), *self._bumped(), *self._fewer(now)):
            for path, text in now.items():
                lines = (text or "").splitlines() if path not in done else []
                if any(beside in line.lower() and is_named(old, line) for line in lines):
                    return path, old, new
        return next(((path, "", "") for path in self.due if path not in done), None)

    def _moved(self, now: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """Yield the name that a file had, the one that it has now, if any, and nothing beside it."""
        gone = [path for path in self.before if path not in now]
        new = [path for path in now if path not in self.before]
        if len(gone) == 1 and len(new) <= 1:
            old, name = (path.rpartition("/")[2] for path in (*gone, *(new or [""])))
            yield old, name, ""

    def _bumped(self) -> Iterator[tuple[str, str, str]]:
        """Yield the version that a new one takes the place of, in lines that speak of the version."""
        news = [word for word in _WORDS.findall(self.request) if VERSION.fullmatch(word)]
        lines = [line for text in self.before.values() for line in (text or "").splitlines()]
        about = [line for line in lines if "version" in line.lower()]
        olds = {word for line in about for word in _WORDS.findall(line) if VERSION.fullmatch(word)}
        if len(news) == len(olds) == 1 and news[0] not in olds:
            old = olds.pop()
            yield old, news[0], "version"

    def _fewer(self, now: Mapping[str, str | None]) -> Iterator[tuple[str, str, str]]:
        """Yield words of the request that a change has made fewer, and the one that is there instead."""
        fewer, more = set[str](), set[str]()
        for path, text in now.items():
            if (before := self.before.get(path)) and text != before:
                old, new = Counter(_WORDS.findall(before)), Counter(_WORDS.findall(text or ""))
                fewer |= {word for word in old if new[word] < old[word]}
                more |= new.keys() - old.keys()
        asked = {*_WORDS.findall(self.request)}
        known = {word for text in self.before.values() for word in _WORDS.findall(text or "")}
        fewer, more = fewer & asked, (more & asked) - known
        instead = more.pop() if len(fewer) == len(more) == 1 else ""
        for word in sorted(fewer):
            yield word, instead, ""


def is_named(path: str, text: str) -> bool:
    """Whether a text has the name of a file, or a word, as a whole."""
    word = re.escape(path.rpartition("/")[2])
    return re.search(rf"(?<![\w.-]){word}(?![\w-])", text) is not None


def _imports(test: str, path: str) -> bool:
    stem = path.rpartition("/")[2].partition(".")[0]
    return re.search(rf"^\s*(?:from|import)\b.*\b{re.escape(stem)}\b", test, re.M) is not None


def _shown_in(surveys: Sequence[str]) -> str:
    """Return what a survey shows of files, without the line about tests."""
    survey = surveys[0] if surveys else ""
    shown, _, last = survey.rpartition("\n")
    return shown.rstrip() if last.startswith(TESTS) else survey


def _files_in(survey: str) -> dict[str, str | None]:
    return {
        path: None if any(line.startswith("[… ") for line in text.splitlines()) else text
        for path, text in blocks(survey.splitlines())
        if path
    }


def _start_of_turn(messages: Sequence[ChatMessage]) -> int:
    """Return where the turn begins: behind the last answer that made no call and was left at that."""
    for at in range(len(messages) - 2, -1, -1):
        said = messages[at]
        if said.role == "assistant" and not said.tool_calls and _is_new(messages[at + 1]):
            return at + 1
    return 0


def _is_request(said: ChatMessage) -> bool:
    return said.role == "user" and not said.text.startswith(REMARKS)


def _is_new(said: ChatMessage) -> bool:
    """Whether a message is a request that was not made before a crash already."""
    return _is_request(said) and not any(
        line.startswith(_GOES_ON) for line in said.text.splitlines()
    )


def _without_opening(text: str) -> str:
    """Return what a person said, without the lines in brackets that the program put before it."""
    lines = text.splitlines()
    while len(lines) > 1 and lines[0].startswith("[") and lines[0].endswith("]"):
        del lines[0]
    return "\n".join(lines)


def remarks_of(turn: Sequence[ChatMessage]) -> tuple[ChatMessage, ...]:
    """Return the newest remark of the program, if nothing came after it, and the words it is about."""
    if not turn or turn[-1].role != "user" or _is_request(turn[-1]):
        return ()
    before = turn[-2] if len(turn) > 1 else turn[-1]
    is_answer = before.role == "assistant" and not before.tool_calls
    return (before, turn[-1]) if is_answer else (turn[-1],)


def _is_question(request: str) -> bool:
    """Whether a request wants an answer in words, and no change."""
    looks = _LOOKS.match(request.rpartition("\n")[2]) is not None
    return _ASKS.match(request) is not None or (looks and not _changes(request))


def _changes(request: str) -> bool:
    """Whether a request may ask for a change."""
    return any(of.search(request) for of in (_MENDS, MAKES, MOVES, _EVERYWHERE))
