"""What becomes of a message, in every mode and situation that people know."""

from itertools import product

import pytest

from steersman.machines.delivery import Cause
from steersman.machines.disposition import (
    ACKS,
    DEFAULT_DISPOSITIONS,
    LATE_ACK,
    NOT_YOURS_ACK,
    OVERTAKEN_INTENTS,
    Action,
    AutoQueue,
    BusyMode,
    Intent,
    Situation,
    Strategy,
    dispose,
)
from steersman.proofs.acknowledgements import NEVER_SAID

RUNNING = ("busy", "accompanied", "delegating")
TALK = ("converse", "acknowledgement", "steer_word")
CANCEL = ("interrupt_bare", "revert")


def said(intent: str, situation: str, *policy: str) -> tuple[str, str, str]:
    """Dispose under the default policy, changed by words such as `steer`, `never` or `on`."""
    busy = next((word for word in policy if word in tuple(BusyMode)), "interrupt")
    strategy = next((word for word in policy if word in tuple(Strategy)), "keyword")
    auto_queue = next((word for word in policy if word in tuple(AutoQueue)), "off")
    row = dispose(DEFAULT_DISPOSITIONS, intent, situation, busy, strategy, auto_queue)
    return row.action, row.cause, row.ack


@pytest.mark.parametrize(
    ("intent", "situation", "policy", "expected"),
    [
        # by default a message stops the turn and runs next
        ("converse", "busy", "", ("interrupt", "message", "interrupting")),
        ("steer_word", "busy", "", ("interrupt", "message", "interrupting")),
        ("interrupt_more", "busy", "", ("interrupt", "more_word", "interrupt_detected")),
        ("interrupt_bare", "busy", "", ("interrupt", "bare_word", "interrupt_detected")),
        ("revert", "busy", "", ("interrupt", "bare_word", "interrupt_detected")),
        # busy mode steer and queue; words interrupt in every busy mode
        ("converse", "busy", "steer", ("steer", "steer", "steered")),
        ("converse", "busy", "queue", ("queue", "", "queued")),
        ("steer_word", "busy", "queue", ("steer", "steer", "steered")),
        ("interrupt_more", "busy", "steer", ("interrupt", "more_word", "interrupt_detected")),
        ("interrupt_more", "busy", "queue", ("interrupt", "more_word", "interrupt_detected")),
        ("interrupt_bare", "busy", "queue", ("interrupt", "bare_word", "interrupt_detected")),
        # auto-queue comes before the busy mode, words before auto-queue
        ("converse", "busy", "on", ("queue", "", "queued")),
        ("converse", "busy", "on steer", ("queue", "", "queued")),
        ("steer_word", "busy", "on", ("steer", "steer", "steered")),
        ("interrupt_more", "busy", "on", ("interrupt", "more_word", "interrupt_detected")),
        ("interrupt_bare", "busy", "on", ("interrupt", "bare_word", "interrupt_detected")),
        # always: any message interrupts, even with auto-queue on
        ("converse", "busy", "always queue", ("interrupt", "message", "interrupting")),
        ("converse", "busy", "always on", ("interrupt", "message", "interrupting")),
        ("interrupt_more", "busy", "always", ("interrupt", "more_word", "interrupt_detected")),
        # never: no message interrupts, busy mode interrupt acts as steer
        ("converse", "busy", "never", ("steer", "steer", "steered")),
        ("converse", "busy", "never queue", ("queue", "", "queued")),
        ("converse", "busy", "never on", ("queue", "", "queued")),
        ("interrupt_bare", "busy", "never", ("steer", "steer", "word_steered")),
        ("interrupt_more", "busy", "never queue", ("queue", "", "word_queued")),
        ("revert", "busy", "never on", ("queue", "", "word_queued")),
        # a child works in the foreground: talk does not even stop the turn
        ("converse", "delegating", "", ("queue", "", "subagent_working")),
        ("converse", "delegating", "queue", ("queue", "", "queued")),
        ("converse", "delegating", "on", ("queue", "", "queued")),
        ("converse", "delegating", "steer", ("steer", "steer_through", "steered_child")),
        ("converse", "delegating", "never", ("steer", "steer_through", "steered_child")),
        ("converse", "delegating", "always", ("queue", "", "subagent_working")),
        ("steer_word", "delegating", "", ("steer", "steer_through", "steered_child")),
        ("steer_word", "delegating", "on", ("steer", "steer_through", "steered_child")),
        ("interrupt_more", "delegating", "", ("queue", "", "word_queued")),
        ("interrupt_more", "delegating", "queue", ("queue", "", "word_queued")),
        ("interrupt_more", "delegating", "steer", ("steer", "steer_through", "word_steered")),
        ("interrupt_more", "delegating", "always", ("queue", "", "word_queued")),
        ("interrupt_bare", "delegating", "", ("interrupt", "bare_word", "interrupt_detected")),
        ("interrupt_bare", "delegating", "queue", ("interrupt", "bare_word", "interrupt_detected")),
        ("revert", "delegating", "always", ("interrupt", "bare_word", "interrupt_detected")),
        ("interrupt_bare", "delegating", "never", ("steer", "steer_through", "word_steered")),
        # children in the background only
        ("converse", "accompanied", "", ("interrupt", "message", "interrupting")),
        ("converse", "accompanied", "steer", ("steer", "steer", "steered")),
        ("interrupt_more", "accompanied", "", ("interrupt", "more_word", "word_interrupts")),
        ("interrupt_more", "accompanied", "steer", ("steer", "steer", "word_steered")),
        ("interrupt_more", "accompanied", "queue", ("queue", "", "word_queued")),
        ("interrupt_more", "accompanied", "on", ("queue", "", "word_queued")),
        ("interrupt_more", "accompanied", "always", ("interrupt", "more_word", "word_interrupts")),
        # what asks for nothing waits, whatever the mode
        ("acknowledgement", "busy", "", ("queue", "", "queued")),
        ("acknowledgement", "busy", "steer", ("queue", "", "queued")),
        ("acknowledgement", "busy", "always", ("queue", "", "queued")),
        ("acknowledgement", "accompanied", "never", ("queue", "", "queued")),
        ("acknowledgement", "delegating", "steer", ("queue", "", "queued")),
        ("acknowledgement", "interrupting", "", ("queue", "", "next_after_stop")),
        ("acknowledgement", "unattended", "", ("run", "", "")),
        ("acknowledgement", "idle", "on", ("run", "", "")),
        ("acknowledgement", "held", "queue", ("run", "", "")),
        # nothing runs
        ("interrupt_bare", "idle", "", ("run", "", "")),
        ("explicit_steer", "idle", "", ("run", "", "")),
        ("explicit_interrupt", "held", "", ("run", "", "")),
        ("explicit_queue", "idle", "", ("run", "", "")),
        ("explicit_queue", "held", "", ("queue", "", "queued")),
        ("explicit_turn", "held", "", ("run", "", "")),
        ("explicit_turn", "unattended", "", ("run", "", "")),
        ("explicit_turn", "busy", "always", ("queue", "", "queued")),
        ("explicit_turn", "delegating", "", ("queue", "", "queued")),
        ("explicit_turn", "interrupting", "", ("queue", "", "next_after_stop")),
        ("converse", "held", "queue on", ("run", "", "")),
        ("revert", "idle", "", ("run", "", "revert_hint")),
        # no turn runs, but children do
        ("converse", "unattended", "queue on", ("run", "", "")),
        ("interrupt_more", "unattended", "", ("run", "", "")),
        ("interrupt_bare", "unattended", "", ("interrupt", "bare_word", "interrupt_detected")),
        ("interrupt_bare", "unattended", "never", ("run", "", "")),
        ("explicit_interrupt", "unattended", "", ("interrupt", "stop", "interrupting")),
        # a turn is being stopped
        ("converse", "interrupting", "", ("queue", "", "next_after_stop")),
        ("interrupt_more", "interrupting", "", ("queue", "", "next_after_stop")),
        ("explicit_steer", "interrupting", "", ("queue", "", "next_after_stop")),
        ("interrupt_bare", "interrupting", "", ("interrupt", "bare_word", "already_stopping")),
        ("interrupt_bare", "interrupting", "never", ("queue", "", "next_after_stop")),
        ("explicit_interrupt", "interrupting", "", ("interrupt", "stop", "already_stopping")),
        # explicit choices beat strategy, words and modes
        ("explicit_queue", "delegating", "always", ("queue", "", "queued")),
        ("explicit_steer", "busy", "always on", ("steer", "steer", "steered")),
        ("explicit_steer", "delegating", "", ("steer", "steer_through", "steered_child")),
        ("explicit_interrupt", "delegating", "never", ("interrupt", "stop", "interrupting")),
    ],
)
def test_a_message_is_taken_as_people_expect(
    intent: str, situation: str, policy: str, expected: tuple[str, str, str]
) -> None:
    """Action, cause and acknowledgement follow the order of precedence."""
    assert said(intent, situation, *policy.split()) == expected


@pytest.mark.parametrize("situation", Situation)
def test_a_command_is_carried_out_whatever_happens(situation: str) -> None:
    """Slash commands are immediate in every situation and mode."""
    for policy in product(BusyMode, Strategy, AutoQueue):
        assert said("command", situation, *policy) == ("command", "", "")


@pytest.mark.parametrize("intent", [intent for intent in Intent if intent != "command"])
def test_a_session_that_ends_takes_nothing(intent: str) -> None:
    """Whatever is said while the session is being finalized is refused, with a reason."""
    for policy in product(BusyMode, Strategy, AutoQueue):
        assert said(intent, "finalizing", *policy) == ("refuse", "", "finalizing")


def test_talk_never_interrupts_a_turn_that_waits_for_a_child() -> None:
    """With a child in the foreground, talk is queued or steers, under every policy."""
    intents = (*TALK, "interrupt_more", "explicit_queue", "explicit_steer")
    for intent, *policy in product(intents, BusyMode, Strategy, AutoQueue):
        action, _, _ = said(intent, "delegating", *policy)
        assert action in {"queue", "steer"}


def test_a_bare_stop_stops_whatever_runs_unless_words_never_do() -> None:
    """Under every other policy it interrupts by a cause that reaches everybody."""
    for intent, situation, *policy in product(
        CANCEL, (*RUNNING, "unattended", "interrupting"), BusyMode, ("keyword", "always"), AutoQueue
    ):
        assert said(intent, situation, *policy)[:2] == ("interrupt", "bare_word")


def test_under_never_no_words_interrupt() -> None:
    """Only an explicit choice still interrupts."""
    intents = [intent for intent in Intent if intent != "explicit_interrupt"]
    for intent, situation, busy, auto_queue in product(intents, Situation, BusyMode, AutoQueue):
        action, _, _ = said(intent, situation, busy, "never", auto_queue)
        assert action != "interrupt"


def test_every_acknowledgement_is_described_and_used() -> None:
    """The texts are those that rows ask for, that of a route that refuses, and what comes instead."""
    asked = {row.ack for row in DEFAULT_DISPOSITIONS.rows} - {""}
    assert asked | {LATE_ACK, NOT_YOURS_ACK, "refused"} == set(ACKS)


def test_rows_explain_themselves() -> None:
    """Each row has a sentence, and each cause is one of the second table's."""
    for row in DEFAULT_DISPOSITIONS.rows:
        assert row.doc.endswith(".")
        assert row.cause == "" or row.cause in tuple(Cause)
        assert row.action in Action


def test_what_never_arises_is_what_the_session_never_asks() -> None:
    """The session takes only these intents for overtaken; the others meet what it does then."""
    said = {intent for intent in Intent if (intent, Situation.OVERTAKEN) not in NEVER_SAID}
    talk = {"converse", "acknowledgement", "steer_word", "explicit_queue", "explicit_turn"}
    assert said == {*OVERTAKEN_INTENTS, Intent.COMMAND} == {*map(Intent, talk), Intent.COMMAND}
