"""What is shown of text from outside: nothing that a terminal obeys, and nothing hidden in a question."""

import pytest

from steersman.cli.question import asked
from steersman.cli.runs.watch import event_line, summary
from steersman.cli.screen.appearance import Appearance
from steersman.cli.screen.screen import card_rows
from steersman.gateway.wording.terminal import clean, exposed

HIDDEN = "git status \x1b]; touch PWNED ; : \x07"
SIGNS = [
    "\x1b[31m",
    "\x1b]52;c;Q0FO\x07",
    "\x1b]8;;http://x\x1b\\",
    "\x1bPq\x1b\\",
    "\x9b31m",
    "\x00\x08\r\x7f",
    "\u202e\u2066",
    "\u200b\u00ad\ufeff",
    "\U000e0041",
]


@pytest.mark.parametrize("sign", SIGNS)
def test_nothing_that_acts_or_hides_stays(sign: str) -> None:
    """Each such character becomes an escape that can be read, and the text around it stays."""
    text = exposed(f"a{sign}b\n\tc")
    assert text.startswith("a\\")
    assert text.endswith("b\n\tc")
    assert all(char.isprintable() or char in "\n\t" for char in text)


def test_plain_text_stays_as_it_is() -> None:
    """Words of any language, tabs and line ends are not touched."""
    text = "rm -rf 'für' 停止\n\tstop"
    assert exposed(text) == clean(text) == text


def test_a_question_shows_the_whole_command() -> None:
    """A command behind an escape sequence is in the question, on the screen and in plain text."""
    question = {
        "type": "question",
        "id": "q-1",
        "session": "s1",
        "kind": "permission",
        "tool": "shell\x1b]0;x\x07",
        "arguments": {"command": HIDDEN},
        "options": ["allow", "always", "deny"],
    }
    rows = card_rows(question, 1, "", 80, Appearance.of({}))  # type: ignore[arg-type]
    card = "\n".join("".join(piece[1] for piece in row) for row in rows)
    for text in (card, asked(question)):  # type: ignore[arg-type]
        assert "touch PWNED" in text
        assert "\x1b" not in text
        assert "\x07" not in text
        assert "\\x1b" in text


def test_what_a_run_prints_acts_on_no_terminal() -> None:
    """Neither a failed step's reason nor a run's output reaches a terminal as it came."""
    step = {"type": "step", "step": "b", "state": "failed", "reason": "exit code 3: L\x1bcS"}
    ended = {"run": "r1", "status": "failed", "steps": [], "output": "a\x1b]52;c;Q0FO\x07b"}
    lines = [event_line(step), *summary(ended, [], 1.0)]  # type: ignore[arg-type]
    assert "failed: b: exit code 3: LS" in lines
    assert "ab" in lines
    assert not any("\x1b" in line for line in lines)
