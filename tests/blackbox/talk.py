"""A conversation with all that a crash can destroy: a tool at work, three queued messages, a steer.

The sweep kills it at each of its writes; the power-loss replay takes its recorded writes apart.
"""

from support.driver import Chat, Gate
from support.model_server import Behaviour, Text, shell

__all__ = ["EFFECTS", "STEER", "TEXTS", "WARM_UP", "behaviours", "converse"]

FIRST = {"text": "first", "client_id": "first"}
QUEUED = [
    {"text": text, "as": "queue", "client_id": text} for text in ("second", "third", "fourth")
]
STEER = "by the way"
TEXTS = frozenset({"first", "second", "third", "fourth", STEER})
EFFECTS = "effects"
"""A file of the project, where each tool that runs leaves its name, a line each."""
WARM_UP = 4
"""Commits before anything is said: more writes of the writer's thread than the opening's."""


def behaviours(gate: Gate) -> list[Behaviour]:
    """What the model does: asks once for each of two tools, of which the first waits; and answers."""
    calls = {
        "first": f"echo first >> {EFFECTS}; {gate.command}",
        "third": f"echo third >> {EFFECTS}",
    }
    tools = [shell(command, match=f"{name}$") for name, command in calls.items()]
    return [*tools, Text("Done.")]


def converse(chat: Chat, gate: Gate) -> None:
    """Say everything while the first turn's tool waits; then let it end, and leave."""
    for number in range(WARM_UP):
        chat.ask(f"/busy {('queue', 'steer')[number % 2]}")
    chat.causes(FIRST, "tool_started")
    chat.send(*QUEUED, {"text": STEER, "as": "steer", "client_id": "steer"})
    chat.wait("accepted", client_id="fourth")
    gate.open()
    for _ in range(4):
        chat.wait("turn_ended")
    chat.close()
