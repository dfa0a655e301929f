"""The data of a state machine, and nothing else.

A machine is declared once, as data. The shared `transitions.Machine`, the diagram, the static checks,
the tests and the docs are all made from it. See `step.py` for what it does with an event.

The shape is the field's (David Harel, "Statecharts", 1987; OTP's gen_statem; xstate): states, events,
guards, and effects that are asked for by name and performed by somebody else.
"""

from .value import Value


class State(Value):
    """One state; `timeout_event` is fired when the machine stays longer than its owner allows."""

    name: str
    doc: str
    is_final: bool = False
    timeout_event: str = ""


class Transition(Value):
    """What an event does in some states. The first row whose guards hold wins.

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
