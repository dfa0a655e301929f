"""`steersman inspect`: a session's state from the store, also while another process runs it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..gateway.redaction import Redactor
from ..machines.errors import UsageError
from .page import show, show_document
from .stored import stored

__all__ = ["FORMATS", "inspect_stored"]

FORMATS = ("tree", "toml", "json")


def inspect_stored(environ: Mapping[str, str], session: str, form: str) -> int:
    """Print what every part of a session does, or did last. Raises `UsageError`."""
    if form not in FORMATS:
        raise UsageError(f"there is no format `{form}`", f"formats: {', '.join(FORMATS)}")
    from ..gateway.home import find_session
    from .dump import dump_session

    with stored(environ) as store:
        rows = store.sessions()
        data = dump_session(store, find_session(rows, session), rows)
    data = Redactor(environ).data(data)
    match form:
        case "json":
            show_document(data)
        case "toml":
            import tomli_w

            show(tomli_w.dumps(data).rstrip("\n"))
        case _:
            show(_tree(data))
    return 0


def _tree(data: dict[str, Any]) -> str:
    from ..gateway.tree import draw_session

    lines = [draw_session(data), "", _owner(data), "last transitions:"]
    for one in data["transitions"]:
        moved = f"{one['from'] or '(new)'} -> {one['to']}"
        lines.append(f"  {one['seq']:>5}  {one['time']}  {one['what']}: {moved}  ({one['cause']})")
    waits = {name: actor["waiting_for"] for name, actor in data["actors"].items()}
    lines += [f"{name} waits for {what}" for name, what in waits.items() if what]
    return "\n".join(lines)


def _owner(data: dict[str, Any]) -> str:
    owner = data.get("owner")
    return f"owned by process {owner['pid']}" if owner else "no live process owns it"
