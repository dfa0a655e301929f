"""The slash commands: one registry for the terminal, scripts, sockets and editors alike.

A command is looked up here, carried out at once, also in the middle of a turn, and answered with one
`Reply`: `data` is what machine interfaces get, `text` what people read.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..machines.messages import Interrupt, QueueChange, ResumeQueue
from .progress import progress_text

if TYPE_CHECKING:
    from .conversation import Conversation

__all__ = ["COMMANDS", "Command", "Reply", "find"]


@dataclass(frozen=True, slots=True)
class Reply:
    """A command's one answer. `leaves`: the face that typed it should end."""

    ok: bool
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    text: str = ""
    leaves: bool = False


Run = Callable[["Conversation", str], Reply]


@dataclass(frozen=True, slots=True)
class Command:
    """One slash command; `usage` is what follows the name.

    `is_urgent`: it doesn't wait for what was said before it.
    """

    name: str
    usage: str
    doc: str
    run: Run
    is_urgent: bool = False


def _help(conversation: Conversation, argument: str) -> Reply:
    known = [find(argument.lstrip("/"))] if argument else list(COMMANDS.values())
    if known == [None]:
        return Reply(False, text=f"No command `/{argument.lstrip('/')}`. /help lists them.")
    rows = [one for one in known if one is not None]
    width = max(len(f"/{one.name} {one.usage}") for one in rows)
    lines = [f"{f'/{one.name} {one.usage}':<{width}}  {one.doc}" for one in rows]
    data = [{"name": one.name, "usage": one.usage, "doc": one.doc} for one in rows]
    return Reply(True, {"commands": data}, "\n".join(lines))


def _stop(conversation: Conversation, argument: str) -> Reply:
    answer = conversation.ask(Interrupt("stop", said=conversation.runtime.next_said()))
    if answer.get("interrupted"):
        return Reply(True, answer, f"Stopping turn {answer['interrupted']}.")
    return Reply(True, answer, f"Nothing to stop: {answer.get('reason', 'nothing runs')}.")


def _new(conversation: Conversation, argument: str) -> Reply:
    before = conversation.session
    conversation.renew()
    data = {"finalized": before, "session": conversation.session}
    return Reply(True, data, f"New session {conversation.session}.")


def _exit(conversation: Conversation, argument: str) -> Reply:
    return Reply(True, {}, "", leaves=True)


def _inspect(conversation: Conversation, argument: str) -> Reply:
    data = conversation.inspect()
    return Reply(True, data, conversation.draw(data))


def _queue(conversation: Conversation, argument: str) -> Reply:
    words = shlex.split(argument) if argument else []
    verb = words[0].lower() if words else "list"
    run = QUEUE_VERBS.get(verb)
    if run is None:
        known = ", ".join(sorted(QUEUE_VERBS))
        return Reply(False, text=f"No `/queue {verb}`. There are: {known}.")
    return run(conversation, words[1:])


def _queue_list(conversation: Conversation, words: list[str]) -> Reply:
    data = conversation.queue()
    items = data["items"]
    if not items:
        return Reply(True, data, "The queue is empty.")
    lines = [
        f"#{one['number']} [{one['state'].upper()}]: {one['text']}{progress_text(one['progress'])}"
        for one in items
    ]
    if data["state"] == "held":
        lines.append("Held. /queue resume runs them.")
    return Reply(True, data, "\n".join(lines))


def _queue_pop(conversation: Conversation, words: list[str]) -> Reply:
    number = _number(words)
    if words and number is None:
        return Reply(False, text=f"`{words[0]}` is not a number. /queue list shows them.")
    answer = conversation.ask(QueueChange("withdraw", number))
    if not answer.get("ok"):
        return Reply(False, answer, str(answer.get("reason", "Nothing was taken back.")))
    gone = ", ".join(f"#{one}" for one in answer["withdrawn"])
    return Reply(True, answer, f"Taken back: {gone}.")


def _queue_clear(conversation: Conversation, words: list[str]) -> Reply:
    answer = conversation.ask(QueueChange("clear"))
    count = len(answer.get("withdrawn", ()))
    return Reply(True, answer, f"Taken back: {count} waiting." if count else "Nothing waits.")


def _queue_resume(conversation: Conversation, words: list[str]) -> Reply:
    items = {one["number"]: one for one in conversation.queue()["items"]}
    answer = conversation.ask(ResumeQueue())
    count = answer.get("restored", 0)
    if not count:
        return Reply(True, answer, "Nothing waits.")
    first = items.get(answer.get("number"), {})
    at = first.get("progress")
    where = f" from checkpoint{progress_text(at)}" if at else ""
    return Reply(True, answer, f"Restored {count} items. Processing #{answer['number']}{where}...")


def _number(words: list[str]) -> int | None:
    text = words[0].removeprefix("#") if words else ""
    return int(text) if text.isdecimal() else None


QUEUE_VERBS: dict[str, Callable[[Conversation, list[str]], Reply]] = {
    "list": _queue_list,
    "pop": _queue_pop,
    "clear": _queue_clear,
    "discard": _queue_clear,
    "resume": _queue_resume,
    "restore": _queue_list,
}

COMMANDS: dict[str, Command] = {
    one.name: one
    for one in (
        Command("help", "[COMMAND]", "List the commands, or say what one does.", _help),
        Command("stop", "", "Stop the running turn and everything it started, now.", _stop, True),
        Command(
            "queue",
            "[list|pop [N]|clear|resume]",
            "Show what waits; take one back, or all; run what is held.",
            _queue,
        ),
        Command("inspect", "", "Show what every part of the session is doing.", _inspect),
        Command("new", "", "End this session for good and begin another.", _new),
        Command("exit", "", "Save everything and leave.", _exit),
    )
}


def find(name: str) -> Command | None:
    """Return a command by its name, case aside."""
    return COMMANDS.get(name.lower())
