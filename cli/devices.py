"""`steersman devices`: who may use the home's page and HTTP interface."""

from __future__ import annotations

import os
import time
from datetime import datetime
from io import StringIO
from typing import TYPE_CHECKING

from ..gateway.serving import address_of, server_of
from ..machines.errors import UsageError
from ..workflows.extras import how_to_install
from ..workflows.paths import Paths
from .output import show, show_document, show_table

if TYPE_CHECKING:
    from ..gateway.web.access import DeviceFile, Scope

LONGEST = 40


def _file() -> DeviceFile:
    try:
        from ..gateway.web.access import DeviceFile
    except ModuleNotFoundError as error:
        raise UsageError(
            f"devices need the package `{error.name}`", how_to_install("web")
        ) from error
    return DeviceFile(Paths.of(os.environ).state)


def pair(name: str, scope: str, *, is_token: bool) -> int:
    """Print a code for a browser, or the token of a program. Raises `UsageError`."""
    file = _file()
    from ..gateway.web.access import SCOPES

    wanted: Scope | None = next((known for known in SCOPES if known == scope), None)
    if wanted is None:
        raise UsageError(f"`{scope}` is no scope", f"there are {', '.join(SCOPES)}")
    if not name.strip() or not name.isprintable() or len(name) > LONGEST:
        raise UsageError(f"a name is one line of at most {LONGEST} characters", "choose another")
    now = time.time()
    if is_token:
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


def show_all(*, as_json: bool) -> int:
    """List the devices."""
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


def revoke(name: str) -> int:
    """Shut a device out, at once. Raises `UsageError`."""
    _file().revoke(name)
    show(f"{name} is shut out")
    return 0
