"""`steersman routes`: shows, checks, compares, chooses and dry-runs routing tables."""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import replace

from ...gateway.views.dry_run import (
    as_said,
    cause_explanation,
    company_of,
    draw_explanation,
    explanation,
)
from ...gateway.wording.acknowledgement import acknowledgement_text
from ...machines.classification import classify
from ...machines.delivery import Delivery, Relation, current_spelling
from ...machines.disposition import AutoQueue, BusyMode, Situation, Strategy
from ...machines.errors import UsageError
from ...machines.people import DEFAULT_RIGHTS, weigh
from ...machines.policy import Policy
from ...machines.result_routing import DEFAULT_RETURNS
from ...machines.routes import Routes
from ...machines.routing import render
from ...machines.value import Value
from ...ports.tools.text import counted
from ...proofs.explanation import Recipient
from ...proofs.route_check import SAFETY, check_routes, check_table
from ...proofs.route_diff import differences, place_in_words
from ...workflows.config import Config, load
from ...workflows.paths import Paths
from ...workflows.positions import choose_for_folder
from ...workflows.problem import did_you_mean
from ...workflows.routing import find_table, refusals, routes_of
from ...workflows.suggestions import table_names
from ...workflows.table_file import named_table, table_text
from ..options import WAYS, Json, Way, argument, flag, group, option, taking
from ..output import show, show_document, warn
from .session_command import run_on

FORMS = ("text", "toml")
_LEAD = re.compile(r" *\d+[* ] \S+ +| *[a-z_]+: | +")
"""The text before the conditions of a row, the values of a word, or a reason."""

routes = group("routes", 'steersman routes explain "how is it going?" --children 2')

Table = Annotated[
    str, argument("TABLE", "A table's name, or a file; if left out, the table in force here.")
]


@routes.command("list")
def routes_list(as_json: Json = False) -> None:
    """List the routing tables, and mark the one in force in this folder.

    Example: steersman routes list
    """
    config = _config()
    rows = list[dict[str, Any]]()
    for name in table_names():
        table = named_table(name)
        faults = check_routes(table.dispositions, table.deliveries)
        broken = list(dict.fromkeys(SAFETY[fault.kind] for fault in faults))
        used = name == config.routing.table
        rows.append({"name": name, "doc": table.doc, "is_used": used, "breaks": broken})
    own = [str(route["name"]) for route in config.route]
    if as_json:
        show_document({"tables": rows, "routes": own})
        return
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        mark = "*" if row["is_used"] else " "
        show(f"{mark} {row['name']:<{width}}  {row['doc']}")
        for rule in row["breaks"]:
            show(f"  {'':<{width}}  does not keep: {rule}")
    if own:
        show(f"  your own routes, which come before it: {', '.join(own)}")
    show("* in force in this folder")


@routes.command("show")
def routes_show(
    table: Table = "",
    form: Annotated[str, option("FORMAT", "text or toml.", "--format")] = "text",
) -> None:
    """Print both routing tables, or write them as a file.

    Example: steersman routes show never-cancel
    """
    if form not in FORMS:
        raise UsageError(f"there is no format `{form}`", f"formats: {', '.join(FORMS)}")
    routes = _table(table)
    if form == "toml":
        show(table_text(routes).rstrip("\n"))
    else:
        tables = (routes.dispositions, routes.deliveries, DEFAULT_RETURNS)
        show(_wrapped("\n".join(render(table) for table in tables).rstrip("\n")))


def _wrapped(text: str) -> str:
    """Break lines at the width of the terminal, and indent the rest below the row's conditions."""
    if not sys.stdout.isatty():
        return text
    from ..wrapping import wrapped_pieces

    width = shutil.get_terminal_size().columns
    lines: list[str] = []
    for line in text.split("\n"):
        lead = _LEAD.match(line)
        hang = " " * min(len(lead[0]) if lead else 0, width // 2)
        for row in wrapped_pieces([("", line)], width, hang):
            lines.append("".join(piece for _, piece in row))
    return "\n".join(lines)


@routes.command("check")
def routes_check(table: Table = "", as_json: Json = False) -> int:
    """Prove that tables are complete, safe and without dead rows; or show counterexamples.

    Example: steersman routes check steersman.toml
    """
    routes = _table(table)
    tables = (routes.dispositions, routes.deliveries, DEFAULT_RETURNS)
    faults = (*check_routes(*tables[:2]), *check_table(DEFAULT_RETURNS))
    if as_json:
        found = [{"kind": fault.kind, "fault": str(fault), "hint": fault.hint} for fault in faults]
        show_document({"table": routes.name, "ok": not faults, "faults": found})
        return 2 if faults else 0
    sizes = "; ".join(
        f"{table.name}: {len(table.rows)} rows, {len(table.keys())} cases" for table in tables
    )
    show(f"{routes.name}: {sizes}: {counted(len(faults), 'fault') if faults else 'ok'}")
    for kind in dict.fromkeys(fault.kind for fault in faults):
        warn(f"{SAFETY.get(kind, 'a mistake')} [{kind}]")
        alike = [fault for fault in faults if fault.kind == kind]
        for hint, together in groupby(alike, key=lambda fault: fault.hint):
            for fault in together:
                warn(f"  {fault.machine}, {fault.where}: {fault.message}")
            if hint:
                warn(f"    {hint}")
    return 2 if faults else 0


@routes.command("diff")
def routes_diff(
    ours: Annotated[str, argument("A", "A table's name, or a file.")],
    theirs: Annotated[str, argument("B", "Another table.")],
    as_json: Json = False,
) -> None:
    """List the differences of two tables, each with an example.

    Example: steersman routes diff steersman never-cancel
    """
    first, second = _table(ours), _table(theirs)
    found = differences(first, second)
    if as_json:
        rows = [
            {
                "where": {
                    name: [str(word) for word in words] for name, words in difference.where.items()
                },
                "cells": difference.cells,
                first.name: difference.ours,
                second.name: difference.theirs,
                "example": difference.example,
            }
            for difference in found
        ]
        show_document({"ours": first.name, "theirs": second.name, "differences": rows})
        return
    width = max(len(first.name), len(second.name))
    for difference in found:
        show(
            f"{place_in_words(difference)} ({counted(difference.cells, 'case')}), "
            f"for example {difference.example!r}:"
        )
        show(f"  {first.name:<{width}}  {difference.ours}")
        show(f"  {second.name:<{width}}  {difference.theirs}")
    cells = sum(difference.cells for difference in found)
    show(
        f"{counted(len(found), 'difference')}, {counted(cells, 'case')}."
        if found
        else "They do the same everywhere."
    )


@routes.command("use")
def routes_use(
    table: Annotated[str, argument("NAME", "A table of `routes list`.")],
    session: Annotated[str, option("ID", "For one session, at once.")] = "",
    folder: Annotated[
        Path | None, option("DIR", "For a folder; if left out, the current one.")
    ] = None,
    unsafe: Annotated[bool, flag("--unsafe", "Even if it breaks a safety rule.")] = False,
) -> int:
    """Choose a table for a folder, or for one session.

    Example: steersman routes use never-cancel --session last --unsafe
    """
    if session:
        from ...gateway.commands.routes import use_routes

        return run_on(session, use_routes(table, unsafe=unsafe), as_json=False)
    folder = folder or Path.cwd()
    paths = Paths.of(os.environ)
    if table not in table_names():
        find_table(table)  # raises for an unknown table
        raise UsageError(f"`{table}` is a file", "put its routes into a configuration file")
    if not folder.is_dir():
        raise UsageError(f"`{folder}` is not a folder", "give --folder an existing one")
    if not unsafe and (faults := refusals(table)):
        why = "\n".join(f"  {fault.message}" for fault in faults)
        hint = "--unsafe uses it nevertheless, and every start reports it"
        raise UsageError(f"table `{table}` breaks safety rules:\n{why}", hint)
    flags = {"routing.table": table, "routing.unsafe": unsafe}
    load(paths, folder, os.environ, flags)  # before anything is written: routes must fit the table
    choice = {"routing": {"table": table, "unsafe": unsafe}}
    file = choose_for_folder(paths, folder, choice)
    show(f"New and resumed sessions of {folder.resolve()} go by the routing table `{table}`.")
    show(f"The choice is in {file}.")
    config = load(paths, folder, os.environ)
    if config.routing.table != table:
        warn(f"STEERSMAN_CONFIG says `{config.routing.table}`, which overrides it.")
    return 0


class DryRun(Value):
    """The assumptions of a dry run; an empty one is as configured, or as the others imply."""

    text: Annotated[str, argument("TEXT", "The message.")] = ""
    cause: Annotated[
        str, option("CAUSE", "Instead of a text: timeout, budget, turn_ended, signal, …")
    ] = ""
    state: Annotated[str, option("STATE", "The situation: idle, busy, delegating, …")] = ""
    busy: Annotated[str, option("MODE", "interrupt, steer or queue.")] = ""
    strategy: Annotated[str, option("S", "keyword, always or never.")] = ""
    auto_queue: Annotated[str, option("X", "on or off.")] = ""
    children: Annotated[int, option("N", "Children that the turn waits for.", min=0)] = 0
    background: Annotated[int, option("N", "Children in the background.", min=0)] = 0
    side_talks: Annotated[int, option("N", "Side talks.", min=0)] = 0
    goal: Annotated[bool, flag("--goal", "The session works for a goal.")] = False
    way: Way = "auto"
    table: Annotated[str, option("TABLE", "A table's name, or a file.")] = ""
    user: Annotated[str, option("NAME", "Who says it: a line of [people].")] = ""
    turn_of: Annotated[str, option("NAME", "Whose turn runs, where that matters.")] = ""
    as_json: Json = False


@routes.command("explain")
@taking(DryRun)
def routes_explain(dry: DryRun) -> None:
    """Show what a message or a cause would do, and by which rows; does nothing.

    Example: steersman routes explain "how is it going?" --children 2
    """
    if bool(dry.text) == bool(dry.cause):
        raise UsageError("a dry run is of a text, or of a cause", "give TEXT, or --cause CAUSE")
    routes = _table(dry.table)
    if dry.cause:
        cause = current_spelling(dry.cause)
        _require("--cause", cause, routes.deliveries.space["cause"])
        data = cause_explanation(routes, cause, _recipients(_config(), _state(dry), dry))
    else:
        data = _explain_message(routes, dry)
    if dry.as_json:
        show_document(data)
    else:
        show(draw_explanation(data))
        if person := data.get("person"):
            show(_person_line(person))


def _explain_message(routes: Routes, dry: DryRun) -> dict[str, Any]:
    from ...gateway.commands.registry import NAMES

    _require("--as", dry.way, WAYS)
    config = _config()
    words = config.auto_queue.keywords
    found, to, rest = as_said(
        dry.text, dry.way, lambda said, way: classify(said, words, way, NAMES)
    )
    doing, policy = _state(dry), _policy_of_routes(config, dry)
    recipients = _recipients(config, doing, dry)
    if to not in ("", "all", "parent"):
        recipients = _with_name(recipients, to.partition("/")[0])
    data = explanation(routes, dry.text, found, doing, policy, recipients, to)
    data["told"] = _acknowledgement(data, rest)
    return _weighed(config, routes, data, rest, dry) if dry.user or dry.turn_of else data


def _weighed(
    config: Config, routes: Routes, data: dict[str, Any], text: str, dry: DryRun
) -> dict[str, Any]:
    """Add what the rights of the sender make of a message."""
    line = config.people.get(dry.user)
    if line is None:
        known = ", ".join(config.people) or "nobody"
        raise UsageError(f"no `{dry.user}` is in [people]", f"there is: {known}")
    rights = tuple(line.get("may", DEFAULT_RIGHTS))
    row = next(row for row in routes.dispositions.rows if row.name == data["rule"])
    weighed = weigh(row, data["intent"], dry.user, rights, dry.turn_of)
    person = {
        "user": dry.user,
        "may": list(rights),
        "turn_of": dry.turn_of,
        "rule": weighed.rule,
        "why": weighed.why,
        "is_refused": weighed.is_refused,
    }
    if weighed.why:
        data = {**data, "action": "refuse" if weighed.is_refused else weighed.row.action}
        data |= {"cause": "", "receives": [], "below": None}
        data["ack"] = "" if weighed.is_refused else weighed.row.ack
        data["told"] = "" if weighed.is_refused else _acknowledgement(data, text)
    return {**data, "person": person}


def _person_line(person: Mapping[str, Any]) -> str:
    """Say what the rights of the sender make of a message."""
    turn = f"{person['turn_of']}'s turn" if person["turn_of"] else "nobody's turn"
    who = f"people: row `{person['rule']}`: {person['user']} ({', '.join(person['may'])}), {turn}"
    if not person["why"]:
        return f"{who}: allowed."
    became = "it is given back" if person["is_refused"] else "it waits"
    return f"{who}: {became}, because {person['why']}."


def _recipients(config: Config, doing: str, dry: DryRun) -> list[Recipient]:
    """List the assumed recipients; a turn that waits for a child has at least one child."""
    children = dry.children or int(doing == Situation.DELEGATING)
    return company_of(
        doing,
        children,
        dry.background,
        dry.side_talks,
        detached=config.detached,
        has_goal=dry.goal,
    )


def _with_name(recipients: list[Recipient], name: str) -> list[Recipient]:
    """Give the first child the name that a steer names; without children, add one."""
    for number, recipient in enumerate(recipients):
        if recipient.relation not in (Relation.SELF, Relation.GOAL):
            named = replace(recipient, name=name)
            return [*recipients[:number], named, *recipients[number + 1 :]]
    return [*recipients, Recipient(name=name, relation=Relation.FOREGROUND_CHILD)]


def _acknowledgement(data: dict[str, Any], text: str) -> str:
    """Write the acknowledgement for the sender, with a number that the message might get."""
    children = [
        delivery["who"] for delivery in data["receives"] if delivery["what"] == Delivery.STEER
    ]
    message = {"text": text, "number": 2, "matched": data["matched"], "children": children}
    return acknowledgement_text(data["ack"], message)


def _state(dry: DryRun) -> str:
    """Return the given state, or the one that the children imply."""
    if dry.state:
        _require("--state", dry.state, tuple(Situation))
        return dry.state
    if dry.children:
        return Situation.DELEGATING
    return Situation.ACCOMPANIED if dry.background or dry.side_talks else Situation.BUSY


def _policy_of_routes(config: Config, dry: DryRun) -> Policy:
    agent = config.agent(config.default_agent)
    _require("--busy", dry.busy, ("", *BusyMode))
    _require("--strategy", dry.strategy, ("", *Strategy))
    _require("--auto-queue", dry.auto_queue, ("", *AutoQueue))
    chosen: dict[str, Any] = {
        "busy_mode": dry.busy or agent.busy_input_mode,
        "strategy": dry.strategy or agent.interrupt_strategy,
        "interrupt_at": agent.interrupt_at,
        "is_auto_queue": dry.auto_queue == "on" if dry.auto_queue else config.auto_queue.enabled,
    }
    return replace(Policy(), **chosen)


def _require(option: str, word: str, known: Sequence[str]) -> None:
    if word not in known:
        hint = did_you_mean(word, known, f"known: {', '.join(filter(None, known))}")
        raise UsageError(f"there is no `{option} {word}`", hint)


def _config() -> Config:
    return load(Paths.of(os.environ), Path.cwd(), os.environ)


def _table(name: str) -> Routes:
    """Find a table; without a name, what is in force in this folder."""
    if name:
        return find_table(name)
    config = _config()
    routes = routes_of(config.routing.table, config.route)
    if not config.route:
        return routes
    return replace(
        routes, name=f"{routes.name} with {', '.join(route['name'] for route in config.route)}"
    )
