"""Shared by the tests of goals: an agent, judges with given verdicts, the wait for a state."""

import itertools
from collections.abc import Callable

from support.driver import Chat
from support.model_server import Behaviour, ModelServer, Recorded, Text

__all__ = ["DONE", "GO_ON", "Start", "counting", "turns_of", "verdicts", "wait_goal", "waits_for"]

GO_ON = '{"verdict": "continue", "reason": "not all of it is there"}'
DONE = '{"verdict": "done", "reason": "it is all there"}'
Start = Callable[..., tuple[ModelServer, ModelServer]]


def counting(request: Recorded) -> Behaviour:
    """An agent that says something else in each turn."""
    turns = sum(message["role"] == "user" for message in request.body["messages"])
    return Text(f"That was step {turns}.")


def verdicts(*said: str) -> Callable[[Recorded], Behaviour]:
    """A judge that says these, one after another; the last one stays."""
    count = itertools.count()
    return lambda request: Text(said[min(next(count), len(said) - 1)])


def waits_for(condition: str) -> str:
    """A verdict that waits for something, as JSON writes it."""
    return f'{{"verdict": "wait", "reason": "it builds", "condition": {condition}}}'


def wait_goal(chat: Chat, state: str, reason: str | None = None) -> dict:
    """Wait until the goal is in a state, for a reason if one is given."""
    fields = {"reason": reason} if reason else {}
    return chat.wait("goal", state=state, **fields)


def turns_of(chat: Chat) -> int:
    """Count the turns that have begun."""
    return len(chat.seen("turn_started"))
