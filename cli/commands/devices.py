"""`steersman devices` and `people`: who may use the page and HTTP interface, and the chat rooms."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from datetime import datetime
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...gateway.reach import address_of, server_of
from ...gateway.wording.redaction import Redactor
from ...machines.errors import UsageError
from ...machines.people import ALLOW, DEFAULT_RIGHTS, Deed, Right, Whose, may
from ...workflows.config import Config, load
from ...workflows.extras import how_to_install
from ...workflows.paths import Paths
from ..options import Json, argument, flag, group, option
from ..output import show, show_document, show_table, warn

if TYPE_CHECKING:
    from ...gateway.web.access import DeviceFile, Scope
from typing import Annotated

LONGEST = 40

devices = group("devices", "steersman devices pair phone")

Name = Annotated[str, argument("NAME", "What the device is called.")]


def _file() -> DeviceFile:
    try:
        from ...gateway.web.access import DeviceFile
    except ModuleNotFoundError as error:
        raise UsageError(
            f"devices need the package `{error.name}`", how_to_install("web")
        ) from error
    return DeviceFile(Paths.of(os.environ).state)


@devices.command()
def pair(
    name: Name,
    scope: Annotated[
        str, option("SCOPE", "look, speak (and look) or approve (everything).")
    ] = "approve",
    token: Annotated[bool, flag("--token", "Print a bearer token, for a program.")] = False,
) -> None:
    """Print a code, valid once and for ten minutes, with which a browser is paired.

    Example: steersman devices pair phone --scope speak
    """
    file = _file()
    from ...gateway.web.access import SCOPES

    wanted: Scope | None = next((known for known in SCOPES if known == scope), None)
    if wanted is None:
        raise UsageError(f"`{scope}` is no scope", f"there are {', '.join(SCOPES)}")
    if not name.strip() or not name.isprintable() or len(name) > LONGEST:
        raise UsageError(f"a name is one line of at most {LONGEST} characters", "choose another")
    now = time.time()
    if token:
        show(file.grant(name, wanted, now))
        return
    state = Paths.of(os.environ).state
    code = file.offer(name, wanted, now)
    address = address_of(state) if server_of(state) is not None else ""
    if not address:
        show(f"The code is {code}. No program serves this home: `steersman serve` starts one.")
        return
    link = f"{address}/#pair={code}"
    show(f"Open {link}\nor type the code {code} there. It is valid once, for ten minutes.\n")
    import segno

    drawn = StringIO()
    segno.make(link, error="l").terminal(drawn, compact=True)  # two rows of it in each line
    show(drawn.getvalue())


@devices.command("list")
def show_all(as_json: Json = False) -> None:
    """List the devices.

    Example: steersman devices list
    """
    known = _file().known()
    if as_json:
        listed = [device.model_dump(exclude={"hash"}) for device in known.devices]
        show_document({"devices": listed})
        return
    rows = [
        [device.name, device.scope, f"{datetime.fromtimestamp(device.created):%Y-%m-%d %H:%M}"]
        for device in known.devices
    ]
    if rows:
        show_table(["device", "may", "since"], rows)
    else:
        show("no device is paired; `steersman devices pair NAME` begins it")


@devices.command()
def revoke(name: Name) -> None:
    """Shut a device out, at once.

    Example: steersman devices revoke phone
    """
    _file().revoke(name)
    show(f"{name} is shut out")


# People -------------------------------------------------------------------------------------------


_DEEDS = {
    "speak": (Deed.SPEAK, Whose.NOBODYS),
    "steer own": (Deed.STEER, Whose.OWN),
    "steer others": (Deed.STEER, Whose.OTHERS),
    "stop own": (Deed.STOP, Whose.OWN),
    "stop others": (Deed.STOP, Whose.OTHERS),
    "approve": (Deed.APPROVE, Whose.NOBODYS),
}

people = group("people", "steersman people check")


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
        show_table(("PERSON", "IS", *(deed.upper() for deed in _DEEDS)), cells)
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
