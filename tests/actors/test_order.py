"""Between two turns nothing runs: what is said then follows what waits, unless that is held."""

from types import SimpleNamespace
from typing import Any

import pytest

from steersman.actors.decisions.routing import route
from steersman.journal import entries as e
from steersman.journal.record import SessionRecord, apply
from steersman.machines import protocol as m
from steersman.machines.conversation import ChatMessage
from steersman.machines.disposition import DEFAULT_DISPOSITIONS, Intent
from steersman.machines.policy import Policy

FIRST = ChatMessage(role="user", text="first")
ENDED = (
    e.SessionOpened(session="s", folder="/", agent="a", model="m", system="", tools=()),
    e.Queued(item="m1", number=1, said=m.Said(text="first"), is_next=True),
    e.TurnStarted(turn="t1", item="m1", number=1, epoch=1, messages=(FIRST,)),
    e.Queued(item="m2", number=2, said=m.Said(text="second"), routed=m.Routed(said_as="queue")),
    e.ModelCalled(turn="t1", step=1),
    e.Answered(turn="t1", step=1, messages=(ChatMessage(role="assistant", text="done"),)),
    e.TurnEnded(turn="t1", status="completed"),
)


@pytest.mark.parametrize(
    ("more", "goes_first"),
    [((), False), ((e.QueueHeld(why="interrupt"),), True), ((e.Withdrawn(item="m2"),), True)],
    ids=["waits", "held", "nothing waits"],
)
@pytest.mark.parametrize("intent", [Intent.CONVERSE, Intent.EXPLICIT_QUEUE, Intent.EXPLICIT_TURN])
def test_a_message_between_two_turns_follows_what_waits(
    more: tuple[Any, ...], goes_first: bool, intent: Intent
) -> None:
    """It goes first only where nothing would run otherwise."""
    record = SessionRecord()
    for seq, entry in enumerate((*ENDED, *more), 1):
        apply(record, entry, seq, 0.0)
    environment: Any = SimpleNamespace(
        policy=Policy(),
        dispositions=DEFAULT_DISPOSITIONS,
        delegation=SimpleNamespace(depth=0),
    )
    message = m.UserMessage(type="normal", said=m.Said(text="third"), intent=intent)
    decision = route(record, message, environment)
    (queued,) = [entry for entry in decision.entries if isinstance(entry, e.Queued)]
    is_held = bool(more) and isinstance(more[0], e.QueueHeld)
    stays = is_held and intent is Intent.EXPLICIT_QUEUE  # that row waits with what is held
    assert queued.is_next == (goes_first and not stays)
