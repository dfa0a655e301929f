"""A question of the agent, as a person reads and answers it in a terminal."""

from __future__ import annotations

from collections.abc import Callable

from ..gateway.conversation import Conversation
from ..gateway.events import Event
from ..gateway.terminal import clean

__all__ = ["Questions", "answered", "asked"]

CHOICES = {
    **{"y": "allow", "yes": "allow", "a": "always", "always": "always"},
    **{"n": "deny", "no": "deny"},
}


class Questions:
    """The open questions, of the agent and of its subagents, oldest first."""

    def __init__(self) -> None:
        self._open: list[Event] = []

    @property
    def first(self) -> Event | None:
        """The one that is to be answered next."""
        return self._open[0] if self._open else None

    def hear(self, event: Event) -> None:
        """Take in an event: a question, or what shows that one is open no longer."""
        match event["type"]:
            case "question":
                self._open.append(event)
            case "turn_ended":
                self._keep(lambda one: one["session"] != event["session"])
            case "tool_started" | "tool_ended":
                asked_here = event["session"], event["call"]
                self._keep(lambda one: (one["session"], _call(one)) != asked_here)
            case _:
                pass

    def drop(self, question: Event) -> None:
        """Forget one: it was answered."""
        self._keep(lambda one: one is not question)

    def _keep(self, is_open: Callable[[Event], bool]) -> None:
        self._open = [one for one in self._open if is_open(one)]


def _call(question: Event) -> str:
    return str(question["id"]).rpartition("-")[2]


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
