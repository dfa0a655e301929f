"""What a TOML document must look like, said by the type hints of frozen dataclasses.

`check` turns plain data into such a dataclass and collects every fault on the way instead of
raising at the first. Understood are bool, int, float, str, `Literal`, `X | None`, `tuple[X, ...]`,
`dict[str, X]`, dataclasses, and `Annotated` with constraints. Importing a general validation
library would cost a quarter of a second at every start of the program, and a TOML file needs no
more than this.
"""

import dataclasses
import json
import math
import re
import types
from collections.abc import Callable, Iterator
from functools import cache
from typing import (
    Annotated,
    Any,
    Literal,
    Protocol,
    TypeGuard,
    Union,
    cast,
    get_args,
    get_origin,
    get_type_hints,
)

__all__ = [
    "SECRET",
    "AtLeast",
    "Constraint",
    "Fault",
    "Name",
    "Only",
    "Parsed",
    "Where",
    "check",
    "dotted",
    "hints",
    "is_list",
    "is_required",
    "is_table",
    "known_keys",
]

Where = tuple[str | int, ...]
_SCALARS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text in quotes",
}
SECRET = re.compile(
    r"\bkey\b|(api|access|private|secret)[_-]?key|(\b|_)token\b|secret|password", re.IGNORECASE
)


@dataclasses.dataclass(frozen=True, slots=True)
class Fault:
    """One thing that is wrong, at the path `where`; `value` is what was found there.

    `at_value` points at the value instead of the key; `is_unknown` means that no such key exists.
    """

    where: Where
    message: str
    hint: str = ""
    value: Any = None
    at_value: bool = True
    is_unknown: bool = False


class Constraint(Protocol):
    """What a value must satisfy beside its type; put into `Annotated`."""

    def complaint(self, value: Any) -> str:
        """Say what is wrong, as the end of "`key` …"; empty when nothing is."""
        ...


@dataclasses.dataclass(frozen=True, slots=True)
class AtLeast:
    """A number not below `minimum`; `why` is added to the complaint."""

    minimum: float
    why: str = ""

    def complaint(self, value: Any) -> str:
        """Compare with the minimum."""
        if value >= self.minimum:
            return ""
        reason = f": {self.why}" if self.why else ""
        return f"must be at least {self.minimum:g}, not {value:g}{reason}"


@dataclasses.dataclass(frozen=True, slots=True)
class Only:
    """A key that exists with one value only, because the other one would break a promise."""

    value: object
    why: str

    def complaint(self, value: Any) -> str:
        """Compare with the only value."""
        return "" if value == self.value else f"can only be {_shown(self.value)}: {self.why}"


@dataclasses.dataclass(frozen=True, slots=True)
class Name:
    """A name that people type and that appears in file names and dumps."""

    def complaint(self, value: Any) -> str:
        """Match letters, digits, `_`, `-` and inner dots, at most 64 characters."""
        if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", value):
            return ""
        return "is not a name: use letters, digits, `_`, `-` and `.`, at most 64 characters"


@dataclasses.dataclass(frozen=True, slots=True)
class Parsed:
    """A value that people write as text; `read` returns the field's type or raises ValueError."""

    read: Callable[[object], Any]
    expected: str


def dotted(where: Where) -> str:
    """Write a path as people do: `permissions.rules[0].tool`."""
    text = ""
    for part in where:
        if isinstance(part, int):
            text += f"[{part}]"
        else:
            name = part if re.fullmatch(r"[A-Za-z0-9_*-]+", part) else json.dumps(part)
            text += f".{name}" if text else name
    return text


@cache
def hints(kind: type) -> dict[str, Any]:
    """Resolve the type hints of a dataclass, in the order of its fields."""
    return get_type_hints(kind, include_extras=True)


@cache
def is_required(kind: Any, name: str) -> bool:
    """Whether a field of a dataclass has no default."""
    field = {field.name: field for field in dataclasses.fields(kind)}[name]
    missing = dataclasses.MISSING
    return field.default is missing and field.default_factory is missing


def is_table(value: object) -> TypeGuard[dict[str, Any]]:
    """Whether this is a TOML table."""
    return isinstance(value, dict)


def is_list(value: object) -> TypeGuard[list[Any]]:
    """Whether this is a TOML array."""
    return isinstance(value, list)


def check(hint: Any, value: Any, faults: list[Fault], where: Where = ()) -> Any:
    """Return `value` as `hint` wants it; the result only means something if no fault was added."""
    origin = get_origin(hint)
    if origin is Annotated:
        return _annotated(hint, value, faults, where)
    if origin is Literal:
        return _choice(get_args(hint), value, faults, where)
    if origin in (Union, types.UnionType):
        inner = next(arg for arg in get_args(hint) if arg is not type(None))
        return check(inner, value, faults, where)
    if origin is tuple:
        return _items(get_args(hint)[0], value, faults, where)
    if origin is dict:
        return _table(get_args(hint), value, faults, where)
    if dataclasses.is_dataclass(hint):
        return _record(cast(type, hint), value, faults, where)
    return _scalar(hint, value, faults, where)


def known_keys(hint: Any, where: Where = ()) -> Iterator[Where]:
    """List the path of each key and table, parents first; `*` stands for a name or a number."""
    origin = get_origin(hint)
    if where:
        yield where
    if origin is Annotated or origin in (Union, types.UnionType):
        yield from (key for key in known_keys(get_args(hint)[0], where) if key != where)
    elif origin is tuple:
        yield from (key for key in known_keys(get_args(hint)[0], (*where, "*")) if key[-1] != "*")
    elif origin is dict:
        yield from known_keys(get_args(hint)[1], (*where, "*"))
    elif dataclasses.is_dataclass(hint):
        for name, inner in hints(cast(type, hint)).items():
            yield from known_keys(inner, (*where, name))


def _annotated(hint: Any, value: Any, faults: list[Fault], where: Where) -> Any:
    inner, *extras = get_args(hint)
    for extra in extras:
        if isinstance(extra, Parsed):
            return _parsed(extra, value, faults, where)
    before = len(faults)
    result = check(inner, value, faults, where)
    if len(faults) == before:
        complaints = [extra.complaint(value) for extra in extras]
        faults += [Fault(where, f"`{dotted(where)}` {said}") for said in complaints if said]
    return result


def _parsed(extra: Parsed, value: Any, faults: list[Fault], where: Where) -> Any:
    try:
        return extra.read(value)
    except ValueError:
        faults.append(_wrong(extra.expected, value, where))
        return None


def _choice(options: tuple[Any, ...], value: Any, faults: list[Fault], where: Where) -> Any:
    if value not in options or isinstance(value, bool):
        expected = "one of " + ", ".join(f"`{option}`" for option in options)
        fault = _wrong(expected, value, where)
        faults.append(dataclasses.replace(fault, hint=_near(value, options)))
    return value


def _items(inner: Any, value: Any, faults: list[Fault], where: Where) -> Any:
    if not is_list(value):
        faults.append(_wrong("a list", value, where))
        return ()
    return tuple(check(inner, item, faults, (*where, index)) for index, item in enumerate(value))


def _table(pair: tuple[Any, ...], value: Any, faults: list[Fault], where: Where) -> Any:
    if not is_table(value):
        faults.append(_wrong("a table", value, where))
        return {}
    result: dict[str, Any] = {}
    for name, item in value.items():
        wrong: list[Fault] = []
        check(pair[0], name, wrong, (*where, name))
        faults += [dataclasses.replace(fault, at_value=False) for fault in wrong]
        result[name] = check(pair[1], item, faults, (*where, name))
    return result


def _record(kind: type, value: Any, faults: list[Fault], where: Where) -> Any:
    if not is_table(value):
        faults.append(_wrong("a table", value, where))
        return None
    before = len(faults)
    wanted = hints(kind)
    fields: dict[str, Any] = {}
    for name, item in value.items():
        place = (*where, name)
        if name in wanted:
            fields[name] = check(wanted[name], item, faults, place)
        else:
            message = f"unknown key `{dotted(place)}`"
            faults.append(Fault(place, message, value=item, at_value=False, is_unknown=True))
    for name in wanted:
        if name not in value and is_required(kind, name):
            faults.append(Fault(where, f"`{dotted((*where, name))}` is missing", at_value=False))
    return kind(**fields) if len(faults) == before else None


def _scalar(hint: Any, value: Any, faults: list[Fault], where: Where) -> Any:
    if hint is float and type(value) is int:
        return float(value)
    if type(value) is not hint or (hint is float and not math.isfinite(value)):
        faults.append(_wrong(_SCALARS[hint], value, where))
    return value


def _wrong(expected: str, value: Any, where: Where) -> Fault:
    leaf = next((part for part in reversed(where) if isinstance(part, str)), "")
    found = "what it is" if SECRET.search(leaf) else _shown(value)
    return Fault(where, f"`{dotted(where)}` must be {expected}, not {found}", value=value)


def _shown(value: Any) -> str:
    if is_table(value):
        return "a table"
    if is_list(value):
        return "a list"
    if isinstance(value, bool | str):
        text = json.dumps(value, ensure_ascii=False)
        return text if len(text) <= 42 else f'{text[:40]}…"'
    return str(value)


def _near(value: Any, options: tuple[Any, ...]) -> str:
    from difflib import get_close_matches

    close = get_close_matches(str(value).lower(), [str(option) for option in options], 1)
    return f"did you mean `{close[0]}`?" if close else ""
