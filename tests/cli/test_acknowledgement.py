"""How it reads that a message was taken: the literal texts."""

from typing import Any

import pytest

from steersman.cli.acknowledgement import acknowledgement


def accepted(**fields: Any) -> dict[str, Any]:
    """An `accepted` event."""
    usual = {"type": "accepted", "as": "queue", "number": 2, "ack": "queued", "matched": None}
    return {**usual, **fields}


@pytest.mark.parametrize(
    ("event", "text"),
    [
        (
            accepted(text="what's the zod syntax for optional again?"),
            '📥 Queued #2: "what\'s the zod syntax..."',
        ),
        (accepted(text="two"), '📥 Queued #2: "two"'),
        (accepted(text="one\n  line"), '📥 Queued #2: "one line"'),
        (
            accepted(text="hi", ack="subagent_working"),
            "⏳ Subagent working — your message is queued for when it finishes",
        ),
        (
            accepted(text="Stop!", **{"as": "interrupt"}, matched="stop"),
            '⚠️ Interrupt detected: "stop"',
        ),
        (
            accepted(text="exit code 2", ack="word_queued", matched="exit"),
            '📥 Queued #2: "exit code 2"\n"exit" in it stopped nothing: /stop stops everything.',
        ),
        (
            accepted(text="stop", **{"as": "steer"}, ack="word_steered", matched="stop"),
            'Steering with #2: "stop"\n"stop" in it stopped nothing: /stop stops everything.',
        ),
        ({"type": "steered"}, "[Steered]"),
        (
            {"type": "interrupted", "checkpoint": {"done": 23, "total": 50, "unit": "file"}},
            "Stopping current task. Progress saved at checkpoint 23/50.",
        ),
        ({"type": "interrupted", "checkpoint": None}, "Stopping current task."),
        ({"type": "interrupting", "cause": "stop"}, ""),
        ({"type": "stopped", "killed": [4, 5], "survivors": []}, "Ended: processes 4, 5"),
        (
            {"type": "stopped", "killed": [4], "survivors": [7]},
            "Still alive, and not to be ended: process 7",
        ),
    ],
)
def test_acknowledgements(event: dict[str, Any], text: str) -> None:
    """People read these words, cut to forty columns."""
    assert acknowledgement(event) == text


def test_without_utf8_words_are_plain() -> None:
    """No sign outside ASCII is printed where the terminal has no UTF-8."""
    assert acknowledgement(accepted(text="two"), can_utf8=False) == 'Queued #2: "two"'
