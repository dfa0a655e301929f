"""The verbs of `/queue`: see what waits, and put it into the order and the words that are wanted.

Each is a function `(conversation, rest) -> Reply`, where `rest` is what follows the verb, as typed:
a text may hold quotes and apostrophes. Numbers stay with their messages; only the order changes.
"""

from __future__ import annotations

import secrets
import shlex
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from ...machines.messages import PolicyChange, QueueChange, ResumeQueue
from ..progress import item_line, progress_text
from ..saved_queue import (
    queue_discard,
    queue_export,
    queue_import,
    queue_restore,
    queue_resume_saved,
)
from .reply import Reply

if TYPE_CHECKING:
    from ..conversation import Conversation


QUEUE_USAGE = (
    "[list [--all]|add TEXT|edit N TEXT|move N POS|pop [N]|clear|steer N [@NAME]|keep [N]|hold"
    "|resume [N]|on|off|restore|discard|export FILE|import FILE]"
)

Verb = Callable[["Conversation", str], Reply]


def queue_command(conversation: Conversation, argument: str) -> Reply:
    """Carry out what follows `/queue`; nothing is the same as `list`."""
    verb, _, rest = argument.strip().partition(" ")
    run = QUEUE_VERBS.get(verb.lower() or "list")
    if run is None:
        return Reply(
            False, text=f"No `/queue {verb}`. There are: {', '.join(sorted(QUEUE_VERBS))}."
        )
    return run(conversation, rest.strip())


def _list(conversation: Conversation, rest: str) -> Reply:
    if rest not in ("", "--all"):
        return Reply(False, text=f"/queue list takes nothing, or --all: not `{rest}`")
    data = conversation.queue(is_all=bool(rest))
    items = data["items"]
    if not items:
        return Reply(True, data, "The queue is empty.")
    lines = [_line(one) for one in items]
    if data["state"] == "held":
        lines.append("Held. /queue resume runs them.")
    return Reply(True, data, "\n".join(lines))


def _line(item: Mapping[str, Any]) -> str:
    line = item_line(item)
    if item.get("answer") not in (None, item["text"]):
        line += f" -> {item['answer']}"
    if item.get("children"):
        line += f" (for {', '.join(item['children'])})"
    return line


def _add(conversation: Conversation, rest: str) -> Reply:
    """Say it as a message for the queue; with nothing running or held it runs at once."""
    if not rest:
        return Reply(False, text="Add what? /queue add TEXT")
    key = f"add-{secrets.token_hex(8)}"
    conversation.say(rest, "queue", key)
    item = conversation.item_of(key)
    if item is None:
        reason = _why_not(conversation)
        data = {"ok": False, "reason": reason, "text": rest}
        return Reply(False, data, f"Not taken ({reason}): {rest}")
    data = {"ok": True, "id": item.id, "number": item.number, "text": rest}
    return Reply(True, data, f"Added #{item.number}.")


def _why_not(conversation: Conversation) -> str:
    live = conversation.runtime.sessions.get(conversation.session)
    waiting = len(conversation.record().queue.waiting())
    is_full = live is not None and waiting >= live.environment.policy.max_queue_size
    return "queue_full" if is_full else "rejected"


def _edit(conversation: Conversation, rest: str) -> Reply:
    name, _, text = rest.partition(" ")
    number = _number(name)
    if number is None:
        return _which(name, "/queue edit N TEXT")
    attached = conversation.attached(text)
    answer = conversation.ask(QueueChange("edit", number, text.strip(), attached=attached))
    return _reply(answer, f"#{number} reads now: {text.strip()}")


def _move(conversation: Conversation, rest: str) -> Reply:
    name, _, place = rest.partition(" ")
    number, position = _number(name), _number(place.strip())
    if number is None or position is None:
        return _which(name if number is None else place, "/queue move N POSITION")
    answer = conversation.ask(QueueChange("move", number, position=position))
    return _reply(answer, f"#{number} is at position {answer.get('position')}.")


def _pop(conversation: Conversation, rest: str) -> Reply:
    number = _number(rest)
    if rest and number is None:
        return _which(rest, "/queue pop [N]")
    answer = conversation.ask(QueueChange("withdraw", number))
    gone = ", ".join(f"#{one}" for one in answer.get("withdrawn", ()))
    return _reply(answer, f"Taken back: {gone}.")


def _clear(conversation: Conversation, rest: str) -> Reply:
    answer = conversation.ask(QueueChange("clear"))
    count = len(answer.get("withdrawn", ()))
    return _reply(answer, f"Taken back: {count} waiting." if count else "Nothing waits.")


def _steer(conversation: Conversation, rest: str) -> Reply:
    name, _, to = rest.partition(" ")
    number = _number(name)
    if number is None:
        return _which(name, "/queue steer N [@NAME]")
    answer = conversation.ask(QueueChange("steer", number, to=to.strip().removeprefix("@")))
    if answer.get("when"):
        return _reply(answer, f"#{number} goes to the running turn as soon as {answer['when']}.")
    if answer.get("children"):
        return _reply(answer, f"#{number} goes to {', '.join(answer['children'])}.")
    return _reply(answer, f"#{number} goes to the running turn at its next boundary.")


def _keep(conversation: Conversation, rest: str) -> Reply:
    number = _number(rest)
    if rest and number is None:
        return _which(rest, "/queue keep [N]")
    answer = conversation.ask(QueueChange("keep", number))
    later = ", as soon as it is answered" if answer.get("when") else ""
    return _reply(answer, f"#{answer.get('number')} waits like a message{later}.")


def _hold(conversation: Conversation, rest: str) -> Reply:
    answer = conversation.ask(QueueChange("hold"))
    is_held = answer.get("state") == "held"
    said = "Held. /queue resume runs it." if is_held else "Nothing waits: there is nothing to hold."
    return _reply(answer, said)


def _resume(conversation: Conversation, rest: str) -> Reply:
    number = _number(rest) if len(rest) < 6 else None  # longer ones are ids of sessions
    elsewhere = None if number else queue_resume_saved(conversation, rest.split())
    if elsewhere is not None:
        return elsewhere
    items = {one["number"]: one for one in conversation.queue()["items"]}
    answer = conversation.ask(ResumeQueue(number))
    count = answer.get("restored", 0)
    children: list[str] = answer.get("children") or []
    going = f"{', '.join(children)} {'go' if len(children) > 1 else 'goes'} on." if children else ""
    if not answer.get("ok", True) or not count:
        waits = any(one["state"] == "pending" for one in items.values())
        nothing = "Nothing is held: what waits runs." if waits else "Nothing waits."
        return _reply(answer, going or nothing)
    at = items.get(answer.get("number"), {}).get("progress")
    where = f" from checkpoint{progress_text(at)}" if at else ""
    things = "item" if count == 1 else "items"
    said = f"Restored {count} {things}. Processing #{answer['number']}{where}..."
    if answer.get("after"):
        said = (
            f"Restored {count} {things}. #{answer['number']} runs{where} after #{answer['after']}."
        )
    return _reply(answer, f"{said} {going}".rstrip())


def _on(conversation: Conversation, rest: str) -> Reply:
    return _auto_queue(conversation, True)


def _off(conversation: Conversation, rest: str) -> Reply:
    return _auto_queue(conversation, False)


def _auto_queue(conversation: Conversation, is_on: bool) -> Reply:
    answer = conversation.ask(PolicyChange(is_auto_queue=is_on))
    said = (
        "Auto-queue is on: what you say during a turn waits for the next."
        if is_on
        else "Auto-queue is off: what you say during a turn follows /busy. What waits still runs."
    )
    return _reply({**answer, "auto_queue": is_on}, said)


def _with_words(run: Callable[[Conversation, list[str]], Reply]) -> Verb:
    """Give a verb its words, quotes taken off."""

    def split(conversation: Conversation, rest: str) -> Reply:
        try:
            words = shlex.split(rest)
        except ValueError as error:
            return Reply(False, text=f"`{rest}` can't be read: {error}.")
        return run(conversation, words)

    return split


def _number(text: str) -> int | None:
    digits = text.removeprefix("#")
    return int(digits) if digits.isdecimal() else None


def _which(name: str, usage: str) -> Reply:
    said = f"`{name}` is not a number" if name else "Which one"
    return Reply(False, text=f"{said}: {usage}. /queue list shows the numbers.")


def _reply(answer: dict[str, Any], said: str) -> Reply:
    """Report success in these words, or why it was refused."""
    is_ok = bool(answer.get("ok", True))
    return Reply(is_ok, answer, said if is_ok else str(answer.get("reason", "Refused.")))


QUEUE_VERBS: dict[str, Verb] = {
    "list": _list,
    "add": _add,
    "edit": _edit,
    "move": _move,
    "pop": _pop,
    "clear": _clear,
    "steer": _steer,
    "keep": _keep,
    "hold": _hold,
    "resume": _resume,
    "on": _on,
    "off": _off,
    "restore": _with_words(queue_restore),
    "discard": _with_words(queue_discard),
    "export": _with_words(queue_export),
    "import": _with_words(queue_import),
}
