"""What a judge may say, and what is made of it."""

import pytest

from steersman.machines.verdict import SOME_SECONDS, Condition, Unusable, Verdict, read_verdict

SOME_TIME = Condition("time", SOME_SECONDS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"verdict": "done", "reason": "all pass"}', Verdict("done", "all pass")),
        ('{"verdict": "continue", "reason": "two\\n fail"}', Verdict("continue", "two fail")),
        ('{"verdict": "impossible"}', Verdict("impossible")),
        ('{"verdict": " Done "}', Verdict("done")),
        ('{"done": true, "reason": "yes"}', Verdict("done", "yes")),
        ('{"done": false}', Verdict("continue")),
        ('{"verdict": "done", "done": true}', Verdict("done")),
        ('Sure!\n```json\n{"verdict": "done", "reason": "ok"}\n```\nBye.', Verdict("done", "ok")),
        ('{"a": 1} {"verdict": "done"}', Verdict("done")),
        ('{"verdict": "done"} {"verdict": "done"}', Verdict("done")),
        ('{"verdict": "continue", "note": {"verdict": "done"}}', Verdict("continue")),
        ('{"verdict": "done", "reason": 7}', Verdict("done")),
        (
            '{"verdict": "wait", "condition": {"seconds": 90}}',
            Verdict("wait", "", Condition("time", 90.0)),
        ),
        (
            '{"verdict": "wait", "condition": {"process": 4711}}',
            Verdict("wait", "", Condition("process", 0.0, process=4711)),
        ),
        (
            '{"verdict": "wait", "condition": {"file": "out/log.txt"}}',
            Verdict("wait", "", Condition("file", 0.0, file="out/log.txt")),
        ),
        ('{"verdict": "wait", "condition": 5}', Verdict("wait", "", Condition("time", 5.0))),
        ('{"verdict": "wait"}', Verdict("wait", "", SOME_TIME)),
        ('{"verdict": "wait", "condition": {"seconds": -1}}', Verdict("wait", "", SOME_TIME)),
        ('{"verdict": "wait", "condition": {"seconds": 1e99}}', Verdict("wait", "", SOME_TIME)),
        ('{"verdict": "wait", "condition": {"file": "/etc/x"}}', Verdict("wait", "", SOME_TIME)),
        ('{"verdict": "wait", "condition": {"file": "a/../b"}}', Verdict("wait", "", SOME_TIME)),
        ('{"verdict": "wait", "condition": {"process": true}}', Verdict("wait", "", SOME_TIME)),
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
