"""A question of the agent, as a person reads and answers it in a terminal."""

from __future__ import annotations

from collections.abc import Callable

from ..gateway.conversation import Conversation
from ..gateway.events.contract import Event
from ..gateway.formats import call_words
from ..gateway.terminal import clean

CHOICES = {
    **{"y": "allow", "yes": "allow", "a": "always", "always": "always"},
    **{"n": "deny", "no": "deny"},
}
POLITE = {"please", "thanks"}
SHOWN = 2_000
"""Characters of a call that a question shows."""


class Questions:
    """The open questions, of the agent and of its subagents, oldest first."""

    def __init__(self) -> None:
        self._open: list[Event] = []

    @property
    def first(self) -> Event | None:
        """The one that is to be answered next."""
        return self._open[0] if self._open else None

    @property
    def all(self) -> list[Event]:
        """All of them."""
        return list(self._open)

    def hear(self, event: Event) -> None:
        """Take in an event: a question, or what shows that one is open no longer."""
        match event["type"]:
            case "question":
                self._open.append(event)
            case "answered":
                self._keep(lambda one: one["id"] != event["id"])
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

    def drop_those_of(self, step: str) -> None:
        """Forget what a workflow's step asked: it has ended."""
        self._keep(lambda one: one.get("step") != step)

    def _keep(self, is_open: Callable[[Event], bool]) -> None:
        self._open = [one for one in self._open if is_open(one)]


def _call(question: Event) -> str:
    return str(question["id"]).rpartition("-")[2]


def asked(question: Event) -> str:
    """Return the lines that ask."""
    words = clean(" ".join(call_words(question["arguments"])))
    left = len(words) - SHOWN
    what = f"{words[:SHOWN]} … {left} more characters, /inspect shows all" if left > 0 else words
    return f"{question['tool']}: {what}\nMay it run? [y]es, [a]lways, [n]o\n"


def answering(question: Event, text: str) -> tuple[str, str] | None:
    """Read a text as the answer to a question: choice and reason; none if it is a message.

    A word or a letter for a choice answers, `please` and `thanks` aside; `n` or `deny` may be
    followed by a reason, which the agent is told.
    """
    words = text.strip().lower().strip(".!").replace(",", " ").split()
    if not words:
        return None
    if words[0] in ("n", "deny") and len(words) > 1 and words[1] not in POLITE:
        return "deny", text.strip().partition(" ")[2].strip()
    choice = CHOICES.get(words[0], words[0])
    is_choice = choice in question["options"] and set(words[1:]) <= POLITE
    return (choice, "") if is_choice else None


def answered(conversation: Conversation, question: Event, text: str) -> bool:
    """Take a text that answers the open question; anything else is a message."""
    answer = answering(question, text)
    if answer is not None:
        conversation.answer(question["id"], *answer)
    return answer is not None
