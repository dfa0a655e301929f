"""Static checks of a machine: faults that are found without running it.

Every check reads the rows only. `check` returns all faults, in the order of the rules below; a
machine without faults gives the empty tuple. Guards are taken exactly, not guessed: an event whose
rows are all guarded is a fault only if some set of facts passes none of them, and the message names
such a set.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence

from ..machines.machine import Machine, Transition
from ..machines.value import Value


class MachineFault(Value):
    """One finding: `kind` is a fixed word per rule, `where` the place, `message` a sentence.

    `hint` names the next step, where the message does not imply it.
    """

    machine: str
    kind: str
    where: str
    message: str
    hint: str = ""

    def __str__(self) -> str:
        """Read as one line of a report."""
        return f"{self.machine}: {self.where}: {self.message} [{self.kind}]"


def check(machine: Machine) -> tuple[MachineFault, ...]:
    """Find everything that is wrong with a machine; unknown states are reported alone.

    The other rules follow the rows from state to state, so they wait until all states are known.
    """
    names = _faults(machine, (_undeclared_states, _duplicate_states))
    return names or _faults(
        machine,
        (
            _unreachable_states,
            _dead_ends,
            _exits_from_final_states,
            _states_that_never_finish,
            _events_that_may_drop,
            _shadowed_rows,
            _unhandled_control_events,
            _timeouts_without_row,
            _ignored_rows_that_act,
        ),
    )


Finding = tuple[str, str, str]
Rule = Callable[[Machine], Iterable[Finding]]


def _faults(machine: Machine, rules: Sequence[Rule]) -> tuple[MachineFault, ...]:
    return tuple(
        MachineFault(machine=machine.name, kind=kind, where=where, message=message)
        for rule in rules
        for kind, where, message in rule(machine)
    )


def _undeclared_states(machine: Machine) -> Iterator[Finding]:
    declared = {state.name for state in machine.states}
    if machine.initial not in declared:
        yield "unknown-initial", "initial", f"`{machine.initial}` is not a declared state"
    for row in machine.transitions:
        for name in (*row.source, *([row.dest] if row.dest is not None else [])):
            if name not in declared:
                yield "unknown-state", f"event `{row.event}`", f"`{name}` is not a declared state"


def _duplicate_states(machine: Machine) -> Iterator[Finding]:
    seen = set[str]()
    for state in machine.states:
        if state.name in seen:
            yield "duplicate-state", f"state `{state.name}`", "declared more than once"
        seen.add(state.name)


def _unreachable_states(machine: Machine) -> Iterator[Finding]:
    reached = _closure([machine.initial], _next_states(machine))
    for state in machine.states:
        if state.name not in reached:
            yield (
                "unreachable",
                f"state `{state.name}`",
                f"no chain of events leads here from `{machine.initial}`",
            )


def _dead_ends(machine: Machine) -> Iterator[Finding]:
    following = _next_states(machine)
    for name in machine.live:
        if not following[name] - {name}:
            yield "dead-end", f"state `{name}`", "not final, but no event leaves it"


def _exits_from_final_states(machine: Machine) -> Iterator[Finding]:
    for row in machine.transitions:
        for name in row.source:
            if name in machine.final and row.dest is not None:
                message = f"final, but `{row.event}` leads to `{row.dest}`"
                yield "final-exit", f"state `{name}`", message


def _states_that_never_finish(machine: Machine) -> Iterator[Finding]:
    if not machine.final:
        return
    following = _next_states(machine)
    for name in machine.live:
        if following[name] - {name} and not _closure([name], following) & machine.final:
            yield "never-final", f"state `{name}`", "no chain of events leads to a final state"


def _events_that_may_drop(machine: Machine) -> Iterator[Finding]:
    for (state, event), rows in _rows_by_place(machine).items():
        missed = _missed([row.guards for row in rows], {})
        if missed is not None:
            yield (
                "may-drop",
                f"state `{state}`, event `{event}`",
                f"every row is guarded, and none passes when {_facts_in_words(missed)}",
            )


def _shadowed_rows(machine: Machine) -> Iterator[Finding]:
    for (state, event), rows in _rows_by_place(machine).items():
        for index, row in enumerate(rows):
            where = f"state `{state}`, event `{event}`"
            told = f"row {index + 1} to `{row.dest or state}`"
            facts = {guard.lstrip("!"): not guard.startswith("!") for guard in row.guards}
            if _left(row.guards, facts) is None:
                yield "shadowed", where, f"{told} can never pass: its guards contradict each other"
            elif index and _missed([earlier.guards for earlier in rows[:index]], facts) is None:
                yield "shadowed", where, f"{told} can never apply: earlier rows match all its cases"


def _unhandled_control_events(machine: Machine) -> Iterator[Finding]:
    places = _rows_by_place(machine)
    for event in machine.control:
        for state in machine.live:
            if (state, event) not in places:
                yield (
                    "unhandled-control",
                    f"state `{state}`, event `{event}`",
                    "a control event needs a row in every live state, if only an ignoring one",
                )


def _timeouts_without_row(machine: Machine) -> Iterator[Finding]:
    places = _rows_by_place(machine)
    for state in machine.states:
        if state.timeout_event and (state.name, state.timeout_event) not in places:
            message = f"times out with `{state.timeout_event}`, for which it has no row"
            yield "timeout-unhandled", f"state `{state.name}`", message


def _ignored_rows_that_act(machine: Machine) -> Iterator[Finding]:
    for row in machine.transitions:
        if row.ignored and (row.dest is not None or row.effects):
            message = (
                f"ignored in `{'`, `'.join(row.source)}`, but it has a target state or effects"
            )
            yield "ignored-acts", f"event `{row.event}`", message


def _next_states(machine: Machine) -> dict[str, set[str]]:
    """Map each state to those that some event leads to, guards aside."""
    following: dict[str, set[str]] = {state.name: set() for state in machine.states}
    for row in machine.transitions:
        if row.dest is not None:
            for name in row.source:
                following[name].add(row.dest)
    return following


def _closure(start: Iterable[str], following: dict[str, set[str]]) -> set[str]:
    """Follow the map until nothing new appears; `start` belongs to the result."""
    reached = set(start)
    waiting = list(reached)
    while waiting:
        new = following[waiting.pop()] - reached
        reached |= new
        waiting += new
    return reached


def _rows_by_place(machine: Machine) -> dict[tuple[str, str], list[Transition]]:
    """Group the rows by state and event, each group in the order in which rows are tried."""
    places: dict[tuple[str, str], list[Transition]] = {}
    for row in machine.transitions:
        for state in row.source:
            places.setdefault((state, row.event), []).append(row)
    return places


def _missed(rows: Sequence[Sequence[str]], facts: dict[str, bool]) -> dict[str, bool] | None:
    """Find facts, beyond the given ones, under which none of the guard lists holds; or none.

    Decides one guard after the other and drops the rows that the decision rules out.
    """
    open_rows = [left for guards in rows if (left := _left(guards, facts)) is not None]
    if not open_rows:
        return facts
    if not all(open_rows):
        return None
    name = open_rows[0][0].lstrip("!")
    for value in (False, True):
        found = _missed(rows, {**facts, name: value})
        if found is not None:
            return found
    return None


def _left(guards: Sequence[str], facts: dict[str, bool]) -> list[str] | None:
    """List the guards that the facts leave open; none if the facts contradict one."""
    left: list[str] = []
    for guard in guards:
        wanted, name = not guard.startswith("!"), guard.lstrip("!")
        if name not in facts:
            left.append(guard)
        elif facts[name] is not wanted:
            return None
    return left


def _facts_in_words(facts: dict[str, bool]) -> str:
    """Read a set of facts aloud."""
    return ", ".join(f"`{name}` is {str(value).lower()}" for name, value in facts.items())
