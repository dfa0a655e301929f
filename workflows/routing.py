"""The routing tables in force: a named table, and the routes that files put in front of it.

A route that breaks a safety rule is refused, with the rule and a counterexample, and so is a table
that does, unless `routing.unsafe` says that it is meant. Mistakes are refused always.
"""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec import field
from msgspec.structs import asdict, replace

from ..machines.delivery import Cause
from ..machines.disposition import ACKS, AutoQueue, BusyMode, Intent, Situation, Strategy
from ..machines.errors import UsageError
from ..machines.policy import RoutesChoice
from ..machines.routes import Routes
from ..proofs import machine_check
from ..proofs.custom_routes import OUTCOMES, TARGETS, Override, RouteOutcome, put_in_front
from ..proofs.route_check import SAFETY, check_routes
from .document import Diagnostic, Document, config_error, diagnose, is_list, is_table, read_document
from .problem import Problem, did_you_mean
from .settings import Routing, Settings
from .suggestions import DEFAULT_TABLE, OneOf, OneOrMany, UserName, is_path, suggested, table_names
from .table_file import TableFile, named_table, read_routes
from .typed_table import TypedTable, read_table

# `[[route]]`: a custom route in a configuration or a workflow file --------------------------------
#     [[route]]
#     name = "talk-through"
#     message = "converse"
#     when = { session = "delegating" }
#     deliver = [{ to = "children.active", as = "steer" }]
#     ack = "steered_child"
#
# `proofs/custom_routes.py` defines what it means; here its words are checked.


Words = tuple[str, ...]


class RouteWhen(TypedTable):
    """The conditions of a route; a missing one matches everything."""

    situation: Annotated[Words, OneOrMany(tuple(Situation))] = field(default=(), name="session")
    busy: Annotated[Words, OneOrMany(tuple(BusyMode))] = ()
    strategy: Annotated[Words, OneOrMany(tuple(Strategy))] = ()
    auto_queue: Annotated[Words, OneOrMany(tuple(AutoQueue))] = ()


class RouteOutcomeTable(TypedTable):
    """A target of a route, and what it receives."""

    to: Annotated[Words, OneOrMany(tuple(TARGETS))]
    what: Annotated[str, OneOf(OUTCOMES)] = field(name="as")


class Route(TypedTable):
    """One route, for a `message` or for a `cause`."""

    name: UserName
    message: Annotated[Words, OneOrMany(tuple(Intent))] = ()
    cause: Annotated[Words, OneOrMany(tuple(Cause))] = ()
    when: RouteWhen = RouteWhen()
    deliver: tuple[RouteOutcomeTable, ...] = ()
    ack: Annotated[str, OneOf(tuple(ACKS))] = ""
    why: str = ""

    def override(self) -> Override:
        """Return the route in the words of the tables."""
        narrowed = {name: words for name, words in asdict(self.when).items() if words}
        outcomes = tuple(RouteOutcome(to=row.to, what=row.what) for row in self.deliver)
        return Override(
            name=self.name,
            message=self.message,
            causes=self.cause,
            when=narrowed,
            deliver=outcomes,
            ack=self.ack,
            why=self.why,
        )


Origin = tuple[Document, int]
"""The file of a route, and its number there."""


Declared = Mapping[str, Any]
"""A route as written in a file."""


class RouteFile(TypedTable):
    """The routes of a file."""

    route: tuple[Route, ...] = ()


class _RoutingFile(TypedTable):
    """The `[routing]` of a file."""

    routing: Routing


def routes_of(table: str, routes: Sequence[Declared]) -> Routes:
    """Return a named table with routes in front; both have been checked."""
    base = named_table(table)
    return put_in_front(base, _overrides(routes))[0] if routes else base


def check_words(document: Document) -> list[Diagnostic]:
    """Check the keys and values of each of a file's routes separately."""
    _, problems = read_table(RouteFile, {"route": document.data.get("route", [])})
    return diagnose(document, suggested(problems, RouteFile))


def _overrides(routes: Sequence[Declared]) -> list[Override]:
    file, _ = read_table(RouteFile, {"route": [*routes]})
    assert file is not None, "they have been checked"
    return [route.override() for route in file.route]


def compose(
    table: str, routes: Sequence[Declared], origins: Sequence[Origin], *, is_unsafe: bool
) -> tuple[Routes, list[Diagnostic]]:
    """Put routes in front of a named table and check the whole; the first route is asked first.

    Their words have been checked.
    """
    base = named_table(table)
    if not routes:
        return base, []
    overrides = _overrides(routes)
    diagnostics = list(_invalid_routes_of_each_file(base, overrides, origins))
    if diagnostics:
        return base, diagnostics
    result, invalid_routes = put_in_front(base, overrides)
    # An invalid route without a key is a route hidden by a route of another file, which is allowed.
    for invalid_route in (route for route in invalid_routes if route.key):
        diagnostics += _diagnose_route(
            origins[invalid_route.route], invalid_route.key, invalid_route.message
        )
    known = {
        (fault.kind, fault.where) for fault in check_routes(base.dispositions, base.deliveries)
    }
    for fault in check_routes(result.dispositions, result.deliveries):
        if (fault.kind, fault.where) in known or (is_unsafe and fault.kind in SAFETY):
            continue
        number = _blamed(fault, overrides)
        name = overrides[number].name
        place = "" if f"`{name}`" in fault.where else f" ({fault.where})"
        message = f"route `{name}`: {rule_broken(fault)}{place}"
        diagnostics += _diagnose_route(origins[number], "name", message, _hint(fault))
    return result, diagnostics


def _invalid_routes_of_each_file(
    base: Routes, overrides: Sequence[Override], origins: Sequence[Origin]
) -> Iterable[Diagnostic]:
    for document in dict.fromkeys(document for document, _ in origins):
        numbers = [n for n, origin in enumerate(origins) if origin[0] is document]
        _, invalid_routes = put_in_front(base, [overrides[n] for n in numbers])
        for invalid_route in invalid_routes:
            yield from _diagnose_route(
                origins[numbers[invalid_route.route]], invalid_route.key, invalid_route.message
            )


def _diagnose_route(origin: Origin, key: str, message: str, hint: str = "") -> list[Diagnostic]:
    document, number = origin
    where = ("route", number, key) if key else ("route", number)
    return diagnose(document, [Problem(where, message, hint)])


def _blamed(fault: machine_check.MachineFault, overrides: Sequence[Override]) -> int:
    """Find the route whose row a fault names; the first one if it names none."""
    text = f"{fault.where} {fault.message}"
    for number, override in enumerate(overrides):
        if (
            f"`{override.name}`" in text
            or f"`{override.name}-" in text
            or f"`route.{override.name}`" in text
        ):
            return number
    return 0


def rule_broken(fault: machine_check.MachineFault) -> str:
    """Say which rule a fault breaks, with its counterexample."""
    rule = SAFETY.get(fault.kind)
    return f"{rule}; but {fault.message}" if rule else fault.message


def _hint(fault: machine_check.MachineFault) -> str:
    return "`unsafe = true` in `[routing]` accepts that" if fault.kind in SAFETY else fault.hint


def refusals(table: str) -> list[Problem]:
    """List the safety rules that a named table breaks, each with an example."""
    routes = named_table(table)
    rules: dict[str, Problem] = {}
    for fault in check_routes(routes.dispositions, routes.deliveries):
        if fault.kind in SAFETY:
            message = f"table `{table}`: {rule_broken(fault)}"
            rules.setdefault(fault.kind, Problem(("routing", "table"), message, _hint(fault)))
    return list(rules.values())


def unsafe_notice(routes: Routes) -> str:
    """Return a notice that names the safety rules that tables in use break; empty if none."""
    faults = check_routes(routes.dispositions, routes.deliveries)
    broken = dict.fromkeys(SAFETY[fault.kind] for fault in faults if fault.kind in SAFETY)
    if not broken:
        return ""
    return (
        f"The routing table in use, `{routes.name}`, does not keep these rules: "
        f"{'; '.join(broken)}. `steersman routes check` names the rows."
    )


def routes_for(config: Settings, choice: RoutesChoice | None) -> tuple[Routes, str]:
    """Return the tables of a session, and the notice about them for its start.

    `choice` is the table that was chosen for the session; an unknown table is not used, and the notice
    says so. Raises `ConfigError` when the configuration's routes do not fit it.
    """
    routing = config.routing
    if choice is None or choice.table == routing.table:
        is_plain = routing.table == DEFAULT_TABLE and not config.route
        routes = routes_of(routing.table, config.route)
        return routes, "" if is_plain else unsafe_notice(routes)
    if choice.table not in table_names():
        routes, notice = routes_for(config, None)
        gone = (
            f"This session's routing table `{choice.table}` is not known here: `{routes.name}` is."
        )
        return routes, f"{gone} {notice}".rstrip()
    document = Document(file="routes of the configuration")
    origins = [(document, number) for number in range(len(config.route))]
    if not choice.may_be_unsafe and (problems := refusals(choice.table)):
        raise config_error(diagnose(document, problems))
    routes, diagnostics = compose(
        choice.table, config.route, origins, is_unsafe=choice.may_be_unsafe
    )
    if diagnostics:
        raise config_error(diagnostics)
    return routes, unsafe_notice(routes)


def find_table(name: str) -> Routes:
    """Return a table by its name, or by the path of its file.

    Raises `UsageError` when there is no such name, `ConfigError` for a file that is wrong.
    """
    if name in table_names():
        return named_table(name)
    if not is_path(name):
        names = table_names()
        known = f"known: {', '.join(names)}; a file is given by its path, as `./{name}`"
        raise UsageError(f"there is no routing table `{name}`", did_you_mean(name, names, known))
    return table_of_file(Path(name))


def table_of_file(path: Path) -> Routes:
    """Return the table of a file: one of rows, or any with routes or `[routing]`.

    Routes come before the table that the file's own `[routing]` chooses. Raises `ConfigError`.
    """
    document, diagnostics = read_document(path)
    if diagnostics:
        raise config_error(diagnostics)
    tables = document.data.keys()
    has_routes = is_list(document.data.get("route"))
    is_settings = bool(tables & {*Settings.__struct_fields__, "workflow"})
    if not has_routes and (tables & {*TableFile.__struct_fields__} or not is_settings):
        return read_routes(document)
    routing = document.data.get("routing", {})
    whole = {"table": DEFAULT_TABLE, "unsafe": False, **routing} if is_table(routing) else routing
    file, problems = read_table(_RoutingFile, {"routing": whole})
    diagnostics = [*diagnose(document, suggested(problems, _RoutingFile)), *check_words(document)]
    if file is None or diagnostics:
        raise config_error(diagnostics)
    base = file.routing.table
    if has_routes:
        return _with_routes(document, base)
    return replace(named_table(base), name=f"{document.file} (it holds no `[[route]]`, so {base})")


def _with_routes(document: Document, base: str) -> Routes:
    """Put a file's routes in front of a table; whether that is safe is not asked."""
    declared: list[Declared] = document.data["route"]
    origins = [(document, number) for number in range(len(declared))]
    routes, diagnostics = compose(base, declared, origins, is_unsafe=True)
    if diagnostics:
        raise config_error(diagnostics)
    doc = f"{len(declared)} routes of {document.file}, before those of {base}."
    return replace(routes, name=document.file, doc=doc)
