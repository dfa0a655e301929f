"""Every change that a person may make to an item of the queue, for every kind of item in every state.

What is carried out is what the item's machine accepts; what is refused leaves the record as it is, and
says why. The entries of what is carried out fold.
"""

from collections.abc import Callable, Iterator
from itertools import product

import pytest
from msgspec.structs import replace

from steersman.actors.decisions import queueing, rearrangement, resuming
from steersman.actors.decisions.decision import Decision
from steersman.journal.queue_record import ItemRecord, QueueRecord, apply_to_queue, facts
from steersman.journal.record import SessionRecord
from steersman.machines import protocol as m
from steersman.machines.lifecycles import ITEM
from steersman.machines.machine import Step, step

NEW = m.Said(text="in other words")
HERE = {"editor": "here"}
FACTS: dict[str, dict[str, object]] = {
    "plain": {},
    "edited": {"editor": "there"},
    "a steer": {"for_turn": "t9"},
    "an edited steer": {"for_turn": "t9", "editor": "there"},
    "with a child": {"for_children": {"kid": ""}},
    "answered": {"answer": "42"},
}


ASIDE = ("superseded", "unanswered")


def change(op: str, **more: object) -> Callable[[SessionRecord], Decision]:
    """Return what decides about a change of item 2."""
    return lambda record: queueing.change(record, m.QueueChange(op=op, number=2, **more))  # type: ignore[arg-type]


def resume(record: SessionRecord) -> Decision:
    """Decide about the wish to run item 2."""
    return resuming.resume(record, m.ResumeQueue(number=2))


OPERATIONS: dict[str, tuple[Callable[[SessionRecord], Decision], tuple[str, ...]]] = {
    "edit": (change("edit", said=NEW), ("edit",)),
    "begin_edit": (change("begin_edit", **HERE), ("begin_edit",)),
    "move": (change("move"), ("move",)),
    "steer": (change("steer"), ("want", "address")),
    "steer a child": (change("steer", for_children=("kid",)), ("want", "address")),
    "keep": (change("keep"), ("want", "keep")),
    "withdraw": (change("withdraw"), ("withdraw",)),
    "resume": (resume, ("resume",)),
}
"""What decides, and the events of the item's machine of which one has to be accepted."""


def queue_with(item: ItemRecord) -> QueueRecord:
    """Return a held queue with an item, behind another one."""
    first = ItemRecord(id="m1", number=1, said=m.Said(text="first"))
    items = {"m1": first, item.id: item}
    is_live = item.state not in ITEM.final and item.state not in ASIDE
    return QueueRecord(
        state="held",
        made=2,
        number=2,
        items=items,
        order=("m1", "m2") if is_live else ("m1",),
        unanswered="m2" if item.state == "unanswered" else "",
    )


def cases() -> Iterator[tuple[str, m.ItemKind, str, str]]:
    """Yield all operations, kinds, states, and facts that can be there in the state."""
    states = [state.name for state in ITEM.states]
    for operation, kind, state, told in product(OPERATIONS, m.ItemKind, states, FACTS):
        is_pending = state == "pending" or told == "plain"
        if (state == "offered") if told == "answered" else is_pending:
            yield operation, kind, state, told


@pytest.mark.parametrize("operation", OPERATIONS)
def test_what_is_carried_out_is_what_the_machine_accepts(operation: str) -> None:
    """All kinds in all states; an entry of what is carried out folds, and a refusal has none."""
    decide, events = OPERATIONS[operation]
    for _, kind, state, told in (case for case in cases() if case[0] == operation):
        item = ItemRecord(
            id="m2",
            number=2,
            said=m.Said(text="words"),
            kind=kind,
            state=state,
            **FACTS[told],  # type: ignore[arg-type]
        )
        queue = queue_with(item)
        record = SessionRecord(seq=1, state="idle", queue=queue)
        answers = [step(ITEM, state, event, facts(item)) for event in events]
        is_live = "m2" in queue.order or state in ASIDE
        is_accepted = is_live and any(
            isinstance(answer, Step) and not answer.ignored for answer in answers
        )
        if operation not in ("withdraw", "resume"):
            is_accepted = is_accepted and state not in ASIDE
        decision = decide(record)
        assert decision.reply["ok"] is is_accepted, (kind, state, told, decision.reply)
        if is_accepted:
            assert decision.entries, (kind, state, told)
            for entry in decision.entries:
                queue = apply_to_queue(queue, entry, 2.0)
        else:
            assert decision.reply["reason"], (kind, state, told)
            assert not decision.entries


@pytest.mark.parametrize("kind", [kind for kind in m.ItemKind if kind not in m.SPOKEN])
@pytest.mark.parametrize("operation", ["edit", "begin_edit", "steer", "steer a child"])
def test_what_nobody_said_is_not_reworded(kind: m.ItemKind, operation: str) -> None:
    """A wish to sum up, a goal's turn and another try take no words, and are no steer."""
    item = ItemRecord(id="m2", number=2, said=m.Said(text="the names"), kind=kind)
    decide, _ = OPERATIONS[operation]
    decision = decide(SessionRecord(seq=1, state="idle", queue=queue_with(item)))
    assert decision.reply["ok"] is False
    assert not decision.entries
    assert not decision.effects


def test_what_a_child_has_is_not_reworded_here() -> None:
    """The child has taken the words that were said: others would reach nobody."""
    item = ItemRecord(id="m2", number=2, said=m.Said(text="use tabs"), for_children={"kid": ""})
    record = SessionRecord(seq=1, state="idle", queue=queue_with(item))
    reply = rearrangement.edit(
        record.queue, m.QueueChange(op="edit", number=2, said=replace(NEW))
    ).reply
    assert reply == {"ok": False, "reason": "#2 is with kid already"}
