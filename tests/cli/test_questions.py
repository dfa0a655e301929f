"""What a question shows before somebody answers it."""

from steersman.cli.question import SHOWN, asked


def test_a_long_call_says_what_is_not_shown() -> None:
    """Nobody allows the end of a command unseen without being told that there is one."""
    command = "echo " + "x" * SHOWN + "; rm -rf ."
    text = asked({"tool": "shell", "arguments": {"command": command}})
    assert f" … {len(command) - SHOWN} more characters" in text
    assert "more characters" not in asked({"tool": "shell", "arguments": {"command": "ls"}})
