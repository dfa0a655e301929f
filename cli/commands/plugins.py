"""`steersman plugins`: what installed packages add, and whether it can be used."""

from __future__ import annotations

import os
from typing import Any

from ...gateway.plugins import PlugInState, plug_in_states
from ...gateway.wording.redaction import Redactor
from ..options import Json, group
from ..output import show, show_document, show_table

plugins = group("List what installed packages add.", "steersman plugins list")


@plugins.command("list")
def plugins_list(as_json: Json = False) -> int:
    """Import everything that installed packages add, and list it; exits 1 if something is broken.

    Example: steersman plugins list
    """
    states = plug_in_states()
    redactor = Redactor(os.environ)
    if as_json:
        show_document({"plugins": [redactor.data(_view(state)) for state in states]})
    elif states:
        rows = [[redactor.line(cell) for cell in _row(state)] for state in states]
        show_table(("KIND", "NAME", "DISTRIBUTION", "VERSION", "STATE"), rows, os.environ)
        for state in states:
            if state.fault:
                error = state.plug_in.error(state.fault, state.hint)
                show(redactor.line(f"{error.message}; {error.hint}"))
    else:
        show("No installed package adds anything to steersman.")
    return 1 if any(state.fault for state in states) else 0


def _view(state: PlugInState) -> dict[str, Any]:
    return {
        "name": state.plug_in.name,
        "kind": state.kind,
        "distribution": state.plug_in.distribution,
        "version": state.plug_in.version,
        "place": state.plug_in.place,
        "state": "error" if state.fault else "ok",
        "error": state.fault or None,
        "hint": state.hint if state.fault else None,
    }


def _row(state: PlugInState) -> tuple[str, ...]:
    plug_in = state.plug_in
    return (
        state.kind,
        plug_in.name,
        plug_in.distribution,
        plug_in.version or "-",
        "error" if state.fault else "ok",
    )
