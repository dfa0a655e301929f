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
        ('{"verdict": "wait"}', Verdict(kind="wait", reason="", condition=SOME_TIME)),
    ],
)
def test_verdicts_are_read(text: str, expected: Verdict) -> None:
    """Every documented form, and every documented fallback."""
    assert read_verdict(text) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('{"seconds": 90}', Condition(kind="time", seconds=90.0)),
        ('{"process": 4711}', Condition(kind="process", seconds=0.0, process=4711)),
        ('{"file": "out/log.txt"}', Condition(kind="file", seconds=0.0, file="out/log.txt")),
        ("5", Condition(kind="time", seconds=5.0)),
        ('{"seconds": -1}', SOME_TIME),
        ('{"seconds": 1e99}', SOME_TIME),
        ('{"file": "/etc/x"}', SOME_TIME),
        ('{"file": "a/../b"}', SOME_TIME),
        ('{"process": true}', SOME_TIME),
    ],
)
def test_conditions_are_read(given: str, expected: Condition) -> None:
    """What makes no sense as a condition is some time."""
    text = f'{{"verdict": "wait", "condition": {given}}}'
    assert read_verdict(text) == Verdict(kind="wait", reason="", condition=expected)


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
