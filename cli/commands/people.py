"""`steersman people`: who may do what in chat rooms, by `[people]` and the table of rights."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...gateway.wording.redaction import Redactor
from ...machines.people import ALLOW, DEFAULT_RIGHTS, Deed, Right, Whose, may
from ...workflows.config import Config, load
from ...workflows.paths import Paths
from ..options import Json, group
from ..output import show, show_document, show_table, warn

_DEEDS = {
    "speak": (Deed.SPEAK, Whose.NOBODYS),
    "steer own": (Deed.STEER, Whose.OWN),
    "steer others": (Deed.STEER, Whose.OTHERS),
    "stop own": (Deed.STOP, Whose.OWN),
    "stop others": (Deed.STOP, Whose.OTHERS),
    "approve": (Deed.APPROVE, Whose.NOBODYS),
}

people = group("Show who may do what in chat rooms.", "steersman people check")


@people.callback()
def people_commands() -> None:
    """Keep `check` a command of its own."""


@people.command("check")
def people_check(as_json: Json = False) -> int:
    """List what each person may do, and what is missing; exits 1 if something is.

    Example: steersman people check
    """
    config = load(Paths.of(os.environ), Path.cwd(), os.environ)
    rows = [_view(name, line) for name, line in sorted(config.people.items())]
    missing = _missing(config)
    redactor = Redactor(os.environ)
    if as_json:
        show_document({"people": [redactor.data(row) for row in rows], "missing": missing})
        return 1 if missing else 0
    for notice in config.notices:
        warn(notice)
    if rows:
        cells = [
            (
                redactor.line(row["name"]),
                redactor.line(", ".join(f"{key} {value}" for key, value in row["names"].items())),
                *("yes" if row["can"][deed] else "no" for deed in _DEEDS),
            )
            for row in rows
        ]
        show_table(("PERSON", "IS", *(deed.upper() for deed in _DEEDS)), cells, os.environ)
    else:
        show("[people] is empty, so no message of a chat room is read.")
    for line in missing:
        warn(line)
    return 1 if missing else 0


def _view(name: str, line: Mapping[str, Any]) -> dict[str, Any]:
    """Describe a person: their names, their rights, and what these allow."""
    rights = tuple(line.get("may", DEFAULT_RIGHTS))
    names = {
        key: value if isinstance(value, str) else ", ".join(value)
        for key, value in line.items()
        if key != "may"
    }
    can = {deed: may(rights, *question).action == ALLOW for deed, question in _DEEDS.items()}
    return {"name": name, "names": names, "may": list(rights), "can": can}


def _missing(config: Config) -> list[str]:
    """Say what keeps people from working in a room."""
    found: list[str] = []
    for name, line in sorted(config.people.items()):
        if set(line) <= {"may"}:
            found.append(f"`{name}` has no name on any platform, and is never heard")
        if Right.SPEAK not in line.get("may", DEFAULT_RIGHTS):
            found.append(f"`{name}` may not speak, and so nothing else: add `speak`")
    for gateway in sorted(config.gateways):
        known = [line for line in config.people.values() if gateway in line]
        if not known:
            found.append(f"no person has a name on `{gateway}`: no message is read there")
        elif not any(Right.APPROVE in line.get("may", DEFAULT_RIGHTS) for line in known):
            found.append(f"no person on `{gateway}` may approve: what is asked there stays open")
    return found
