"""The verbs of `/queue` about saved queues: restore, discard, export, import."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import replace

from ...machines import protocol as m
from ...machines.errors import SteersmanError, UsageError
from ...ports.tools.text import counted
from ...workflows.home_folder import expanded
from ..client import SessionClient
from ..home.home import SHORTEST_ID, find_in, refuse_run
from ..views.queue_file import read_file, write_file
from ..views.saved_queues import WIDE, Saved, SavedQueues, choices
from ..wording.acknowledgement import path_names, waiting_text
from ..wording.formats import age, item_line, one_line, removed_text
from .command import Argument, Reply, command

GO_TO_ONE = "`/queue restore ID` goes to it and runs nothing, and then all commands are about it"
RESUME_ONE = "`/queue resume ID` continues it"
_SHORTEST_PREFIX = 4  # characters of an id that are meant as one
BEGUN = ("interrupted", "superseded", "unanswered")
"""States of messages whose turn has begun, and can go on."""
WAYS = ("--merge", "--replace", "--keep")
Merge = Annotated[bool, Argument("--merge")]
Replace = Annotated[bool, Argument("--replace")]
Keep = Annotated[bool, Argument("--keep")]
SessionName = Annotated[str, Argument("ID")]
File = Annotated[str, Argument("FILE", of="file", help="A TOML file.")]


def way_of(merge: bool, replace: bool, keep: bool) -> str:
    """Return the option for a queue that is not empty; empty if none was given."""
    given = zip(WAYS, (merge, replace, keep), strict=True)
    return next((way for way, is_given in given if is_given), "")


@command(
    "queue restore",
    "queue",
    "List what is saved, or bring another session's queue here.",
    is_shared=True,
)
def restore_queue(
    client: SessionClient,
    session: SessionName = "",
    *,
    everywhere: Annotated[bool, Argument("--list")] = False,
    merge: Merge = False,
    replace: Replace = False,
    keep: Keep = False,
) -> Reply:
    """List the saved queue of this session or of all (`--list`), or move another session's queue here."""
    if everywhere:
        return _list_all(client.host.upkeep.saved_queues)
    found = _meant(client, session)
    if isinstance(found, Reply):
        return found
    if found is None:
        data = client.queue()
        if data["items"] or data.get("children"):
            return _listed(data)
        text = kept_elsewhere(client) or " `/queue restore --list` lists all sessions."
        return Reply(data=data, text=f"Nothing is saved here.{text}")
    if session and not _is_new(client):
        return _bring(client, found, way_of(merge, replace, keep))
    before = client.session
    if session and (refused := _go_there(client, found)) is not None:
        return refused
    listed = _listed({**found.view(), "restored": len(found.items) if session else 0})
    if client.session != before:
        went = f"Session {client.session}; {before} was left, everything in it is kept."
        listed = Reply(data=listed.data, text=f"{went}\n{listed.text}")
    return listed


def resume_saved(client: SessionClient, session: str, way: str) -> Reply | None:
    """Move another session's queue here and run it; none if the session is this one.

    If this queue is empty and the interface can change sessions, the other session is resumed instead,
    since its interrupted turn can only continue from a checkpoint in its own conversation. The result is
    then none, too: the caller resumes the queue of that session.
    """
    is_number = session.isdecimal() and len(session) < SHORTEST_ID  # of a message
    if len(session) >= _SHORTEST_PREFIX:  # but it may begin the id of what was announced
        is_number &= not any(one.row.session.startswith(session) for one in _announced(client))
    found = _meant(client, "" if is_number else session, RESUME_ONE)
    if found is None or isinstance(found, Reply):
        return found
    if client.can_switch and not (found.is_empty or client.queue()["items"]):
        return _go_there(client, found)
    brought = _bring(client, found, way)
    if not brought.ok or not brought.data.get("restored"):
        return brought
    answer = client.ask(m.ResumeQueue())
    count = answer.get("restored") or brought.data["restored"]
    first, after = answer.get("number"), answer.get("after")
    then = f"They run after #{after}." if after else f"Processing #{first}..."
    text = f"Restored {counted(count, 'item')}. {then}"
    return Reply(data={**brought.data, **answer, "restored": count}, text=text, news=text)


@command(
    "queue discard",
    "queue",
    "Delete everything that is saved, also what was interrupted.",
    is_shared=True,
)
def discard_queue(client: SessionClient, session: SessionName = "") -> Reply:
    """Withdraw all saved messages, of this session or of a named one."""
    found = _meant(client, session, "`/queue discard ID` deletes it")
    if isinstance(found, Reply):
        return found
    if found is not None:
        return _discard(client, found)
    before = client.queue(is_all=True)["items"]
    answer = client.ask(m.QueueChange(op="discard"))
    if not answer.get("ok"):
        return Reply(ok=False, data=answer, text=f"Nothing was discarded: {answer.get('reason')}.")
    left = {item["id"] for item in client.queue(is_all=True)["items"]}
    gone = [item["number"] for item in before if item["id"] not in left]
    names = answer.get("children", [])
    what = [counted(len(gone), "item")] if gone else []
    what += [f"the stopped {', '.join(names)}"] if names else []
    nothing = f"Nothing is saved here.{kept_elsewhere(client, 'discard', 'deletes')}"
    text = f"Discarded {' and '.join(what)}." if what else nothing
    text = removed_text(text, before, gone)
    data = {"withdrawn": gone} | ({"children": names} if names else {})
    return Reply(data=data, text=text, news=text if what else "")


@command("queue export", "queue", "Write the queue to a TOML file.")
def export_queue(client: SessionClient, file: File) -> Reply:
    """Write the queue to a TOML file.

    Example: steersman queue export queue.toml
    """
    path, found = _path(client, file), saved_here(client)
    if path.suffix.lower() in (".yaml", ".yml", ".json"):
        return _refused(UsageError("a queue is written as TOML", f"name it `{path.stem}.toml`"))
    if isinstance(found, Reply):
        return found
    session, queue = client.session, client.record().queue
    if found is not None:
        session, queue = found.row.session, found.queue
    try:
        count = write_file(path, session, queue, time.time())
    except SteersmanError as error:
        return _refused(error)
    return Reply(
        data={"file": str(path), "items": count},
        text=f"Exported {counted(count, 'item')} to {path}.",
    )


@command("queue import", "queue", "Add what waits in a TOML file: all of it, or nothing.")
def import_queue(client: SessionClient, file: File) -> Reply:
    """Add the messages of a TOML file to the queue: all or none.

    Example: steersman queue import queue.toml
    """
    try:
        found = read_file(_path(client, file), client.session)
    except SteersmanError as error:
        return _refused(error)
    return _take_in(client, found, "Imported")


def _path(client: SessionClient, name: str) -> Path:
    """Return the path of a file whose name is relative to the session's folder."""
    return client.describe().folder / expanded(name)


def _refused(error: SteersmanError) -> Reply:
    hint = f"\n  {error.hint}" if error.hint else ""
    return Reply(ok=False, data={"reason": str(error)}, text=f"{error}{hint}")


def _take_in(
    client: SessionClient, found: list[m.ImportedItem], done: str, *, may_overfill: bool = False
) -> Reply:
    answer = client.ask(m.QueueImport(items=tuple(found), may_overfill=may_overfill))
    if not answer.get("ok"):
        room = answer.get("room", 0)
        why = answer.get("reason", "")
        if why == "queue_full":
            why = f"{counted(len(found), 'item')} and room for {room}"
        return Reply(ok=False, data=answer, text=f"Nothing was imported: {why}.")
    data = {**answer, "restored": len(answer["imported"])}
    is_held = answer.get("state") == "held" and found
    held = " Held: /queue resume runs them." if is_held else ""
    pairs = zip(answer["imported"], found, strict=True)
    steers = [f"#{number}" for number, item in pairs if item.is_steer]
    was = f" {', '.join(steers)} steered a turn that is not here: now messages." if steers else ""
    waits = (waits_here(client) if found else "") or held
    text = f"{done} {counted(len(found), 'item')}.{was}{waits}"
    return Reply(data=data, text=text, news=text if found else "")


def waits_here(client: SessionClient) -> str:
    """Say how what was added gets to run if no program has the session open; else nothing."""
    if not client.describe().is_offline:
        return ""
    return f" {waiting_text(client.session, is_run=client.record().run is not None)}"


def saved_list(found: Saved) -> Reply:
    """List a saved queue where the session's own is asked for."""
    data: dict[str, Any] = {**found.view(), "state": "held"}
    lines = [f"Saved by session {found.row.session}:", *saved_lines(found.view())]
    if found.children or any(item.state != "offered" for item in found.items):
        lines.append("Held. /queue resume runs them.")
    lines += offered_lines(data["items"])
    return Reply(data=data, text="\n".join(lines))


def saved_lines(view: Mapping[str, Any]) -> list[str]:
    """Return a line for each message of a queue, and for each stopped subagent that goes on with it."""
    stopped = (f"[INTERRUPTED] subagent {name}" for name in view.get("children", ()))
    return [*map(item_line, view["items"]), *stopped]


def offered_lines(items: Sequence[Mapping[str, Any]], *, is_open: bool = True) -> list[str]:
    """Say what can be done with answers that wait for a decision; only an open session hands one over."""
    offered = [item["number"] for item in items if item["state"] == "offered" and "answer" in item]
    if not is_open:
        return [
            f"`/queue keep {n}` makes #{n} a message, `/queue pop {n}` drops it." for n in offered
        ]
    return [
        f"`/queue steer {n}` hands #{n} over, `keep` or `pop` decides otherwise." for n in offered
    ]


def _listed(data: Mapping[str, Any]) -> Reply:
    lines = saved_lines(data)
    has_begun = any(item["state"] in BEGUN or item.get("held") for item in data["items"])
    if has_begun or data.get("children"):
        lines.append("`/queue resume` continues, `/queue discard` deletes.")
    lines += offered_lines(data["items"])
    return Reply(data=dict(data), text="\n".join(lines))


def _list_all(saved_queues: SavedQueues) -> Reply:
    saved, now, lines = saved_queues.saved(), time.time(), list[str]()
    for queue in saved:
        ago = age(max(0.0, now - queue.row.updated))
        count = counted(len(queue.items) + len(queue.children), "item")
        lines.append(f"{queue.row.session}  {count}, {ago}  {queue.row.folder}")
        lines += [f"  {line}" for line in saved_lines(queue.view())]
    data = {"saved": [queue.view() for queue in saved]}
    return Reply(data=data, text="\n".join(lines) or "No session has a saved queue.")


def _meant(client: SessionClient, name: str, way: str = GO_TO_ONE) -> Saved | Reply | None:
    """Find the saved queue that a command means; none for that of this session.

    Without the id of a session, it is the one that was announced to a new session in which no message was
    sent yet; of several a person has to choose: `way` says how.
    """
    saved_queues = client.host.upkeep.saved_queues
    if not name:
        offered = _announced(client)
        if len(offered) < 2:
            return offered[0] if offered else None
        saved = [found.view() for found in offered]
        lines = [*choices(saved, time.time()), f"Say which one by its id: {way}."]
        data = {"reason": "several", "saved": saved}
        return Reply(ok=False, data=data, text="\n".join(lines))
    try:
        row = find_in(saved_queues.store, name)
        return None if row.session == client.session else saved_queues.of(row)
    except SteersmanError as error:
        return _refused(error)


def saved_here(client: SessionClient) -> Saved | Reply | None:
    """Find the saved queue that stands for the session's own, which is empty: the one announced to it.

    None for its own; a reply if there are several, of which a person has to choose.
    """
    return None if client.queue()["items"] else _meant(client, "")


def items_meant(client: SessionClient) -> Sequence[Mapping[str, Any]]:
    """Return the items of the queue that a change means, also those that are put aside."""
    found = saved_here(client)
    return found.view()["items"] if isinstance(found, Saved) else client.queue(is_all=True)["items"]


def kept_elsewhere(client: SessionClient, verb: str = "restore", does: str = "brings") -> str:
    """Say which sessions of the folder have a saved queue, behind the answer that nothing is here.

    Something was said here since that was announced; empty if there is none. `verb` is what is typed for
    one of them, and what it `does`.
    """
    here = " here" if verb == "restore" else ""
    if not client.can_switch:
        return ""
    folder = client.describe().folder
    saved = [one for one in client.host.upkeep.saved_queues.here(folder) if not one.row.workflow]
    if not saved:
        return ""
    if len(saved) > 1:
        names = path_names([one.row.session for one in saved])
        return f" Sessions {names} have saved queues: `/queue {verb} ID` {does} one{here}."
    found = saved[0]
    name, count = found.row.session, counted(len(found.items), "item")
    what = "it" if len(found.items) == 1 else "them"
    return f" Session {name} has {count} saved: `/queue {verb} {name}` {does} {what}{here}."


def change(client: SessionClient, message: m.QueueChange) -> dict[str, Any]:
    """Change the queue that is meant: the session's own, or the saved one that stands for it.

    What only a session that was recovered can do, to steer and to edit what was cut off, takes it up.
    """
    found = saved_here(client)
    if isinstance(found, Reply):
        return {"ok": False, **found.data, "reason": found.text}
    if found is None:
        return client.ask(message)
    cut_off = {item.number for item in found.items if item.state == "interrupted"}
    if message.op == "steer" or (message.op == "edit" and message.number in cut_off):
        refused = _go_there(client, found)
        return client.ask(message) if refused is None else {"ok": False, "reason": refused.text}
    try:
        with client.host.upkeep.saved_queues.tended(found.row.session) as ask:
            return {**ask(message), "session": found.row.session}
    except SteersmanError as error:
        return {"ok": False, "reason": str(error)}


def _announced(client: SessionClient) -> list[Saved]:
    """List the saved queues of this folder for a session that has none and can change to them."""
    if not _is_new(client):
        return []
    here = client.host.upkeep.saved_queues.here(client.describe().folder)
    return [found for found in here if not found.row.workflow]


def _is_new(client: SessionClient) -> bool:
    """Whether nothing was said here yet, so that a person loses nothing by going to another session."""
    return client.can_switch and not client.record().queue.made


def _bring(client: SessionClient, found: Saved, way: str) -> Reply:
    """Move another session's queue here, as `way` says if this queue is not empty."""
    name = found.row.session
    try:
        refuse_run(found.row)
    except SteersmanError as error:
        return _refused(error)
    here = [item for item in client.queue()["items"] if item["state"] != "running"]
    if here and not way:
        if client.describe().policy.can_ask:
            ways = " or ".join(f"`{option}`" for option in WAYS)
            wait = "waits" if len(here) == 1 else "wait"
            already = f"{counted(len(here), 'item')} {wait} here already: {_brief(here)}."
            text = f"{already} Use `/queue restore {name}` with {ways}."
            return Reply(ok=False, data={"reason": "not_empty", "ways": list(WAYS)}, text=text)
        way = "--keep"
    if here and way == "--keep":
        text = f"Kept as it is; session {name} keeps its saved queue, too."
        return Reply(data={"restored": 0, "kept": len(here)}, text=text)
    replaced = here if way == "--replace" else []
    return move_here(client, name, replaced, may_overfill=not here or bool(replaced))


def _brief(items: Sequence[Mapping[str, Any]]) -> str:
    return "; ".join(one_line(item_line(item), WIDE) for item in items)


def move_here(
    client: SessionClient, name: str, replaced: Sequence[Mapping[str, Any]], *, may_overfill: bool
) -> Reply:
    """Add another session's messages here, then withdraw the replaced messages and the originals.

    One store commits both sessions in order, so no message is withdrawn before its copy is durable.
    """
    saved_queues = client.host.upkeep.saved_queues
    try:
        with saved_queues.tended(name) as ask:
            found = saved_queues.of(saved_queues.store.load(name).row)
            items = [
                m.ImportedItem(
                    said=replace(item.said, client_id=""),
                    is_interrupted=item.state in BEGUN,
                    progress=dict(item.progress) if item.progress else None,
                    is_steer=item.is_steer,
                )
                for item in found.items
            ]
            if not items:
                return Reply(
                    ok=False, data={"restored": 0}, text=f"Session {name} has no saved queue."
                )
            done = f"Restored from session {name}:"
            taken = _take_in(client, items, done, may_overfill=may_overfill)
            if taken.ok:
                for item in replaced:
                    client.ask(m.QueueChange(op="withdraw", number=item["number"]))
                ask(m.QueueChange(op="clear", moved_to=client.session))
            if taken.ok and replaced:
                text = f"{taken.text} Removed: {_brief(replaced)}."
                return replace(taken, text=text, news=text)
            return taken
    except SteersmanError as error:
        return _refused(error)


def _go_there(client: SessionClient, found: Saved) -> Reply | None:
    """Take up the other session, in the mode that a person chose here, if one was."""
    try:
        refuse_run(found.row)
        client.switch(found.row.session, client.record().mode)
    except SteersmanError as error:
        return _refused(error)
    return None


def _discard(client: SessionClient, found: Saved) -> Reply:
    name = found.row.session
    try:
        gone = client.host.upkeep.saved_queues.discard(name)
    except SteersmanError as error:
        return _refused(error)
    items = gone.view()["items"]
    numbers = [item["number"] for item in items]
    text = f"Discarded {counted(len(items), 'item')} of session {name}."
    data = {"session": name, "withdrawn": numbers}
    return Reply(data=data, text=removed_text(text, items, numbers))
