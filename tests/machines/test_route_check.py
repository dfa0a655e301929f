"""Faults planted in the routing tables, and found."""

import time

import pytest
from msgspec.structs import replace

from steersman.machines.delivery import (
    DEFAULT_DELIVERIES,
    STEERS,
    Cause,
    Delivery,
    DeliveryRow,
    Relation,
    never_asked,
)
from steersman.machines.disposition import (
    ACKS,
    DEFAULT_DISPOSITIONS,
    Action,
    DispositionRow,
    dispose,
)
from steersman.machines.routing import Table, when
from steersman.proofs.acknowledgements import ACK_USES
from steersman.proofs.route_check import CANCELS, LIMITS, check_routes


def found(
    said: list[DispositionRow] | None = None, given: list[DeliveryRow] | None = None
) -> list[tuple[str, str, str]]:
    """Check the shipped tables with rows planted before them."""
    faults = check_routes(
        DEFAULT_DISPOSITIONS.override(said or []), DEFAULT_DELIVERIES.override(given or [])
    )
    return [(fault.kind, fault.where, fault.message) for fault in faults]


def says(
    intent: str, situation: str | tuple[str, ...], action: Action, cause: str = "", ack: str = ""
) -> DispositionRow:
    """Plant a row of the first table."""
    place = when(intent=intent, situation=situation)
    return DispositionRow(name="planted", when=place, action=action, cause=cause, ack=ack)


def gives(cause: str, relation: str, action: Delivery, why: str = "Planted.") -> DeliveryRow:
    """Plant a row of the second table."""
    place = when(cause=cause, relation=relation)
    return DeliveryRow(name="planted", when=place, action=action, why=why)


def test_the_shipped_tables_are_proven() -> None:
    """No combination lacks a row, no row is dead, and every safety rule holds."""
    assert found() == []


PLACE = when(intent="converse", situation="delegating", busy="queue")


def test_a_message_that_cancels_a_child_is_found() -> None:
    """The fault names the message, the cause and the child."""
    row = DispositionRow(
        name="rude", when=PLACE, action=Action.INTERRUPT, cause="stop", ack="interrupting"
    )
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
    row = gives("turn_ended", "background_child", Delivery.CANCEL)
    kinds = {(kind, where): message for kind, where, message in found(given=[row])}
    assert kinds["kills-child", "row `busy-interrupt`"].endswith(
        "interrupt, cause `message` -> cancel self (row `stop-alone`) -> `turn_ended` "
        "-> cancel background_child (row `planted`)"
    )
    assert kinds["kills-child", "cause `turn_ended`"] == (
        "any message, run to its end: cause `turn_ended` -> cancel background_child (row `planted`)"
    )


def test_a_cancel_of_a_steered_child_is_found() -> None:
    """A child that is steered has deliveries of its own, which may not stop it either."""
    row = gives("steer", "self", Delivery.CANCEL)
    faults = {(kind, where): message for kind, where, message in found(given=[row])}
    assert faults["kills-child", "row `steer-through`"].endswith(
        "steer, cause `steer_through` -> steer foreground_child (row `steer-through`) -> `steer` "
        "-> cancel self (row `planted`)"
    )


@pytest.mark.parametrize(
    "relation", ["foreground_child", "background_child", "side_talk", "parent"]
)
@pytest.mark.parametrize("action", [Delivery.CANCEL, Delivery.FINALIZE])
@pytest.mark.parametrize("cause", ["message", "more_word", "steer", "steer_through"])
def test_no_delivery_of_talk_may_stop_another(cause: str, action: Delivery, relation: str) -> None:
    """Whatever row one plants for a cause of talk, stopping anybody else is a fault."""
    faults = found(given=[gives(cause, relation, action)])
    assert "kills-child" in {kind for kind, _, _ in faults}


def test_a_dead_override_is_found() -> None:
    """A row behind one that matches all it matches never decides."""
    rows = [
        DispositionRow(
            name="talk", when=when(intent="converse", situation=("idle", "held")), action=Action.RUN
        ),
        DispositionRow(
            name="dead", when=when(intent="converse", situation="held"), action=Action.RUN
        ),
    ]
    assert found(rows) == [
        ("dead-row", "row `dead`", "never decides anything: earlier rows match wherever it does")
    ]


def test_a_shipped_row_may_be_overridden_entirely() -> None:
    """An override that takes all of a shipped row's cases is what overriding is for."""
    row = DispositionRow(
        name="talk-through",
        when=when(intent="converse", situation="delegating"),
        action=Action.STEER,
        cause=Cause.STEER_THROUGH,
        ack="steered_child",
    )
    assert found([row]) == []
    changed = DEFAULT_DISPOSITIONS.override([row])
    taken = dispose(changed, "converse", "delegating", "interrupt", "keyword", "off")
    assert taken.name == "talk-through"


def test_a_dead_shipped_row_is_found() -> None:
    """Among the shipped rows themselves, a dead one is a fault."""
    rows = (*DEFAULT_DISPOSITIONS.rows, DispositionRow(name="late", when=when(), action=Action.RUN))
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


def test_a_limit_that_spares_without_a_reason_is_found() -> None:
    """A limit spares a descendant with a reason or not at all."""
    forgotten = gives("budget", "side_talk", Delivery.NONE, why=" ")
    assert found(given=[forgotten]) == [
        (
            "spared",
            "row `planted`",
            "`budget` gives self cancel but side_talk none, without a why",
        )
    ]
    spared = gives("budget", "side_talk", Delivery.NONE, why="It only reads.")
    assert found(given=[spared]) == []


@pytest.mark.parametrize("relation", ["self", "foreground_child", "background_child", "side_talk"])
@pytest.mark.parametrize("cause", ["stop", "new", "bare_word", "signal", "parent", "finalize"])
def test_no_reason_excuses_a_recipient_that_survives_a_cancel(cause: str, relation: str) -> None:
    """Where a person wants work to stop, it stops for everybody."""
    faults = found(given=[gives(cause, relation, Delivery.NONE, why="It only reads.")])
    assert ("unheard", "row `planted`", f"`{cause}` gives {relation} none: it continues") in faults


@pytest.mark.parametrize("intent", ["interrupt_bare", "revert", "explicit_interrupt"])
@pytest.mark.parametrize("situation", ["unattended", "busy", "accompanied", "delegating"])
def test_a_cancel_that_only_waits_is_found(intent: str, situation: str) -> None:
    """A message that asks for a stop is not queued while something runs."""
    assert found([says(intent, situation, Action.QUEUE, ack="queued")]) == [
        (
            "unheard",
            "row `planted`",
            f"intent {intent}, situation {situation}, busy interrupt, strategy keyword, "
            "auto_queue on: queue: nothing stops",
        )
    ]


def test_a_cancel_that_stops_the_turn_alone_is_found() -> None:
    """A cause that spares children is not one for a cancel."""
    row = says("interrupt_bare", "busy", Action.INTERRUPT, "message", "interrupting")
    (fault,) = found([row])
    assert (fault[0], fault[1]) == ("unheard", "row `planted`")
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
    faults = found([says(intent, situation, action, cause)])
    assert ("impossible", "row `planted`") in [(kind, where) for kind, where, _ in faults]


def test_a_steer_without_a_recipient_is_found() -> None:
    """A message for children is lost where there are none."""
    row = says("converse", "busy", Action.STEER, "steer_through", "steered_child")
    assert found([row]) == [
        (
            "lost",
            "row `planted`",
            "intent converse, situation busy, busy interrupt, strategy keyword, auto_queue on: "
            "the steer is for foreground_child alone",
        )
    ]


@pytest.mark.parametrize("intent", ["interrupt_bare", "revert", "explicit_interrupt", "command"])
def test_a_dropped_control_message_is_found(intent: str) -> None:
    """Who wants to stop or command something is refused only when it is too late anyway."""
    assert found([says(intent, "busy", Action.REFUSE, ack="refused")]) == [
        (
            "dropped-control",
            "row `planted`",
            f"intent {intent}, situation busy, busy interrupt, strategy keyword, auto_queue on: "
            "a control message is refused",
        )
    ]


def test_a_refusal_without_a_reason_is_found() -> None:
    """Every refusal tells the sender the reason."""
    faults = found([says("converse", "busy", Action.REFUSE)])
    assert [(kind, where) for kind, where, _ in faults] == [("dropped-control", "row `planted`")]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            says("interrupt_bare", "busy", Action.INTERRUPT),
            "action interrupt, but its cause `` does not do that",
        ),
        (
            says("converse", "busy", Action.STEER, "turn_ended"),
            "action steer, but its cause `turn_ended` does not do that",
        ),
        (
            says("converse", "busy", Action.STEER, "explode"),
            "action steer, but its cause `explode` does not do that",
        ),
        (
            says("interrupt_bare", "busy", Action.QUEUE, "stop"),
            "action queue causes nothing, but names the cause `stop`",
        ),
    ],
)
def test_a_row_that_does_not_do_what_it_says_is_found(row: DispositionRow, message: str) -> None:
    """An interrupt needs a cause that stops a recipient, a steer one that steers a recipient."""
    assert ("inert", "row `planted`", message) in found([row])


# Every cause --------------------------------------------------------------------------------------

BELOW = ("foreground_child", "background_child", "side_talk")


def a_broken_row(cause: Cause, relation: Relation) -> DeliveryRow:
    """Plant what breaks a promise at a cell, whatever the cause is."""
    is_ended = cause in (*CANCELS, *LIMITS)
    return gives(cause, relation, Delivery.NONE if is_ended else Delivery.FINALIZE, why="")


@pytest.mark.parametrize(
    ("cause", "relation"),
    [
        (cause, relation)
        for cause in Cause
        for relation in ("self", *BELOW)
        if not (relation != "self" and cause == Cause.TIMEOUT and relation != "foreground_child")
    ],
)
def test_no_cause_is_overlooked(cause: Cause, relation: Relation) -> None:
    """At each cause that the program raises, a row that breaks a promise is found."""
    faults = check_routes(
        DEFAULT_DISPOSITIONS, DEFAULT_DELIVERIES.override([a_broken_row(cause, relation)])
    )
    assert faults
    assert all(fault.hint for fault in faults)


@pytest.mark.parametrize("relation", BELOW)
@pytest.mark.parametrize("action", [Delivery.CANCEL, Delivery.FINALIZE])
def test_a_named_steer_that_ends_a_child_is_found(relation: str, action: Delivery) -> None:
    """`/steer @NAME TEXT` is talk: it reaches the child, and never ends it."""
    row = gives("steer_named", relation, action)
    faults = {(kind, where): message for kind, where, message in found(given=[row])}
    assert faults["kills-child", "cause `steer_named`"] == (
        f"`/steer @NAME TEXT`: cause `steer_named` -> {action} {relation} (row `planted`)"
    )
    assert faults["lost", "row `planted`"] == (
        f"`/steer @NAME TEXT` for a {relation}: `steer_named` gives it {action}, "
        "so the text is refused"
    )


@pytest.mark.parametrize("cause", LIMITS)
def test_a_limit_that_limits_nothing_says_why(cause: str) -> None:
    """A limit may spare what it limits, with a reason."""
    row = DeliveryRow(name="free", when=when(cause=cause), action=Delivery.NONE, why="")
    message = f"`{cause}` gives self none, without a why: the limit limits nothing"
    assert ("spared", "row `free`", message) in found(given=[row])
    row = DeliveryRow(
        name="free", when=when(cause=cause), action=Delivery.NONE, why="The provider has a limit."
    )
    assert found(given=[row]) == []


# What the table promises --------------------------------------------------------------------------

PROMISE = "not-carried-out"


@pytest.mark.parametrize("action", [Delivery.CANCEL, Delivery.FINALIZE, Delivery.STEER])
@pytest.mark.parametrize("relation", Relation)
@pytest.mark.parametrize("cause", Cause)
def test_a_promise_for_a_cell_that_nothing_asks_is_refused(
    cause: Cause, relation: Relation, action: Delivery
) -> None:
    """Parent, sibling, and the other cells of `NEVER_ASKED`; and no cause without a text steers."""
    row = gives(cause, relation, action)
    faults = {where: message for kind, where, message in found(given=[row]) if kind == PROMISE}
    reason = never_asked(cause, relation)
    if not reason and action == Delivery.STEER and cause not in STEERS:
        reason = f"`{cause}` carries no text."
    if reason:
        assert faults["row `planted`"] == (
            f"`{cause}` gives {relation} {action}, which nothing carries out: {reason}"
        )


@pytest.mark.parametrize(
    ("cause", "relation", "action", "reason"),
    [
        ("stop", "self", "finalize", "The turn is stopped; only `new` and `finalize` end the"),
        ("stop", "goal", "finalize", "The goal is paused; only the end of the session drops it."),
        (
            "finalize",
            "side_talk",
            "cancel",
            "The session ends permanently, and nothing of it can be",
        ),
        (
            "new",
            "self",
            "cancel",
            "The session ends permanently, and nothing of it can be resumed:",
        ),
        ("steer_through", "background_child", "cancel", "A steer delivers a text and ends nothing"),
    ],
)
def test_a_promise_that_the_cause_cannot_keep_is_refused(
    cause: str, relation: str, action: str, reason: str
) -> None:
    """A stop ends no session, the end of a session keeps nothing, and a steer ends no recipient."""
    row = gives(cause, relation, Delivery(action))
    messages = [message for kind, _, message in found(given=[row]) if kind == PROMISE]
    assert len(messages) == 1
    assert reason in messages[0]


def test_a_time_limit_that_spares_the_child_stops_no_recipient() -> None:
    """It is asked for the child itself first, and only then for those below it."""
    row = gives("timeout", "self", Delivery.NONE)
    assert found(given=[row]) == [
        (
            "not-carried-out",
            "row `timeout`",
            "`timeout` gives foreground_child cancel, which nothing carries out: A time limit that "
            "does not stop the child itself stops nothing else.",
        )
    ]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (
            DeliveryRow(
                name="up", when=when(relation="parent"), action=Delivery.NONE, why="Not up."
            ),
            "decides only what nothing asks, such as stop to parent: "
            "A parent learns of it by the child's result.",
        ),
        (
            gives("turn_ended", "self", Delivery.NONE),
            "decides only what nothing asks, such as turn_ended to self: The turn has already ended.",
        ),
    ],
)
def test_a_row_that_no_cause_reaches_is_found(row: DeliveryRow, message: str) -> None:
    """It changes nothing; a table without it has no hole."""
    assert found(given=[row]) == [("unreachable", f"row `{row.name}`", message)]


def test_a_cause_that_no_row_raises_is_found() -> None:
    """A route's own cause needs a row of the first table."""
    space = {**DEFAULT_DELIVERIES.space, "cause": (*Cause, "route.gone")}
    row = DeliveryRow(
        name="gone", when=when(cause="route.gone"), action=Delivery.NONE, why="Nobody raises it."
    )
    table = Table("deliveries", space, (row, *DEFAULT_DELIVERIES.rows), 1)
    faults = check_routes(DEFAULT_DISPOSITIONS, table)
    assert [(fault.kind, fault.message) for fault in faults] == [
        ("unreachable", "no row raises the cause `route.gone`")
    ]


def test_a_message_that_never_arises_is_found() -> None:
    """A stop overtakes what waits or runs, not another stop."""
    row = says("explicit_interrupt", "overtaken", Action.QUEUE, ack="queued")
    assert found([row]) == [
        (
            "unreachable",
            "row `planted`",
            "intent explicit_interrupt, situation overtaken, busy interrupt, strategy keyword, "
            "auto_queue on: this never arises. A stop overtakes only messages that wait or that "
            "start a turn.",
        )
    ]


# Acknowledgements ---------------------------------------------------------------------------------


FIRST_ROWS = {row.action: row for row in reversed(DEFAULT_DISPOSITIONS.rows)}
"""One row for each action."""


@pytest.mark.parametrize("row", FIRST_ROWS.values(), ids=lambda row: row.name)
@pytest.mark.parametrize("ack", ["", *ACKS])
def test_an_acknowledgement_accompanies_only_the_actions_of_its_use(
    row: DispositionRow, ack: str
) -> None:
    """A row for each action with each acknowledgement: what contradicts the action is found."""
    changed = replace(row, name="planted", ack=ack)
    kinds = {kind for kind, where, _ in found([changed]) if where == "row `planted`"}
    is_silent = not ack and row.action not in (Action.RUN, Action.COMMAND)
    is_untrue = bool(ack) and row.action not in ACK_USES[ack].actions
    if is_silent:
        assert kinds & {"missing-ack", "dropped-control"}
    elif is_untrue:
        assert "untrue-ack" in kinds
    elif ack in ("queued", "interrupting", "refused", ""):
        assert "untrue-ack" not in kinds


@pytest.mark.parametrize(
    ("row", "problem"),
    [
        (
            says("converse", "busy", Action.INTERRUPT, "message", "queued"),
            "ack `queued` (its number in the queue) contradicts action interrupt",
        ),
        (
            says("converse", "busy", Action.STEER, "steer", "steered_child"),
            "ack `steered_child` (the children to which it will be delivered) contradicts "
            "cause `steer`, which steers no child",
        ),
        (
            says("converse", "delegating", Action.STEER, "steer_through", "steered"),
            "ack `steered` (it enters at the next boundary) contradicts "
            "cause `steer_through`, which does not steer the turn",
        ),
        (
            says("converse", "busy", Action.QUEUE, ack="word_queued"),
            "ack `word_queued` (the word; it waits, nothing stopped; `/stop` stops everything) "
            "contradicts intent converse",
        ),
        (
            says("converse", "busy", Action.QUEUE, ack="subagent_working"),
            "ack `subagent_working` (a subagent is at work; the message waits until it finishes) "
            "contradicts situation busy",
        ),
        (
            says("interrupt_bare", "busy", Action.INTERRUPT, "stop", "word_interrupts"),
            "ack `word_interrupts` (the word; the turn stops, children continue; `/stop` also "
            "stops them) contradicts cause `stop`, which ends a foreground_child",
        ),
        (
            says("converse", "busy", Action.QUEUE, ack="quued"),
            "there is no acknowledgement `quued`",
        ),
    ],
)
def test_an_acknowledgement_that_contradicts_what_is_done_is_found(
    row: DispositionRow, problem: str
) -> None:
    """The fault names the first message for which it is untrue, and the hint what is true there."""
    (fault,) = check_routes(DEFAULT_DISPOSITIONS.override([row]), DEFAULT_DELIVERIES)
    assert (fault.kind, fault.where) == ("untrue-ack", "row `planted`")
    assert fault.message.startswith("intent ")
    assert fault.message.endswith(f": {problem}")
    assert fault.hint.startswith("True there: `")


def test_a_message_that_waits_in_silence_is_found() -> None:
    """Every queued, steered or interrupting message is acknowledged; the hint lists the true texts."""
    row = says("converse", "busy", Action.QUEUE)
    (fault,) = check_routes(DEFAULT_DISPOSITIONS.override([row]), DEFAULT_DELIVERIES)
    assert fault.kind == "missing-ack"
    assert fault.message.endswith("auto_queue on: queue, and the sender gets no acknowledgement")
    assert fault.hint == "True there: `queued`."


def test_every_acknowledgement_has_a_use() -> None:
    """The mapping covers exactly the acknowledgements there are."""
    assert set(ACK_USES) == set(ACKS)


def test_an_interrupt_that_leaves_the_turn_running_is_found() -> None:
    """Action interrupt means that the turn stops, whatever else does."""
    row = says("converse", "busy", Action.INTERRUPT, "route.goal", "interrupting")
    own = gives("route.goal", "goal", Delivery.CANCEL)
    rest = DeliveryRow(name="rest", when=when(cause="route.goal"), action=Delivery.NONE, why="Odd.")
    space = {**DEFAULT_DELIVERIES.space, "cause": (*Cause, "route.goal")}
    table = Table("deliveries", space, (own, rest, *DEFAULT_DELIVERIES.rows), 2)
    faults = check_routes(DEFAULT_DISPOSITIONS.override([row]), table)
    assert [(fault.kind, fault.message) for fault in faults] == [
        ("inert", "action interrupt, but its cause `route.goal` does not stop the turn")
    ]


def test_a_check_is_quick_enough_to_run_at_every_start() -> None:
    """Both tables with an override are checked in well under half a second of work."""
    begin = time.process_time()
    found([says("converse", "idle", Action.RUN)])
    assert time.process_time() - begin < 0.5


@pytest.mark.parametrize(
    ("intent", "situation", "is_fault"),
    [
        ("converse", "idle", True),
        ("converse", "held", True),
        ("converse", "delegating", False),
        ("explicit_steer", ("unattended", "busy", "accompanied", "delegating"), True),
        ("explicit_steer", "busy", False),
    ],
)
def test_talk_that_nobody_takes_is_found(
    intent: str, situation: str | tuple[str, ...], is_fault: bool
) -> None:
    """A message at rest is never refused for ever, nor is each steer."""
    faults = found([says(intent, situation, Action.REFUSE, ack="refused")])
    assert ("dropped-talk" in [kind for kind, _, _ in faults]) is is_fault
