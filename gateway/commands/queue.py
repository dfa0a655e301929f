"""`/queue`: shows the waiting messages, and changes their order and texts.

The number of a message never changes, only the order of the messages.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Annotated, Any

from ...journal.queue_record import ItemRecord
from ...machines import protocol as m
from ...machines.lifecycles import RUN
from ...ports.tools.text import counted
from ..client import SessionClient
from ..events.translation import item_view
from ..home.home import SHORTEST_ID
from ..speaker import speaker
from ..wording.acknowledgement import rejected_text
from ..wording.formats import held_text, item_line, progress_text, removed_text, runs_text
from . import saved_queue
from .command import Argument, Number, NumberOrLast, Reply, command


@command(
    "queue",
    "queue",
    "Show the queue; edit, move, steer, hold, resume, or save its messages.",
    is_shared=True,
)
def queue(client: SessionClient) -> Reply:
    """List the queue."""
    return list_queue.function(client)


@queue.verb("list", "List what runs and what waits.")
def list_queue(
    client: SessionClient, *, is_all: Annotated[bool, Argument("--all")] = False
) -> Reply:
    """List the running and waiting messages; with `--all` also those whose turn was replaced."""
    data = client.queue(is_all=is_all)
    items = data["items"]
    found = saved_queue.saved_here(client)
    if isinstance(found, Reply):
        return found
    if found is not None:
        return saved_queue.saved_list(found)
    if not items:
        return Reply(data=data, text=_nothing_waits(client, data.get("children", [])))
    lines = saved_queue.saved_lines(data)
    waiting = [item for item in items if item["state"] not in ("running", "offered")]
    held = [item for item in waiting if _is_held(item)]
    is_held = data["state"] == "held" and waiting
    if is_held or any(item["state"] in ("pending", "interrupted") for item in held):
        # one that came after the queue was held runs by itself
        numbers = ", ".join(f"#{item['number']}" for item in held)
        which = "" if is_held and len(held) == len(waiting) else f": {numbers}"
        lines.append(f"Held{which}. /queue resume runs {runs_text(data.get('again'))}.")
    elif stopped := data.get("children"):
        lines.append(f"`/queue resume` goes on with {', '.join(stopped)}.")
    lines += saved_queue.offered_lines(items)
    if aside := client.record().queue.aside() if client.is_open and not is_all else []:
        lines.append(_set_aside(aside, is_first="again" in data))
    return Reply(data=data, text="\n".join(lines))


def _is_held(item: Mapping[str, Any]) -> bool:
    """Whether an item that waits needs a person's word to run."""
    return bool(item.get("held")) or not (item["state"] == "pending" or item.get("next"))


@queue.verb("add", "Add a message; it waits for its turn.")
def add_to_queue(
    client: SessionClient,
    text: Annotated[str, Argument("TEXT", is_rest=True, help="The message.")],
) -> Reply:
    """Queue a message.

    Example: steersman queue add "and the tests"
    """
    key = f"add-{secrets.token_hex(8)}"
    client.send_message(text, "queue", key)
    item = client.item_of(key)
    if item is None:
        return _not_added(client, text)
    data: dict[str, Any] = {"ok": True, "id": item.id, "number": item.number, "text": text}
    added = f"Added #{item.number}.{saved_queue.waits_here(client)}"
    return Reply(data=data, text=added, news=f"#{item.number}: {text}")


def _not_added(client: SessionClient, text: str) -> Reply:
    """Say why a message was not added, and what can be done."""
    record, limit = client.record(), client.describe().policy.max_queue_size
    reason, hint = "refused", ""
    if record.queue.state == "closed":
        reason, hint = "session_finalized", m.ANOTHER_CHAT
    elif record.run is not None and record.run.state in RUN.final:
        reason, hint = "run_succeeded", m.ANOTHER_RUN.format(record.id)
    elif record.queue.pending_count >= limit:
        reason, hint = "queue_full", m.FULL_QUEUE.format(limit)
    event = client.publisher.rejection(reason, text, "", hint)
    data = {"ok": False, "reason": reason, "hint": hint or None, "text": text}
    return Reply(ok=False, data=data, text=rejected_text(event))


@queue.verb("edit", "Change what a waiting message says.")
def edit_queue(
    client: SessionClient,
    number: Number,
    text: Annotated[str, Argument("TEXT", is_rest=True, help="The new text.")],
) -> Reply:
    """Replace the text of a queued message.

    Example: steersman queue edit 2 "only the tests"
    """
    prompt = client.parts.prompt(text)
    if prompt is not None and prompt.is_refused:
        return Reply(ok=False, data={"reason": "no_prompt"}, text=f"{prompt.path}: {prompt.note}")
    attached = (*filter(None, (prompt,)), *client.parts.attached(text))
    said = m.Said(text=text, attached=attached)
    wish = m.QueueChange(op="edit", number=number, said=said, editor=speaker().editor)
    return _reply(saved_queue.change(client, wish), f"#{number} reads now: {text}")


@queue.verb("move", "Move a waiting message to another place among those that wait, from 1.")
def move_in_queue(
    client: SessionClient,
    number: Number,
    position: Annotated[int, Argument("POS", help="Its new place, from 1.")],
) -> Reply:
    """Move a queued message.

    Example: steersman queue move 3 1
    """
    answer = saved_queue.change(client, m.QueueChange(op="move", number=number, position=position))
    return _reply(answer, f"#{number} is at position {answer.get('position')}.")


def _nothing_waits(client: SessionClient, stopped: list[str]) -> str:
    """Say that a queue is empty, and what can be resumed all the same or is saved elsewhere."""
    aside = client.record().queue.aside() if client.is_open else []
    if aside:
        return f"Nothing waits. {_set_aside(aside)}"
    if stopped:
        return f"Nothing waits. `/queue resume` goes on with {', '.join(stopped)}."
    return f"The queue is empty.{saved_queue.kept_elsewhere(client)}"


def _set_aside(aside: list[ItemRecord], *, is_first: bool = True) -> str:
    """Say which message another one replaced last, or the model did not answer, with its steers."""
    unanswered = [item for item in aside if item.state == "unanswered"]
    if unanswered:
        return (
            f"`/queue resume` goes on with #{unanswered[0].number}, which the model did not answer."
        )
    replaced = [item for item in aside if item.turn]
    newest = replaced[-1]
    steers = [f"#{item.number}" for item in aside if item.for_turn == newest.turn]
    its = f", with {' and '.join(steers)}" if steers else ""
    how = "`/queue resume`" if is_first else f"`/queue resume {newest.number}`"
    others = [f"#{item.number}" for item in replaced[:-1]]
    more = f" `/queue resume N` does for {', '.join(others)}." if others else ""
    lines = [f"{how} runs #{newest.number} again, which a message replaced{its}.{more}"]
    lines += [
        item_line(item_view(item, is_held=False)) for item in aside if item.for_turn == newest.turn
    ]
    return "\n".join(lines)


@queue.verb("pop", "Take a message back; without a number the last.")
def pop_queue(client: SessionClient, number: NumberOrLast = None) -> Reply:
    """Remove a queued message.

    Example: steersman queue pop 2
    """
    before = saved_queue.items_meant(client)
    answer = saved_queue.change(client, m.QueueChange(op="withdraw", number=number))
    gone = answer.get("withdrawn", ())
    names = ", ".join(f"#{one}" for one in gone)
    return _reply(answer, removed_text(f"Removed: {names}.", before, gone))


@queue.verb("clear", "Take back everything that waits, and what was interrupted.")
def clear_queue(client: SessionClient) -> Reply:
    """Remove all queued messages.

    Example: steersman queue clear
    """
    before = saved_queue.items_meant(client)
    begun = {item["number"] for item in before if item["state"] in saved_queue.BEGUN}
    answer = saved_queue.change(client, m.QueueChange(op="clear"))
    gone = set[int](answer.get("withdrawn", ()))
    counts = (("waiting", len(gone - begun)), ("interrupted", len(gone & begun)))
    told = ", ".join(f"{count} {what}" for what, count in counts if count)
    if not told:
        return _reply(answer, "Nothing waits.", is_news=False)
    return _reply(answer, removed_text(f"Removed: {told}.", before, gone))


@queue.verb("steer", "Hand a waiting message to the running turn, or to a subagent.")
def steer_from_queue(
    client: SessionClient,
    number: Number,
    name: Annotated[
        str, Argument("@NAME", of="subagent", help="A subagent, or @parent; else the turn.")
    ] = "",
) -> Reply:
    """Send a queued message to the running turn, or to one subagent.

    Example: steersman queue steer 2
    """
    answer = saved_queue.change(
        client, m.QueueChange(op="steer", number=number, to=name.removeprefix("@"))
    )
    if answer.get("when"):
        return _reply(answer, f"#{number} goes to the running turn as soon as {answer['when']}.")
    if answer.get("children"):
        return _reply(answer, f"#{number} goes to {', '.join(answer['children'])}.")
    if answer.get("ok") and not answer.get("turn"):
        return _reply(answer, f"Nothing runs that it could steer: #{number} runs as a message.")
    return _reply(answer, f"#{number} goes to the running turn at its next boundary.")


@queue.verb("keep", "Let the answer of a side talk or subagent wait like a message.")
def keep_in_queue(client: SessionClient, number: NumberOrLast = None) -> Reply:
    """Queue the answer of a side talk or subagent as a message.

    Example: steersman queue keep 3
    """
    answer = saved_queue.change(client, m.QueueChange(op="keep", number=number))
    later = ", as soon as it is answered" if answer.get("when") else ""
    does = "runs as a message" if answer.get("runs") else f"waits like a message{later}"
    return _reply(answer, f"#{answer.get('number')} {does}.")


@queue.verb("hold", "Run nothing of what waits until `/queue resume`.")
def hold_queue(client: SessionClient) -> Reply:
    """Hold the queue: run nothing of it until `queue resume`.

    Example: steersman queue hold
    """
    answer = client.ask(m.QueueChange(op="hold"))
    if answer.get("state") != "held":
        return _reply(answer, "Nothing waits: there is nothing to hold.", is_news=False)
    queue = client.queue()
    held = sum(bool(item.get("held")) for item in queue["items"])
    return _reply(answer, held_text(held, queue.get("again")), is_news=False)  # an event tells it


@queue.verb("resume", "Run what is held: this message first, or a session's queue.")
def resume_queue(
    client: SessionClient,
    which: Annotated[str, Argument("N|ID", of="queue")] = "",
    *,
    merge: saved_queue.Merge = False,
    replace: saved_queue.Replace = False,
    keep: saved_queue.Keep = False,
) -> Reply:
    """Resume the held queue of this session, or of a named one."""
    digits = which.removeprefix("#")
    number = int(digits) if digits.isdecimal() and len(which) < SHORTEST_ID else None
    items = {item["number"]: item for item in client.queue()["items"]}
    if not items or (which and number is None):
        before = client.session
        way = saved_queue.way_of(merge, replace, keep)
        elsewhere = saved_queue.resume_saved(client, digits, way)
        if elsewhere is not None:
            return elsewhere
        if client.session != before:
            items = {item["number"]: item for item in client.queue()["items"]}
    answer = client.ask(m.ResumeQueue(number=number))
    count = answer.get("restored", 0)
    children: list[str] = answer.get("children") or []
    going = f"{', '.join(children)} {'go' if len(children) > 1 else 'goes'} on." if children else ""
    left: list[int] = answer.get("reverted") or []
    again = " ".join(f"#{of} was reverted: `/queue resume {of}` runs it again." for of in left)
    if not answer.get("ok", True) or not count:
        waits = any(item["state"] == "pending" for item in items.values())
        kept = saved_queue.kept_elsewhere(client)
        offered = saved_queue.offered_lines(list(items.values()))
        nothing = "The queue is not held." if waits else f"Nothing waits.{kept}"
        nothing = "\n".join(offered) or nothing
        return _reply(answer, f"{going or nothing} {again}".rstrip(), is_news=bool(going))
    at = items.get(answer.get("number"), {}).get("progress")
    where = f" from checkpoint{progress_text(at)}" if at else ""
    then = f"Processing #{answer['number']}{where}..."
    if items.get(answer["number"], {}).get("edited"):
        then = f"#{answer['number']} starts once its edit is over."
    elif answer.get("after"):
        then = f"#{answer['number']} runs{where} after #{answer['after']}."
    restored = f"Restored {counted(count, 'item')}."
    return _reply(answer, " ".join(filter(None, (restored, then, going, again))))


@queue.verb("on", "Queue what is sent during a turn.")
def queue_on(client: SessionClient) -> Reply:
    """Queue messages that are sent during a turn.

    Example: steersman queue on --session last
    """
    return _auto_queue(client, True)


@queue.verb("off", "Let what is sent during a turn follow `/busy`.")
def queue_off(client: SessionClient) -> Reply:
    """Let messages that are sent during a turn follow the busy mode.

    Example: steersman queue off
    """
    return _auto_queue(client, False)


def _auto_queue(client: SessionClient, is_on: bool) -> Reply:
    answer = client.ask(m.PolicyChange(is_auto_queue=is_on))
    text = (
        "Auto-queue is on: messages during a turn are queued."
        if is_on
        else "Auto-queue is off: messages during a turn follow /busy. Queued messages still run."
    )
    return _reply({**answer, "auto_queue": is_on}, text)


def _reply(answer: dict[str, Any], text: str, *, is_news: bool = True) -> Reply:
    """Return a reply with this text, or with the reason of a refusal; `is_news`: others read it, too."""
    if answer.get("ok", True):
        return Reply(data=answer, text=text, news=text if is_news else "")
    why = str(answer.get("reason", "refused"))
    is_word = why.partition(" ")[0].isalpha()  # and no id of a session
    reason = f"{why[:1].upper()}{why[1:]}" if is_word else why
    return Reply(ok=False, data=answer, text=reason)
