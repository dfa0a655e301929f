"""Faults planted in machines, and found."""

import importlib
import pkgutil

import pytest

import steersman.machines
from steersman.machines.check import MachineFault, check
from steersman.machines.machine import Machine, State, Transition


def machine(
    *rows: Transition,
    states: tuple[State, ...] = (State("a", ""), State("b", ""), State("z", "", is_final=True)),
    initial: str = "a",
    control: tuple[str, ...] = (),
) -> Machine:
    """Make a machine of three states in which planted rows stand behind sound ones."""
    sound = (Transition("go", ("a",), "b"), Transition("end", ("b",), "z"))
    return Machine("planted", "", initial, states, (*sound, *rows), control)


A, B, Z = State("a", ""), State("b", ""), State("z", "", is_final=True)
X = State("x", "")


@pytest.mark.parametrize(
    ("faulty", "expected"),
    [
        (
            machine(initial="q"),
            [("unknown-initial", "initial", "`q` is not a declared state")],
        ),
        (
            machine(Transition("hop", ("q",), "r")),
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
            machine(Transition("hop", ("x",), "z"), states=(A, B, Z, X)),
            [("unreachable", "state `x`", "no chain of events leads here from `a`")],
        ),
        (
            machine(
                Transition("hop", ("a",), "x"), Transition("hum", ("x",), "x"), states=(A, B, Z, X)
            ),
            [("dead-end", "state `x`", "not final, yet no event leads out of it")],
        ),
        (
            machine(Transition("rise", ("z",), "a")),
            [("final-exit", "state `z`", "final, yet `rise` leads to `a`")],
        ),
        (
            machine(
                Transition("hop", ("a",), "x"),
                Transition("to", ("x",), "y"),
                Transition("fro", ("y",), "x"),
                states=(A, B, Z, X, State("y", "")),
            ),
            [
                ("never-final", "state `x`", "no chain of events leads to a final state"),
                ("never-final", "state `y`", "no chain of events leads to a final state"),
            ],
        ),
        (
            machine(
                Transition("hop", ("a",), "b", ("fed", "!tired")),
                Transition("hop", ("a",), "b", ("tired", "late")),
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
            machine(Transition("go", ("a",), "z", ("fed",))),
            [
                (
                    "shadowed",
                    "state `a`, event `go`",
                    "row 2 to `z` can never win: earlier rows take all its cases",
                )
            ],
        ),
        (
            machine(
                Transition("hop", ("a",), "b", ("fed",)),
                Transition("hop", ("a",), "b", ("!fed",)),
                Transition("hop", ("a",), "z", ("late",)),
            ),
            [
                (
                    "shadowed",
                    "state `a`, event `hop`",
                    "row 3 to `z` can never win: earlier rows take all its cases",
                )
            ],
        ),
        (
            machine(
                Transition("hop", ("a",), "b", ("fed", "!fed")), Transition("hop", ("a",), "z")
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
            machine(Transition("halt", ("a",), "z"), control=("halt",)),
            [
                (
                    "unhandled-control",
                    "state `b`, event `halt`",
                    "a control event needs a row in every live state, if only an ignoring one",
                )
            ],
        ),
        (
            machine(states=(A, State("b", "", timeout_event="late"), Z)),
            [
                (
                    "timeout-unhandled",
                    "state `b`",
                    "times out with `late`, for which it has no row",
                )
            ],
        ),
        (
            machine(Transition("hop", ("a", "b"), "z", ignored="no need")),
            [
                (
                    "ignored-acts",
                    "event `hop`",
                    "ignored in `a`, `b`, yet it moves or asks for effects",
                )
            ],
        ),
    ],
)
def test_a_planted_fault_is_found(faulty: Machine, expected: list[tuple[str, str, str]]) -> None:
    """The fault is found, alone, with its place and a sentence."""
    assert check(faulty) == tuple(MachineFault("planted", *each) for each in expected)


@pytest.mark.parametrize(
    "sound",
    [
        machine(),
        machine(Transition("rise", ("z",), ignored="it is over")),
        machine(
            Transition("hop", ("a",), "b", ("fed",)), Transition("hop", ("a",), "z", ("!fed",))
        ),
        machine(Transition("hop", ("a",), "b", ("fed",)), Transition("hop", ("a",), ignored="no")),
        machine(
            Transition("hop", ("a",), "b", ("fed", "!late")),
            Transition("hop", ("a",), "z", ("late",)),
            Transition("hop", ("a",), None, ("!fed",), ("rest",)),
        ),
        machine(
            Transition("halt", ("a",), "z"),
            Transition("halt", ("b",), ignored="it ends anyway"),
            control=("halt",),
        ),
        machine(states=(A, State("b", "", timeout_event="end"), Z)),
        Machine(
            "endless",
            "",
            "a",
            (A, B),
            (Transition("to", ("a",), "b"), Transition("fro", ("b",), "a")),
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
    fault = MachineFault("door", "dead-end", "state `open`", "no event leads out")
    assert str(fault) == "door: state `open`: no event leads out [dead-end]"
