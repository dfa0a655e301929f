"""Permission rules: allow, ask or deny a call by its tool's name and arguments. Pure.

The first rule that matches wins; a call that matches no rule is asked about.
A rule's `match` is a glob (`*`, `?`, `[…]`; `*` also matches `/`):

- for file tools it is matched with the path, relative to the folder; absolute if it leads outside;
- for `shell` with the command line;
- for any other tool only `*` matches.

Two properties make rules safe to write. A rule that **allows** covers too little rather than too much:
a path outside the folder only if the pattern is absolute (`/etc/*`), and a command with control
operators (`;`, `&&`, `|`, redirections, substitutions, newlines) only if the pattern has the same ones.
So `git status*` does not allow `git status; rm -rf /`. (`*` alone allows every command.) A rule
that **denies** or **asks** covers too much rather than too little: a path if it matches as written or as
resolved, and a command line if any command in it matches (`command_line.py`). A command line too large
to be read is allowed by `*` only, and denied if it has a word like the first one of the pattern.

The allowances of a session come after the rules: they allow a call that would be asked about, and never
one that is denied.

Rules keep an honest model from mistakes. They are no sandbox: an agent that may run a shell may do much.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ...machines.errors import ToolError
from ...machines.value import Value
from ...workflows.settings import Verb
from ...workflows.tools import kind_of
from .command_line import command_forms, may_hold, operators
from .place import find_place

SESSION = "this session"
"""The source of a rule that an answer added."""

_WITH_PATH = ("read", "edit", "search")  # kinds of tools


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the rules; `tool` may be a glob, too. `source` is the file that has it."""

    tool: str
    match: str = "*"
    do: Verb = "ask"
    source: str = field(default="", compare=False)

    def __str__(self) -> str:
        """Write the rule for people: `shell "git status*": allow`."""
        return f'{self.tool} "{self.match}": {self.do}'


@dataclass(frozen=True, slots=True)
class PermissionDecision:
    """A decision, its rule with the file, and whether the call leads outside the folder."""

    do: Verb
    rule: str
    is_outside: bool = False
    source: str = field(default="", compare=False)


_FALLBACK = Rule("*", "*", "ask", "built in")


class _Subject(Value):
    """The texts that rules are matched with: `exact` is the call's own, `forms` are its equivalents.

    `is_too_large`: the command line is not read, so the forms are not all there are.
    """

    exact: str
    forms: frozenset[str]
    is_outside: bool = False
    is_command: bool = False
    is_too_large: bool = False


class Permissions:
    """Decides calls by rules; with `default_yes` calls that would be asked about are allowed."""

    def __init__(self, rules: Iterable[Rule] = (), default_yes: bool = False) -> None:
        self.rules = tuple(rules)
        self.default_yes = default_yes

    def decide(
        self, tool: str, arguments: dict[str, Any], folder: Path, allowed: Iterable[Rule] = ()
    ) -> PermissionDecision:
        """Decide one call. Never raises: a call that makes no sense is asked about, and fails later."""
        subject = _subject(tool, arguments, folder)
        rule = _first(subject, tool, (*self.rules, _FALLBACK)) or _FALLBACK
        if rule.do == "ask":
            rule = _first(subject, tool, allowed) or rule
        do: Verb = "allow" if rule.do == "ask" and self.default_yes else rule.do
        return PermissionDecision(do, str(rule), subject.is_outside, rule.source)

    def hidden(self) -> tuple[tuple[str, bool], ...]:
        """Return the patterns of paths for a search, in order, each with whether it hides a file.

        The first pattern that matches a file decides. Files that would be asked about are hidden, too: a
        search is asked about once, and reads many files.
        """
        hidden = tuple(
            (rule.match, rule.do == "deny" or (rule.do == "ask" and rule.match != "*"))
            for rule in self.rules
            if fnmatchcase("search", rule.tool) or rule.tool == "read"
        )
        return hidden if any(is_hidden for _, is_hidden in hidden) else ()


def rule_mismatch(rule: Rule, tool: str, arguments: dict[str, Any], folder: Path) -> str:
    """Say why a rule does not cover a call; empty when it does."""
    subject = _subject(tool, arguments, folder)
    if not fnmatchcase(tool, rule.tool):
        return "is for another tool"
    if _is_covered(subject, rule):
        return ""
    if rule.do == "allow" and subject.is_too_large:
        return "is not compared with a command as large as this; only the pattern `*` allows it"
    if rule.do == "allow" and fnmatchcase(subject.exact, rule.match):
        if subject.is_outside:
            return "allows only inside the folder; a pattern that begins with / allows outside"
        found = [sign for sign in operators(subject.exact) if sign not in operators(rule.match)]
        signs = " ".join(sign if sign.isprintable() else repr(sign) for sign in found)
        return f"allows one plain command; this line also has {signs or 'another order of signs'}"
    return "matches something else"


def exact_rule(tool: str, arguments: dict[str, Any], folder: Path) -> Rule:
    """Make the rule that allows exactly this call again, for the answer `always`."""
    subject = _subject(tool, arguments, folder)
    literal = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in subject.exact)
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
        found = command_forms(command)
        return _Subject(
            exact=command,
            forms=found.texts,
            is_command=True,
            is_too_large=not found.is_complete,
        )
    if kind_of(tool) not in _WITH_PATH:
        return _Subject(exact="", forms=frozenset({""}))
    text = str(arguments.get("path") or ".")
    try:
        place = find_place(text, folder)
    except ToolError:
        return _Subject(exact=text, forms=frozenset({text}), is_outside=True)
    forms = {place.relative, os.path.normpath(text), str(place.path)}
    return _Subject(exact=place.relative, forms=frozenset(forms), is_outside=place.is_outside)


def _is_covered(subject: _Subject, rule: Rule) -> bool:
    if rule.do != "allow":
        if subject.is_too_large and may_hold(subject.exact, rule.match):
            return True
        return any(fnmatchcase(text, rule.match) for text in (subject.exact, *subject.forms))
    if (
        subject.is_command
        and rule.match != "*"
        and (subject.is_too_large or operators(subject.exact) != operators(rule.match))
    ):
        return False
    if subject.is_outside and not rule.match.startswith("/"):
        return False
    return fnmatchcase(subject.exact, rule.match)
