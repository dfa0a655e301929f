"""Everything that installed packages add to the program, and whether it can be used."""

from __future__ import annotations

import threading

from ..machines.errors import PlugInError
from ..machines.value import Value
from ..ports.hooks import HOOKS
from ..workflows.plugins import AGENTS, GATEWAYS, PREFIX, STORES, EntryPoints, PlugIn
from ..workflows.providers import PROVIDERS
from ..workflows.tools import TOOLS
from .commands import registry
from .commands.installed import INSTALLED

_IMPORT_TIMEOUT = 20.0  # seconds until an import that does not end is given up

GROUPS: tuple[EntryPoints, ...] = (
    TOOLS.entry_points,
    PROVIDERS.entry_points,
    AGENTS,
    INSTALLED,
    GATEWAYS,
    HOOKS,
    STORES,
)
"""The groups of entry points, in the order of docs/plugins.md."""


class PlugInState(Value):
    """One plug-in; `kind` is the last word of its group, `fault` is empty if it can be used."""

    kind: str
    plug_in: PlugIn
    fault: str = ""
    hint: str = ""


def plug_in_states() -> list[PlugInState]:
    """Import every plug-in, and return what each is; by kind and name."""
    assert registry.COMMANDS  # all built-in commands are declared: their names are taken
    return [_state(group, plug_in) for group in GROUPS for plug_in in group.plug_ins]


def _state(group: EntryPoints, plug_in: PlugIn) -> PlugInState:
    """Import one, in a thread that may be left behind."""
    faults: list[tuple[str, str]] = []

    def load() -> None:
        try:
            group.checked(plug_in)
        except PlugInError as error:
            faults.append((error.fault, error.hint))
        else:
            faults.append(("", ""))

    thread = threading.Thread(target=load, name="steersman-plug-in", daemon=True)
    thread.start()
    thread.join(_IMPORT_TIMEOUT)
    usual = plug_in.error("").hint
    fault, hint = (
        faults[0] if faults else (f"its import takes more than {_IMPORT_TIMEOUT:g} s", usual)
    )
    kind = group.group.removeprefix(PREFIX)
    return PlugInState(kind=kind, plug_in=plug_in, fault=fault, hint=hint)
