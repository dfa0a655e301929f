"""How it reads that a message was taken: the literal texts."""

from typing import Any

import pytest

from steersman.gateway.wording.acknowledgement import TEXTS, acknowledgement
from steersman.machines.disposition import ACKS

LONG = "what's the zod syntax for optional again?"
NOT_ACCEPTED = "the message was not accepted. Your text: hello"
WORKING = "Subagent working — your message is queued for when it finishes"


def accepted(**fields: Any) -> dict[str, Any]:
    """An `accepted` event."""
    usual = {"type": "accepted", "as": "queue", "number": 2, "ack": "queued", "matched": None}
    return {**usual, **fields}


def rejected(reason: str, **fields: Any) -> dict[str, Any]:
    """A `rejected` event."""
    return {"type": "rejected", "reason": reason, "text": "hello", **fields}


def by_word(ack: str, **fields: Any) -> dict[str, Any]:
    """An `accepted` event of a message with an interrupt word."""
    return accepted(ack=ack, matched="exit", text="make the exit code 2 instead", **fields)


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (accepted(text=LONG), '📥 Queued #2: "what\'s the zod syntax for optional..."'),
        (accepted(text="two"), '📥 Queued #2: "two"'),
        (accepted(text="one\n  line"), '📥 Queued #2: "one line"'),
        (accepted(text="hi", ack="subagent_working"), f"⏳ {WORKING}"),
        (
            accepted(text="Stop!", ack="interrupt_detected", matched="stop", number=None),
            '⚠️ Interrupt detected: "stop"',
        ),
        (accepted(text="zod", ack="interrupting"), 'Interrupting for #2: "zod"'),
        (accepted(text="now", ack="interrupting", number=None), "Interrupting."),
        (accepted(text="stop", ack="already_stopping", number=None), "Already stopping."),
        (accepted(text="zod", ack="already_stopping"), "Already stopping. #2 runs next."),
        (accepted(text="zod", ack="next_after_stop"), 'After the stop, #2: "zod"'),
        (accepted(text="zod", ack="next_turn"), 'Too late to steer, next is #2: "zod"'),
        (accepted(text="zod", ack="steered"), 'Steering with #2: "zod"'),
        (
            accepted(text="instead zod", ack="steered", matched="instead"),
            'Steering with #2: "instead zod"\n"instead" steers.',
        ),
        (accepted(text="zod", ack="steered_child"), 'Steering the next subagent with #2: "zod"'),
        (
            accepted(text="revert", ack="revert_hint"),
            "Nothing runs, so this is a message. /revert restores files.",
        ),
        (
            by_word("word_interrupts"),
            '⚠️ Interrupt detected: "exit"\n'
            "This turn stops, subagents go on: /stop stops them, too.",
        ),
        (
            by_word("word_queued"),
            '📥 Queued #2: "make the exit code 2 instead"\n'
            '"exit" stopped nothing: /stop stops everything.',
        ),
        (
            by_word("word_steered"),
            'Steering with #2: "make the exit code 2 instead"\n'
            '"exit" stopped nothing: /stop stops everything.',
        ),
        (accepted(text="hello", ack=None), ""),
        (rejected("finalizing"), f"The session is ending, so {NOT_ACCEPTED}"),
        (rejected("queue_full"), f"The queue is full, so {NOT_ACCEPTED}"),
        (
            rejected("session_finalized", hint="begin another"),
            f"The session is finalized, so {NOT_ACCEPTED}\n  begin another",
        ),
        (rejected("the disk is full"), f"T{NOT_ACCEPTED[1:]}\n  the disk is full"),
        (accepted(text="two", user="ann"), '📥 Queued #2: "two" (from ann)'),
        (
            accepted(text="stop", user="ann", ack="word_queued", matched="stop"),
            '📥 Queued #2: "stop" (from ann)\n"stop" stopped nothing: /stop stops everything.',
        ),
        ({"type": "steered", "number": 2, "text": "use tabs"}, '[Steered] #2: "use tabs"'),
        (
            {"type": "steered", "number": 2, "text": "use tabs", "child": "kid"},
            '[Steered] kid, #2: "use tabs"',
        ),
        (
            {"type": "side_talk_ended", "number": 3, "text": "42", "status": "completed"},
            "🤖 Side talk: 42\n/queue steer 3 brings it into the work",
        ),
        (
            {"type": "side_talk_ended", "number": 3, "text": "", "resumable": True},
            "🤖 Side talk #3 stopped: /queue resume continues it, /queue pop 3 removes it",
        ),
        (
            {"type": "interrupted", "checkpoint": {"done": 23, "total": 50, "unit": "file"}},
            "Stopping current task. Progress saved at checkpoint 23/50.",
        ),
        ({"type": "interrupted", "checkpoint": None}, "Stopping current task."),
        ({"type": "interrupting", "cause": "stop"}, ""),
        ({"type": "stopped", "killed": [4, 5], "survivors": []}, "Ended: processes 4, 5"),
        (
            {"type": "stopped", "killed": [4], "survivors": [7]},
            "Still alive, and not to be ended: process 7\n"
            "  `ps -p 7` shows what it does; `kill` ends it, perhaps only as root",
        ),
    ],
)
def test_acknowledgements(event: dict[str, Any], text: str) -> None:
    """People read these words, cut to forty columns."""
    assert acknowledgement(event) == text


UNROUTED = ("no_subagent", "side_talk")  # commands, which no row takes


@pytest.mark.parametrize("ack", [*ACKS, *UNROUTED])
def test_each_acknowledgement_has_words_of_its_own(ack: str) -> None:
    """No two say the same, and each is plain words where the terminal has no UTF-8."""
    assert set(TEXTS) == {*ACKS, *UNROUTED}
    texts = [acknowledgement(by_word(name)) for name in (*ACKS, *UNROUTED)]
    assert texts.count(acknowledgement(by_word(ack))) == 1
    assert acknowledgement(by_word(ack), can_utf8=False).isascii()


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (accepted(text="two"), 'Queued #2: "two"'),
        (accepted(text="hi", ack="subagent_working"), WORKING.replace("—", "-")),
        (accepted(text="Größe"), 'Queued #2: "Größe"'),
    ],
)
def test_without_utf8_words_are_plain(event: dict[str, Any], text: str) -> None:
    """No sign of ours is outside ASCII; what a person typed stays, for their terminal showed it."""
    assert acknowledgement(event, can_utf8=False) == text


def test_that_a_message_waits_need_not_be_shown() -> None:
    """`show_queue_on_input = false` hushes the number, not that a word stopped nothing."""
    assert acknowledgement(accepted(text="two"), shows_queued=False) == ""
    assert acknowledgement(by_word("word_queued"), shows_queued=False)
