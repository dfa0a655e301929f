"""State machines: how one is declared, and what an event does in it.

A machine is declared once, as data. The shared `transitions.Machine`, the diagram, the static checks,
the tests and the docs are all made from it. The shape is the field's (David Harel, "Statecharts", 1987;
OTP's gen_statem; xstate): states, events, guards, and effects that a step names and its owner performs.

A step is pure. An event that is not accepted is a `Refusal`, which is an answer and changes nothing.
Since the space of states, events and facts is finite, each answer is worked out once, through
`transitions`, and then looked up.
"""

from collections.abc import Callable, Mapping
from collections.abc import Set as AbstractSet
from typing import Final

import transitions
from msgspec import Struct

from .errors import MachineError
from .value import Value


class State(Value):
    """One state; `timeout_event` is fired when the machine stays longer than its owner allows."""

    name: str
    doc: str
    is_final: bool = False
    timeout_event: str = ""


class Transition(Value):
    """A row: the effect of an event in some states. The first row whose guards hold wins.

    `dest` none means internal: the state stays. `guards` must all be among the facts that come with
    the event; one that begins with `!` must not be. `effects` are names that the owner carries out.
    `ignored` says why nothing happens: an ignored event is an answer, not an accident.
    """

    event: str
    source: tuple[str, ...]
    dest: str | None = None
    guards: tuple[str, ...] = ()
    effects: tuple[str, ...] = ()
    ignored: str = ""


class Machine(Value):
    """A whole machine; `control` events must be handled or ignored in every live state."""

    name: str
    doc: str
    initial: str
    states: tuple[State, ...]
    transitions: tuple[Transition, ...]
    control: tuple[str, ...] = ()

    @property
    def events(self) -> tuple[str, ...]:
        """All events, in the order in which they first appear."""
        return tuple(dict.fromkeys(row.event for row in self.transitions))

    @property
    def final(self) -> frozenset[str]:
        """Names of the final states."""
        return frozenset(state.name for state in self.states if state.is_final)

    @property
    def live(self) -> tuple[str, ...]:
        """Names of the states that are not final, as declared."""
        return tuple(state.name for state in self.states if not state.is_final)


# Steps --------------------------------------------------------------------------------------------
# The rows of a `Machine` become a flat `transitions.Machine`, built once for each machine and
# shared by all that are in one of its states. Nothing is ever attached to it (`add_model` costs
# kilobytes a model): an event is fired on a throw-away slotted model that holds the state.
#
# The shared machine keeps no state between steps, so steps of different threads do not meet; two
# threads that build the same machine at once build it twice, and one copy stays.


class Step(Value):
    """An accepted event: the state afterwards and the effects asked for, in order.

    `ignored` says why, where the machine declares that the event does nothing there.
    """

    state: str
    effects: tuple[str, ...] = ()
    ignored: str = ""
    changed: bool = False


class Refusal(Value):
    """An event that was not accepted: nothing has changed; `reason` is a sentence for people."""

    machine: str
    state: str
    event: str
    reason: str


class _Model:
    """The model that `transitions` moves: a state, and the row that moved it."""

    __slots__ = ("row", "state")

    def __init__(self, state: str) -> None:
        self.state = state
        self.row: Transition | None = None


_CAPACITY: Final = 256
"""Machines kept compiled; declared ones are a dozen, generated ones (in tests) may be many."""

_ANSWERS: Final = 4096
"""Answers kept for a machine; the declared ones have a few hundred combinations each."""

Question = tuple[str, str, frozenset[str]]


class _Engine(Struct, kw_only=True):
    """A compiled machine and its answers; `machine` keeps its id from being used again."""

    machine: Machine
    shared: transitions.Machine
    answers: dict[Question, "Step | Refusal"]


# Keyed by identity, since hashing a whole machine costs more than a step.
_COMPILED: Final[dict[int, _Engine]] = {}


def step(
    machine: Machine, state: str, event: str, facts: AbstractSet[str] = frozenset()
) -> Step | Refusal:
    """Say what `event` does in `state`, given the facts that the guards ask about.

    Refuses whatever is not accepted: an unknown state or event, one that has no row in this state,
    one whose guards all fail. Raises `MachineError` only for a machine that could not be built.
    """
    engine = _engine(machine)
    question = (state, event, frozenset(facts))
    answer = engine.answers.get(question)
    if answer is None:
        answer = _work_out(machine, engine.shared, *question)
        if len(engine.answers) < _ANSWERS:
            engine.answers[question] = answer
    return answer


def _work_out(
    machine: Machine, shared: transitions.Machine, state: str, event: str, facts: frozenset[str]
) -> Step | Refusal:
    """Fire the event on a throw-away model."""
    fired = shared.events.get(event)
    if fired is None or state not in fired.transitions:
        return Refusal(
            machine=machine.name,
            state=state,
            event=event,
            reason=_unaccepted(machine, state, event),
        )
    model = _Model(state)
    fired.trigger(model, facts=facts)
    row = model.row
    if row is None:
        return Refusal(
            machine=machine.name, state=state, event=event, reason=_unguarded(machine, state, event)
        )
    return Step(
        state=model.state, effects=row.effects, ignored=row.ignored, changed=model.state != state
    )


def compiled(machine: Machine) -> transitions.Machine:
    """Return the shared `transitions.Machine` of these rows; do not add models to it.

    Raises `MachineError` if a row names a state that is not declared.
    """
    return _engine(machine).shared


def _engine(machine: Machine) -> _Engine:
    known = _COMPILED.get(id(machine))
    if known is not None:
        return known
    if len(_COMPILED) >= _CAPACITY:
        _COMPILED.clear()
    engine = _Engine(machine=machine, shared=_build(machine), answers={})
    _COMPILED[id(machine)] = engine
    return engine


def _build(machine: Machine) -> transitions.Machine:
    """Translate the rows: guards become conditions, the row that fires is left on the model."""
    _require_known_states(machine)
    engine = transitions.Machine(
        model=None,
        name=machine.name,
        states=[
            transitions.State(name=state.name, final=state.is_final) for state in machine.states
        ],
        initial=machine.initial,
        auto_transitions=False,
        send_event=True,
        queued=False,
        model_attribute="state",
    )
    for row in machine.transitions:
        engine.add_transition(
            row.event,
            list(row.source),
            row.dest,
            conditions=_condition(row) if row.guards else None,
            before=_marker(row),
        )
    return engine


def _require_known_states(machine: Machine) -> None:
    """Refuse to build what `transitions` would only trip over when the row fires."""
    declared = {state.name for state in machine.states}
    named = {machine.initial: "`initial`"}
    for row in machine.transitions:
        if row.event == "state":
            raise MachineError(f"machine `{machine.name}`: no event may be called `state`")
        for name in (*row.source, row.dest or machine.initial):
            named.setdefault(name, f"event `{row.event}`")
    for name, where in named.items():
        if name not in declared:
            raise MachineError(
                f"machine `{machine.name}`: {where} names the undeclared state `{name}`",
                f"Declare `{name}`, or use one of: {', '.join(sorted(declared))}.",
            )


def _condition(row: Transition) -> Callable[[transitions.EventData], bool]:
    """Make one predicate of all guards of a row."""
    required = frozenset(guard for guard in row.guards if not guard.startswith("!"))
    barred = frozenset(guard[1:] for guard in row.guards if guard.startswith("!"))

    def holds(data: transitions.EventData) -> bool:
        facts: AbstractSet[str] = data.kwargs["facts"]
        return required <= facts and barred.isdisjoint(facts)

    return holds


def _marker(row: Transition) -> Callable[[transitions.EventData], None]:
    """Make the callback by which the firing row is known afterwards."""

    def mark(data: transitions.EventData) -> None:
        assert isinstance(data.model, _Model)
        data.model.row = row

    return mark


def _unaccepted(machine: Machine, state: str, event: str) -> str:
    """Say why no row of the machine is even tried."""
    if all(known.name != state for known in machine.states):
        return f"`{machine.name}` has no state `{state}`"
    if event not in machine.events:
        return f"`{machine.name}` has no event `{event}`"
    if state in machine.final:
        return f"`{machine.name}` is `{state}`, which is final: `{event}` is not accepted"
    accepted = dict.fromkeys(row.event for row in machine.transitions if state in row.source)
    named = ", ".join(f"`{name}`" for name in accepted) or "nothing"
    return f"`{machine.name}` does not accept `{event}` while `{state}`; it accepts {named}"


def _unguarded(machine: Machine, state: str, event: str) -> str:
    """Say which guards would have let the event through."""
    rows = [row for row in machine.transitions if row.event == event and state in row.source]
    wanted = ", or ".join(" and ".join(_in_words(guard) for guard in row.guards) for row in rows)
    return f"`{machine.name}` accepts `{event}` while `{state}` only if {wanted}"


def _in_words(guard: str) -> str:
    """Read a guard aloud."""
    return f"not `{guard[1:]}`" if guard.startswith("!") else f"`{guard}`"


def perform(
    machine: Machine, effects: tuple[str, ...], performers: Mapping[str, Callable[..., None]]
) -> Callable[..., None]:
    """Return a function that performs these effects, in order, each with the arguments it is given.

    Raises `MachineError` for an effect that `performers` does not know: nothing is done then.
    """
    for name in effects:
        if name not in performers:
            known = ", ".join(sorted(performers))
            raise MachineError(
                f"machine `{machine.name}`: nothing performs the effect `{name}`",
                f"There are: {known}.",
            )

    def all_of_them(*arguments: object) -> None:
        for name in effects:
            performers[name](*arguments)

    return all_of_them
