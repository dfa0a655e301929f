"""A question of the agent, as a person reads and answers it in a terminal."""

from __future__ import annotations

from ..gateway.conversation import Conversation
from ..gateway.events import Event
from ..gateway.terminal import clean

__all__ = ["answered", "asked"]

CHOICES = {
    **{"y": "allow", "yes": "allow", "a": "always", "always": "always"},
    **{"n": "deny", "no": "deny"},
}


def asked(question: Event) -> str:
    """Return the lines that ask."""
    what = clean(" ".join(str(one) for one in question["arguments"].values()))[:200]
    return f"{question['tool']}: {what}\nMay it run? [y]es, [a]lways, [n]o\n"


def answered(conversation: Conversation, question: Event, text: str) -> bool:
    """Take a one-letter answer to the open question; anything else is a message."""
    words = text.strip().lower().strip(".!").replace(",", " ").split()
    choice = CHOICES.get(words[0]) if words and set(words[1:]) <= {"please", "thanks"} else None
    if choice is not None:
        conversation.answer(question["id"], choice)
    return choice is not None
