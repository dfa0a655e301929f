"""A problem in a file that people write, as a sentence about the file."""

import json
import re
import shlex
from collections.abc import Iterable, Sequence
from typing import Any

from ..machines.pattern import lazy_pattern
from ..machines.value import Value

Where = tuple[str | int, ...]
SECRET = lazy_pattern(
    r"\bkey\b|(api|access|private|secret)[_-]?key|(\b|_)token\b|secret|password", re.IGNORECASE
)
_COMMANDS = ("run", "command", "call", "gates", "outcome", "start", "resume")
"""Keys whose value is a command as a list of words, or a list of such commands."""
_SHELL = lazy_pattern(r"[|&;<>$`*?~]")
"""What only a shell understands."""


class Problem(Value, kw_only=False):
    """A mistake in a file; `where` is its path and `hint` the next step.

    `at_value`: point at the value, not at the key. An unknown key carries its `value`.
    """

    where: Where
    message: str
    hint: str = ""
    value: Any = None
    at_value: bool = True
    is_unknown: bool = False


class UnknownWord(ValueError):
    """Raised by a check for a word that is not known; the problem's hint is the nearest one."""

    def __init__(self, word: str, known: tuple[str, ...]) -> None:
        super().__init__(f"`{word}` is not known")
        self.known = known


def did_you_mean(word: str, known: Iterable[str], also: str = "") -> str:
    """Return a hint with the nearest known word, if one is near; then comes what is `also` said."""
    from difflib import get_close_matches

    near = get_close_matches(word, [*known], 1)
    return f"did you mean `{near[0]}`? {also}".rstrip() if near else also


def wrong(where: Where, said: str, hint: str = "", *, at_value: bool = True) -> Problem:
    """Report what is said of the key at a place."""
    return Problem(where, f"`{dotted(where)}` {said}" if where else said, hint, at_value=at_value)


def must_be(expected: str, value: object, where: Where) -> Problem:
    """Report a value in place of what is expected; one that may be a secret is not shown."""
    return wrong(where, f"must be {expected}, not {_shown_at(where, value)}")


def must_be_one_of(known: Sequence[str], value: object, where: Where) -> Problem:
    """Report a word that is not known, with the nearest one as the hint."""
    words = ", ".join(f"`{word}`" for word in known)
    said = f"must be one of {words}, not {_shown_at(where, value)}"
    return wrong(where, said, _near(value, known))


def must_be_list(value: object, where: Where) -> Problem:
    """Report what is no list; a text is shown as the list that was probably meant."""
    may_show = isinstance(value, str) and not SECRET.search(_leaf(where))
    hint = f"write it as a list: `{_listed(str(value), where)}`" if may_show else ""
    return wrong(where, f"must be a list, not {_shown_at(where, value)}", hint)


def dotted(where: Where) -> str:
    """Write a path as in TOML: `permissions.rules[0].tool`."""
    text = ""
    for part in where:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if re.fullmatch(r"[A-Za-z0-9_*-]+", part) else json.dumps(part)
            text += f".{name}" if text else name
    return text


def shown(value: object) -> str:
    """Write a value as it might stand in the file, short and without control characters."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, bool | str):
        text = json.dumps(value, ensure_ascii=False)
        return text if len(text) <= 42 else f'{text[:40]}…"'
    return str(value)


def _leaf(where: Where) -> str:
    return next((part for part in reversed(where) if isinstance(part, str)), "")


def _shown_at(where: Where, value: object) -> str:
    return "what it is" if SECRET.search(_leaf(where)) else shown(value)


def _listed(text: str, where: Where) -> str:
    """Write a text as the list that was probably meant: a command as its words."""
    if _leaf(where) not in _COMMANDS:
        return f"[{shown(text)}]"
    try:
        words = ["sh", "-c", text] if _SHELL.search(text) else shlex.split(text)
    except ValueError:  # a quote that does not end
        words = ["sh", "-c", text]
    command = json.dumps(words, ensure_ascii=False)
    return f"[{command}]" if where[-1] == "gates" else command


_SPLIT = {
    "session_end": "a session that is left can be resumed: `session_suspend`; its end for good is "
    "`session_finalize`"
}
"""Names of hook events that other programs have, and what takes their place."""


def _near(value: object, options: Sequence[str]) -> str:
    if why := _SPLIT.get(str(value)) if "session_finalize" in options else None:
        return why
    return did_you_mean(str(value).lower(), options)
