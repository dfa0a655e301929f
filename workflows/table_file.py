"""A routing table as a file of rows, and the tables that are shipped in this form.

    name = "never-cancel"
    doc = "A stop ends only the turn; children continue until they are done."
    base = "steersman"

    [[delivery]]
    name = "children-go-on"
    cause = ["stop", "bare_word"]
    relation = ["foreground_child", "background_child"]
    action = "none"
    why = "A child is independent of its parent."

`[[disposition]]` rows say `action`, `cause`, `ack` and `doc`, and are narrowed by `intent`,
`situation`, `busy`, `strategy` and `auto_queue`. The rows are asked before those of `base`; without
one they are all there is. `table_text` writes any table in the same form, the built-in one, too.
"""

import re
from collections.abc import Mapping
from functools import cache
from typing import Annotated, Any

from msgspec.structs import asdict

from ..machines.delivery import DEFAULT_DELIVERIES, Cause, Delivery, DeliveryRow, Relation
from ..machines.disposition import (
    ACKS,
    DEFAULT_DISPOSITIONS,
    Action,
    AutoQueue,
    BusyMode,
    DispositionRow,
    Intent,
    Situation,
    Strategy,
)
from ..machines.routes import STEERSMAN, Routes
from ..machines.routing import Row, Table
from .document import Document, config_error, diagnose, read_document
from .problem import Problem
from .suggestions import DEFAULT_TABLE, TABLES, OneOf, OneOrMany, UserName, suggested, table_names
from .typed_table import TypedTable, read_table

_OWN_CAUSE = "route."

Words = tuple[str, ...]


class DispositionLine(TypedTable):
    """A row of the first table."""

    name: UserName
    intent: Annotated[Words, OneOrMany(tuple(Intent))] = ()
    situation: Annotated[Words, OneOrMany(tuple(Situation))] = ()
    busy: Annotated[Words, OneOrMany(tuple(BusyMode))] = ()
    strategy: Annotated[Words, OneOrMany(tuple(Strategy))] = ()
    auto_queue: Annotated[Words, OneOrMany(tuple(AutoQueue))] = ()
    action: Annotated[str, OneOf(tuple(Action))]
    cause: Annotated[str, OneOf(tuple(Cause), _OWN_CAUSE)] = ""
    ack: Annotated[str, OneOf(tuple(ACKS))] = ""
    doc: str = ""


class DeliveryLine(TypedTable):
    """A row of the second table."""

    name: UserName
    cause: Annotated[Words, OneOrMany(tuple(Cause), _OWN_CAUSE)] = ()
    relation: Annotated[Words, OneOrMany(tuple(Relation))] = ()
    action: Annotated[str, OneOf(tuple(Delivery))]
    why: str = ""


class TableFile(TypedTable):
    """A whole file."""

    name: UserName
    doc: str = ""
    base: str = ""
    disposition: tuple[DispositionLine, ...] = ()
    delivery: tuple[DeliveryLine, ...] = ()


def _rows(file: TableFile) -> tuple[list[DispositionRow], list[DeliveryRow]]:
    """Return the rows of a file in the words of the tables."""
    dispositions = [
        DispositionRow(**_said(line, DEFAULT_DISPOSITIONS, Action(line.action)))
        for line in file.disposition
    ]
    deliveries = [
        DeliveryRow(**_said(line, DEFAULT_DELIVERIES, Delivery(line.action)))
        for line in file.delivery
    ]
    return dispositions, deliveries


def _said(line: TypedTable, table: Table[Any], action: Action | Delivery) -> dict[str, Any]:
    """Return what a line says, with what it is narrowed to as a table of its own."""
    said = {**asdict(line), "action": action}
    when = {name: words for name in table.space if (words := said.pop(name))}
    return {**said, "when": when}


@cache
def named_table(name: str) -> Routes:
    """Return a shipped table. Raises `KeyError` for a name that none has."""
    if name == DEFAULT_TABLE:
        return STEERSMAN
    if name not in table_names():
        raise KeyError(name)
    return read_routes(read_document(TABLES / f"{name}.toml")[0])


def read_routes(document: Document) -> Routes:
    """Make a table of a parsed file. Raises one `ConfigError` that reports every problem."""
    declared, problems = read_table(TableFile, document.data)
    if declared is None:
        raise config_error(diagnose(document, suggested(problems, TableFile)))
    names = table_names()
    if declared.base and declared.base not in names:
        message = f"`base` names the table `{declared.base}`, which is not there"
        problem = Problem(("base",), message, f"known: {', '.join(names)}")
        raise config_error(diagnose(document, [problem]))
    base = named_table(declared.base) if declared.base else None
    below = (base.dispositions, base.deliveries) if base else (None, None)
    dispositions, deliveries = _rows(declared)
    problems = _check_rows("disposition", dispositions, DEFAULT_DISPOSITIONS, below[0])
    problems += _check_rows("delivery", deliveries, DEFAULT_DELIVERIES, below[1])
    if problems:
        raise config_error(diagnose(document, problems))
    return Routes(
        name=declared.name,
        doc=declared.doc,
        dispositions=_table(DEFAULT_DISPOSITIONS, dispositions, below[0]),
        deliveries=_table(DEFAULT_DELIVERIES, deliveries, below[1]),
    )


def _table(shape: Table[Any], rows: list[Any], base: Table[Any] | None) -> Table[Any]:
    """Put rows before those of a base, and drop what they leave nothing to decide."""
    space = dict((base or shape).space)
    if "cause" in space:
        made = [cause for row in rows for cause in row.when.get("cause", ())]
        space["cause"] = tuple(dict.fromkeys((*space["cause"], *made)))
    if base is None:
        return Table(shape.name, space, tuple(rows))
    whole = Table(shape.name, space, (*rows, *base.rows), len(rows)).settled()
    return Table(shape.name, space, whole.rows)


def _check_rows(
    kind: str, rows: list[Any], shape: Table[Any], below: Table[Any] | None
) -> list[Problem]:
    """Find names used twice, and rows that earlier ones of the file leave nothing to decide."""
    seen = {row.name for row in below.rows} if below else set[str]()
    taken = set[tuple[str, ...]]()
    problems: list[Problem] = []
    for number, row in enumerate(rows):
        where = (kind, number, "name")
        if row.name in seen:
            problems.append(Problem(where, f"`{row.name}` is the name of another row already"))
        cases = shape.lay_out([row]).keys()
        if cases and cases <= taken:
            why = "earlier rows match wherever it does"
            problems.append(Problem(where, f"`{row.name}` never decides anything: {why}"))
        seen.add(row.name)
        taken |= cases
    return problems


def table_text(routes: Routes) -> str:
    """Write a table as a file that reads back as the same table."""
    import tomli_w

    name = re.sub(r"[^A-Za-z0-9_.-]+", "-", routes.name)[:64].strip("-") or "table"
    head = {"name": name, "doc": routes.doc}
    said = [_line(row, ("action", "cause", "ack", "doc")) for row in routes.dispositions.rows]
    given = [_line(row, ("action", "why")) for row in routes.deliveries.rows]
    return tomli_w.dumps({**head, "disposition": said, "delivery": given})


def _line(row: Row, names: tuple[str, ...]) -> Mapping[str, Any]:
    """Write a row; what is empty is left out, and one word goes without brackets."""
    narrowed = {
        name: str(words[0]) if len(words) == 1 else [str(word) for word in words]
        for name, words in row.when.items()
    }
    decided = {name: str(value) for name in names if (value := getattr(row, name))}
    return {"name": row.name, **narrowed, **decided}
