"""Permission rules: allow, ask or deny a call by its tool's name and arguments. Pure.

The first rule that matches wins; a call that matches no rule is asked about.
A rule's `match` is a glob (`*`, `?`, `[…]`; `*` also matches `/`):

- for file tools it is matched with the path, relative to the folder; absolute if it leads outside;
- for `shell` with the words of the command line (`shell_rule.py`);
- for any other tool only `*` matches.

Two properties make rules safe to write. A rule that **allows** covers too little rather than too much:
a path outside the folder only if the pattern is absolute (`/etc/*`), and a command only with operands,
and with options that are known as safe or that the pattern names. So `git status*` allows neither
`git status; rm -rf /` nor an option that writes a file. (`*` alone allows every command.) A rule that
**denies** or **asks** covers too much rather than too little: a path if it matches as written or as
resolved, and a command line if a program that it could run matches. Of a line that cannot be read it
covers each that has a word like the first one of the pattern.

The allowances of a session come after the rules: they allow a call that would be asked about, and never
one that is denied.

Rules keep an honest model from mistakes. They are no sandbox: an agent that may run a shell may do much.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from glob import escape
from pathlib import Path
from typing import Any

from ...machines.errors import ToolError
from ...machines.value import Value
from ...workflows.settings import Verb
from ...workflows.tools import OUTSIDE, STEP, kind_of
from .command_line import CommandLine, read_line
from .known_words import KnownWords
from .place import find_place
from .shell_rule import ELSE, concerns, is_literal, uncovered, unseen

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
    """A decision, its rule with the file, and whether the call leads outside the folder.

    `why` says why a call is asked about although a rule seems to allow it; mostly it is empty. `path` is
    the resolved path that was looked at, empty for a call without one.
    """

    do: Verb
    rule: str
    is_outside: bool = False
    source: str = field(default="", compare=False)
    why: str = field(default="", compare=False)
    path: str = field(default="", compare=False)


_FALLBACK = Rule("*", "*", "ask", "built in")
_UNASKED = (Rule("defer", "*", "allow", "built in"),)
"""What nobody is asked about whatever the rules say: it gives a message back to the queue."""


class _Subject(Value):
    """What rules are matched with: `exact` is the call's own text, `forms` are equivalents of a path.

    `line` is what a shell's text says, `path` the resolved path; `is_linked`: it is not as written.
    `is_url`: it is an address.
    """

    exact: str
    forms: frozenset[str] = frozenset()
    is_outside: bool = False
    line: CommandLine | None = None
    path: str = ""
    is_linked: bool = False
    is_url: bool = False


class Permissions:
    """Decides calls by rules; with `default_yes` calls that would be asked about are allowed.

    What one of `holds` covers waits for a person all the same, unless it is denied.
    """

    def __init__(
        self, rules: Iterable[Rule] = (), default_yes: bool = False, holds: Iterable[Rule] = ()
    ) -> None:
        self.rules = tuple(rules)
        self.default_yes = default_yes
        self.holds = tuple(holds)

    def with_rules(self, rules: Iterable[Rule]) -> Permissions:
        """Return the same with other rules."""
        return Permissions(rules, self.default_yes, self.holds)

    def held(
        self, tool: str, arguments: dict[str, Any], folder: Path, chosen: Iterable[Rule]
    ) -> Rule | None:
        """Return the first hold that covers a call, of the configured and of the `chosen` ones."""
        holds = () if tool in {rule.tool for rule in _UNASKED} else (*self.holds, *chosen)
        return _first(_subject(tool, arguments, folder), tool, holds) if holds else None

    def decide(
        self, tool: str, arguments: dict[str, Any], folder: Path, allowed: Iterable[Rule] = ()
    ) -> PermissionDecision:
        """Decide one call. Never raises: a call that makes no sense is asked about, and fails later."""
        subject, name = _subject(tool, arguments, folder), ruled_as(tool, arguments)
        rule = _first(subject, name, (*self.rules, _FALLBACK)) or _FALLBACK
        if name != tool:  # what no command may do, none may do outside
            denials = [denial for denial in self.rules if denial.do == "deny"]
            rule = _first(subject, tool, denials) or rule
        allowed = (*allowed, *_UNASKED)
        if rule.do == "ask":
            rule = _first(subject, name, allowed) or rule
        do: Verb = "allow" if rule.do == "ask" and self.default_yes else rule.do
        why = self._why(subject, name, allowed) if do == "ask" else ""
        if do == "ask" and name != tool:
            why = f"it is to run outside the sandbox{'; ' * bool(why)}{why}"
        if do == "ask" and subject.is_linked:
            why = f"it leads to `{subject.path}`"
        return PermissionDecision(do, str(rule), subject.is_outside, rule.source, why, subject.path)

    def _why(self, subject: _Subject, tool: str, allowed: tuple[Rule, ...]) -> str:
        """Say which rule nearly allows a call, or what hides from one that denies."""
        rules = [rule for rule in (*self.rules, *allowed) if fnmatchcase(tool, rule.tool)]
        for rule in rules:
            if rule.do != "allow" or (rule.source == SESSION and is_literal(rule.match)):
                continue  # another call that was allowed exactly explains nothing
            if (why := _mismatch(subject, rule)) not in ("", ELSE):
                return f"`{rule.match}` {why}"
        hidden = _unseen(subject.line)
        held = next((rule for rule in rules if rule.do != "allow" and rule.match != "*"), None)
        return f"{hidden}: `{held}` may be about it" if hidden and held else ""

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


def ruled_as(tool: str, arguments: dict[str, Any]) -> str:
    """Return the tool whose rules decide a call: to leave the sandbox is a tool of its own."""
    return OUTSIDE if tool == "shell" and arguments.get(OUTSIDE) else tool


def rule_mismatch(rule: Rule, tool: str, arguments: dict[str, Any], folder: Path) -> str:
    """Say why a rule does not cover a call; empty when it does."""
    if not fnmatchcase(ruled_as(tool, arguments), rule.tool):
        return "is for another tool"
    return _mismatch(_subject(tool, arguments, folder), rule)


def exact_rule(tool: str, arguments: dict[str, Any], folder: Path) -> Rule:
    """Make the rule that allows exactly this call again, for the answer `always`."""
    subject = _subject(tool, arguments, folder)
    is_any = not subject.exact and subject.line is None
    return wider_rule(ruled_as(tool, arguments), "*" if is_any else escape(subject.exact))


def wider_rule(tool: str, pattern: str) -> Rule:
    """Make the rule that allows calls of a tool by a pattern, for the answer `always PATTERN`."""
    return Rule(tool, pattern, "allow", SESSION)


def hold(tool: str, pattern: str, source: str = SESSION) -> Rule:
    """Make the rule that holds calls of a tool by a pattern."""
    return Rule(tool, pattern or "*", "ask", source)


def hold_line(rule: Rule) -> str:
    """Write a hold as people read it in a question: `hold shell "git push*"`."""
    return f'hold {rule.tool} "{rule.match}"'


def offered_pattern(tool: str, arguments: dict[str, Any], folder: Path) -> str:
    """Return the pattern that a question offers for `always`: for this call, and others like it.

    An offer is narrow, since a person accepts it with one key: the folder of a file, or a program of the
    table with its subcommand (`git status*`). Any other command is offered for exactly this call, which
    an empty pattern means.
    """
    pattern = (
        _offered_command(arguments) if tool == "shell" else _offered_path(tool, arguments, folder)
    )
    call = tool, arguments, folder
    rule = wider_rule(ruled_as(tool, arguments), pattern)
    return pattern if pattern and not rule_mismatch(rule, *call) else ""


def _first(subject: _Subject, tool: str, rules: Iterable[Rule]) -> Rule | None:
    named = (rule for rule in rules if fnmatchcase(tool, rule.tool))
    return next((rule for rule in named if not _mismatch(subject, rule)), None)


def _subject(tool: str, arguments: dict[str, Any], folder: Path) -> _Subject:
    if tool == "shell":
        command = str(arguments.get("command") or "").strip(" \t\n")  # what bash drops, no more
        return _Subject(exact=command, line=read_line(command))
    if kind_of(tool) == "fetch":
        return _subject_of_url(str(arguments.get("url") or ""))
    if tool == STEP:
        return _Subject(exact=str(arguments.get("step")))
    if kind_of(tool) not in _WITH_PATH:
        return _Subject(exact="")
    text = str(arguments.get("path") or ".")
    try:
        place = find_place(text, folder)
    except ToolError:
        return _Subject(exact=text, is_outside=True)
    return _Subject(
        exact=place.relative,
        forms=frozenset({os.path.normpath(text), str(place.path)}),
        is_outside=place.is_outside,
        path=str(place.path),
        is_linked=place.is_linked,
    )


def _subject_of_url(url: str) -> _Subject:
    from .fetch import canonical  # few sessions have the tool

    try:
        return _Subject(exact=canonical(url), is_url=True)
    except ToolError:
        return _Subject(exact=url, is_url=True)


def _mismatch(subject: _Subject, rule: Rule) -> str:
    """Say why a rule does not cover a call; empty when it does."""
    if rule.do != "allow":
        if subject.line is not None:
            return "" if concerns(rule.match, subject.exact) else ELSE
        texts = (subject.exact, *subject.forms)
        return "" if any(fnmatchcase(text, rule.match) for text in texts) else ELSE
    if subject.line is not None:
        return uncovered(rule.match, subject.exact, subject.line)
    if subject.is_url:
        return "" if _covers_url(rule.match, subject.exact) else ELSE
    if not fnmatchcase(subject.exact, rule.match):
        return ELSE
    if subject.is_outside and not rule.match.startswith("/"):
        return "allows only inside the folder; a pattern that begins with / allows outside"
    return ""


def _covers_url(pattern: str, url: str) -> bool:
    """Whether an allowance covers an address: host and path each by its own part of the pattern."""
    if pattern == "*" or pattern == url:
        return True
    ours, theirs = pattern.split("/", 3), url.split("/", 3)
    return len(ours) == len(theirs) and all(map(fnmatchcase, theirs, ours))


def _unseen(line: CommandLine | None) -> str:
    """Say what of a line is only known when it runs."""
    if line is None or not line.fault:
        words = [unseen(program) for program in line.programs] if line is not None else []
        return next((f"what `{word}` runs is only known then" for word in words if word), "")
    return f"the command cannot be read ({line.fault})"


def _offered_command(arguments: dict[str, Any]) -> str:
    line = read_line(str(arguments.get("command") or "").strip(" \t\n"))
    if len(line.programs) != 1 or not line.programs[0].words:
        return ""
    words = line.programs[0].words
    known = KnownWords(words)
    if known.row is None or known.row.is_group or len(known.named) < known.row.named:
        return ""
    if any(at in known.faults for at in known.named):
        return ""
    names = [words[at].text for at in (*known.places, *known.named)]
    return " ".join(names) + ("*" if len(names) > 1 else " *")


def _offered_path(tool: str, arguments: dict[str, Any], folder: Path) -> str:
    if kind_of(tool) == "fetch":
        parts = _subject_of_url(str(arguments.get("url") or "")).exact.split("/", 3)
        return f"{escape('/'.join(parts[:3]))}/*" if len(parts) > 3 else ""
    if kind_of(tool) not in _WITH_PATH:
        return ""
    try:
        place = find_place(str(arguments.get("path") or "."), folder)
    except ToolError:
        return ""
    above = Path(place.relative).parent.as_posix()
    if place.is_outside or above == ".":
        return ""
    return f"{escape(above)}/*"
