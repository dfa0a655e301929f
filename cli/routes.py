"""`steersman routes`: shows, checks, compares, chooses, dry-runs and replays routing tables."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ..gateway.home.home import named_session
from ..gateway.views.dry_run import (
    as_said,
    cause_explanation,
    company_of,
    draw_explanation,
    explanation,
)
from ..gateway.views.replay import Deviation, Replay, moments, replay
from ..gateway.wording.acknowledgement import Acknowledged, acknowledgement_text
from ..machines.classification import classify
from ..machines.delivery import Delivery, Relation, current_spelling
from ..machines.disposition import AutoQueue, BusyMode, Situation, Strategy
from ..machines.errors import UsageError
from ..machines.people import DEFAULT_RIGHTS, weigh
from ..machines.policy import Policy
from ..machines.result_routing import DEFAULT_RETURNS
from ..machines.routes import Routes
from ..machines.routing import render
from ..machines.value import Value
from ..proofs.explanation import SITUATIONS, Recipient
from ..proofs.machine_check import MachineFault
from ..proofs.route_check import SAFETY, check_routes, check_table
from ..proofs.route_diff import differences, place_in_words
from ..workflows.config import Config, load
from ..workflows.paths import Paths
from ..workflows.positions import choose_for_folder
from ..workflows.routing import find_table, refusals, routes_for, routes_of
from ..workflows.suggestions import table_names
from ..workflows.table_file import named_table, table_text
from .output import show, show_document, warn
from .stored import stored

# Replays ------------------------------------------------------------------------------------------


def replay_session(environ: Mapping[str, str], session: str, under: str, *, as_json: bool) -> int:
    """Print what would have been different in a session under another table. Nothing is changed."""
    theirs = find_table(under)
    with stored(environ) as store:
        row = named_session(store, session)
        config = load(Paths.of(environ), Path(row.folder), environ)
        words = config.auto_queue.keywords
        history = moments(store.entries(row.session), _policy(config, row.agent))
        done = replay(history, lambda choice: routes_for(config, choice)[0], theirs, words)
    if as_json:
        rows = [_view(deviation) for deviation in done.deviations]
        counted = {"session": row.session, "under": theirs.name, "looked_at": done.looked_at}
        show_document({**counted, "deviations": rows})
    else:
        show("\n".join(_lines(done, theirs.name)))
    return 0


def _policy(config: Config, agent: str) -> Policy:
    settings = config.agent(agent if agent in config.agents else config.default_agent)
    chosen: dict[str, Any] = {
        "busy_mode": settings.busy_input_mode,
        "strategy": settings.interrupt_strategy,
        "is_auto_queue": config.auto_queue.enabled,
    }
    return replace(Policy(), **chosen)


def _view(deviation: Deviation) -> dict[str, Any]:
    return {
        "seq": deviation.moment.seq,
        "what": deviation.moment.what,
        "text": deviation.moment.text,
        "state": str(deviation.moment.doing),
        "here": deviation.ours,
        "there": deviation.theirs,
        "rule_here": deviation.our_rule,
        "rule_there": deviation.their_rule,
    }


def _lines(done: Replay, name: str) -> list[str]:
    lines: list[str] = []
    for deviation in done.deviations:
        said = f", `{_short(deviation.moment.text)}`" if deviation.moment.text else ""
        lines.append(f"{deviation.moment.what}{said}, while {SITUATIONS[deviation.moment.doing]}:")
        lines.append(f"  here: {deviation.ours or 'there was no recipient'}")
        lines.append(f"  under {name}: {deviation.theirs or 'there would be no recipient'}")
    messages, others = done.looked_at.get("message", 0), done.looked_at.get("other", 0)
    looked = f"Checked {_count(messages, 'message')} and {_count(others, 'other moment')}"
    return [*lines, f"{looked}: {len(done.deviations) or 'none'} would have been different."]


def _count(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


# Tables and dry runs ------------------------------------------------------------------------------


FORMS = ("text", "toml")
WAYS = ("auto", "queue", "steer", "interrupt")
_LEAD = re.compile(r" *\d+[* ] \S+ +| *[a-z_]+: | +")
"""The text before the conditions of a row, the values of a word, or a reason."""


class DryRun(Value):
    """The assumptions of a dry run; an empty one is as configured, or as the others imply."""

    state: str = ""
    busy: str = ""
    strategy: str = ""
    auto_queue: str = ""
    children: int = 0
    background: int = 0
    side_talks: int = 0
    way: str = "auto"
    cause: str = ""
    has_goal: bool = False
    user: str = ""
    turn_of: str = ""


def list_tables(environ: Mapping[str, str], *, as_json: bool) -> int:
    """Print the shipped tables, whether they are safe, and which one is in force here."""
    config = _config(environ)
    rows = [_brief(name, config.routing.table) for name in table_names()]
    own = [str(route["name"]) for route in config.route]
    if as_json:
        show_document({"tables": rows, "routes": own})
        return 0
    width = max(len(row["name"]) for row in rows)
    for row in rows:
        mark = "*" if row["is_used"] else " "
        show(f"{mark} {row['name']:<{width}}  {row['doc']}")
        for rule in row["breaks"]:
            show(f"  {'':<{width}}  does not keep: {rule}")
    if own:
        show(f"  your own routes, which come before it: {', '.join(own)}")
    show("* in force in this folder")
    return 0


def _brief(name: str, used: str) -> dict[str, Any]:
    routes = named_table(name)
    faults = check_routes(routes.dispositions, routes.deliveries)
    broken = dict.fromkeys(SAFETY[fault.kind] for fault in faults)
    return {"name": name, "doc": routes.doc, "is_used": name == used, "breaks": list(broken)}


def show_table(environ: Mapping[str, str], name: str, form: str) -> int:
    """Print the tables, row by row in the order in which they are tried, or as a file."""
    if form not in FORMS:
        raise UsageError(f"there is no format `{form}`", f"formats: {', '.join(FORMS)}")
    routes = _table(environ, name)
    if form == "toml":
        show(table_text(routes).rstrip("\n"))
    else:
        tables = (routes.dispositions, routes.deliveries, DEFAULT_RETURNS)
        show(_wrapped("\n".join(render(table) for table in tables).rstrip("\n")))
    return 0


def _wrapped(text: str) -> str:
    """Break lines at the width of the terminal, and indent the rest below the row's conditions."""
    if not sys.stdout.isatty():
        return text
    from .wrapping import wrapped_pieces

    width = shutil.get_terminal_size().columns
    lines: list[str] = []
    for line in text.split("\n"):
        lead = _LEAD.match(line)
        hang = " " * min(len(lead[0]) if lead else 0, width // 2)
        for row in wrapped_pieces([("", line)], width, hang):
            lines.append("".join(piece for _, piece in row))
    return "\n".join(lines)


def check_tables(environ: Mapping[str, str], name: str, *, as_json: bool) -> int:
    """Prove the tables complete and safe, or print counterexamples to standard error."""
    routes = _table(environ, name)
    tables = (routes.dispositions, routes.deliveries, DEFAULT_RETURNS)
    faults = (*check_routes(*tables[:2]), *check_table(DEFAULT_RETURNS))
    if as_json:
        found = [{"kind": fault.kind, "fault": str(fault), "hint": fault.hint} for fault in faults]
        show_document({"table": routes.name, "ok": not faults, "faults": found})
        return 2 if faults else 0
    sizes = "; ".join(
        f"{table.name}: {len(table.rows)} rows, {len(table.keys())} cases" for table in tables
    )
    show(f"{routes.name}: {sizes}: {_count(len(faults), 'fault') if faults else 'ok'}")
    for kind in dict.fromkeys(fault.kind for fault in faults):
        _report(kind, [fault for fault in faults if fault.kind == kind])
    return 2 if faults else 0


def _report(kind: str, faults: Sequence[MachineFault]) -> None:
    """Print which rule is broken, each fault with its counterexample, and the next step."""
    warn(f"{SAFETY.get(kind, 'a mistake')} [{kind}]")
    for number, fault in enumerate(faults):
        warn(f"  {fault.machine}, {fault.where}: {fault.message}")
        following = faults[number + 1].hint if number + 1 < len(faults) else ""
        if fault.hint != following:
            warn(f"    {fault.hint}")


def diff_tables(environ: Mapping[str, str], ours: str, theirs: str, *, as_json: bool) -> int:
    """Print where two tables differ, as sentences with an example."""
    first, second = _table(environ, ours), _table(environ, theirs)
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
        return 0
    width = max(len(first.name), len(second.name))
    for difference in found:
        show(
            f"{place_in_words(difference)} ({_count(difference.cells, 'case')}), "
            f"for example {difference.example!r}:"
        )
        show(f"  {first.name:<{width}}  {difference.ours}")
        show(f"  {second.name:<{width}}  {difference.theirs}")
    cells = sum(difference.cells for difference in found)
    show(
        f"{_count(len(found), 'difference')}, {_count(cells, 'case')}."
        if found
        else "They do the same everywhere."
    )
    return 0


def use_for_folder(
    environ: Mapping[str, str], name: str, folder: Path, *, may_be_unsafe: bool
) -> int:
    """Choose a table for every new session of a folder."""
    paths = Paths.of(environ)
    if name not in table_names():
        find_table(name)  # raises for an unknown name
        raise UsageError(f"`{name}` is a file", "put its routes into a configuration file")
    if not folder.is_dir():
        raise UsageError(f"`{folder}` is not a folder", "give --folder an existing one")
    if not may_be_unsafe and (faults := refusals(name)):
        why = "\n".join(f"  {fault.message}" for fault in faults)
        hint = "--unsafe uses it nevertheless, and every start reports it"
        raise UsageError(f"table `{name}` breaks safety rules:\n{why}", hint)
    flags = {"routing.table": name, "routing.unsafe": may_be_unsafe}
    load(paths, folder, environ, flags)  # before anything is written: routes must fit the table
    choice = {"routing": {"table": name, "unsafe": may_be_unsafe}}
    file = choose_for_folder(paths, folder, choice)
    show(f"New and resumed sessions of {folder.resolve()} go by the routing table `{name}`.")
    show(f"The choice is in {file}.")
    config = load(paths, folder, environ)
    if config.routing.table != name:
        warn(f"STEERSMAN_CONFIG says `{config.routing.table}`, which overrides it.")
    return 0


def explain_text(
    environ: Mapping[str, str], text: str, table: str, dry: DryRun, *, as_json: bool
) -> int:
    """Print the outcome of a message or of a cause, and the rows that decide it. Nothing is done."""
    if bool(text) == bool(dry.cause):
        raise UsageError("a dry run is of a text, or of a cause", "give TEXT, or --cause CAUSE")
    routes = _table(environ, table)
    data = (
        _explain_cause(environ, routes, dry)
        if dry.cause
        else _explain_message(environ, routes, text, dry)
    )
    if as_json:
        show_document(data)
    else:
        show(draw_explanation(data))
        if person := data.get("person"):
            show(_person_line(person))
    return 0


def _explain_cause(environ: Mapping[str, str], routes: Routes, dry: DryRun) -> dict[str, Any]:
    cause = current_spelling(dry.cause)
    _require("--cause", cause, routes.deliveries.space["cause"])
    return cause_explanation(routes, cause, _recipients(_config(environ), _state(dry), dry))


def _explain_message(
    environ: Mapping[str, str], routes: Routes, text: str, dry: DryRun
) -> dict[str, Any]:
    from ..gateway.commands.registry import NAMES

    _require("--as", dry.way, WAYS)
    config = _config(environ)
    words = config.auto_queue.keywords
    found, to, rest = as_said(text, dry.way, lambda said, way: classify(said, words, way, NAMES))
    doing, policy = _state(dry), _policy_of_routes(config, dry)
    recipients = _recipients(config, doing, dry)
    if to not in ("", "all", "parent"):
        recipients = _with_name(recipients, to.partition("/")[0])
    data = explanation(routes, text, found, doing, policy, recipients, to)
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
        has_goal=dry.has_goal,
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
    return acknowledgement_text(data["ack"], Acknowledged(text, 2, data["matched"], children))


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
        from difflib import get_close_matches

        near = get_close_matches(word, known, 1)
        meant = f"did you mean `{near[0]}`? " if near else ""
        raise UsageError(
            f"there is no `{option} {word}`", f"{meant}known: {', '.join(filter(None, known))}"
        )


def _config(environ: Mapping[str, str]) -> Config:
    return load(Paths.of(environ), Path.cwd(), environ)


def _table(environ: Mapping[str, str], name: str) -> Routes:
    """Find a table; without a name, what is in force in this folder."""
    if name:
        return find_table(name)
    config = _config(environ)
    routes = routes_of(config.routing.table, config.route)
    if not config.route:
        return routes
    return replace(
        routes, name=f"{routes.name} with {', '.join(route['name'] for route in config.route)}"
    )
