"""Questions of agents: as a terminal shows them, and how typed text answers them."""

from __future__ import annotations

from collections.abc import Callable

from ..gateway.events.contract import Event, QuestionEvent
from ..gateway.formats import call_words
from ..gateway.interface import ChatSession
from ..gateway.terminal import exposed

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
        """The next question to answer."""
        return self._open[0] if self._open else None

    @property
    def all(self) -> list[QuestionEvent]:
        """All open questions."""
        return list(self._open)

    def hear(self, event: Event) -> None:
        """Take in an event that opens or closes a question."""
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
        """Drop a question that was answered."""
        self._keep(lambda other: other is not question)

    def drop_those_of(self, step: str) -> None:
        """Drop the questions of a workflow's step that has ended."""
        self._keep(lambda question: question.get("step") != step)

    def _keep(self, is_open: Callable[[QuestionEvent], bool]) -> None:
        self._open = [question for question in self._open if is_open(question)]


def _call(question: QuestionEvent) -> str:
    return question["id"].rpartition("-")[2]


def asked(question: QuestionEvent) -> str:
    """Return the text of a question."""
    words = exposed(" ".join(call_words(question["arguments"])))
    left = len(words) - SHOWN
    what = f"{words[:SHOWN]} … {left} more characters, /inspect shows all" if left > 0 else words
    return f"{exposed(question['tool'])}: {what}\nMay it run? [y]es, [a]lways, [n]o\n"


def answering(question: QuestionEvent, text: str) -> tuple[str, str] | None:
    """Read a text as the answer to a question: choice and reason; `None` if it is a message.

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
    """Answer the open question with a text; False if the text is a message."""
    answer = answering(question, text)
    if answer is not None:
        conversation.answer(question["id"], *answer)
    return answer is not None
