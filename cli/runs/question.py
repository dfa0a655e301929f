"""A question of a workflow's step, as a person reads and answers it."""

from __future__ import annotations

from ...gateway.conversation import Conversation
from ...gateway.events.contract import Event
from ...gateway.terminal import clean
from ..question import answered, asked

__all__ = ["answer_question", "ask_text"]


def ask_text(question: Event) -> str:
    """Return the lines that ask; also for what an agent wants to do."""
    if question.get("kind") != "ask":
        return asked(question)
    lines = [f"{question['step']} asks: {question['arguments']['text']}"]
    default = question.get("default")
    for number, option in enumerate(question["options"], 1):
        lines.append(f"  {number}. {option}{' (if you say nothing)' if option == default else ''}")
    if default is not None and default not in question["options"]:
        lines.append(f"  (if you say nothing: {default})")
    return clean("\n".join(lines)) + "\n"


def answer_question(conversation: Conversation, question: Event, text: str) -> bool:
    """Answer with what was typed; False where that is no answer, and so a message."""
    if question.get("kind") != "ask":
        return answered(conversation, question, text)
    return conversation.answer(question["id"], text.strip())
