"""The deliveries of a cause to its recipients: the second routing table.

A cause arises at one session; each relation of that session then gets what its row says. A child
is a session, too, and uses the same table: a `cancel` that reaches it arises there as cause
`parent`, a `boundary` as `parent_boundary`, a `finalize` as `finalize`, a `steer` as `steer`. So what
reaches a child reaches its children by the same rows, and no code walks the tree.

Each cause is raised by the program, and asks for the relations of the session: `ASKED_BY` names the
places. A cell that nothing asks is in `NEVER_ASKED`, with the reason; a row may not promise anything
there (`route_check.py`).

A row that spares a recipient says why. A turn that is cancelled ends, which is a cause of its own
(`turn_ended`), and not one that stops another session.
"""

from collections.abc import Iterable, Iterator, Mapping
from enum import StrEnum
from typing import Final

from .routing import Row, Table, when


class Cause(StrEnum):
    """The origin of a delivery."""

    STOP = "stop"  # /stop, Esc, an explicit interrupt
    NEW = "new"  # /new
    BARE_WORD = "bare_word"  # a message of only interrupt words, or a revert
    MORE_WORD = "more_word"  # an interrupt word in a longer message
    MESSAGE = "message"  # a message that interrupts by the busy mode or the strategy
    SIGNAL = "signal"  # Ctrl-C, SIGTERM, SIGHUP
    TIMEOUT = "timeout"  # a child's time limit, at the child itself
    BUDGET = "budget"  # a session's limit of tokens, cost, time or model calls
    NO_PROGRESS = "no_progress"  # a turn repeats itself, and nobody lets it go on
    PROVIDER_LIMIT = "provider_limit"  # a provider takes no call before a time that it told
    PARENT = "parent"  # the parent cancels this session
    PARENT_BOUNDARY = "parent_boundary"  # the same, at the boundary of what runs here
    FINALIZE = "finalize"  # the session ends permanently
    TURN_ENDED = "turn_ended"  # a turn ended, for whatever reason
    STEER = "steer"  # a steer for the turn itself
    STEER_THROUGH = "steer_through"  # a steer for those the turn waits for
    STEER_NAMED = "steer_named"  # a steer for one child, by its name


EARLIER_SPELLINGS: Final = {"turn_start": "turn_started", "turn_end": Cause.TURN_ENDED.value}
"""Earlier spellings of causes and of the events of hooks, which files may contain."""


def current_spelling(word: str) -> str:
    """Return the current spelling of a cause or event; any other word is returned as it is."""
    return EARLIER_SPELLINGS.get(word, word)


class Relation(StrEnum):
    """The relation of a recipient to the session at which a cause arises."""

    SELF = "self"
    PARENT = "parent"
    FOREGROUND_CHILD = "foreground_child"
    DETACHED_CHILD = "detached_child"  # one in the foreground, declared to go on without its turn
    BACKGROUND_CHILD = "background_child"
    SIDE_TALK = "side_talk"
    SIBLING = "sibling"
    GOAL = "goal"


class Delivery(StrEnum):
    """The delivery to one recipient."""

    CANCEL = "cancel"  # the running turn ends now and can be resumed
    BOUNDARY = "boundary"  # the same when the tools that run have ended; a second one is now
    FINALIZE = "finalize"  # the session ends permanently
    STEER = "steer"  # the text, at the next boundary
    NONE = "none"


class DeliveryRow(Row):
    """One rule; `why` explains it, and must not be empty where a recipient is spared."""

    action: Delivery
    why: str


ENDS: Final = (Delivery.CANCEL, Delivery.BOUNDARY, Delivery.FINALIZE)
"""The deliveries that end a turn or a child."""

FINAL: Final = (Cause.NEW, Cause.FINALIZE)
"""Causes by which the session itself ends permanently."""

STEERS: Final = (Cause.STEER, Cause.STEER_THROUGH, Cause.STEER_NAMED)
"""The causes that carry a text; so does the cause that a route for a message brings."""

WAITED: Final = (Relation.FOREGROUND_CHILD, Relation.DETACHED_CHILD)
"""The children that a turn waits for."""
_CHILDREN: Final = (*WAITED, Relation.BACKGROUND_CHILD)
_BELOW: Final = (*_CHILDREN, Relation.SIDE_TALK)
_CANCELS: Final = (
    *(Cause.STOP, Cause.BARE_WORD, Cause.SIGNAL, Cause.PARENT, Cause.BUDGET, Cause.NO_PROGRESS),
)
_TALK: Final = (Cause.MESSAGE, Cause.MORE_WORD)

# fmt: off
DEFAULT_DELIVERIES: Final = Table(
    "deliveries",
    {"cause": tuple(Cause), "relation": tuple(Relation)},
    (
        DeliveryRow(name="never-up-or-aside",
            when=when(relation=(Relation.PARENT, Relation.SIBLING)),
            action=Delivery.NONE,
            why="A parent learns of it by the child's result; siblings are the parent's to decide."),
        DeliveryRow(name="declared-detached",
            when=when(cause=(Cause.STOP, Cause.BARE_WORD, Cause.NO_PROGRESS, Cause.TIMEOUT),
                 relation=Relation.DETACHED_CHILD),
            action=Delivery.NONE,
            why='`on_parent_interrupt = "detach"`: it goes on in the background, where the next stop '
                "ends it."),
        DeliveryRow(name="cancel-all",
            when=when(cause=_CANCELS, relation=(Relation.SELF, *_BELOW, Relation.GOAL)),
            action=Delivery.CANCEL,
            why="A stop applies to all work, including background children and the goal."),
        DeliveryRow(name="stop-at-boundary",
            when=when(cause=Cause.PARENT_BOUNDARY, relation=(Relation.SELF, *_CHILDREN)),
            action=Delivery.BOUNDARY,
            why="What runs ends first, and nothing more begins."),
        DeliveryRow(name="stop-beside",
            when=when(cause=Cause.PARENT_BOUNDARY, relation=(Relation.SIDE_TALK, Relation.GOAL)),
            action=Delivery.CANCEL,
            why="A side talk and a goal have no tool that has to end."),
        DeliveryRow(name="finalize-all",
            when=when(cause=FINAL, relation=(Relation.SELF, *_BELOW, Relation.GOAL)),
            action=Delivery.FINALIZE,
            why="Nothing continues after the end of its session."),
        DeliveryRow(name="timeout",
            when=when(cause=Cause.TIMEOUT, relation=(Relation.SELF, Relation.FOREGROUND_CHILD)),
            action=Delivery.CANCEL,
            why="The limit applies to the child and to the children that its turn waits for."),
        DeliveryRow(name="timeout-aside",
            when=when(cause=Cause.TIMEOUT, relation=(Relation.BACKGROUND_CHILD, Relation.SIDE_TALK)),
            action=Delivery.NONE,
            why="The child's turn does not wait for them, and they have their own limits."),
        DeliveryRow(name="timeout-goal",
            when=when(cause=Cause.TIMEOUT, relation=Relation.GOAL),
            action=Delivery.NONE,
            why="The child's goal ends with the child; the parent's is not reached."),
        DeliveryRow(name="talk-first",
            when=when(cause=_TALK, relation=Relation.GOAL),
            action=Delivery.NONE,
            why="The message runs first, then the goal continues."),
        DeliveryRow(name="stop-alone",
            when=when(cause=_TALK, relation=Relation.SELF),
            action=Delivery.CANCEL,
            why="The message runs next."),
        DeliveryRow(name="talk-spares",
            when=when(cause=_TALK, relation=_BELOW),
            action=Delivery.NONE,
            why="A converse message never stops a child."),
        DeliveryRow(name="turn-ended",
            when=when(cause=Cause.TURN_ENDED),
            action=Delivery.NONE,
            why="The end of a turn stops no child; its result arrives as a message."),
        DeliveryRow(name="provider-limit-goal",
            when=when(cause=Cause.PROVIDER_LIMIT, relation=Relation.GOAL),
            action=Delivery.CANCEL,
            why="Where the turn is to end, its goal pauses: another turn would meet the same limit."),
        DeliveryRow(name="provider-limit",
            when=when(cause=Cause.PROVIDER_LIMIT),
            action=Delivery.NONE,
            why="The turn asks again in time, as `limits.wait_minutes` allows."),
        DeliveryRow(name="steer",
            when=when(cause=Cause.STEER, relation=Relation.SELF),
            action=Delivery.STEER,
            why="It is delivered to the turn at its next boundary."),
        DeliveryRow(name="steer-through",
            when=when(cause=Cause.STEER_THROUGH, relation=WAITED),
            action=Delivery.STEER,
            why="It is delivered to all active children, or to the named one."),
        DeliveryRow(name="steer-named",
            when=when(cause=Cause.STEER_NAMED, relation=_BELOW),
            action=Delivery.STEER,
            why="It is delivered to the named child, whether the turn waits for it or not."),
        DeliveryRow(name="steer-elsewhere",
            when=when(cause=STEERS),
            action=Delivery.NONE,
            why="A steer is for one conversation, not for other recipients."),
    ),
)
# fmt: on


_NOT_UP: Final = "A parent learns of it by the child's result."
_NOT_ASIDE: Final = "Siblings belong to the parent, and the parent's own causes reach them."
_NO_GOAL: Final = "A goal receives no text; its turns do."

NEVER_ASKED: Final[Mapping[tuple[Cause, Relation], str]] = {
    **{(cause, Relation.PARENT): _NOT_UP for cause in Cause},
    **{(cause, Relation.SIBLING): _NOT_ASIDE for cause in Cause},
    **{(cause, Relation.GOAL): _NO_GOAL for cause in STEERS},
    (Cause.TURN_ENDED, Relation.SELF): "The turn has already ended.",
    (Cause.STEER_NAMED, Relation.SELF): "It names a child; `@parent` is the cause `steer`.",
    (Cause.STEER_THROUGH, Relation.SELF): "What no child takes in is the cause `steer`.",
}
"""The cells for which nothing asks at run time, and why; all others are asked."""

IN_A_HURRY: Final = (Cause.SIGNAL, Cause.FINALIZE, Cause.NEW, Cause.PARENT)
"""Causes for which a run does not let its steps end."""
BY_WORDS: Final = (Cause.BARE_WORD, Cause.MORE_WORD, Cause.MESSAGE)
"""Causes for which `interrupt_at` decides when they take effect."""


def in_force(
    table: Table[DeliveryRow], interrupt_at: str = "now", is_run: bool = False
) -> Table[DeliveryRow]:
    """Return a table with the rows that a session's settings put in front of it.

    `interrupt_at` "boundary": a stop by words lets the tools of the turn and of its children end. A run
    (`is_run`) lets its steps end, unless the cause is in a hurry.
    """
    rows: list[DeliveryRow] = []
    if interrupt_at == "boundary":
        why = '`interrupt_at = "boundary"`: what runs ends first.'
        rows += _patient_rows("interrupt-at-boundary", table, BY_WORDS, _CHILDREN, why)
    if is_run:
        causes = [cause for cause in table.space["cause"] if cause not in IN_A_HURRY]
        rows += _patient_rows("run-lets-end", table, causes, (), "A run lets its steps end.")
    return table.override(rows) if rows else table


def _patient_rows(
    name: str,
    table: Table[DeliveryRow],
    causes: Iterable[str],
    children: tuple[Relation, ...],
    why: str,
) -> Iterator[DeliveryRow]:
    """Give rows that let what runs end, for the session and its children, where the table cancels."""
    for number, relation in enumerate((Relation.SELF, *children)):
        patient = tuple(
            cause for cause in causes if deliver(table, cause, relation).action is Delivery.CANCEL
        )
        if patient:
            yield DeliveryRow(
                name=f"{name}-{number}" if number else name,
                when=when(cause=patient, relation=relation),
                action=Delivery.BOUNDARY,
                why=why,
            )


def never_asked(cause: str, relation: str) -> str:
    """Say why nothing asks for a cell at run time; empty for one that is asked."""
    known = Cause.STOP if cause not in tuple(Cause) else Cause(cause)
    return NEVER_ASKED.get((known, Relation(relation)), "")


def deliver(table: Table[DeliveryRow], cause: str, relation: str) -> DeliveryRow:
    """Return what a relation gets from a cause; raises `MachineError` for an unknown value."""
    return table.decide((cause, relation))
