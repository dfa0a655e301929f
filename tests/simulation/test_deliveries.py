"""The delivery table decides at run time: a row put in front of it changes whom a cause reaches."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import product

import pytest
from simulation.scene import answer, delegation, has_asked, scene, start_child
from simulation.single import entries, run, say

from steersman.actors.kernel.mailbox import reply
from steersman.journal import entries as e
from steersman.journal.entries import GoalCleared, GoalPaused
from steersman.machines import protocol as m
from steersman.machines.delivery import (
    DEFAULT_DELIVERIES,
    ENDS,
    NEVER_ASKED,
    Cause,
    Delivery,
    DeliveryRow,
    Relation,
    deliver,
)
from steersman.machines.disposition import Intent
from steersman.machines.policy import Limits
from steersman.machines.routing import when
from steersman.simulator.program import SimulatedProgram

CHILDREN = {
    Relation.FOREGROUND_CHILD: "front",
    Relation.BACKGROUND_CHILD: "back",
    Relation.SIDE_TALK: "talk-2",
}
BELOW = (Relation.SELF, *CHILDREN, Relation.GOAL)
STEERS = (Cause.STEER, Cause.STEER_THROUGH, Cause.STEER_NAMED)
BY_TALK = (Cause.MORE_WORD, Cause.MESSAGE)

_NO_TALK_BETWEEN = "while a turn waits for a child, talk is queued or steers, and stops nothing"
UNREACHABLE = {
    (Cause.MORE_WORD, Relation.FOREGROUND_CHILD): _NO_TALK_BETWEEN,
    (Cause.MESSAGE, Relation.FOREGROUND_CHILD): _NO_TALK_BETWEEN,
    (Cause.TIMEOUT, Relation.SIDE_TALK): "nobody asks a child something beside its work",
    (Cause.TURN_ENDED, Relation.FOREGROUND_CHILD): "a turn does not end before its children",
    **{
        (Cause.PROVIDER_LIMIT, relation): "the others are asked about where the turn ends, too"
        for relation in (*CHILDREN, Relation.GOAL)
    },
    **{cell: why for cell, why in NEVER_ASKED.items() if cell[1] in BELOW},
}
"""The cells that no run can come to, and why. Parents and siblings are not asked about at all."""

CELLS = [cell for cell in product(Cause, BELOW) if cell not in UNREACHABLE]
STOPPING = [cell for cell in CELLS if cell[0] not in (*STEERS, Cause.TIMEOUT)]
TIMEOUTS = [cell for cell in CELLS if cell[0] is Cause.TIMEOUT]
STEERING = [cell for cell in CELLS if cell[0] in STEERS]


def ends(cause: Cause, relation: Relation) -> bool:
    """Whether the shipped table ends who stands so."""
    return deliver(DEFAULT_DELIVERIES, cause, relation).action in ENDS


def override(made: SimulatedProgram, cause: Cause, relation: Relation, action: Delivery) -> None:
    """Put a row for one cell in front of the session's table."""
    row = DeliveryRow(
        name="mine", when=when(cause=cause, relation=relation), action=action, why="A test."
    )
    environment = made.environment
    environment.deliveries = environment.deliveries.override((row,))


@contextmanager
def everybody(cause: Cause, *, is_waiting: bool) -> Iterator[SimulatedProgram]:
    """A turn of a goal, a side talk, a child in the background, and one that the turn waits for."""
    with scene() as made:
        made.say(m.SetGoal(text="all tests pass"))
        run(made, has_asked(made))
        made.say(m.SideTalk(said=m.Said(text="why?", user="ann", client_id="s1")))
        run(made, has_asked(made, "s1-1"))
        front = (start_child("front"),) if is_waiting else ()
        answer(made, start_child("back", background=True), *front)
        run(made, lambda: len(made.record.children) == 2 + is_waiting)
        run(made, has_asked(made, *(child.session for child in made.record.children.values())))
        run(made, lambda: is_waiting or made.record.turns["t1"].step == 2)
        run(made, lambda: is_waiting or has_asked(made)())
        yield made


def arise(made: SimulatedProgram, cause: Cause) -> None:
    """Let a cause arise at the session, as it does in the program."""
    match cause:
        case Cause.STOP | Cause.BUDGET | Cause.NO_PROGRESS:
            made.say(m.Interrupt(order=m.StopOrder(cause=cause), turn="t1"))
        case Cause.PARENT | Cause.PARENT_BOUNDARY:
            made.say(m.Interrupt(order=m.StopOrder(cause=cause, epoch=made.record.epoch + 1)))
        case Cause.BARE_WORD:
            say(made, "stop", Intent.INTERRUPT_BARE)
        case Cause.MORE_WORD:
            say(made, "no, the tests", Intent.INTERRUPT_MORE)
        case Cause.MESSAGE:
            say(made, "the tests")
        case Cause.SIGNAL:
            made.say(m.Suspend(cause="signal"))
        case Cause.NEW:
            made.say(m.Finalize(cause="new"))
        case Cause.FINALIZE:
            made.say(m.Finalize())
        case Cause.TURN_ENDED:
            answer(made)
        case Cause.PROVIDER_LIMIT:
            made.environment.account.limits = Limits(wait_minutes=90.0)
            call = made.ports.models.pop("t1")
            at = {"turn": "t1", "epoch": call.effect.epoch, "step": call.effect.step}
            reply(call.reply_to, m.ModelFailed(**at, reason="429", again=3600.0))
        case _:
            raise AssertionError(f"{cause} has a test of its own")
    run(made)


def is_reached(made: SimulatedProgram, relation: Relation) -> bool:
    """Whether who stands so to the session has been stopped."""
    match relation:
        case Relation.SELF:
            return made.record.turns["t1"].state == "interrupted"
        case Relation.GOAL:
            return bool(entries(made, GoalPaused, GoalCleared))
        case _:
            name = CHILDREN[relation]
            return any(entry.child == name for entry in entries(made, e.ChildCancelled))


@pytest.mark.parametrize("is_overridden", [False, True])
@pytest.mark.parametrize(("cause", "relation"), STOPPING)
def test_a_row_decides_who_is_stopped(
    cause: Cause, relation: Relation, is_overridden: bool
) -> None:
    """Whom the shipped table ends is spared by a row of one's own, and the other way round."""
    is_waiting = cause not in (*BY_TALK, Cause.TURN_ENDED, Cause.PROVIDER_LIMIT)
    with everybody(cause, is_waiting=is_waiting) as made:
        is_meant = ends(cause, relation)
        if is_overridden:
            is_meant = not is_meant
            override(made, cause, relation, Delivery.CANCEL if is_meant else Delivery.NONE)
        arise(made, cause)
        assert is_reached(made, relation) is is_meant
        assert not made.system.dead_letters


@pytest.mark.parametrize("is_overridden", [False, True])
@pytest.mark.parametrize(("cause", "relation"), TIMEOUTS)
def test_a_row_decides_whom_a_timeout_stops(
    cause: Cause, relation: Relation, is_overridden: bool
) -> None:
    """A timeout arises at a child: a row decides its effect on the child and the child's children."""
    with scene(plan={"delegation": delegation(timeout=20.0)}) as made:
        is_meant = ends(cause, relation)
        if is_overridden:
            is_meant = not is_meant
            override(made, cause, relation, Delivery.CANCEL if is_meant else Delivery.NONE)
        say(made, "work")
        run(made, has_asked(made))
        goal = {"goal": {"text": "all tests pass"}} if relation is Relation.GOAL else {}
        answer(made, start_child("kid", **goal))
        run(made, has_asked(made, "s1-1"))
        below = start_child("back", background=True), start_child("front")
        if relation in CHILDREN:
            answer(made, *below, path="children/kid")
            run(made, has_asked(made, "s1-1-1", "s1-1-2"))
        run(made)
        assert timed_out(made, relation) is is_meant


def timed_out(made: SimulatedProgram, relation: Relation) -> bool:
    """Whether a timeout has stopped the child, its goal, or who works for it."""
    if relation is Relation.SELF:
        return any(entry.cause == "timeout" for entry in entries(made, e.ChildCancelled))
    if relation is Relation.GOAL:
        return bool(entries(made, GoalPaused, session="s1-1"))
    return any(
        (entry.child, entry.cause) == (CHILDREN[relation], "timeout")
        and bool(entry.receipt)  # else it is by a limit of its own
        for entry in entries(made, e.ChildCancelled, session="s1-1")
    )


@pytest.mark.parametrize("is_overridden", [False, True])
@pytest.mark.parametrize(("cause", "relation"), STEERING)
def test_a_row_decides_whom_a_steer_reaches(
    cause: Cause, relation: Relation, is_overridden: bool
) -> None:
    """A steer goes to the recipients that the table names: turn or children, one, all or none of them."""
    with everybody(cause, is_waiting=True) as made:
        is_meant = deliver(DEFAULT_DELIVERIES, cause, relation).action is Delivery.STEER
        if is_overridden:
            is_meant = not is_meant
            override(made, cause, relation, Delivery.STEER if is_meant else Delivery.NONE)
        to = {Cause.STEER: "parent", Cause.STEER_NAMED: CHILDREN.get(relation, "")}.get(cause, "")
        say(made, "use tabs", Intent.EXPLICIT_STEER, "c9", to=to)
        run(made)
        assert is_steered(made, relation) is is_meant


def is_steered(made: SimulatedProgram, relation: Relation) -> bool:
    """Whether the newest message is a steer for who stands so to the session."""
    steers = [entry for entry in entries(made, e.Queued) if entry.said.client_id == "c9"]
    if relation is Relation.SELF:
        return any(entry.for_turn for entry in steers)
    return any(CHILDREN[relation] in entry.for_children for entry in steers)


def test_every_cell_is_tested_or_explained() -> None:
    """Each cause meets each relation below in a test, or it is said why it cannot."""
    assert {*STOPPING, *TIMEOUTS, *STEERING, *UNREACHABLE} == set(product(Cause, BELOW))
