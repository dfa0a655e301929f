"""Where each acknowledgement is true, and which messages never come: what the proofs hold a table to."""

from collections.abc import Mapping
from typing import Final

from ..machines.disposition import OVERTAKEN_INTENTS, WORDS, Action, Intent, Situation
from ..machines.value import Value

ACKNOWLEDGED: Final = (Action.QUEUE, Action.STEER, Action.INTERRUPT, Action.REFUSE)
"""Actions that are acknowledged to the sender; a turn that starts and a command are visible anyway."""


class AckUse(Value):
    """The cases in which an acknowledgement is true; an empty field allows every value.

    `is_for_turn`, `is_for_children`: the cause of the steer is given to the turn, or to some child.
    `spares_children`: the cause ends no child.
    """

    actions: tuple[Action, ...]
    intents: tuple[Intent, ...] = ()
    situations: tuple[Situation, ...] = ()
    is_for_turn: bool = False
    is_for_children: bool = False
    spares_children: bool = False


ACK_USES: Final[Mapping[str, AckUse]] = {
    "already_stopping": AckUse(actions=(Action.INTERRUPT,), situations=(Situation.INTERRUPTING,)),
    "finalizing": AckUse(actions=(Action.REFUSE,), situations=(Situation.FINALIZING,)),
    "interrupt_detected": AckUse(actions=(Action.INTERRUPT,), intents=WORDS),
    "interrupting": AckUse(actions=(Action.INTERRUPT,)),
    "next_after_stop": AckUse(actions=(Action.QUEUE,), situations=(Situation.INTERRUPTING,)),
    "not_yours": AckUse(actions=()),  # instead of a row's own, where the sender may not do that
    "next_turn": AckUse(actions=()),  # instead of a row's own: no row names it
    "queued": AckUse(actions=(Action.QUEUE,)),
    "refused": AckUse(actions=(Action.REFUSE,)),
    "revert_hint": AckUse(
        actions=(Action.RUN,), intents=(Intent.REVERT,), situations=(Situation.IDLE, Situation.HELD)
    ),
    "steered": AckUse(actions=(Action.STEER,), is_for_turn=True),
    "steered_child": AckUse(actions=(Action.STEER,), is_for_children=True),
    "stopped": AckUse(actions=(Action.QUEUE,), situations=(Situation.OVERTAKEN,)),
    "subagent_working": AckUse(actions=(Action.QUEUE,), situations=(Situation.DELEGATING,)),
    "word_interrupts": AckUse(actions=(Action.INTERRUPT,), intents=WORDS, spares_children=True),
    "word_queued": AckUse(actions=(Action.QUEUE,), intents=WORDS),
    "word_steered": AckUse(actions=(Action.STEER,), intents=WORDS),
}
"""The use of each acknowledgement: anywhere else it contradicts what is done."""

NEVER_SAID: Final[Mapping[tuple[Intent, Situation], str]] = {
    (intent, Situation.OVERTAKEN): "A stop overtakes only messages that wait or that start a turn."
    for intent in Intent
    if intent not in (*OVERTAKEN_INTENTS, Intent.COMMAND)
}
"""Combinations of intent and situation that never arise, and why."""
