"""`steersman devices`: who may use the home's page and HTTP interface."""

from __future__ import annotations

import os
import time
from datetime import datetime
from io import StringIO
from typing import TYPE_CHECKING

from ...gateway.serving import address_of, server_of
from ...machines.errors import UsageError
from ...workflows.extras import how_to_install
from ...workflows.paths import Paths
from ..output import show, show_document, show_table

if TYPE_CHECKING:
    from ...gateway.web.access import DeviceFile, Scope
from typing import Annotated

import typer

from ..options import Json, group

LONGEST = 40

devices = group(
    "Pair devices and programs with `steersman serve`, and shut them out.",
    "steersman devices pair phone",
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="What the device is called.")]


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
        str, typer.Option(metavar="SCOPE", help="look, speak (and look) or approve (everything).")
    ] = "approve",
    token: Annotated[
        bool, typer.Option("--token", help="Print a bearer token, for a program.")
    ] = False,
) -> int:
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
        return 0
    state = Paths.of(os.environ).state
    code = file.offer(name, wanted, now)
    address = address_of(state) if server_of(state) is not None else ""
    if not address:
        show(f"The code is {code}. No program serves this home: `steersman serve` starts one.")
        return 0
    link = f"{address}/#pair={code}"
    show(f"Open {link}\nor type the code {code} there. It is valid once, for ten minutes.\n")
    show(_picture(link))
    return 0


def _picture(text: str) -> str:
    """Draw a QR code, two rows of it in each line."""
    import segno

    drawn = StringIO()
    segno.make(text, error="l").terminal(drawn, compact=True)
    return drawn.getvalue()


@devices.command("list")
def show_all(as_json: Json = False) -> int:
    """List the devices.

    Example: steersman devices list
    """
    known = _file().known()
    if as_json:
        listed = [device.model_dump(exclude={"hash"}) for device in known.devices]
        show_document({"devices": listed})
        return 0
    rows = [
        [device.name, device.scope, f"{datetime.fromtimestamp(device.created):%Y-%m-%d %H:%M}"]
        for device in known.devices
    ]
    if rows:
        show_table(["device", "may", "since"], rows, os.environ)
    else:
        show("no device is paired; `steersman devices pair NAME` begins it")
    return 0


@devices.command()
def revoke(name: Name) -> int:
    """Shut a device out, at once.

    Example: steersman devices revoke phone
    """
    _file().revoke(name)
    show(f"{name} is shut out")
    return 0
