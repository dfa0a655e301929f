"""`steersman plugins`: what installed packages add, and whether it can be used."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..gateway.plugins import PlugInState, plug_in_states
from ..gateway.wording.redaction import Redactor
from .output import show, show_document, show_table


def list_plug_ins(environ: Mapping[str, str], *, as_json: bool) -> int:
    """Import and print every plug-in; 1 if one cannot be used."""
    states = plug_in_states()
    redactor = Redactor(environ)
    if as_json:
        show_document({"plugins": [redactor.data(_view(state)) for state in states]})
    elif states:
        rows = [[redactor.line(cell) for cell in _row(state)] for state in states]
        show_table(("KIND", "NAME", "DISTRIBUTION", "VERSION", "STATE"), rows, environ)
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
