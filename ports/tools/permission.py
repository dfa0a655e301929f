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

Rules keep an honest model from mistakes. They are no sandbox: whoever may run a shell may do much.
"""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

from ...machines.errors import ToolError
from ...workflows.settings import Verb
from .command_line import operators, parts
from .place import find_place

__all__ = ["Decision", "Permissions", "Rule", "exact_rule"]

_FILE_TOOLS = frozenset({"edit", "list", "read", "search", "write"})


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of the rules; `tool` may be a glob, too."""

    tool: str
    match: str = "*"
    do: Verb = "ask"

    def __str__(self) -> str:
        """Say it as people read it: `shell "git status*": allow`."""
        return f'{self.tool} "{self.match}": {self.do}'


@dataclass(frozen=True, slots=True)
class Decision:
    """What to do, the rule that says so, and whether the call leads outside the folder."""

    do: Verb
    rule: str
    is_outside: bool = False


_FALLBACK = Rule("*", "*", "ask")


@dataclass(frozen=True, slots=True)
class _Subject:
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

    def decide(self, tool: str, arguments: dict[str, Any], folder: Path) -> Decision:
        """Decide one call. Never raises: what makes no sense is asked about, and fails later."""
        subject = _subject(tool, arguments, folder)
        rule = next(
            rule
            for rule in (*self.rules, _FALLBACK)
            if fnmatchcase(tool, rule.tool) and _is_covered(subject, rule)
        )
        do: Verb = "allow" if rule.do == "ask" and self.default_yes else rule.do
        return Decision(do, str(rule), subject.is_outside)

    def with_rule(self, rule: Rule) -> "Permissions":
        """Give the same permissions with one more rule, which comes first."""
        return Permissions((rule, *self.rules), self.default_yes)


def exact_rule(tool: str, arguments: dict[str, Any], folder: Path) -> Rule:
    """Make the rule that allows this very call again, for the answer `always`."""
    subject = _subject(tool, arguments, folder)
    literal = "".join(f"[{sign}]" if sign in "*?[" else sign for sign in subject.narrow)
    return Rule(tool, literal or "*", "allow")


def _subject(tool: str, arguments: dict[str, Any], folder: Path) -> _Subject:
    if tool == "shell":
        command = str(arguments.get("command") or "").strip()
        return _Subject(command, parts(command), is_command=True)
    if tool not in _FILE_TOOLS:
        return _Subject("", frozenset({""}))
    text = str(arguments.get("path") or ".")
    try:
        place = find_place(text, folder)
    except ToolError:
        return _Subject(text, frozenset({text}), is_outside=True)
    wide = {place.relative, os.path.normpath(text), str(place.path)}
    return _Subject(place.relative, frozenset(wide), place.is_outside)


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
