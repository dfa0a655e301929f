"""`/edit-last`: the last message is taken back, changed, and sent again in its place.

A message that waits is edited. One that an agent has read is in a journal, which is never rewritten: what
runs is stopped, a fork of the session as it was before the message takes its place here, the new text is
said there, and what waited comes along. The old session is kept. A message that steered a turn steers
it again: that turn goes on in the fork, from where it was before the message.
"""

from __future__ import annotations

import secrets
import time
from typing import Annotated, Any

from msgspec.structs import replace

from ...journal.entries import MOVED
from ...journal.queue_record import ItemRecord
from ...journal.record import SessionRecord
from ...journal.recovery import backwards
from ...journal.store import StoredEntry
from ...machines import protocol as m
from ...machines.conversation import Attachment
from ...machines.errors import SteersmanError, UsageError
from ..client import SessionClient
from ..speaker import speaker
from ..views.session_file import fork_at
from ..wording.acknowledgement import path_names
from ..wording.formats import sender
from .command import Argument, Reply, Text, command
from .queue import edit_queue
from .revert import revert
from .saved_queue import BEGUN, move_here

AGAIN = "/edit-last"
SENT_AGAIN = "turn"
"""How the new text is said: no word of it stops or steers anything."""


@command("edit-last", "talk", "Take your last message back, and send it again, changed.")
def edit_last(
    client: SessionClient,
    text: Text = "",
    *,
    is_reverting: Annotated[bool, Argument("--revert")] = False,
) -> Reply:
    """Show the last message; with a text, let that take its place.

    `is_reverting`: files are restored as they were before the message, too.
    """
    record = client.record()
    said = [
        item
        for item in record.queue.items.values()
        if item.kind is m.ItemKind.MESSAGE and item.state != "offered" and not _is_gone(item)
    ]
    mine = [item for item in said if sender(item.said.user) == sender(speaker().user)]
    if not mine:
        return _refused(f"there is no message{' of yours' if said else ''} yet")
    last, newest = mine[-1], said[-1]
    if last.state != "pending" and newest is not last:
        return _refused(
            f"#{newest.number} of {sender(newest.said.user) or 'the owner'} came after it"
        )
    if not text:
        again = f"{AGAIN} --revert" if is_reverting else AGAIN
        line = f"{again} {'-- ' if last.text.startswith('--') else ''}{last.text}"
        data = {"id": last.id, "number": last.number, "text": last.text, "line": line}
        shown = f"#{last.number}: {last.text}\n{again} TEXT sends TEXT in its place."
        return Reply(data=data, text=shown)
    if last.state == "pending":
        edited = edit_queue.function(client, last.number, text)
        if is_reverting and edited.ok:
            unread = f"Nothing to restore: no agent has read #{last.number} yet."
            return replace(edited, text=f"{edited.text}\n{unread}")
        return edited
    try:
        entered = _entered(client, record, last)
        return _send_again(client, record, last, entered, text, is_reverting=is_reverting)
    except SteersmanError as error:
        return _refused(f"{error.message}. {error.hint}".strip())


def _is_gone(item: ItemRecord) -> bool:
    """Whether a message was taken back before an agent read it, or is in another session now."""
    return item.state == "withdrawn" and (not item.turn or item.why.startswith(MOVED))


def _refused(why: str) -> Reply:
    return Reply(ok=False, data={"reason": why}, text=f"Not sent again: {why.rstrip('.')}.")


def _entered(client: SessionClient, record: SessionRecord, last: ItemRecord) -> StoredEntry:
    """Return the entry with which a message entered the conversation. Raises `UsageError`."""
    if not client.can_switch or record.parent or record.run is not None:
        raise UsageError("another session cannot take the place of this one here")
    if client.describe().is_offline:
        raise UsageError(
            "no program has this session open", f"`steersman chat --resume {record.id}`"
        )
    if record.goals.is_pursued:
        raise UsageError("a goal is pursued", "`/goal pause` ends that")
    if m.AGENT_TOOL in record.tools:
        raise UsageError(f"`{record.agent}` is another program, and remembers what it has read")
    client.settle()
    newest = client.store.load(record.id).row.seq
    for stored in backwards(client.store, record.id, newest):
        data = stored.data
        if data["kind"] == "steered" and last.id in data["items"]:
            if len(data["items"]) > 1:
                raise UsageError(f"#{last.number} was read together with other messages")
            return stored
        is_begin = data["kind"] == "turn_started" and not data.get("resumes")
        if is_begin and data["item"] == last.id:
            return stored
    raise UsageError(f"#{last.number} was never read", "send it again")


def _send_again(
    client: SessionClient,
    record: SessionRecord,
    last: ItemRecord,
    entered: StoredEntry,
    text: str,
    *,
    is_reverting: bool,
) -> Reply:
    """Stop, restore files if asked to, go on from before the message, and say the text there."""
    prompt = client.parts.prompt(text)
    if prompt is not None and prompt.is_refused:
        return _refused(f"{prompt.path}: {prompt.note}")
    is_steer = entered.data["kind"] == "steered"
    if is_reverting and is_steer:
        raise UsageError(
            f"#{last.number} steered a turn, which changed files before that, too",
            f"`{AGAIN} TEXT` leaves the files, `/revert` restores all that the turn changed",
        )
    turn, before, queue = str(entered.data["turn"]), client.session, record.queue
    if queue.waiting_count:
        client.ask(m.QueueChange(op="hold"))  # nothing of it begins between here and there
    client.interrupt()
    files = revert.function(client, since=turn) if is_reverting else _left(client, record, turn)
    if not files.ok:
        return files
    if record.name:
        client.ask(m.Rename(name=f"{record.name}, before #{last.number} was edited"))
    client.settle()
    row = client.store.load(before).row
    client.switch(fork_at(client.store, row, entered.seq - 1, record.name, time.time()))
    of_turn = queue.items.get(record.turns[turn].item, last)
    moved = _bring(client, before, {last.number: last, of_turn.number: of_turn})
    if is_steer:
        _go_on(client, of_turn)
    item = _say(client, text, prompt, last, "steer" if is_steer else SENT_AGAIN)
    if item is None:
        return _refused(f"session `{client.session}` takes no message; it has what was said before")
    is_cut_off = any(item.state == "interrupted" for item in queue.live()) or bool(queue.aside())
    is_held = queue.state == "held" or is_cut_off
    if moved and not is_held:
        client.ask(m.QueueChange(op="release"))
    elif moved and is_steer:
        client.ask(m.QueueChange(op="hold"))
    numbers = ", ".join(f"#{number}" for number in moved)
    came = f"What waited is {numbers} here{', held' if is_held else ''}." if numbers else ""
    back = f"`/resume {before}` goes back to what came of #{last.number}"
    has_files = bool(files.data.get("restored")) and is_reverting
    back += ", and there `/revert undo` to its files." if has_files else "."
    data: dict[str, Any] = {"id": item.id, "number": item.number, "text": text, "moved": moved}
    data["reverted"] = files.data or None
    left = "" if is_reverting else files.text  # the `reverted` event says what was restored
    told = "\n".join(filter(None, [left, came, back]))
    return Reply(data=data, text=told, news=f"another session takes this one's place. {told}")


def _left(client: SessionClient, record: SessionRecord, turn: str) -> Reply:
    """Name the files that stay changed by a turn and those after it, if there are any."""
    turns = tuple(f"t{number}" for number in range(int(turn[1:]), record.turns_made + 1))
    changed = client.files.changed_by(turns)
    if not changed:
        return Reply()
    undo = f"`steersman sessions revert {client.session} --to {turn}` restores them"
    return Reply(text=f"Files stay as they are: {path_names(changed)}; {undo}.")


def _bring(client: SessionClient, before: str, read: dict[int, ItemRecord]) -> list[int]:
    """Move what waited in the session before here, held; without `read`, which the new text replaces."""
    with client.host.upkeep.saved_queues.tended(before) as ask:
        for number, item in read.items():
            if item.state in (*BEGUN, "running"):
                ask(m.QueueChange(op="withdraw", number=number))
    return list(move_here(client, before, (), may_overfill=True).data.get("imported", ()))


def _go_on(client: SessionClient, of_turn: ItemRecord) -> None:
    """Have the turn that a message steered go on here, as one that was interrupted before that."""
    said, progress = replace(of_turn.said, client_id=""), of_turn.progress
    task = m.ImportedItem(
        said=said, is_interrupted=True, progress=dict(progress) if progress else None
    )
    brought = client.ask(m.QueueImport(items=(task,), may_overfill=True))
    client.ask(m.ResumeQueue(number=brought["imported"][0]))


def _say(
    client: SessionClient, text: str, prompt: Attachment | None, last: ItemRecord, how: str
) -> ItemRecord | None:
    """Send a text as a message, whatever its words; none if it was not accepted.

    Its key begins as that of the message whose place it takes, by which clients know their own.
    """
    key = f"{last.said.client_id or 'edit'}-{secrets.token_hex(4)}"
    if who := speaker().user:  # the others have not seen the text
        client.publisher.notice(f"{who}: {text}", key)
    client.send_message(text, how, key, prompt=prompt)
    return client.item_of(key)
