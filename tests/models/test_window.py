"""How a conversation is made to fit a small window."""

from steersman.machines.conversation import ChatMessage
from steersman.ports.models.embedded.model import fit
from steersman.ports.models.model import ModelRequest


def test_newest_messages_fit_the_window():
    """Old messages go, the newest stays, and the first that is kept is a user message."""
    talk = tuple(
        ChatMessage(role="user" if number % 2 == 0 else "assistant", text=f"{number} " + "x" * 300)
        for number in range(41)
    )
    kept = fit(ModelRequest(system="system", messages=talk, max_tokens=300), 1000).messages
    assert kept == talk[-len(kept) :]
    assert kept[0].role == "user"
    assert sum(len(one.text) for one in kept) < (1000 - 300) * 3


def test_long_message_keeps_head_and_tail():
    """A message that is too long alone is cut in the middle, and says so."""
    message = ChatMessage(role="user", text="begin " + "x" * 100_000 + " end")
    [kept] = fit(ModelRequest(system="", messages=(message,), max_tokens=300), 1000).messages
    assert kept.text.startswith("begin ")
    assert kept.text.endswith(" end")
    assert "characters left out" in kept.text
    assert len(kept.text) <= 2100
