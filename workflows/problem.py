"""A problem in a file that people write, as a sentence about the file.

Validation is pydantic's; `problems_of` translates its errors.
"""

import json
import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ..machines.pattern import lazy_pattern
from ..machines.value import Value

if TYPE_CHECKING:
    from pydantic import ValidationError

Where = tuple[str | int, ...]
SECRET = lazy_pattern(
    r"\bkey\b|(api|access|private|secret)[_-]?key|(\b|_)token\b|secret|password", re.IGNORECASE
)
_KEY = "[key]"  # how pydantic ends the path of a table's name, in contrast to its value
_COMMANDS = ("run", "gates", "start", "resume")
"""Keys whose value is a command as a list of words, or a list of such commands."""
_SHELL = lazy_pattern(r"[|&;<>$`*?~]")
"""What only a shell understands."""
_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a table",
    "finite_number": "a number",
    "float_type": "a number",
    "int_type": "a whole number",
    "model_type": "a table",
    "string_type": "a text in quotes",
    "tuple_type": "a list",
}


class Problem(Value):
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
    """Raised by a validator for a word that is not known; the problem's hint is the nearest one."""

    def __init__(self, word: str, known: tuple[str, ...]) -> None:
        super().__init__(f"`{word}` is not known")
        self.known = known


def problems_of(error: "ValidationError") -> list[Problem]:
    """Translate all errors of pydantic; a list with a wrong item is not reported as empty."""
    found = error.errors(include_url=False)
    prefixes = {error["loc"][:length] for error in found for length in range(len(error["loc"]))}
    return [
        _translate(error)
        for error in found
        if error["type"] != "too_short" or error["loc"] not in prefixes
    ]


def unknown_word(where: Where, word: str, known: Sequence[str]) -> Problem:
    """Report a word that is not known, as `UnknownWord` would be."""
    said = _must_be_one_of(known, word, where)
    return Problem(where=where, message=f"`{dotted(where)}` {said}", hint=_near(word, known))


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


def _translate(error: Mapping[str, Any]) -> Problem:
    kind: str = error["type"]
    where: Where = error["loc"]
    value, context = error["input"], error.get("ctx", {})
    if kind == "extra_forbidden":
        message = f"unknown key `{dotted(where)}`"
        return Problem(where=where, message=message, value=value, at_value=False, is_unknown=True)
    if kind == "missing":
        return Problem(where=where[:-1], message=f"`{dotted(where)}` is missing", at_value=False)
    if is_name := where[-1:] == (_KEY,):
        where = where[:-1]
    hint = ""
    match kind:
        case "literal_error":
            options = context["expected"].replace(" or ", ", ").replace("'", "").split(", ")
            said = _must_be_one_of(options, value, where)
            hint = _near(value, options)
        case "greater_than_equal":
            said = _must(f"at least {context['ge']:g}", value, where)
        case "value_error" if isinstance(context["error"], UnknownWord):
            known = context["error"].known
            said = _must_be_one_of(known, value, where)
            hint = _near(value, known)
        case "too_short":
            said = "must not be empty"
        case "tuple_type" if isinstance(value, str):
            said = _must(_EXPECTED[kind], value, where)
            hint = "" if "what it is" in said else f"write it as a list: `{_listed(value, where)}`"
        case "value_error":
            said = str(context["error"])
        case _:
            expected = _EXPECTED.get(kind)
            said = _must(expected, value, where) if expected else f"is wrong: {error['msg']}"
    message = f"`{dotted(where)}` {said}" if where else said
    return Problem(where=where, message=message, hint=hint, at_value=not is_name)


def _must(expected: str, value: object, where: Where) -> str:
    leaf = next((part for part in reversed(where) if isinstance(part, str)), "")
    return f"must be {expected}, not {'what it is' if SECRET.search(leaf) else shown(value)}"


def _must_be_one_of(options: Sequence[str], value: object, where: Where) -> str:
    return _must("one of " + ", ".join(f"`{option}`" for option in options), value, where)


def _listed(text: str, where: Where) -> str:
    """Write a text as the list that was probably meant: a command as its words."""
    leaf = next((part for part in reversed(where) if isinstance(part, str)), "")
    if leaf not in _COMMANDS:
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
    from difflib import get_close_matches

    if why := _SPLIT.get(str(value)) if "session_finalize" in options else None:
        return why
    close = get_close_matches(str(value).lower(), options, 1)
    return f"did you mean `{close[0]}`?" if close else ""
