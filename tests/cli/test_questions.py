"""The text of a question."""

from steersman.cli.question import SHOWN, asked


def test_a_long_call_says_what_is_not_shown() -> None:
    """A question says how much of a long command it leaves out."""
    command = "echo " + "x" * SHOWN + "; rm -rf ."
    text = asked({"tool": "shell", "arguments": {"command": command}})
    assert f" … {len(command) - SHOWN} more characters" in text
    assert "more characters" not in asked({"tool": "shell", "arguments": {"command": "ls"}})
