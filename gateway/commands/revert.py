"""`/revert` and `/diff`: restore the files that a turn changed, and show the changes."""

from __future__ import annotations

import difflib
import os
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Annotated, Any, Literal

from ...actors.decisions.reverting import answer_of, asking, elsewhere, ending_of, order_of
from ...journal.entries import RevertBegun
from ...journal.record import SessionRecord
from ...journal.revert_record import RevertRecord, apply_to_reverts, taken_back
from ...journal.store import RowFilter
from ...machines import protocol as m
from ...machines.errors import UnknownSession
from ...workspace.workspace import FileChange
from ..client import SessionClient
from ..speaker import speaker
from ..wording.acknowledgement import path_names, reverted_text
from ..wording.formats import sender
from .command import Argument, Reply, command

REVERT_TIMEOUT = 600.0
"""Seconds for the end of all processes and the restoration of files."""
BELONGS = "belong to the turn of `{0}` that delegated to it: use /revert there"
LONGEST = 400
"""Lines of a diff that are shown."""
MOST_COMPARED = 5_000
"""Lines of both versions of a file that are compared: the time is up to the product of both."""


@command(
    "revert",
    "files",
    "Stop, and restore the files that the turn changed; changes by others stay.",
    is_urgent=True,
    is_shared=True,
)
def revert(
    client: SessionClient,
    what: Annotated[
        tuple[str, ...],
        Argument("last|undo [PATH]", help="What to revert; if left out, the newest turn."),
    ] = (),
    *,
    since: Annotated[str, Argument("--to TURN", help="This turn and all after it.")] = "",
    force: Annotated[
        bool, Argument("--force", help="Include files that were changed since.")
    ] = False,
    is_dry_run: Annotated[
        bool, Argument("--dry-run", help="Only show what would be done.")
    ] = False,
) -> Reply:
    """Restore the files that a session changed; later changes by others stay.

    Example: steersman sessions revert last --dry-run
    """
    scope: Literal["turn", "last", "undo"] = "turn"
    rest = what
    if what[:1] == ("undo",):
        scope, since, rest = "undo", "", ()
    elif what[:1] == ("last",):
        scope, rest = "last", what[1:]
    if rest:
        usage = f"{_way(client)} {revert.usage}"
        return Reply(ok=False, text=f"`{rest[0]}` makes no sense here: {usage}")
    try:
        turn = _turn(client, since) if since else ""
    except ValueError as error:
        return Reply(ok=False, text=f"{error}.")
    order = m.Revert(
        scope=scope,
        since=turn,
        paths=_named(what[1:], client) if scope == "undo" else (),
        force=force,
        is_dry_run=is_dry_run,
    )
    owner = _owner(client)
    if owner:
        return Reply(ok=False, text=f"Not reverted: its changes {BELONGS.format(owner)}.")
    record = client.record()
    way = _way(client)
    if record.state == "finalized":
        done = _revert_ended(client, record, order)
        return Reply(ok=bool(done["ok"]), data=done, text=reverted_text(done, way))
    cut_off = [revert.id for revert in record.reverts.values() if revert.is_open]
    asked = client.ask(order)
    if not asked.get("ok"):
        return Reply(ok=False, data=asked, text=f"Not reverted: {asked.get('reason')}.")
    data = _outcome(client, asked["id"])
    with suppress(UnknownSession):  # its program left it when that was done
        client.settle()  # the outcome is on disk before any client reads it
        client.view.state()  # returns after the session has learned that it is
    finished = [reverted_text(_outcome(client, revert), way) for revert in cut_off]
    text = "\n".join(
        [
            *(f"Finished an interrupted revert: {outcome}" for outcome in finished),
            reverted_text(data, way),
        ]
    )
    is_empty = not (data.get("restored") or data.get("kept") or data.get("turns"))
    if (is_empty or not record.turns) and (before := _before(client, record, scope)):
        client.publisher.notice(before)
    is_named = bool(sender(speaker().user))  # the revert itself says by whom
    is_news = bool(data.get("restored")) and not (is_dry_run or is_named)
    news = "another terminal or program asked for this revert." if is_news else ""
    return Reply(ok=bool(data["ok"]), data=data, text=text, news=news)


def _outcome(client: SessionClient, name: str) -> dict[str, Any]:
    """Wait until a revert has ended, and return its outcome."""
    return client.ask(m.RevertOutcome(id=name), REVERT_TIMEOUT)


def _before(client: SessionClient, record: SessionRecord, scope: str = "turn") -> str:
    """Return a hint at the session whose changes may be meant: the one that this was forked from.

    Where nothing was said here yet, as after `/new`, it is the previous one of the folder.
    """
    undo = " undo" if scope == "undo" else ""
    if record.forked_from:
        back = f"`steersman sessions revert {record.forked_from.partition('@')[0]}{undo}`"
        return f"Changes of the session that this one continues: {back}."
    if record.turns:
        return ""
    for row in client.store.sessions(RowFilter(folder=record.folder, is_top=True)):
        if row.seq and row.session != record.id:
            back = f"`steersman sessions revert {row.session}{undo}`"
            return f"Changes of the previous session: {back}."
    return ""


def _revert_ended(client: SessionClient, record: SessionRecord, order: m.Revert) -> dict[str, Any]:
    """Restore the files that a finalized session changed; the revert is not journalled.

    The workspace has its own ledger, so the revert is done once, and can be undone.
    """
    name = f"f{time.time_ns()}"  # the journal of a finalized session numbers no reverts
    known = RevertRecord(asked=asking(order, name), state="started")
    others = elsewhere(record, client.files.storage)
    reverts: Mapping[str, RevertRecord] = {name: known}

    def hear(message: m.RestoreCounted | m.RestoreEnded) -> None:
        nonlocal reverts
        match message:
            case m.RestoreCounted():
                reverts = apply_to_reverts(reverts, RevertBegun(id=name, files=message.files))
            case m.RestoreEnded():
                reverts = apply_to_reverts(reverts, ending_of(record, known, message, others))

    client.files.restore(order_of(record, known.asked), hear, REVERT_TIMEOUT)
    return answer_of(reverts[name])


def _way(client: SessionClient) -> str:
    """Return how a revert is typed: a session that no program has open has no chat."""
    is_offline = client.describe().is_offline
    return f"steersman sessions revert {client.session}" if is_offline else "/revert"


def _turn(client: SessionClient, name: str) -> str:
    number = name.removeprefix("t")
    if not number.isdecimal():
        raise ValueError(
            f"`{name}` is no turn (as in `--to t3`; `/revert --dry-run` names the newest)"
        )
    record = client.record()
    made, before = record.turns_made, record.turns_before
    if 1 <= int(number) <= before:
        origin = record.forked_from.partition("@")[0]
        there = f"`steersman sessions diff {origin} t{int(number)}` shows its changes"
        raise ValueError(
            f"t{int(number)} is a turn of session {origin}, which this one continues: {there}"
        )
    if not 1 <= int(number) <= made:
        newest = f"the newest is t{made}" if made else "this session has had none"
        raise ValueError(f"there is no turn t{number}: {newest}")
    return f"t{int(number)}"


def _named(names: tuple[str, ...], client: SessionClient) -> tuple[str, ...]:
    """Return files and folders as the changes of the session have them: seen from its folder."""
    folder = client.record().folder
    places = (os.path.normpath(os.path.join(folder, name)) for name in names)
    return tuple(os.path.relpath(place, folder) for place in places)


@command("diff", "files", "Show the changes of a turn.", is_shared=True)
def diff(
    client: SessionClient, turn: Annotated[str, Argument("TURN", help="As 3 or t3.")] = ""
) -> Reply:
    """Show the changes of a turn, or of the newest turn that changed a file.

    Example: steersman sessions diff last t3
    """
    try:
        turn = _turn(client, turn) if turn else ""
    except ValueError as error:
        return Reply(ok=False, text=f"{error}.")
    if not client.files.are_kept:
        return Reply(ok=False, text="Nothing is kept of the files of this session.")
    owner = _owner(client)
    if owner:
        return Reply(ok=False, text=f"Its changes {BELONGS.format(owner)}.")
    changes = client.files.diff((turn,) if turn else ())
    data = {"files": [{"path": change.path, "change": _word(change)} for change in changes]}
    lines = [line for change in changes for line in _lines(change)]
    if len(lines) > LONGEST:
        lines = [*lines[:LONGEST], f"[{len(lines) - LONGEST} more lines]"]
    return Reply(data=data, text="\n".join(lines) or _unchanged(client, turn))


def _unchanged(client: SessionClient, turn: str) -> str:
    """Say why there is nothing to show of a turn, or of the newest one."""
    record = client.record()
    gone = sorted(taken_back(record.reverts, turn or record.turn))
    if not gone:
        before = _before(client, record) if record.forked_from else ""
        return f"No file was changed. {before}".rstrip()
    names = path_names(gone)
    back = f"`{_way(client)} undo` brings it back"
    return f"What {turn or record.turn} changed was reverted: {names}. {back}."


def _owner(client: SessionClient) -> str:
    """Return the ancestor whose turns have a subagent's changes; empty if the session has its own."""
    row = client.store.row(client.session)
    if not row.parent or not client.files.are_kept or client.files.diff():
        return ""
    return row.root


def _word(change: FileChange) -> str:
    if change.before is None:
        return "created"
    return "deleted" if change.after is None else "modified"


def _lines(change: FileChange) -> list[str]:
    """Write one file's change as a unified diff, or as one line if a version is no text."""
    texts = [
        None if content is None else content.decode(errors="replace")
        for content in (change.old, change.new)
    ]
    if None in texts and (change.old is not None or change.new is not None):
        texts = ["" if text is None else text for text in texts]
    old, new = texts
    if old is None or new is None or "\0" in old + new:
        return [f"{_word(change)}: {change.path}"]
    names = (f"a/{change.path}", f"b/{change.path}")
    before, after = old.splitlines(), new.splitlines()
    if len(before) + len(after) > MOST_COMPARED:
        return [f"{_word(change)}: {change.path} (too many lines to compare)"]
    rows = difflib.unified_diff(before, after, *names, lineterm="", n=3)
    return list(rows) or [f"{_word(change)}: {change.path}"]
