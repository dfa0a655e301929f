"""Replays of hand-made journals: what would have come under another table."""

import pytest

from steersman.gateway.views.replay import Deviation, Replay, moments, replay
from steersman.journal import entries as e
from steersman.journal.codec import encode_entry
from steersman.journal.entries import LimitReached
from steersman.journal.store import StoredEntry
from steersman.machines import protocol as m
from steersman.machines.classification import Keywords
from steersman.machines.conversation import ChatMessage, ToolRequest
from steersman.machines.delivery import Delivery, DeliveryRow
from steersman.machines.policy import Policy, RoutesChoice
from steersman.machines.routes import Routes
from steersman.machines.routing import when
from steersman.workflows.table_file import named_table


def journal(*entries: e.Entry) -> list[StoredEntry]:
    """Number entries as a store does."""
    return [
        StoredEntry(seq=n, time=100.0 + n, data=encode_entry(one))
        for n, one in enumerate(entries, 1)
    ]


OPENED = e.SessionOpened(
    session="s1", folder="/x", agent="assistant", model="m", system="Be brief."
)
FIRST = (
    OPENED,
    e.Queued(item="m1", number=1, said=m.Said(text="rewrite it all"), routed=m.Routed(rule="run")),
    e.TurnStarted(turn="t1", item="m1", number=1, epoch=1),
)


CALL = ToolRequest(call="t1.c1", tool="delegate", arguments={"task": "look"})
KID = (
    e.ModelCalled(turn="t1", step=1),
    e.Answered(
        turn="t1", step=1, messages=(ChatMessage(role="assistant", text="", tool_calls=(CALL,)),)
    ),
    e.ToolIntended(turn="t1", step=1, call=CALL.call, tool=CALL.tool, arguments=CALL.arguments),
    e.ChildStarted(
        child="kid",
        session="s2",
        agent="assistant",
        task="look",
        relation="foreground_child",
        turn="t1",
        call=CALL.call,
        epoch=1,
    ),
)
"""A child for which the turn waits."""
HELPER = (
    e.ChildStarted(
        child="helper",
        session="s3",
        agent="assistant",
        task="test",
        relation="background_child",
        turn="t1",
        call="",
        epoch=1,
    ),
)
"""A child in the background."""


def under(name: str, *entries: e.Entry, children: tuple[e.Entry, ...] = (*KID, *HELPER)) -> Replay:
    """Replay a journal of the default table, in which these children work, under another one."""
    history = moments(journal(*FIRST, *children, *entries), Policy())
    return replay(history, chosen, named_table(name), Keywords())


def chosen(choice: RoutesChoice | None) -> Routes:
    """Return the table that a session went by."""
    return named_table(choice.table if choice else "steersman")


def brief(one: Deviation) -> tuple[str, str, str, str]:
    """Return a deviation as people read it."""
    return one.moment.what, one.moment.text, one.ours, one.theirs


def test_a_question_during_delegation() -> None:
    """Here it waits; a table that cancels on every message would have stopped the child."""
    asked = e.Queued(
        item="m2",
        number=2,
        said=m.Said(text="how is it going?"),
        routed=m.Routed(said_as="queue", rule="subagent-working"),
    )
    done = under("cancel-on-message", asked)
    assert [brief(one) for one in done.deviations] == [
        (
            "message 2",
            "how is it going?",
            "is queued (`subagent_working`)",
            "interrupts (`interrupting`): the turn is stopped, kid is stopped, helper is stopped",
        )
    ]
    assert done.deviations[0].our_rule == "subagent-working"
    assert done.deviations[0].their_rule == (
        "message-while-delegating, stop-alone, message-reaches-children"
    )
    assert done.looked_at == {"message": 2}


def test_a_stop_that_spares_children() -> None:
    """What /stop reaches is looked up in the second table; who is treated alike is left out."""
    stop = e.InterruptRequested(receipt="i1", turn="t1", order=m.StopOrder(cause="stop"))
    done = under("never-cancel", stop, e.Interrupted(turn="t1", cause="stop"), e.Stopped(turn="t1"))
    assert [brief(one) for one in done.deviations] == [
        (
            "a stop",
            "",
            "kid is stopped, helper is stopped",
            "kid continues, helper continues",
        )
    ]
    assert done.looked_at == {"message": 1, "other": 2}


def test_the_end_of_a_turn_is_a_moment() -> None:
    """A table that lets nothing outlive a turn would have ended the child in the background."""
    done = under("cancel-and-discard", e.TurnEnded(turn="t1", status="completed"), children=HELPER)
    assert [brief(one) for one in done.deviations] == [
        ("the end of turn t1", "", "helper continues", "helper is finalized")
    ]


def test_a_message_that_says_more_is_one_message() -> None:
    """Its interrupt is journalled twice, as a message and as a receipt, and counted once."""
    done = under(
        "cancel-on-message",
        e.Queued(
            item="m2",
            number=2,
            said=m.Said(text="use zod"),
            routed=m.Routed(said_as="interrupt", rule="busy-interrupt"),
            is_next=True,
        ),
        e.InterruptRequested(
            receipt="i1",
            turn="t1",
            order=m.StopOrder(cause="message", routed=m.Routed(rule="busy-interrupt")),
        ),
        children=HELPER,
    )
    assert done.looked_at == {"message": 2}
    assert [brief(one)[2:] for one in done.deviations] == [
        ("interrupts: helper continues", "interrupts: helper is stopped")
    ]


def test_a_planned_stop_is_one_stop() -> None:
    """It is journalled when it is taken, and again when it takes effect."""
    done = under(
        "never-cancel",
        e.InterruptPlanned(
            receipt="i1", turn="t1", order=m.StopOrder(cause="stop"), tools=("shell",)
        ),
        e.InterruptRequested(receipt="i1", turn="t1", order=m.StopOrder(cause="stop")),
    )
    assert done.looked_at == {"message": 1, "other": 1}
    assert len(done.deviations) == 1


def test_the_same_table_deviates_nowhere() -> None:
    """Nor does a session that chose the other table for itself, from there on."""
    said = e.Queued(
        item="m2",
        number=2,
        said=m.Said(text="how is it going?"),
        routed=m.Routed(said_as="queue", rule="subagent-working"),
    )
    stop = e.InterruptRequested(receipt="i1", turn="t1", order=m.StopOrder(cause="stop"))
    assert under("steersman", said, stop).deviations == []
    choice = e.PolicyChanged(routes=RoutesChoice(table="never-cancel", may_be_unsafe=True))
    assert under("never-cancel", said, choice, stop).deviations == []
    assert len(under("never-cancel", said, stop, choice).deviations) == 1


def test_the_row_says_which_choice_the_sender_made() -> None:
    """A key that queues is not journalled, but its row is: the words do not decide under any table."""
    queued = e.Queued(
        item="m2",
        number=2,
        said=m.Said(text="stop the press"),
        routed=m.Routed(said_as="queue", rule="explicit-queue"),
    )
    assert under("cancel-on-message", queued).deviations == []


def test_modes_are_the_sessions_own() -> None:
    """What a person chose for the session counts from there on."""
    chosen_mode = e.PolicyChanged(busy_mode="queue")
    queued = e.Queued(
        item="m2",
        number=2,
        said=m.Said(text="how is it going?"),
        routed=m.Routed(said_as="queue", rule="busy-queue"),
    )
    assert under("cancel-on-message", chosen_mode, queued).deviations == []


def test_what_no_table_decided_is_not_looked_at() -> None:
    """An imported message, and one whose reading was taken back, have no row."""
    done = under(
        "cancel-on-message",
        e.Queued(
            item="m2", number=2, said=m.Said(text="imported"), routed=m.Routed(said_as="queue")
        ),
        e.Queued(
            item="m3",
            number=3,
            said=m.Said(text="how is it going?"),
            routed=m.Routed(said_as="queue", rule="taken-back"),
        ),
    )
    assert (done.looked_at, done.deviations) == ({"message": 1}, [])


@pytest.mark.parametrize(
    ("entry", "what", "cause"),
    [
        (e.SessionLeaving(), "leaving the program", "signal"),
        (e.SessionFinalizing(cause="new"), "the end of the session", "new"),
        (e.SessionFinalizing(cause="user"), "the end of the session", "finalize"),
    ],
)
def test_the_end_of_a_session_is_one_moment(entry: e.Entry, what: str, cause: str) -> None:
    """The interrupt that follows from it is not another."""
    follows = e.InterruptRequested(
        receipt="i1",
        turn="t1",
        order=m.StopOrder(cause="signal" if cause == "signal" else "finalize"),
    )
    *_, last = moments(journal(*FIRST, *KID, *HELPER, entry, follows), Policy())
    assert (last.what, last.cause) == (what, cause)
    assert [one.name for one in last.company] == ["the turn", "kid", "helper"]


def test_an_ended_child_is_no_recipient() -> None:
    """Who is around is what the journal says of that moment; a result leaves the turn alone again."""
    said = [
        e.Queued(
            item=f"m{n}",
            number=n,
            said=m.Said(text="go on"),
            routed=m.Routed(said_as="queue", rule="busy-queue"),
        )
        for n in (2, 3, 4)
    ]
    ended = e.ToolEnded(turn="t1", call=CALL.call, tool=CALL.tool, end=m.CallEnd(status="ok"))
    history = moments(
        journal(
            *FIRST,
            said[0],
            *KID,
            said[1],
            e.ChildEnded(child="kid", status="completed", text="Done."),
            ended,
            said[2],
        ),
        Policy(busy_mode="queue"),
    )
    found = [(str(one.doing), [each.name for each in one.company]) for one in history]
    assert found == [
        ("idle", []),
        ("busy", ["the turn"]),
        ("delegating", ["the turn", "kid"]),
        ("busy", ["the turn"]),
    ]


def test_a_named_steer_is_replayed_by_its_own_cause() -> None:
    """A steer that names a child in the background does not go to those the turn waits for."""
    said = e.Queued(
        item="m2",
        number=2,
        said=m.Said(text="use tabs"),
        routed=m.Routed(said_as="steer", rule="explicit-steer-through"),
        for_children=("helper",),
    )
    table = named_table("steersman")
    deaf = DeliveryRow(
        name="deaf", when=when(cause="steer_named"), action=Delivery.NONE, why="Deaf."
    )
    theirs = Routes(
        name="x",
        doc="",
        dispositions=table.dispositions,
        deliveries=table.deliveries.override([deaf]),
    )
    history = moments(journal(*FIRST, *KID, *HELPER, said), Policy())
    (found,) = replay(history, chosen, theirs, Keywords()).deviations
    assert brief(found) == (
        "message 2",
        "use tabs",
        "steers: helper receives it",
        "steers: helper continues",
    )
    assert found.our_rule == "explicit-steer-through, steer-named"


@pytest.mark.parametrize(
    ("entries", "what", "cause", "company"),
    [
        (
            (e.ChildCancelled(child="kid", cause="timeout"),),
            "the time limit of kid",
            "timeout",
            ["kid"],
        ),
        (
            (
                LimitReached(turn="t1", what="tokens"),
                e.InterruptRequested(receipt="i1", turn="t1", order=m.StopOrder(cause="budget")),
            ),
            "a limit of the session",
            "budget",
            ["the turn", "kid", "helper"],
        ),
        (
            (e.InterruptRequested(receipt="i1", turn="t1", order=m.StopOrder(cause="parent")),),
            "a stop by the parent",
            "parent",
            ["the turn", "kid", "helper"],
        ),
        (
            (
                e.SessionFinalizing(cause="new"),
                e.InterruptRequested(receipt="i1", turn="t1", order=m.StopOrder(cause="new")),
            ),
            "the end of the session",
            "new",
            ["the turn", "kid", "helper"],
        ),
        (
            (e.SteerAddressed(item="m2", turn="", for_children=("helper",)),),
            "a steer by m2, which waited",
            "steer_named",
            ["helper"],
        ),
        (
            (e.SteerAddressed(item="m2", turn="", for_children=("kid",)),),
            "a steer by m2, which waited",
            "steer_through",
            ["kid"],
        ),
    ],
)
def test_what_no_message_raises_is_one_moment(
    entries: tuple[e.Entry, ...], what: str, cause: str, company: list[str]
) -> None:
    """Limits, the parent's stop and the steer of a waiting message ask the table by their own cause."""
    waiting = e.Queued(
        item="m2",
        number=2,
        said=m.Said(text="use tabs"),
        routed=m.Routed(said_as="queue", rule="busy-queue"),
    )
    *_, last = moments(journal(*FIRST, *KID, *HELPER, waiting, *entries), Policy())
    assert (last.what, last.cause) == (what, cause)
    assert [companion.name for companion in last.company] == company


def test_the_end_of_a_stop_beside_the_turn_is_no_end_of_a_turn() -> None:
    """Where children alone were stopped, no turn has ended."""
    stop = (
        e.InterruptRequested(
            receipt="i1", turn="", order=m.StopOrder(cause="stop"), reaches=("background_child",)
        ),
        e.Stopped(turn=""),
    )
    history = list(moments(journal(*FIRST, *HELPER, *stop), Policy()))
    assert [moment.what for moment in history] == ["message 1", "a stop"]
