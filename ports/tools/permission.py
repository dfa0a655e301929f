"""What a tool may do: allow, ask, deny. Pure rules over a tool's name and arguments.

The first rule that matches wins; what none covers is asked about.
A rule's `match` is a glob (`*`, `?`, `[…]`; `*` also matches `/`):

- for file tools over the path, relative to the folder; absolute where it leads outside;
- for `shell` over the command line;
- for any other tool only `*` matches.

Two things make rules safe to write. A rule that **allows** errs to the narrow side: it covers a
path outside the folder only if it is itself absolute (`/etc/*`), and a command with control
operators (`;`, `&&`, `|`, redirections, substitutions, newlines) only if it has the very same ones.
So `git status*` does not allow `git status; rm -rf /`. (`*` alone allows every command.) A rule
that **denies** or **asks** errs to the wide side: it covers a path if it matches as written or as
resolved, and a command line if it matches any part of it.

What a person allowed for the rest of a session stands behind the rules: it turns a question into a
yes, and never a no.

Rules keep an honest model from mistakes. They are no sandbox: whoever may run a shell may do much.
"""

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from itertools import accumulate
from pathlib import Path
from typing import Any

from ...machines.errors import ToolError
from ...machines.value import Value
from ...workflows.settings import Verb
from ...workflows.tools import kind_of
from .place import find_place

SESSION = "this session"
"""The source of what was allowed by an answer."""

_WITH_PATH = ("read", "edit", "search")  # kinds of tools


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the rules; `tool` may be a glob, too. `source` is the file that has it."""

    tool: str
    match: str = "*"
    do: Verb = "ask"
    source: str = field(default="", compare=False)

    def __str__(self) -> str:
        """Say it as people read it: `shell "git status*": allow`."""
        return f'{self.tool} "{self.match}": {self.do}'


@dataclass(frozen=True, slots=True)
class PermissionDecision:
    """What to do, the rule that says so and where it stands, and whether it leads outside."""

    do: Verb
    rule: str
    is_outside: bool = False
    source: str = field(default="", compare=False)


_FALLBACK = Rule("*", "*", "ask", "built in")


class Allowances:
    """What a person allowed for the rest of a session, oldest first.

    `above` are those of the session that it works for: they hold here, too.
    """

    def __init__(self, rules: Iterable[Rule] = (), above: "Allowances | None" = None) -> None:
        self.own = list(rules)
        self.above = above

    def __iter__(self) -> Iterator[Rule]:
        yield from self.own
        if self.above is not None:
            yield from self.above

    def add(self, rule: Rule) -> None:
        """Allow what a rule covers from now on."""
        if rule not in self.own:
            self.own.append(rule)

    def remove(self, rule: Rule) -> None:
        """Ask again."""
        if rule in self.own:
            self.own.remove(rule)


class _Subject(Value):
    """What rules are matched against: `narrow` is the exact text, `wide` all that it amounts to."""

    narrow: str
    wide: frozenset[str]
    is_outside: bool = False
    is_command: bool = False


class Permissions:
    """Decides calls by rules; with `default_yes` what would be asked is allowed."""

    def __init__(self, rules: Iterable[Rule] = (), default_yes: bool = False) -> None:
        self.rules = tuple(rules)
        self.default_yes = default_yes

    def decide(
        self, tool: str, arguments: dict[str, Any], folder: Path, allowed: Iterable[Rule] = ()
    ) -> PermissionDecision:
        """Decide one call. Never raises: what makes no sense is asked about, and fails later."""
        subject = _subject(tool, arguments, folder)
        rule = _first(subject, tool, (*self.rules, _FALLBACK)) or _FALLBACK
        if rule.do == "ask":
            rule = _first(subject, tool, allowed) or rule
        do: Verb = "allow" if rule.do == "ask" and self.default_yes else rule.do
        return PermissionDecision(do, str(rule), subject.is_outside, rule.source)

    def hidden(self) -> tuple[tuple[str, bool], ...]:
        """Give what a search passes over: patterns of paths in order, true for one that hides.

        The first that matches a file decides. What is asked about is passed over, too: a search
        asks once, and may come by many files.
        """
        hidden = tuple(
            (rule.match, rule.do == "deny" or (rule.do == "ask" and rule.match != "*"))
            for rule in self.rules
            if fnmatchcase("search", rule.tool) or rule.tool == "read"
        )
        return hidden if any(is_hidden for _, is_hidden in hidden) else ()


def invalid_route(rule: Rule, tool: str, arguments: dict[str, Any], folder: Path) -> str:
    """Say why a rule does not cover a call; empty when it does."""
    subject = _subject(tool, arguments, folder)
    if not fnmatchcase(tool, rule.tool):
        return "is for another tool"
    if _is_covered(subject, rule):
        return ""
    if rule.do == "allow" and fnmatchcase(subject.narrow, rule.match):
        if subject.is_outside:
            return "allows only inside the folder; a pattern that begins with / allows outside"
        found = [sign for sign in operators(subject.narrow) if sign not in operators(rule.match)]
        signs = " ".join(sign if sign.isprintable() else repr(sign) for sign in found)
        return f"allows one plain command; this line also has {signs or 'another order of signs'}"
    return "matches something else"


def exact_rule(tool: str, arguments: dict[str, Any], folder: Path) -> Rule:
    """Make the rule that allows this very call again, for the answer `always`."""
    subject = _subject(tool, arguments, folder)
    literal = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in subject.narrow)
    return Rule(tool, literal or "*", "allow", SESSION)


def wider_rule(tool: str, pattern: str) -> Rule:
    """Make the rule that allows calls of a tool by a pattern, for the answer `always PATTERN`."""
    return Rule(tool, pattern, "allow", SESSION)


def _first(subject: _Subject, tool: str, rules: Iterable[Rule]) -> Rule | None:
    return next(
        (rule for rule in rules if fnmatchcase(tool, rule.tool) and _is_covered(subject, rule)),
        None,
    )


def _subject(tool: str, arguments: dict[str, Any], folder: Path) -> _Subject:
    if tool == "shell":
        command = str(arguments.get("command") or "").strip()
        return _Subject(narrow=command, wide=parts(command), is_command=True)
    if kind_of(tool) not in _WITH_PATH:
        return _Subject(narrow="", wide=frozenset({""}))
    text = str(arguments.get("path") or ".")
    try:
        place = find_place(text, folder)
    except ToolError:
        return _Subject(narrow=text, wide=frozenset({text}), is_outside=True)
    wide = {place.relative, os.path.normpath(text), str(place.path)}
    return _Subject(narrow=place.relative, wide=frozenset(wide), is_outside=place.is_outside)


def _is_covered(subject: _Subject, rule: Rule) -> bool:
    if rule.do != "allow":
        return any(fnmatchcase(text, rule.match) for text in (subject.narrow, *subject.wide))
    if (
        subject.is_command
        and rule.match != "*"
        and operators(subject.narrow) != operators(rule.match)
    ):
        return False
    if subject.is_outside and not rule.match.startswith("/"):
        return False
    return fnmatchcase(subject.narrow, rule.match)


# A shell command line as rules see it: its control operators and its parts ------------------------
# This is no shell parser, on purpose: an operator counts wherever it stands, also inside quotes. So a
# harmless command may look like two, which costs a question; two never look like one.


_OPERATOR = re.compile(r"&&|\|\||;;|>>|<<|\$\(|\$\{|[;&|<>()`\n\r\0]")
_SPLIT = re.compile(rf"{_OPERATOR.pattern}|[\"'{{}}]")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*\+?=\S*$")
_WRAPPERS = frozenset(
    "! builtin command do doas else env eval exec if nice nohup setsid sudo then time timeout "
    "until while xargs".split()
)


def operators(command: str) -> tuple[str, ...]:
    """List the control operators, substitutions and redirections, in order."""
    return tuple(_OPERATOR.findall(command.strip()))


def parts(command: str) -> frozenset[str]:
    """Give everything in the line that could be a command of its own, and the line itself.

    Each comes as written, and without what may stand before a command's name: assignments, `sudo`
    and its like with their options, the folder of the program, a backslash.
    """
    found = {" ".join(command.split())}
    for piece in _SPLIT.split(command):
        words = piece.split()
        found.add(" ".join(words))
        found.update(_bare_forms(words))
    return frozenset(found - {""})


def _bare_forms(words: list[str]) -> list[str]:
    """Drop leading words one by one as long as they only introduce the command."""
    skippable = (
        bool(_ASSIGNMENT.match(word)) or word in _WRAPPERS or word.startswith("-") for word in words
    )
    starts = [0, *(at for at, is_led in enumerate(accumulate(skippable, min), 1) if is_led)]
    return [" ".join([_name(words[at]), *words[at + 1 :]]) for at in starts if at < len(words)]


def _name(word: str) -> str:
    return word.rpartition("/")[2].replace("\\", "") or word
