"""What a queue survives by: how a saved one is announced, restored, thrown away, exported, imported.

The verbs are functions `(conversation, words) -> Reply`, as all verbs of `/queue` are.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..machines.errors import SteersmanError, UsageError
from ..machines.messages import QueueChange, QueueImport, ResumeQueue
from .commands.reply import Reply
from .formats import age, call_words
from .home import find_session, refuse_run
from .progress import item_line
from .queue_file import SavedItem, read_file, write_file

if TYPE_CHECKING:
    from .conversation import Conversation
    from .shelf import Saved, Shelf


WAYS = ("--merge", "--replace", "--keep")


# Announcements ------------------------------------------------------------------------------------


def announce(event: Mapping[str, Any], now: float, *, can_utf8: bool = True) -> str:
    """Return the lines that say what a `recovered` event found."""
    items, count = event["items"], len(event["items"])
    found = (
        f"Found saved queue from crashed session ({_items(count)}, not auto-resuming)"
        if event["cause"] == "crash"
        else f"Found {count} queued item{'s' if count != 1 else ''} from previous session"
        " (not auto-resuming)"
    )
    last = datetime.fromisoformat(event["last_active"]).timestamp()
    return "\n".join(
        (
            f"📥 {found}" if can_utf8 else found,
            f"Last active: {age(max(0.0, now - last))}",
            "Saved items:",
            *(item_line(one) for one in items),
            "Use `/queue restore` to list, `/queue resume` to continue, or `/queue discard` to delete",
            *(_lost(one) for one in event.get("unknown", ())),
        )
    )


def announce_other(newest: Saved | None, more: int) -> str:
    """Return the line that says that earlier sessions of a folder left something; empty if none."""
    if newest is None:
        return ""
    others = f" (and {more} more: `/queue restore --list`)" if more else ""
    name = newest.row.session
    if newest.row.workflow:
        return (
            f"Run {name} of this folder (workflow {newest.row.workflow}) was interrupted: "
            f"`steersman run --resume {name}` goes on where it was{others}"
        )
    return (
        f"Session {name} of this folder has a saved queue ({_items(len(newest.items))}): "
        f"`/queue resume {name}` goes on there, `/queue restore {name}` brings it here"
        f"{others}"
    )


def _items(count: int) -> str:
    return f"{count} item{'s' if count != 1 else ''}"


def _lost(call: Mapping[str, Any]) -> str:
    what = " ".join(call_words(call["arguments"]))[:60]
    return f"Outcome unknown, not run again: {call['tool']} {what}"


# Verbs --------------------------------------------------------------------------------------------


def take_session(words: list[str]) -> str:
    """Take the session out of a verb's words; empty when none is named. Numbers of items stay."""
    for word in words:
        if not word.startswith("-") and not (
            word.removeprefix("#").isdecimal() and len(word.removeprefix("#")) < 5
        ):
            words.remove(word)
            return word
    return ""


def queue_restore(conversation: Conversation, words: list[str]) -> Reply:
    """List what is saved here, or everywhere (`--list`), or bring another session's queue here."""
    shelf = conversation.shelf
    if "--list" in words and shelf is not None:
        return _list_all(shelf)
    name = take_session(words)
    found = _named(conversation, name)
    if isinstance(found, Reply):
        return found
    if found is None:
        return _list_here(conversation)
    return _bring(conversation, found, words)


def queue_resume_saved(conversation: Conversation, words: list[str]) -> Reply | None:
    """Bring another session's queue here and run it; none when the words name no other session.

    Where nothing is in the way that session itself is taken up, since what was interrupted there can
    only go on from its checkpoint in its own conversation: none, too, and the resume is its own.
    """
    if not (name := take_session(words)):
        return None
    found = _named(conversation, name)
    if found is None or isinstance(found, Reply):
        return found
    if conversation.take_up is not None and found.items and not conversation.queue()["items"]:
        return _go_there(conversation, found)
    brought = _bring(conversation, found, words)
    if not brought.ok or not brought.data.get("restored"):
        return brought
    answer = conversation.ask(ResumeQueue())
    count = answer.get("restored") or brought.data["restored"]
    first, after = answer.get("number"), answer.get("after")
    then = f"They run after #{after}." if after else f"Processing #{first}..."
    return Reply(
        True, {**brought.data, **answer, "restored": count}, f"Restored {_items(count)}. {then}"
    )


def queue_discard(conversation: Conversation, words: list[str]) -> Reply:
    """Withdraw everything that is saved, here or in the session that is named."""
    found = _named(conversation, take_session(words))
    if isinstance(found, Reply):
        return found
    if found is not None:
        return _throw_away(conversation, found)
    before = conversation.queue()["items"]
    answer = conversation.ask(QueueChange("clear"))
    if not answer.get("ok"):
        return Reply(False, answer, f"Nothing was discarded: {answer.get('reason')}.")
    left = {one["id"] for one in conversation.queue()["items"]}
    gone = [one["number"] for one in before if one["id"] not in left]
    text = f"Discarded {_items(len(gone))}." if gone else "Nothing is saved."
    return Reply(True, {"withdrawn": gone}, text)


def queue_export(conversation: Conversation, words: list[str]) -> Reply:
    """Write the queue into a TOML file."""
    if len(words) != 1:
        return Reply(False, text="Say where: /queue export FILE")
    live = conversation.runtime.sessions[conversation.session]
    queue = live.record.queue
    path = _path(conversation, words[0])
    conversation.queue()  # all that was said before is in it
    try:
        count = write_file(path, conversation.session, queue, time.time())
    except SteersmanError as error:
        return _refused(error)
    return Reply(True, {"file": str(path), "items": count}, f"Exported {_items(count)} to {path}.")


def queue_import(conversation: Conversation, words: list[str]) -> Reply:
    """Add what waits in a TOML file to the queue: all of it, or nothing."""
    if len(words) != 1:
        return Reply(False, text="Say from where: /queue import FILE")
    try:
        found = read_file(_path(conversation, words[0]))
    except SteersmanError as error:
        return _refused(error)
    return _take_in(conversation, found, "Imported")


# Parts --------------------------------------------------------------------------------------------


def _path(conversation: Conversation, name: str) -> Path:
    """Take a file's name as somebody in the session's folder means it."""
    folder = conversation.runtime.sessions[conversation.session].record.folder
    return Path(folder) / Path(name).expanduser()


def _refused(error: SteersmanError) -> Reply:
    hint = f"\n  {error.hint}" if error.hint else ""
    return Reply(False, {"reason": str(error)}, f"{error}{hint}")


def _take_in(
    conversation: Conversation, found: list[SavedItem], done: str, *, may_overfill: bool = False
) -> Reply:
    said = tuple((one.content, one.user, one.attached) for one in found)
    answer = conversation.ask(QueueImport(said, may_overfill))
    if not answer.get("ok"):
        room = answer.get("room", 0)
        why = answer.get("reason", "")
        if why == "queue_full":
            why = f"{_items(len(found))} and room for {room}"
        return Reply(False, answer, f"Nothing was taken in: {why}.")
    data = {**answer, "restored": len(answer["imported"])}
    is_held = answer.get("state") == "held" and found
    held = " Held: /queue resume runs them." if is_held else ""
    return Reply(True, data, f"{done} {_items(len(found))}.{held}")


def _list_here(conversation: Conversation) -> Reply:
    data = conversation.queue()
    lines = [item_line(one) for one in data["items"]]
    if not lines:
        return Reply(True, data, "Nothing is saved here. `/queue restore --list` looks elsewhere.")
    lines.append("`/queue resume` continues, `/queue discard` deletes.")
    return Reply(True, data, "\n".join(lines))


def _list_all(shelf: Shelf) -> Reply:
    saved, now, lines = shelf.saved(), time.time(), list[str]()
    for one in saved:
        ago = age(max(0.0, now - one.row.updated))
        lines.append(f"{one.row.session}  {_items(len(one.items))}, {ago}  {one.row.folder}")
        lines += [f"  {item_line(item)}" for item in one.view()["items"]]
    data = {"saved": [one.view() for one in saved]}
    return Reply(True, data, "\n".join(lines) or "No session has a saved queue.")


def _named(conversation: Conversation, name: str) -> Saved | Reply | None:
    """Find another session's saved queue; none when it is this one's, or none was named."""
    shelf = conversation.shelf
    if not name:
        return None
    try:
        if shelf is None:
            raise UsageError("there are no other sessions here", "nothing is kept on disk")
        row = find_session(shelf.store.sessions(), name)
        return None if row.session == conversation.session else shelf.of(row)
    except SteersmanError as error:
        return _refused(error)


def _bring(conversation: Conversation, found: Saved, words: list[str]) -> Reply:
    """Move another session's queue here: first it is safe here, then it is withdrawn there."""
    name = found.row.session
    try:
        refuse_run(found.row)
    except SteersmanError as error:
        return _refused(error)
    here = [one for one in conversation.queue()["items"] if one["state"] != "running"]
    way = next((one for one in words if one in WAYS), "")
    if here and not way:
        if conversation.can_ask():
            ways = " or ".join(f"`{one}`" for one in WAYS)
            wait = "waits" if len(here) == 1 else "wait"
            already = f"{_items(len(here))} {wait} here already."
            text = f"{already} Say `/queue restore {name}` with {ways}."
            return Reply(False, {"reason": "not_empty", "ways": list(WAYS)}, text)
        way = "--keep"
    if here and way == "--keep":
        text = f"Kept as it is; session {name} keeps its saved queue, too."
        return Reply(True, {"restored": 0, "kept": len(here)}, text)
    replaced = [one["number"] for one in here] if way == "--replace" else []
    return _move(conversation, name, replaced, may_overfill=not here or bool(replaced))


def _move(
    conversation: Conversation, name: str, replaced: list[int], *, may_overfill: bool
) -> Reply:
    """Take in what another session saved, then let go of what it replaces and of the original.

    One journal keeps both sessions in order, so nothing is gone before it is safe.
    """
    shelf = conversation.shelf
    assert shelf is not None
    try:
        with shelf.tended(name) as ask:
            found = shelf.of(shelf.store.load(name).row)
            items = [SavedItem(one.text, one.state, one.user, one.attached) for one in found.items]
            if not items:
                return Reply(False, {"restored": 0}, f"Session {name} has no saved queue.")
            done = f"Restored from session {name}:"
            taken = _take_in(conversation, items, done, may_overfill=may_overfill)
            if taken.ok:
                for number in replaced:
                    conversation.ask(QueueChange("withdraw", number))
                ask(QueueChange("clear"))
            return taken
    except SteersmanError as error:
        return _refused(error)


def _go_there(conversation: Conversation, found: Saved) -> Reply | None:
    try:
        refuse_run(found.row)
        conversation.switch(found.row.session)
    except SteersmanError as error:
        return _refused(error)
    return None


def _throw_away(conversation: Conversation, found: Saved) -> Reply:
    assert conversation.shelf is not None
    name = found.row.session
    try:
        gone = conversation.shelf.discard(name)
    except SteersmanError as error:
        return _refused(error)
    data = {"session": name, "withdrawn": [one.number for one in gone.items]}
    return Reply(True, data, f"Discarded {_items(len(gone.items))} of session {name}.")
