"""What a person asks a small model for, as far as the words tell."""

from __future__ import annotations

import re
from itertools import dropwhile, takewhile

from ...machines.pattern import lazy_pattern
from ..tools.survey import subjects
from .said_files import PATH, is_code, is_test

CHANGED = "update|edit|change|fix|correct"
"""Verbs of a change in a file, as alternatives of a pattern."""
TAKEN = "move|take|remove|delete|extract|pull|split"
"""Verbs with which something leaves a file."""

_MENDS = lazy_pattern(r"(?i)\b(fix|bugs?|fails?|failing|broken|repair)\b")
_FAULT = lazy_pattern(
    r"(?i)\b(correct|wrong(ly)?|incorrect(ly)?|mistakes?|crash(es|ed|ing)?|\w*(error|exception)s?|"
    r"too (many|much|few|little|early|late)|doesn'?t|does not|isn'?t|never|pass(es)?)\b"
)
"""What else tells of a fault, where it is no question."""
_MAKES = lazy_pattern(r"(?i)\b(write|create|make|add|put|convert|generate|save)\b")
_MOVES = lazy_pattern(
    r"(?i)\b((rename|move|delete|remove) +((the|old|file) +){0,2}[\w./-]*\w\.\w{1,5}|delete +(it|them))\b"
)
_VERSION = lazy_pattern(r"\d+(\.\d+)+")
_WORDS = lazy_pattern(r"[A-Za-z_][\w-]{2,}|\d+(?:\.\d+)*")
_EVERYWHERE = lazy_pattern(r"(?i)\b(every ?where|all over|every|all|each|rename|bump|refers?)\b")
_INSTEAD = lazy_pattern(r"(?i)\b(replace|instead of)\b")
_CLAUSE = lazy_pattern(r"[,;:!?\n]|\.(?!\w)|\b(?:and|then|so that)\b")
_CHANGES = lazy_pattern(
    rf"(?i)\b({CHANGED}|{TAKEN}|add|put|mention|import|note|document|insert|append|set|give|raise|lower|"
    r"increase|reduce|double|halve|turn|switch|bump|replace|rename)\b"
)
_ASKS = lazy_pattern(
    r"(?i)\W*((at|by|for|from|in|of|on|since|to|until|with) +)?"
    r"(what|whats|which|who|whose|where|when|why|how|is|are|does|did)\b"
)
_ONE_SENTENCE = lazy_pattern(r"(?i)(?:[^?.;\n]|\.\w)*+\?*(?:\s*(?:see|look)\b[^?;\n]*+)?\W*")
"""A question and no order behind it; where to look may stand there."""
_LOOKS = lazy_pattern(r"(?i)\W*(tell|list|show|count|find)\b|.*\?(?:\s|$)")
_STORES = lazy_pattern(
    r"(?i)\b(?:write|save|put|store)\b[^.?!\n]{0,40}\b(?:to|in|into|as) [`'\"]?[\w./-]{0,60}\w\.\w{1,5}\b"
)
"""An order to keep an answer in a file."""
_SPEAKS_OF_TESTS = lazy_pattern(r"(?i)\b(tests?|test_\w+|check\w*|verif\w+|fix|bugs?|fails?)\b")
_EMPTIES = lazy_pattern(r"(?i)\b(empty|clear|wipe)\b")
_WRITES_TESTS = lazy_pattern(
    r"(?i)\b(add|write|extend|update|change|adapt)\b(?:[^.,;:\n]|\.\w){0,40}\b(tests?\b|(in)?to test_)"
)
_COMPUTED = lazy_pattern(
    r"(?i)\bhow (many|much|often)\b|\b(total|sum|average|mean|median|count|number of|most|least|"
    r"(long|short|high|low|large|small|bigg|old|young|lat|earli|cheap|fast|slow|heavi|light|near|far)\w{0,3}est)\b"
)
_CHORE = lazy_pattern(
    r"(?i)\b(sort(ed|s)?|uniq\w*|duplicates?|dedup\w*|count|sum|total|average|merged?|combined?|join|"
    r"together|alphabetical\w*|only once|(each|every) (line|row))\b"
)
_KEPT = lazy_pattern(
    r"(?i)\b(?:leave|keep)\b(?P<left>.{0,60}?)"
    r"\b(?:as (?:they|it) (?:are|is)|alone|unchanged|untouched)\b|"
    r"\b(?:(?:do not|don'?t|never|(?:must|should|shall|may|can)(?: not|n'?t)|cannot) "
    r"(?:be )?(?:touch|change|edit|modify|alter)(?:e?d)?|without (?:touch|chang|edit|modify|alter)ing)\b"
    r"(?P<not>[^,;\n]{0,60})"
)
_OF_BEFORE = lazy_pattern(r"(?i)^\W*(both|them|it|these|those|either)\b|^\W*$")
_FILLS = {"the", "file", "files", "anything", "in", "and", "or", "either", "neither", "nor"}
_BESIDE = lazy_pattern(r"[,;:]|\bbut\b")
_SENTENCE = lazy_pattern(r"(?<=[.;!?])\s|\n")
_IN_PLACE = lazy_pattern(
    r"(?i)\b(remove|delete|drop|throw|take)\b.{0,60}\b(from|out of)\b|"
    r"\b(remove|delete|drop|throw (away|out))\b.{0,20}\b(all|every|each|the) "
)
_SOURCE = lazy_pattern(
    r"(?i)\b(?:look (?:at|in|into)|reads?|see|according to|as in|described in) [`'\"]?([\w-]+\.\w{1,5})\b"
)


class _Says:
    """Whether a pattern is found in the words of a request, each time it is asked."""

    def __init__(self, pattern: re.Pattern[str]) -> None:
        self._pattern = pattern

    def __get__(self, request: SpokenRequest, owner: type[SpokenRequest]) -> bool:
        return self._pattern.search(request.text) is not None


class SpokenRequest:
    """A request in its words.

    `paths` are the names of files in it; `is_question`: an answer in words is wanted; `may_change`: a
    change may be; `mends`: something is to be repaired.
    """

    makes = _Says(_MAKES)
    """Whether something new is wanted."""
    moves = _Says(_MOVES)
    """Whether it is about a file as a whole: its name, or that it goes."""
    is_everywhere = _Says(_EVERYWHERE)
    """Whether it is about all places of something."""
    replaces = _Says(_INSTEAD)
    """Whether something takes the place of something else."""
    empties = _Says(_EMPTIES)
    """Whether a file may become empty."""
    speaks_of_tests = _Says(_SPEAKS_OF_TESTS)
    """Whether the tests are to be run."""
    writes_tests = _Says(_WRITES_TESTS)
    """Whether tests are to be changed."""
    is_computed = _Says(_COMPUTED)
    """Whether what is asked is computed from all lines of a file."""
    is_in_place = _Says(_IN_PLACE)
    """Whether something is to leave a file that stays."""
    is_chore = _Says(_CHORE)
    """Whether something is to be made of all lines of a file."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.paths: list[str] = list(dict.fromkeys(PATH.findall(text)))
        changes = (_MENDS, _MAKES, _MOVES, _EVERYWHERE)
        self.may_change = any(of.search(text) for of in changes)
        looks = _LOOKS.match(text.rpartition("\n")[2]) is not None
        looks &= not (self.may_change or self.is_chore)
        self.is_question = looks or (_ASKS.match(text) is not None and not _STORES.search(text))
        faults = (_MENDS,) if self.is_question else (_MENDS, _FAULT)
        self.mends = any(of.search(text) for of in faults)

    @property
    def is_only_question(self) -> bool:
        """Whether it is one sentence that asks, and no order."""
        is_alone = _ASKS.match(self.text) and _ONE_SENTENCE.fullmatch(self.text)
        return bool(is_alone) and not self.may_change

    @property
    def has_subject(self) -> bool:
        """Whether it is about something in the files, not only about the files."""
        return bool(subjects(PATH.sub("", self.text)))

    @property
    def names_code(self) -> bool:
        """Whether it names a file with code that is no test."""
        return any(is_code(name) and not is_test(name) for name in self.paths)

    @property
    def pointed_at(self) -> list[str]:
        """The names of files that are only pointed at."""
        found: list[str] = _SOURCE.findall(self.text)
        return found

    @property
    def kept(self) -> set[str]:
        """The names of files that it says to leave as they are."""
        found = set[str]()
        for sentence in _SENTENCE.split(self.text):
            for said in _KEPT.finditer(sentence):
                what = said["left"] or said["not"] or ""
                if _OF_BEFORE.match(what):
                    clauses = _BESIDE.split(sentence[: said.start()])
                    names: list[list[str]] = [PATH.findall(clause) for clause in reversed(clauses)]
                    found |= {*next(filter(None, names), list[str]())}
                words = (word.strip("`'\",;:") for word in what.split())
                named = dropwhile(lambda word: word.lower() in _FILLS, words)
                found |= {*takewhile(lambda word: PATH.fullmatch(word) or word in _FILLS, named)}
        found -= _FILLS
        return found

    @property
    def new_names(self) -> list[str]:
        """The names of files in it, without numbers of versions."""
        return [name for name in self.paths if not is_version(name)]

    @property
    def changes(self) -> list[str]:
        """The clauses that say what to change."""
        return [clause for clause in _CLAUSE.split(self.text) if _CHANGES.search(clause)]


def words_in(text: str) -> list[str]:
    """Return the words of three letters or more of a text, and its numbers."""
    found: list[str] = _WORDS.findall(text)
    return found


def is_version(word: str) -> bool:
    """Whether a word is the number of a version."""
    return _VERSION.fullmatch(word) is not None
