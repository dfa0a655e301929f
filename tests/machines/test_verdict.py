"""What a judge may say, and what is made of it."""

import pytest

from steersman.machines.verdict import SOME_SECONDS, Condition, Unusable, Verdict, read_verdict

SOME_TIME = Condition(kind="time", seconds=SOME_SECONDS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"verdict": "done", "reason": "all pass"}', Verdict(kind="done", reason="all pass")),
        (
            '{"verdict": "continue", "reason": "two\\n fail"}',
            Verdict(kind="continue", reason="two fail"),
        ),
        ('{"verdict": "impossible"}', Verdict(kind="impossible")),
        ('{"verdict": " Done "}', Verdict(kind="done")),
        ('{"done": true, "reason": "yes"}', Verdict(kind="done", reason="yes")),
        ('{"done": false}', Verdict(kind="continue")),
        ('{"verdict": "done", "done": true}', Verdict(kind="done")),
        (
            'Sure!\n```json\n{"verdict": "done", "reason": "ok"}\n```\nBye.',
            Verdict(kind="done", reason="ok"),
        ),
        ('{"a": 1} {"verdict": "done"}', Verdict(kind="done")),
        ('{"verdict": "done"} {"verdict": "done"}', Verdict(kind="done")),
        ('{"verdict": "continue", "note": {"verdict": "done"}}', Verdict(kind="continue")),
        ('{"verdict": "done", "reason": 7}', Verdict(kind="done")),
        (
            '{"verdict": "wait", "condition": {"seconds": 90}}',
            Verdict(kind="wait", reason="", condition=Condition(kind="time", seconds=90.0)),
        ),
        (
            '{"verdict": "wait", "condition": {"process": 4711}}',
            Verdict(
                kind="wait",
                reason="",
                condition=Condition(kind="process", seconds=0.0, process=4711),
            ),
        ),
        (
            '{"verdict": "wait", "condition": {"file": "out/log.txt"}}',
            Verdict(
                kind="wait",
                reason="",
                condition=Condition(kind="file", seconds=0.0, file="out/log.txt"),
            ),
        ),
        (
            '{"verdict": "wait", "condition": 5}',
            Verdict(kind="wait", reason="", condition=Condition(kind="time", seconds=5.0)),
        ),
        ('{"verdict": "wait"}', Verdict(kind="wait", reason="", condition=SOME_TIME)),
        (
            '{"verdict": "wait", "condition": {"seconds": -1}}',
            Verdict(kind="wait", reason="", condition=SOME_TIME),
        ),
        (
            '{"verdict": "wait", "condition": {"seconds": 1e99}}',
            Verdict(kind="wait", reason="", condition=SOME_TIME),
        ),
        (
            '{"verdict": "wait", "condition": {"file": "/etc/x"}}',
            Verdict(kind="wait", reason="", condition=SOME_TIME),
        ),
        (
            '{"verdict": "wait", "condition": {"file": "a/../b"}}',
            Verdict(kind="wait", reason="", condition=SOME_TIME),
        ),
        (
            '{"verdict": "wait", "condition": {"process": true}}',
            Verdict(kind="wait", reason="", condition=SOME_TIME),
        ),
    ],
)
def test_verdicts_are_read(text: str, expected: Verdict) -> None:
    """Every documented form, and every documented fallback."""
    assert read_verdict(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "",
        "   ",
        "Well done, I am impressed.",
        "done",
        "{",
        '{"verdict": "maybe"}',
        '{"verdict": 1}',
        '{"verdict": ["done"]}',
        '{"done": "yes"}',
        '{"verdict": "continue", "done": true}',
        '{"verdict": "done"} {"verdict": "continue"}',
        '{"verdict": "done"} {"verdict": "maybe"}',
        '["done"]',
        "{" * 5_000,
        '{"a":' * 5_000,
    ],
)
def test_whatever_else_comes_is_no_verdict(text: str) -> None:
    """Prose, nonsense and contradictions are unusable, and say why; nothing raises."""
    found = read_verdict(text)
    assert isinstance(found, Unusable)
    assert found.why
