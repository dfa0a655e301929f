"""Older names that still work: the one table of them, for everybody who reads names.

A name that docs/stability.md promises is not taken away at once: a row here lets the older one work for
one minor version more, with a warning that names what takes its place. The command line says it on
standard error, a session that reads a configuration among its notices, Python as a `DeprecationWarning`.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Final, Literal, NamedTuple


class Deprecation(NamedTuple):
    """An older name and the one that takes its place, both whole: `sessions list --long`.

    A key is dotted, `*` stands for any name or place of a list in it. A member is `steersman.Old`, or
    `Home.old` of a class.
    `since` is the minor version that came with the newer name; the next one has the older name no more.
    """

    kind: Literal["command", "option", "key", "member"]
    old: str
    new: str
    since: str

    @property
    def until(self) -> str:
        """The minor version that does not have the older name any more."""
        major, minor = self.since.split(".")
        return f"{major}.{int(minor) + 1}"

    @property
    def warning(self) -> str:
        """What people read who use the older name."""
        return (
            f"the {self.kind} `{self.old}` is deprecated since {self.since} and removed in "
            f"{self.until}: use `{self.new}`"
        )


DEPRECATED: Final[tuple[Deprecation, ...]] = ()
"""All of them; a test fails when the version comes that is to be without a row."""


def renamed_arguments(
    arguments: Sequence[str], table: Sequence[Deprecation] = DEPRECATED
) -> tuple[list[str], list[str]]:
    """Return a command line under the newer names, and a warning for each older one in it."""
    words, said = [*arguments], list[str]()
    for row in table if words else ():
        old, new = row.old.split(), row.new.split()
        if row.kind == "command" and words[: len(old)] == old:
            words[: len(old)] = new
            said.append(row.warning)
        elif row.kind == "option" and (
            words[: len(old) - 1] == old[:-1] or (old[0] == "chat" and words[0][:2] == "--")
        ):
            end = words.index("--") if "--" in words else len(words)
            for place, word in enumerate(words[:end]):
                name, *value = word.split("=", 1)
                if name == old[-1]:
                    words[place] = "=".join((new[-1], *value))
                    said.append(row.warning)
    return words, said


def rename_keys(data: dict[str, Any], table: Sequence[Deprecation] = DEPRECATED) -> list[str]:
    """Put the newer keys, unless they are there, for older ones into parsed TOML; return warnings."""
    said: list[str] = []
    for row in table:
        old, new = row.old.split("."), row.new.split(".")
        for path in [*_matching(data, old)] if row.kind == "key" else ():
            any_names = [name for name, part in zip(path, old, strict=True) if part == "*"]
            *above, last = [any_names.pop(0) if part == "*" else part for part in new]
            value = _at(data, path[:-1]).pop(path[-1])
            _at(data, above).setdefault(last, value)
            said.append(row.warning)
    return said


def _matching(data: Any, parts: Sequence[str]) -> Iterator[tuple[Any, ...]]:
    """Yield the paths of a dotted key that are there."""
    if not parts:
        yield ()
        return
    pairs: Iterable[tuple[Any, Any]] = ()
    match data:
        case {**inner}:
            pairs = inner.items()
        case [*items]:
            pairs = enumerate(items)
        case _:
            pass
    for name, value in pairs:
        if parts[0] in ("*", name):
            yield from ((name, *rest) for rest in _matching(value, parts[1:]))


def _at(data: Any, path: Sequence[Any]) -> Any:
    """Return the table at a path; it is made if need be. A value in its place is found wrong later."""
    for name in path:
        if isinstance(name, str) and name not in data:
            data[name] = {}
        data = data[name]
        if type(data) not in (dict, list):
            return {}
    return data


def newer_member(old: str, table: Sequence[Deprecation] = DEPRECATED) -> str:
    """Return the name that takes the place of a member, and warn who uses it; empty if there is none."""
    for row in table:
        if (row.kind, row.old) == ("member", old):
            warnings.warn(row.warning, DeprecationWarning, stacklevel=3)
            return row.new.rpartition(".")[2]
    return ""


class OlderName:
    """An attribute of a public class under its older name, which has a row in the table."""

    def __init__(self, table: Sequence[Deprecation] = DEPRECATED) -> None:
        self._table = table

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = f"{owner.__name__}.{name}"

    def __get__(self, instance: Any, owner: type) -> Any:
        """Return the attribute under its newer name, and warn."""
        return getattr(
            owner if instance is None else instance, newer_member(self._old, self._table)
        )
