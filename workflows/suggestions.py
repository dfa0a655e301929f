"""Names in configuration files: valid ones, known ones, and suggestions for unknown ones."""

import re
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import replace

from ..machines.delivery import current_spelling
from .document import is_table
from .problem import Problem, UnknownWord, Where, dotted, wrong
from .typed_table import Found, Narrowing, Reader, TypedTable, known_keys, must, reader

# Names of agents, models, workflows and routes ----------------------------------------------------


_NO_NAME = "is not a name: use letters, digits, `_`, `-` and `.`, at most 64 characters"
UserName = Annotated[
    str, must(lambda name: re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", name), _NO_NAME)
]


def is_path(word: str) -> bool:
    """Return whether a word that a person gave is a file, and no name: it has a `/`, or ends in `.toml`.

    No folder is looked at, or else a folder from somewhere else would decide what a name means.
    """
    return "/" in word or word.endswith(".toml")


# The shipped routing tables -----------------------------------------------------------------------


DEFAULT_TABLE = "steersman"
TABLES = Path(__file__).parent / "routes"
"""The folder with the files of the other tables."""


def table_names() -> tuple[str, ...]:
    """List the tables that are shipped, the default first."""
    return (DEFAULT_TABLE, *sorted(path.stem for path in TABLES.glob("*.toml")))


# Known words --------------------------------------------------------------------------------------
# They come from the routing tables, so that each is written down once.


class OneOf(Narrowing, frozen=True):
    """Annotates a text that is one of the known words; `prefix` begins words that users define.

    `known` may grow: it is read when a word is checked.
    """

    known: Collection[str]
    prefix: str = ""

    def check(self, value: str) -> str:
        """Return the word in its current spelling.

        Raises `UnknownWord`, whose problem suggests the nearest word.
        """
        found = value if value in self.known else current_spelling(value)
        if found in self.known or (self.prefix and value.startswith(self.prefix)):
            return found
        raise UnknownWord(value, tuple(self.known))

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a JSON Schema of the word."""
        return {"type": "string"} if self.prefix else {"type": "string", "enum": list(self.known)}


class AsSpelled(OneOf, frozen=True):
    """Annotates one of the known words that stays as it is spelled, also in an earlier spelling."""

    def check(self, value: str) -> str:
        """Return the word. Raises `UnknownWord`."""
        super().check(value)
        return value


class OneOrMany(OneOf, frozen=True):
    """Annotates a tuple of known words; a single word needs no brackets."""

    def narrowed(self, read: Reader) -> Reader:
        """Return what reads one word, or a list of them, as a tuple."""
        known: Any = Annotated[str, OneOf(self.known, self.prefix)]
        read_word, read_list = reader(known), reader(tuple[known, ...])

        def read_words(value: Any, where: Where, found: Found) -> Any:
            if isinstance(value, str):
                return (read_word(value, where, found),)
            words = read_list(value, where, found)
            if words == ():
                found.append(wrong(where, "is empty: name at least one"))
            return words

        return read_words

    def described(self, schema: dict[str, Any]) -> dict[str, Any]:
        """Return a JSON Schema of the word, or of the list."""
        word = super().described(schema)
        words = {"type": "array", "items": word, "minItems": 1}
        return {"type": ["string", "array"], "anyOf": [word, words]}


# Suggestions for unknown keys ---------------------------------------------------------------------


ALIASES = {
    "api_key": "api_key_env",
    "approval_policy": "permissions.rules",
    "display.busy_text_mode": "busy_input_mode",
    "display.busy_steer_ack_enabled": "auto_queue.show_queue_on_input",
    "max_turns": "goals.max_turns",
    "mode": "busy_input_mode",
    "model": "agents.assistant.model",
    "model_provider": "models.main.provider",
    "permissions.allow": "permissions.rules",
    "permissions.ask": "permissions.rules",
    "permissions.deny": "permissions.rules",
    "permissions.mode": "permission_mode",
    "providers": "models",
    "queue": "auto_queue",
    "tool_output_limit": "tools.output_limit",
}
"""Keys of other programs, with ours; a name without a table is an alias in any table."""


_A_LETTER = 0.88  # how like a name is to one that differs by a letter


def suggested(
    problems: Sequence[Problem], kind: type[TypedTable], others: Sequence[Where] = ()
) -> list[Problem]:
    """Add what was probably meant to the problems of a table; `others` are keys of other tables."""
    known = (*others, *known_keys(kind)) if problems else ()
    return [meant for problem in problems for meant in suggest(problem, known)]


def suggest(problem: Problem, known: Sequence[Where]) -> list[Problem]:
    """Suggest a known key for an unknown one; an unknown table is reported key by key if that helps."""
    if not problem.is_unknown:
        return [problem]
    known = [key for key in known if not _encloses(key, problem.where)]
    inner = [
        (where, key)
        for where in _inside(problem.where, problem.value)
        if (key := _other(where, known))
    ]
    if inner:
        return [
            replace(problem, where=where, message=f"unknown key `{dotted(where)}`", hint=_here(key))
            for where, key in inner
        ]
    siblings = _siblings(problem.where, known)
    if is_table(problem.value) and (close := _close(str(problem.where[-1]), siblings)):
        return [replace(problem, hint=_here(dotted((*problem.where[:-1], close))))]
    return [replace(problem, hint=_hint(problem.where, known))]


def _close(name: str, names: Sequence[str]) -> str:
    """Return the name that differs by about a letter; empty if there is none."""
    from difflib import get_close_matches

    return next(iter(get_close_matches(name, names, 1, _A_LETTER)), "")


def _inside(where: Where, value: Any) -> Iterator[Where]:
    """List the paths of an unknown table's keys; none of a plain value."""
    if is_table(value):
        for name, item in value.items():
            yield (*where, name)
            yield from _inside((*where, name), item)


def _other(where: Where, known: Sequence[Where]) -> str:
    """Find a known key inside another program's table: `display.busy_input_mode`."""
    if alias := ALIASES.get(dotted(where)):
        return alias
    tails = [where[start:] for start in range(1, len(where))]
    return next((dotted(tail) for tail in tails if tail in known), "")


def _hint(where: Where, known: Sequence[Where]) -> str:
    from difflib import get_close_matches

    alias = ALIASES.get(str(where[-1]), "")
    if other := _other(where, known) or ("" if dotted(where).startswith(f"{alias}.") else alias):
        return _here(other)
    leaf, siblings = str(where[-1]), _siblings(where, known)
    same = [key for key in known if key[-1] == leaf]
    if len(same) == 1 and "*" not in same[0]:
        return _here(dotted(same[0]))
    if close := get_close_matches(leaf, siblings, 1):
        return _here(dotted((*where[:-1], close[0])))
    if same and (len(where) == 1 or not siblings):
        return _here(dotted(same[0]))
    anywhere = {dotted(key): key for key in known}
    if close := get_close_matches(dotted(where), anywhere, 1, 0.75):
        return _here(close[0])
    return "known here: " + ", ".join(f"`{name}`" for name in siblings) if siblings else ""


def _siblings(where: Where, known: Sequence[Where]) -> list[str]:
    parent = where[:-1]
    return [str(key[-1]) for key in known if len(key) == len(where) and _fits(parent, key[:-1])]


def _encloses(table: Where, where: Where) -> bool:
    """Whether a key is the path itself or one of its tables; neither is ever a suggestion."""
    return len(table) <= len(where) and _fits(where[: len(table)], table)


def _fits(where: Where, pattern: Where) -> bool:
    return all(want in ("*", part) for part, want in zip(where, pattern, strict=True))


def _here(key: str) -> str:
    return f"did you mean `{key}`?"
