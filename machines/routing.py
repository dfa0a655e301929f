"""Decision tables over a finite space: the first row that matches wins.

A table has dimensions, each a closed list of values, and rows that name some values of some
dimensions; a dimension that a row leaves out matches whatever it is. Since the space is finite,
it is laid out once: a lookup is one dictionary access, and a checker can look at every
combination.

The two tables of this program are `disposition.py` (the action on a message) and `delivery.py`
(whom a cause reaches). `route_check.py` proves things about both.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any, Generic, TypeVar

from msgspec import Struct
from msgspec.structs import force_setattr

from .errors import MachineError
from .value import Value

Key = tuple[str, ...]
"""One combination: a value for each dimension, in the table's order."""


class Row(Value):
    """Base of all rows: a name, the combinations it is for, and (in a subclass) what it decides."""

    name: str
    when: Mapping[str, tuple[str, ...]]


R = TypeVar("R", bound=Row)


def when(**values: str | tuple[str, ...]) -> dict[str, tuple[str, ...]]:
    """Write a row's condition: `when(intent=(A, B), situation=C)`."""
    return {
        dimension: (value,) if isinstance(value, str) else tuple(value)
        for dimension, value in values.items()
    }


class Table(Struct, Generic[R], frozen=True):
    """Rows over a space; `space` maps each dimension to all its values.

    The first `overrides` rows were put before the shipped ones. Raises `MachineError` for a row
    that names an unknown dimension or value, or bears the name of another.
    """

    name: str
    space: Mapping[str, tuple[str, ...]]
    rows: tuple[R, ...]
    overrides: int = 0
    _index: dict[Key, R] = {}

    def __post_init__(self) -> None:
        self._require_sense()
        force_setattr(self, "_index", self.lay_out(self.rows))

    def find(self, key: Key) -> R | None:
        """Return the row for one combination, or none where the table has a hole."""
        return self._index.get(key)

    def decide(self, key: Key) -> R:
        """Return the row for one combination.

        Raises `MachineError` for a hole or an unknown value: a checked table has neither.
        """
        row = self._index.get(key)
        if row is None:
            for (name, known), value in zip(self.space.items(), key, strict=True):
                _require(value, known, f"table `{self.name}`: `{name}` has no value `{value}`")
            raise MachineError(
                f"table `{self.name}` has no row for {self.in_words(key)}",
                "Add a row that matches, at the end.",
            )
        return row

    def keys(self) -> list[Key]:
        """List every combination there is."""
        return list(product(*self.space.values()))

    def override(self, rows: Sequence[R]) -> "Table[R]":
        """Return a table in which these rows are asked first; check it before you use it."""
        return Table(self.name, self.space, (*rows, *self.rows), self.overrides + len(rows))

    def settled(self) -> "Table[R]":
        """Return the same decisions without the rows that never decide anything any more."""
        alive = {row.name for row in self._index.values()}
        rows = tuple(row for row in self.rows if row.name in alive)
        overrides = sum(row.name in alive for row in self.rows[: self.overrides])
        return Table(self.name, self.space, rows, overrides)

    def lay_out(self, rows: Sequence[R]) -> dict[Key, R]:
        """Map each combination that some row matches to the first that does."""
        index: dict[Key, R] = {}
        for row in rows:
            choices = [row.when.get(name, values) for name, values in self.space.items()]
            for key in product(*choices):
                index.setdefault(key, row)
        return index

    def in_words(self, key: Key) -> str:
        """Read one combination aloud."""
        return ", ".join(f"{name} {value}" for name, value in zip(self.space, key, strict=False))

    def _require_sense(self) -> None:
        """Refuse rows that cannot mean anything here."""
        seen = set[str]()
        for row in self.rows:
            where = f"table `{self.name}`, row `{row.name}`"
            if row.name in seen:
                raise MachineError(f"{where}: another row has this name", "Names must differ.")
            seen.add(row.name)
            for dimension, values in row.when.items():
                _require(dimension, tuple(self.space), f"{where}: no dimension `{dimension}`")
                for value in values:
                    problem = f"{where}: `{dimension}` has no value `{value}`"
                    _require(value, self.space[dimension], problem)


def _require(word: str, known: tuple[str, ...], problem: str) -> None:
    """Raise unless the word is known; the hint names the nearest one."""
    if word not in known:
        from difflib import get_close_matches  # only for a mistake: it takes time to import

        near = get_close_matches(word, known, 1)
        meant = f"Did you mean `{near[0]}`? " if near else ""
        raise MachineError(problem, f"{meant}Known: {', '.join(known)}.")


def render(table: Table[Any]) -> str:
    """Print a table for people: one row a paragraph, in the order in which they are tried."""
    width = max((len(row.name) for row in table.rows), default=0)
    lines = [
        f"{table.name}: the first row that matches wins",
        *(f"  {name}: {', '.join(values)}" for name, values in table.space.items()),
        "",
    ]
    for number, row in enumerate(table.rows, 1):
        mark = "*" if number <= table.overrides else " "
        conditions = ", ".join(
            f"{name} {'|'.join(row.when[name])}" for name in table.space if name in row.when
        )
        decision, *reasons = _outcome(row)
        lines.append(
            f"{number:>3}{mark} {row.name:<{width}}  {conditions or 'anything else'} -> {decision}"
        )
        lines += [f"{'':{width + 7}}{reason}" for reason in reasons]
    if table.overrides:
        lines += ["", "* overrides a shipped row"]
    return "\n".join(lines) + "\n"


def _outcome(row: Row) -> tuple[str, ...]:
    """Read what a row decides: the action with its short fields, then what explains it."""
    own = [name for name in row.__struct_fields__ if name not in {"name", "when"}]
    values = {name: str(getattr(row, name)) for name in own}
    sentences = [values.pop(name) for name in ("doc", "why") if values.get(name)]
    action = values.pop("action", "")
    details = [f"{name} {value}" for name, value in values.items() if value]
    return (f"{action} ({', '.join(details)})" if details else action, *sentences)
