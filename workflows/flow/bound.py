"""What one template may cost: a budget of work, and sizes that nothing in it can pass.

There is no clock in it: a template that is too much is so everywhere, each time, and in the simulator.
"""

from collections.abc import Iterable, Iterator, MappingView, Sized
from typing import Any, Final

from jinja2.runtime import Undefined

from ...machines.errors import TemplateError

MAX_CHARACTERS: Final = 4 * 2**20
"""Characters of a text that a template makes."""
MAX_ITEMS: Final = 1_000_000
"""Items of a list that a template makes."""
_MAX_WORK: Final = 2_000_000
_MAX_BITS: Final = 4096
_CHARACTERS_A_TICK: Final = 1024


class TemplateBudget:
    """Work left for one template; an item looked at costs 1, and so do some characters."""

    def __init__(self) -> None:
        self.left = _MAX_WORK

    def spend(self, work: int) -> None:
        """Take work off. Raises `TemplateError` when there is none left."""
        self.left -= work
        if self.left < 0:
            raise TemplateError(
                "takes too much work: loops over too many items",
                "let a command do it, or a step with `for_each`",
            )

    def weigh(self, value: Any) -> Any:
        """Pay for going once through a value; what is lazy is made a list on the way."""
        if isinstance(value, Undefined):
            return value  # whoever uses it says that it is not there
        if isinstance(value, str):
            self.spend(1 + len(value) // _CHARACTERS_A_TICK)
        elif isinstance(value, Sized):
            self.spend(1 + len(value))
        elif isinstance(value, Iterator):
            return self._collect(value)  # pyright: ignore[reportUnknownArgumentType]
        return value

    def _collect(self, items: Iterable[Any]) -> list[Any]:
        found: list[Any] = []
        for item in items:
            self.spend(1)
            found.append(item)
        return found


def check_size(value: Any) -> Any:
    """Return a text or list that is not too long. Raises `TemplateError`."""
    limit = MAX_CHARACTERS if isinstance(value, str) else MAX_ITEMS
    if isinstance(value, Sized) and len(value) > limit:
        refuse_size(limit, "characters" if isinstance(value, str) else "items")
    return value


def refuse_size(limit: int, unit: str) -> None:
    """Raise `TemplateError`: more than `limit` of something."""
    raise TemplateError(f"makes more than {limit:,} {unit}", "write large things to a file")


def check_number(value: Any) -> Any:
    """Return a number that is not too large. Raises `TemplateError`."""
    if isinstance(value, int) and value.bit_length() > _MAX_BITS:
        raise TemplateError("makes a number that is too large")
    return value


def text_of(value: Any) -> str:
    """Write a value into a text: JSON, but a text as it is and nothing for none."""
    if isinstance(value, str):
        return value
    if value is None:
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(check_number(value))
    return json_of(value)


def plain(value: Any) -> Any:
    """Return what an expression gave as data: each sequence, and each view of a table, as a list.

    Raises `TemplateError` for a method that was not called.
    """
    if callable(value):
        raise TemplateError("is a method, not what it gives", "write `()` behind it")
    if isinstance(value, tuple | range | MappingView) and isinstance(value, Iterable):
        return [plain(one) for one in value]  # pyright: ignore[reportUnknownVariableType]
    return value


def json_of(value: Any, indent: int | None = None) -> str:
    """Write a value as JSON. Raises `TemplateError` for what is none, or too large."""
    import json

    _check_whole(value)
    try:
        return json.dumps(value, ensure_ascii=False, indent=indent, default=list)
    except (TypeError, ValueError, RecursionError) as error:
        raise TemplateError("has a value that can't be written into a text") from error


def _check_whole(value: Any) -> None:
    """Go through all of a value before it is written: the same list may stand in it many times."""
    size, waiting = 0, [value]
    while waiting:
        one = waiting.pop()
        size += 4 + (len(one) if isinstance(one, Sized) else 0)
        if size > MAX_CHARACTERS:
            refuse_size(MAX_CHARACTERS, "characters")
        if isinstance(one, dict):
            waiting += one.keys()
            waiting += one.values()
        elif isinstance(one, list | tuple):
            waiting += one
