"""`steersman machines`: shows and checks the program's state machines."""

from __future__ import annotations

import os
from typing import Annotated, Any

from msgspec.structs import asdict

from ...machines.catalogue import MACHINES
from ...machines.errors import UsageError
from ...workflows.problem import did_you_mean
from ..options import Json, argument, group, option
from ..output import show, show_document, show_either, toml_document, warn

FORMATS = ("mermaid", "svg", "toml")

machines = group("machines", "steersman machines show turn")


@machines.command("list")
def machines_list(as_json: Json = False) -> None:
    """List the machines.

    Example: steersman machines list
    """
    views, lines, width = list[dict[str, Any]](), list[str](), max(map(len, MACHINES))
    for machine in MACHINES.values():
        states = [state.name for state in machine.states]
        view = {
            "name": machine.name,
            "doc": machine.doc,
            "initial": machine.initial,
            "states": states,
            "final": sorted(machine.final),
            "events": list(machine.events),
            "control": list(machine.control),
        }
        views.append(view)
        lines.append(f"{machine.name:<{width}}  {machine.doc}")
        lines.append(f"{'':<{width}}  {', '.join(states)}")
    show_either({"machines": views}, "\n".join(lines), as_json)


@machines.command("show")
def machines_show(
    name: Annotated[str, argument("NAME", "A machine; `steersman machines list` names them.")],
    form: Annotated[str, option("FORMAT", "mermaid, svg or toml.", "--format")] = "mermaid",
    session: Annotated[str, option("ID", "Highlight the state of a session.")] = "",
) -> None:
    """Print a machine as a diagram or as data.

    Example: steersman machines show turn
    """
    if form not in FORMATS:
        raise UsageError(f"there is no format `{form}`", f"formats: {', '.join(FORMATS)}")
    machine = MACHINES.get(name)
    if machine is None:
        hint = did_you_mean(name, MACHINES, f"known: {', '.join(MACHINES)}")
        raise UsageError(f"there is no machine `{name}`", hint)
    current = _current(name, session) if session else ()
    if form == "mermaid":
        from ...proofs.picture import mermaid

        show(mermaid(machine, *current).rstrip("\n"))
    elif form == "svg":
        from ...proofs.picture import picture

        show(picture(machine, *current).rstrip("\n"))
    else:
        # As it is declared, without empty fields: TOML has no null.
        head = {name: getattr(machine, name) for name in ("name", "doc", "initial", "control")}
        states = [_filled(asdict(state)) for state in machine.states]
        rows = [_filled(asdict(row)) for row in machine.transitions]
        highlighted = {"current": list(current)} if session else {}
        data = {**head, "state": states, "transition": rows, **highlighted}
        show(toml_document(data))


def _current(machine: str, session: str) -> tuple[str, ...]:
    """Return the states of a session's parts of this kind; of items, those in the queue."""
    from ...gateway.home.home import named_session
    from ...journal.history import record_at
    from ..stored import stored

    with stored(os.environ) as store:
        row = named_session(store, session)
        record = record_at(store, row.session, row.seq)
    turn = record.turns.get(record.turn)
    states: dict[str, list[str]] = {
        "session": [record.state],
        "queue": [record.queue.state],
        "item": [item.state for item in record.queue.live()],
        "turn": [turn.state] if turn else [],
        "call": [call.state for call in turn.calls.values()] if turn else [],
        "interrupt": [interrupt.state for interrupt in record.stops.values()][-1:],
        "subagent": [child.state for child in record.children.values()],
        "goal": [record.goals.goal.state] if record.goals.goal else [],
        "revert": [revert.state for revert in record.reverts.values()][-1:],
    }
    return tuple(dict.fromkeys(states.get(machine, [])))


@machines.command("check")
def machines_check(as_json: Json = False) -> int:
    """Check all machines: dead ends, unreachable states, unhandled control events.

    Example: steersman machines check
    """
    from ...proofs.machine_check import check

    checked = [(machine, [str(fault) for fault in check(machine)]) for machine in MACHINES.values()]
    if as_json:
        show_document(
            {
                "machines": [
                    {
                        "name": machine.name,
                        "states": len(machine.states),
                        "rows": len(machine.transitions),
                        "faults": faults,
                    }
                    for machine, faults in checked
                ]
            }
        )
    for machine, faults in checked if not as_json else ():
        size = f"{len(machine.states)} states, {len(machine.transitions)} rows"
        show(f"{machine.name}: {size}: {f'{len(faults)} faults' if faults else 'ok'}")
        for fault in faults:
            warn(fault)
    return 2 if any(faults for _, faults in checked) else 0


def _filled(data: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in data.items() if value not in (None, "", (), False)}
