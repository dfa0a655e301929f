"""Faults planted in machines, and found."""

import importlib
import pkgutil

import pytest

import steersman.machines
from steersman.machines.machine import Machine, State, Transition
from steersman.proofs.machine_check import MachineFault, check


def machine(
    *rows: Transition,
    states: tuple[State, ...] = (
        State(name="a", doc=""),
        State(name="b", doc=""),
        State(name="z", doc="", is_final=True),
    ),
    initial: str = "a",
    control: tuple[str, ...] = (),
) -> Machine:
    """Make a machine of three states in which planted rows stand behind sound ones."""
    sound = (
        Transition(event="go", source=("a",), dest="b"),
        Transition(event="end", source=("b",), dest="z"),
    )
    return Machine(
        name="planted",
        doc="",
        initial=initial,
        states=states,
        transitions=(*sound, *rows),
        control=control,
    )


A, B, Z = State(name="a", doc=""), State(name="b", doc=""), State(name="z", doc="", is_final=True)
X = State(name="x", doc="")


@pytest.mark.parametrize(
    ("faulty", "expected"),
    [
        (
            machine(initial="q"),
            [("unknown-initial", "initial", "`q` is not a declared state")],
        ),
        (
            machine(Transition(event="hop", source=("q",), dest="r")),
            [
                ("unknown-state", "event `hop`", "`q` is not a declared state"),
                ("unknown-state", "event `hop`", "`r` is not a declared state"),
            ],
        ),
        (
            machine(states=(A, B, Z, B)),
            [("duplicate-state", "state `b`", "declared more than once")],
        ),
        (
            machine(Transition(event="hop", source=("x",), dest="z"), states=(A, B, Z, X)),
            [("unreachable", "state `x`", "no chain of events leads here from `a`")],
        ),
        (
            machine(
                Transition(event="hop", source=("a",), dest="x"),
                Transition(event="hum", source=("x",), dest="x"),
                states=(A, B, Z, X),
            ),
            [("dead-end", "state `x`", "not final, but no event leaves it")],
        ),
        (
            machine(Transition(event="rise", source=("z",), dest="a")),
            [("final-exit", "state `z`", "final, but `rise` leads to `a`")],
        ),
        (
            machine(
                Transition(event="hop", source=("a",), dest="x"),
                Transition(event="to", source=("x",), dest="y"),
                Transition(event="fro", source=("y",), dest="x"),
                states=(A, B, Z, X, State(name="y", doc="")),
            ),
            [
                ("never-final", "state `x`", "no chain of events leads to a final state"),
                ("never-final", "state `y`", "no chain of events leads to a final state"),
            ],
        ),
        (
            machine(
                Transition(event="hop", source=("a",), dest="b", guards=("fed", "!tired")),
                Transition(event="hop", source=("a",), dest="b", guards=("tired", "late")),
            ),
            [
                (
                    "may-drop",
                    "state `a`, event `hop`",
                    "every row is guarded, and none passes when `fed` is false, `tired` is false",
                )
            ],
        ),
        (
            machine(Transition(event="go", source=("a",), dest="z", guards=("fed",))),
            [
                (
                    "shadowed",
                    "state `a`, event `go`",
                    "row 2 to `z` can never apply: earlier rows match all its cases",
                )
            ],
        ),
        (
            machine(
                Transition(event="hop", source=("a",), dest="b", guards=("fed",)),
                Transition(event="hop", source=("a",), dest="b", guards=("!fed",)),
                Transition(event="hop", source=("a",), dest="z", guards=("late",)),
            ),
            [
                (
                    "shadowed",
                    "state `a`, event `hop`",
                    "row 3 to `z` can never apply: earlier rows match all its cases",
                )
            ],
        ),
        (
            machine(
                Transition(event="hop", source=("a",), dest="b", guards=("fed", "!fed")),
                Transition(event="hop", source=("a",), dest="z"),
            ),
            [
                (
                    "shadowed",
                    "state `a`, event `hop`",
                    "row 1 to `b` can never pass: its guards contradict each other",
                )
            ],
        ),
        (
            machine(Transition(event="halt", source=("a",), dest="z"), control=("halt",)),
            [
                (
                    "unhandled-control",
                    "state `b`, event `halt`",
                    "a control event needs a row in every live state, if only an ignoring one",
                )
            ],
        ),
        (
            machine(states=(A, State(name="b", doc="", timeout_event="late"), Z)),
            [
                (
                    "timeout-unhandled",
                    "state `b`",
                    "times out with `late`, for which it has no row",
                )
            ],
        ),
        (
            machine(Transition(event="hop", source=("a", "b"), dest="z", ignored="no need")),
            [
                (
                    "ignored-acts",
                    "event `hop`",
                    "ignored in `a`, `b`, but it has a target state or effects",
                )
            ],
        ),
    ],
)
def test_a_planted_fault_is_found(faulty: Machine, expected: list[tuple[str, str, str]]) -> None:
    """The fault is found, alone, with its place and a sentence."""
    assert check(faulty) == tuple(
        MachineFault(machine="planted", kind=kind, where=where, message=message)
        for kind, where, message in expected
    )


@pytest.mark.parametrize(
    "sound",
    [
        machine(),
        machine(Transition(event="rise", source=("z",), ignored="it is over")),
        machine(
            Transition(event="hop", source=("a",), dest="b", guards=("fed",)),
            Transition(event="hop", source=("a",), dest="z", guards=("!fed",)),
        ),
        machine(
            Transition(event="hop", source=("a",), dest="b", guards=("fed",)),
            Transition(event="hop", source=("a",), ignored="no"),
        ),
        machine(
            Transition(event="hop", source=("a",), dest="b", guards=("fed", "!late")),
            Transition(event="hop", source=("a",), dest="z", guards=("late",)),
            Transition(event="hop", source=("a",), dest=None, guards=("!fed",), effects=("rest",)),
        ),
        machine(
            Transition(event="halt", source=("a",), dest="z"),
            Transition(event="halt", source=("b",), ignored="it ends anyway"),
            control=("halt",),
        ),
        machine(states=(A, State(name="b", doc="", timeout_event="end"), Z)),
        Machine(
            name="endless",
            doc="",
            initial="a",
            states=(A, B),
            transitions=(
                Transition(event="to", source=("a",), dest="b"),
                Transition(event="fro", source=("b",), dest="a"),
            ),
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
