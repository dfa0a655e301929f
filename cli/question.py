"""A question of the agent, as a person reads and answers it in a terminal."""

from __future__ import annotations

from collections.abc import Callable

from ..gateway.events.contract import Event, QuestionEvent
from ..gateway.formats import call_words
from ..gateway.interface import ChatSession
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
        self._open: list[QuestionEvent] = []

    @property
    def first(self) -> QuestionEvent | None:
        """The one that is to be answered next."""
        return self._open[0] if self._open else None

    @property
    def all(self) -> list[QuestionEvent]:
        """All of them."""
        return list(self._open)

    def hear(self, event: Event) -> None:
        """Take in an event: a question, or what shows that one is open no longer."""
        if event["type"] == "question":
            self._open.append(event)
        elif event["type"] == "answered":
            self._keep(lambda question: question["id"] != event["id"])
        elif event["type"] == "turn_ended":
            self._keep(lambda question: question["session"] != event["session"])
        elif event["type"] == "tool_started" or event["type"] == "tool_ended":
            asked_here = event["session"], event["call"]
            self._keep(lambda question: (question["session"], _call(question)) != asked_here)

    def drop(self, question: QuestionEvent) -> None:
        """Forget one: it was answered."""
        self._keep(lambda other: other is not question)

    def drop_those_of(self, step: str) -> None:
        """Forget what a workflow's step asked: it has ended."""
        self._keep(lambda question: question.get("step") != step)

    def _keep(self, is_open: Callable[[QuestionEvent], bool]) -> None:
        self._open = [question for question in self._open if is_open(question)]


def _call(question: QuestionEvent) -> str:
    return question["id"].rpartition("-")[2]


def asked(question: QuestionEvent) -> str:
    """Return the lines that ask."""
    words = clean(" ".join(call_words(question["arguments"])))
    left = len(words) - SHOWN
    what = f"{words[:SHOWN]} … {left} more characters, /inspect shows all" if left > 0 else words
    return f"{question['tool']}: {what}\nMay it run? [y]es, [a]lways, [n]o\n"


def answering(question: QuestionEvent, text: str) -> tuple[str, str] | None:
    """Read a text as the answer to a question: choice and reason; none if it is a message.

    A word or a letter for a choice answers, `please` and `thanks` aside; `n` or `deny` may be
    followed by a reason, which goes to the agent.
    """
    words = text.strip().lower().strip(".!").replace(",", " ").split()
    if not words:
        return None
    if words[0] in ("n", "deny") and len(words) > 1 and words[1] not in POLITE:
        return "deny", text.strip().partition(" ")[2].strip()
    choice = CHOICES.get(words[0], words[0])
    is_choice = choice in question["options"] and set(words[1:]) <= POLITE
    return (choice, "") if is_choice else None


def answered(conversation: ChatSession, question: QuestionEvent, text: str) -> bool:
    """Take a text that answers the open question; anything else is a message."""
    answer = answering(question, text)
    if answer is not None:
        conversation.answer(question["id"], *answer)
    return answer is not None
