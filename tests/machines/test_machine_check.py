"""Faults planted in machines, and found."""

import importlib
import pkgutil
from typing import Any

import pytest

import steersman.machines
from steersman.machines.machine import Machine, State, Transition
from steersman.proofs.machine_check import MachineFault, check

A, B, Z = State(name="a", doc=""), State(name="b", doc=""), State(name="z", doc="", is_final=True)
X = State(name="x", doc="")


def row(event: str, source: str, dest: str | None = None, *guards: str, **more: Any) -> Transition:
    """Make a row of a machine; `more` are other fields of it."""
    return Transition(event=event, source=(source,), dest=dest, guards=guards, **more)


def machine(
    *rows: Transition,
    states: tuple[State, ...] = (A, B, Z),
    initial: str = "a",
    control: tuple[str, ...] = (),
) -> Machine:
    """Make a machine of three states in which planted rows stand behind sound ones."""
    sound = (row("go", "a", "b"), row("end", "b", "z"))
    return Machine(
        name="planted",
        doc="",
        initial=initial,
        states=states,
        transitions=(*sound, *rows),
        control=control,
    )


@pytest.mark.parametrize(
    ("faulty", "kind", "said"),
    [
        (machine(initial="q"), "unknown-initial", ["initial: `q` is not a declared state"]),
        (
            machine(row("hop", "q", "r")),
            "unknown-state",
            [
                "event `hop`: `q` is not a declared state",
                "event `hop`: `r` is not a declared state",
            ],
        ),
        (machine(states=(A, B, Z, B)), "duplicate-state", ["state `b`: declared more than once"]),
        (
            machine(row("hop", "x", "z"), states=(A, B, Z, X)),
            "unreachable",
            ["state `x`: no chain of events leads here from `a`"],
        ),
        (
            machine(row("hop", "a", "x"), row("hum", "x", "x"), states=(A, B, Z, X)),
            "dead-end",
            ["state `x`: not final, but no event leaves it"],
        ),
        (
            machine(row("rise", "z", "a")),
            "final-exit",
            ["state `z`: final, but `rise` leads to `a`"],
        ),
        (
            machine(
                row("hop", "a", "x"),
                row("to", "x", "y"),
                row("fro", "y", "x"),
                states=(A, B, Z, X, State(name="y", doc="")),
            ),
            "never-final",
            [
                "state `x`: no chain of events leads to a final state",
                "state `y`: no chain of events leads to a final state",
            ],
        ),
        (
            machine(row("hop", "a", "b", "fed", "!tired"), row("hop", "a", "b", "tired", "late")),
            "may-drop",
            [
                "state `a`, event `hop`: every row is guarded, and none passes when `fed` is "
                "false, `tired` is false"
            ],
        ),
        (
            machine(row("go", "a", "z", "fed")),
            "shadowed",
            [
                "state `a`, event `go`: row 2 to `z` can never apply: earlier rows match all "
                "its cases"
            ],
        ),
        (
            machine(
                row("hop", "a", "b", "fed"),
                row("hop", "a", "b", "!fed"),
                row("hop", "a", "z", "late"),
            ),
            "shadowed",
            [
                "state `a`, event `hop`: row 3 to `z` can never apply: earlier rows match all "
                "its cases"
            ],
        ),
        (
            machine(row("hop", "a", "b", "fed", "!fed"), row("hop", "a", "z")),
            "shadowed",
            [
                "state `a`, event `hop`: row 1 to `b` can never pass: its guards contradict "
                "each other"
            ],
        ),
        (
            machine(row("halt", "a", "z"), control=("halt",)),
            "unhandled-control",
            [
                "state `b`, event `halt`: a control event needs a row in every live state, if "
                "only an ignoring one"
            ],
        ),
        (
            machine(states=(A, State(name="b", doc="", timeout_event="late"), Z)),
            "timeout-unhandled",
            ["state `b`: times out with `late`, for which it has no row"],
        ),
        (
            machine(Transition(event="hop", source=("a", "b"), dest="z", ignored="no need")),
            "ignored-acts",
            ["event `hop`: ignored in `a`, `b`, but it has a target state or effects"],
        ),
    ],
)
def test_a_planted_fault_is_found(faulty: Machine, kind: str, said: list[str]) -> None:
    """The fault is found, alone, with its place and a sentence."""
    found = check(faulty)
    assert {(fault.machine, fault.kind) for fault in found} == {("planted", kind)}
    assert [f"{fault.where}: {fault.message}" for fault in found] == said


@pytest.mark.parametrize(
    "sound",
    [
        machine(),
        machine(row("rise", "z", ignored="it is over")),
        machine(row("hop", "a", "b", "fed"), row("hop", "a", "z", "!fed")),
        machine(row("hop", "a", "b", "fed"), row("hop", "a", ignored="no")),
        machine(
            row("hop", "a", "b", "fed", "!late"),
            row("hop", "a", "z", "late"),
            row("hop", "a", None, "!fed", effects=("rest",)),
        ),
        machine(
            row("halt", "a", "z"), row("halt", "b", ignored="it ends anyway"), control=("halt",)
        ),
        machine(states=(A, State(name="b", doc="", timeout_event="end"), Z)),
        Machine(
            name="endless",
            doc="",
            initial="a",
            states=(A, B),
            transitions=(row("to", "a", "b"), row("fro", "b", "a")),
        ),
    ],
)
def test_a_sound_machine_has_no_faults(sound: Machine) -> None:
    """Guards that together leave nothing out, ignoring rows and endless machines are in order."""
    assert check(sound) == ()


def test_every_shipped_machine_is_sound() -> None:
    """No machine that this program runs on has a fault."""
    rooms = pkgutil.iter_modules(steersman.machines.__path__, "steersman.machines.")
    modules = [importlib.import_module(room.name) for room in rooms]
    machines = {
        each.name: each
        for module in modules
        for each in vars(module).values()
        if isinstance(each, Machine)
    }
    assert len(machines) >= 6
    assert [fault for each in machines.values() for fault in check(each)] == []


def test_a_fault_reads_as_one_line() -> None:
    """A report needs no more than printing the faults."""
    fault = MachineFault(
        machine="door", kind="dead-end", where="state `open`", message="no event leads out"
    )
    assert str(fault) == "door: state `open`: no event leads out [dead-end]"
