"""Faults planted in the routing tables, and found."""

import time

import pytest

from steersman.machines.delivery import DEFAULT_DELIVERIES, Cause, Delivery, DeliveryRow
from steersman.machines.disposition import (
    DEFAULT_DISPOSITIONS,
    Action,
    DispositionRow,
    dispose,
)
from steersman.machines.route_check import check_routes
from steersman.machines.routing import Table, when


def found(
    said: list[DispositionRow] | None = None, given: list[DeliveryRow] | None = None
) -> list[tuple[str, str, str]]:
    """Check the shipped tables with rows planted before them."""
    faults = check_routes(
        DEFAULT_DISPOSITIONS.override(said or []), DEFAULT_DELIVERIES.override(given or [])
    )
    return [(fault.kind, fault.where, fault.message) for fault in faults]


def test_the_shipped_tables_are_proven() -> None:
    """No combination lacks a row, no row is dead, and every safety rule holds."""
    assert found() == []


PLACE = when(intent="converse", situation="delegating", busy="queue")


def test_a_message_that_cancels_a_child_is_found() -> None:
    """The fault names the message, the cause and the child."""
    row = DispositionRow("rude", PLACE, Action.INTERRUPT, "stop")
    assert found([row]) == [
        (
            "kills-child",
            "row `rude`",
            "intent converse, situation delegating, busy queue, strategy keyword, auto_queue on: "
            "interrupt, cause `stop` -> cancel foreground_child (row `cancel-all`)",
        )
    ]


def test_a_cancel_through_the_end_of_the_turn_is_found() -> None:
    """The turn alone is stopped, but its end is a cause that kills."""
    row = DeliveryRow(
        "tidy", when(cause="turn_end", relation="background_child"), Delivery.CANCEL, "Tidy."
    )
    kinds = {(kind, where): message for kind, where, message in found(given=[row])}
    assert kinds["kills-child", "row `busy-interrupt`"].endswith(
        "interrupt, cause `message` -> cancel self (row `stop-alone`) -> `turn_end` "
        "-> cancel background_child (row `tidy`)"
    )
    assert kinds["kills-child", "cause `turn_end`"] == (
        "any message, run to its end: cause `turn_end` -> cancel background_child (row `tidy`)"
    )


def test_a_cancel_of_a_steered_child_is_found() -> None:
    """A child that is steered has deliveries of its own, which may not stop it either."""
    row = DeliveryRow("hasty", when(cause="steer", relation="self"), Delivery.CANCEL, "Hasty.")
    faults = {(kind, where): message for kind, where, message in found(given=[row])}
    assert faults["kills-child", "row `steer-through`"].endswith(
        "steer, cause `steer_through` -> steer foreground_child (row `steer-through`) -> `steer` "
        "-> cancel self (row `hasty`)"
    )


@pytest.mark.parametrize(
    "relation", ["foreground_child", "background_child", "side_talk", "parent"]
)
@pytest.mark.parametrize("action", [Delivery.CANCEL, Delivery.FINALIZE])
@pytest.mark.parametrize("cause", ["message", "more_word", "steer", "steer_through"])
def test_no_delivery_of_talk_may_stop_another(cause: str, action: Delivery, relation: str) -> None:
    """Whatever row one plants for a cause of talk, stopping anybody else is a fault."""
    row = DeliveryRow("planted", when(cause=cause, relation=relation), action, "Planted.")
    assert "kills-child" in {kind for kind, _, _ in found(given=[row])}


def test_a_dead_override_is_found() -> None:
    """A row behind one that matches all it matches never decides."""
    rows = [
        DispositionRow("talk", when(intent="converse", situation=("idle", "held")), Action.RUN),
        DispositionRow("dead", when(intent="converse", situation="held"), Action.RUN),
    ]
    assert found(rows) == [
        ("dead-row", "row `dead`", "never decides anything: earlier rows match wherever it does")
    ]


def test_a_shipped_row_may_be_overridden_entirely() -> None:
    """An override that takes all of a shipped row's cases is what overriding is for."""
    row = DispositionRow(
        "talk-through",
        when(intent="converse", situation="delegating"),
        Action.STEER,
        Cause.STEER_THROUGH,
        "steered_child",
    )
    assert found([row]) == []
    changed = DEFAULT_DISPOSITIONS.override([row])
    taken = dispose(changed, "converse", "delegating", "interrupt", "keyword", "off")
    assert taken.name == "talk-through"


def test_a_dead_shipped_row_is_found() -> None:
    """Among the shipped rows themselves, a dead one is a fault."""
    rows = (*DEFAULT_DISPOSITIONS.rows, DispositionRow("late", when(), Action.RUN))
    table = Table("dispositions", DEFAULT_DISPOSITIONS.space, rows)
    assert [fault.where for fault in check_routes(table, DEFAULT_DELIVERIES)] == ["row `late`"]


def test_a_hole_is_found() -> None:
    """The fault names a combination that no row matches, and counts the others."""
    holey = Table("dispositions", DEFAULT_DISPOSITIONS.space, DEFAULT_DISPOSITIONS.rows[:-1])
    faults = check_routes(holey, DEFAULT_DELIVERIES)
    assert [(fault.kind, fault.machine) for fault in faults] == [("hole", "dispositions")]
    assert faults[0].message == (
        "no row matches intent converse, situation busy, busy interrupt, strategy never, "
        "auto_queue off, and for 27 other combinations"
    )


def test_a_limit_that_forgets_somebody_is_found() -> None:
    """A limit spares a descendant with a reason or not at all."""
    place = when(cause="budget", relation="side_talk")
    forgotten = DeliveryRow("forgotten", place, Delivery.NONE, " ")
    assert found(given=[forgotten]) == [
        (
            "spared",
            "row `forgotten`",
            "`budget` gives self cancel but side_talk none, without a why",
        )
    ]
    spared = DeliveryRow("spared", place, Delivery.NONE, "It only reads.")
    assert found(given=[spared]) == []


@pytest.mark.parametrize("relation", ["self", "foreground_child", "background_child", "side_talk"])
@pytest.mark.parametrize("cause", ["stop", "new", "bare_word", "signal", "parent", "finalize"])
def test_no_reason_excuses_whoever_goes_on_after_a_cancel(cause: str, relation: str) -> None:
    """Where a person wants work to stop, it stops for everybody."""
    row = DeliveryRow("deaf", when(cause=cause, relation=relation), Delivery.NONE, "It only reads.")
    faults = found(given=[row])
    assert ("unheard", "row `deaf`", f"`{cause}` gives {relation} none: it goes on") in faults


@pytest.mark.parametrize("intent", ["interrupt_bare", "revert", "explicit_interrupt"])
@pytest.mark.parametrize("situation", ["unattended", "busy", "accompanied", "delegating"])
def test_a_cancel_that_only_waits_is_found(intent: str, situation: str) -> None:
    """Whoever wants work to stop is not put into the queue while something runs."""
    row = DispositionRow("late", when(intent=intent, situation=situation), Action.QUEUE, ack="q")
    assert found([row]) == [
        (
            "unheard",
            "row `late`",
            f"intent {intent}, situation {situation}, busy interrupt, strategy keyword, "
            "auto_queue on: queue: nothing stops",
        )
    ]


def test_a_cancel_that_stops_the_turn_alone_is_found() -> None:
    """A cause that spares children is not one for a cancel."""
    row = DispositionRow(
        "half", when(intent="interrupt_bare", situation="busy"), Action.INTERRUPT, "message"
    )
    (fault,) = found([row])
    assert (fault[0], fault[1]) == ("unheard", "row `half`")
    assert fault[2].endswith("interrupt, cause `message` leaves foreground_child alone")


@pytest.mark.parametrize(
    ("intent", "situation", "action", "cause"),
    [
        ("converse", "busy", Action.RUN, ""),
        ("converse", "interrupting", Action.RUN, ""),
        ("converse", "idle", Action.STEER, "steer"),
        ("converse", "unattended", Action.STEER, "steer"),
        ("converse", "idle", Action.INTERRUPT, "message"),
        ("converse", "finalizing", Action.QUEUE, ""),
        ("converse", "busy", Action.COMMAND, ""),
        ("command", "busy", Action.QUEUE, ""),
    ],
)
def test_what_cannot_be_done_is_found(
    intent: str, situation: str, action: Action, cause: str
) -> None:
    """No second turn beside a running one, no steer into nothing, no command that only waits."""
    row = DispositionRow("odd", when(intent=intent, situation=situation), action, cause)
    assert ("impossible", "row `odd`") in [(kind, where) for kind, where, _ in found([row])]


def test_a_steer_that_nobody_hears_is_found() -> None:
    """A message for children is lost where there are none."""
    place = when(intent="converse", situation="busy")
    row = DispositionRow("away", place, Action.STEER, "steer_through", "steered_child")
    assert found([row]) == [
        (
            "lost",
            "row `away`",
            "intent converse, situation busy, busy interrupt, strategy keyword, auto_queue on: "
            "the steer is for foreground_child alone",
        )
    ]


@pytest.mark.parametrize("intent", ["interrupt_bare", "revert", "explicit_interrupt", "command"])
def test_a_dropped_control_message_is_found(intent: str) -> None:
    """Who wants to stop or command something is refused only when it is too late anyway."""
    row = DispositionRow("deaf", when(intent=intent, situation="busy"), Action.REFUSE, ack="no")
    assert found([row]) == [
        (
            "dropped-control",
            "row `deaf`",
            f"intent {intent}, situation busy, busy interrupt, strategy keyword, auto_queue on: "
            "a control message is refused",
        )
    ]


def test_a_refusal_without_a_reason_is_found() -> None:
    """Whatever is refused, the sender is told why."""
    row = DispositionRow("mute", when(intent="converse", situation="busy"), Action.REFUSE)
    assert [(kind, where) for kind, where, _ in found([row])] == [("dropped-control", "row `mute`")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            DispositionRow("a", when(intent="interrupt_bare"), Action.INTERRUPT),
            "action interrupt, but its cause `` does that to nobody",
        ),
        (
            DispositionRow("a", when(intent="converse"), Action.STEER, "turn_end"),
            "action steer, but its cause `turn_end` does that to nobody",
        ),
        (
            DispositionRow("a", when(intent="converse"), Action.STEER, "explode"),
            "action steer, but its cause `explode` does that to nobody",
        ),
        (
            DispositionRow("a", when(intent="interrupt_bare"), Action.QUEUE, "stop"),
            "action queue causes nothing, but names the cause `stop`",
        ),
    ],
)
def test_a_row_that_does_not_do_what_it_says_is_found(row: DispositionRow, message: str) -> None:
    """An interrupt needs a cause that stops somebody, a steer one that steers somebody."""
    assert ("inert", "row `a`", message) in found([row])


def test_a_check_is_quick_enough_to_run_at_every_start() -> None:
    """Both tables with an override are checked in well under half a second of work."""
    begin = time.process_time()
    found([DispositionRow("talk", when(intent="converse", situation="idle"), Action.RUN)])
    assert time.process_time() - begin < 0.5
