"""The commands that give files back, and that show what a turn made of them."""

from __future__ import annotations

import difflib
import shlex
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from ...actors.decisions.reverting import answer_of, ending_of, order_of
from ...actors.work.performer import give_back
from ...journal.record import SessionRecord
from ...journal.revert_entries import RevertBegun
from ...journal.revert_record import RevertRecord, apply_to_reverts
from ...journal.workspace.workspace import FileChange
from ...machines.messages import Revert, RevertOutcome
from ...machines.results import RestoreCounted, RestoreEnded
from ...ports.workspace.workspace import WorkspacePort
from ..reverted import reverted_text
from .reply import Reply

if TYPE_CHECKING:
    from ..conversation import Conversation


REVERT_USAGE = "[last|undo [PATH]] [--to TURN] [--force] [--dry-run]"
PATIENCE = 600.0
"""Seconds that everything may take to die, and files to come back."""
BELONGS = "belongs to the turn of `{0}` that delegated to it: ask there"
LONGEST = 400
"""Lines of a diff that are shown."""


def revert_command(conversation: Conversation, argument: str) -> Reply:
    """Stop what runs and give its files back; or do what the words after it say."""
    try:
        order = _parse(shlex.split(argument))
    except ValueError as error:
        return Reply(False, text=f"`/revert {argument}`: {error}. /revert {REVERT_USAGE}")
    owner = _owner(conversation)
    if owner:
        return Reply(False, text=f"Not reverted: what it changed {BELONGS.format(owner)}.")
    record = conversation.record()
    if record.state == "finalized":
        done = _revert_ended(conversation, record, order)
        return Reply(bool(done["ok"]), done, reverted_text(done))
    cut_off = [one.id for one in record.reverts.values() if one.is_open]
    asked = conversation.ask(order)
    if not asked.get("ok"):
        return Reply(False, asked, f"Not reverted: {asked.get('reason')}.")
    data = _outcome(conversation, asked["id"])
    conversation.runtime.settle()  # nobody reads of it before it is on disk
    conversation.runtime.inspect(conversation.session)  # behind the news that it is
    finished = [reverted_text(_outcome(conversation, one)) for one in cut_off]
    text = "\n".join(
        [*(f"Finished what was cut off: {one}" for one in finished), reverted_text(data)]
    )
    if not record.turns and (before := _before(conversation, record)):
        conversation.narrate("notice", text=before)
    return Reply(bool(data["ok"]), data, text)


def _outcome(conversation: Conversation, name: str) -> dict[str, Any]:
    """Wait until a revert is over; return what became of it."""
    question = RevertOutcome(name)
    data: dict[str, Any] = conversation.runtime.ask(conversation.session, question, PATIENCE)
    return data


def _before(conversation: Conversation, record: SessionRecord) -> str:
    """Name the session before one that has done nothing yet: after `/new`, that may be meant."""
    for row in conversation.runtime.store.sessions():
        if row.folder == record.folder and row.seq and not row.parent and row.session != record.id:
            back = f"`steersman sessions revert {row.session}`"
            return f"What the session before this one changed: {back}."
    return ""


def _revert_ended(
    conversation: Conversation, record: SessionRecord, order: Revert
) -> dict[str, Any]:
    """Give back what a session changed that has ended for good: nothing of it is journalled any more.

    The copies have a ledger of their own, so it is done once, and can be undone, as ever.
    """
    name = f"f{time.time_ns()}"  # the journal gives no more names
    known = RevertRecord(
        name,
        order.scope,
        since=order.since,
        paths=order.paths,
        force=order.force,
        is_dry_run=order.is_dry_run,
        state="started",
    )
    reverts: Mapping[str, RevertRecord] = {name: known}

    def hear(message: RestoreCounted | RestoreEnded) -> None:
        nonlocal reverts
        match message:
            case RestoreCounted():
                reverts = apply_to_reverts(reverts, RevertBegun(name, message.files))
            case RestoreEnded():
                reverts = apply_to_reverts(reverts, ending_of(known, message))

    work = give_back(_workspace(conversation), order_of(record, known), hear)
    conversation.runtime.run(work, PATIENCE)
    return answer_of(reverts[name])


def _parse(words: list[str]) -> Revert:
    """Read the words after the command. Raises `ValueError`."""
    scope: Literal["turn", "last", "undo"] = "turn"
    since, flags, rest = "", set[str](), list[str]()
    todo = iter(words)
    for word in todo:
        if word == "--":
            rest += todo  # names, whatever they begin with
        elif word == "--to":
            since = _turn(next(todo, ""))
        elif word in ("--force", "--dry-run"):
            flags.add(word)
        elif word.startswith("--"):
            raise ValueError(f"there is no `{word}`")
        else:
            rest.append(word)
    if rest[:1] == ["last"]:
        scope, rest = "last", rest[1:]
    elif rest[:1] == ["undo"]:
        scope = "undo"
        return Revert(scope, "", tuple(rest[1:]), "--force" in flags, "--dry-run" in flags)
    if rest:
        raise ValueError(f"`{rest[0]}` makes no sense here")
    return Revert(scope, since, (), "--force" in flags, "--dry-run" in flags)


def _turn(name: str) -> str:
    number = name.removeprefix("t")
    if not number.isdecimal():
        raise ValueError(
            f"`{name}` is no turn (as in `--to t3`; `/revert --dry-run` names the newest)"
        )
    return f"t{number}"


def diff_command(conversation: Conversation, argument: str) -> Reply:
    """Show what a turn changed, or the newest that changed anything."""
    try:
        turns = (_turn(argument.strip()),) if argument.strip() else ()
    except ValueError as error:
        return Reply(False, text=f"{error}.")
    workspace = _workspace(conversation)
    if workspace is None:
        return Reply(False, text="Nothing is kept of the files of this session.")
    owner = _owner(conversation)
    if owner:
        return Reply(False, text=f"What it changed {BELONGS.format(owner)}.")
    changes = conversation.runtime.run(workspace.diff(turns))
    data = {"files": [{"path": one.path, "change": _word(one)} for one in changes]}
    lines = [line for one in changes for line in _lines(one)]
    if len(lines) > LONGEST:
        lines = [*lines[:LONGEST], f"[{len(lines) - LONGEST} more lines]"]
    return Reply(True, data, "\n".join(lines) or "No file was changed.")


def _workspace(conversation: Conversation) -> WorkspacePort | None:
    live = conversation.runtime.sessions.get(conversation.session)
    return live.performer.scene.workspace if live is not None else None


def _owner(conversation: Conversation) -> str:
    """Name the session whose turns have what a subagent changed; none if it has changes of its own."""
    parents = {one.session: one.parent for one in conversation.runtime.store.sessions()}
    owner = parents.get(conversation.session, "")
    workspace = _workspace(conversation)
    if not owner or workspace is None or conversation.runtime.run(workspace.diff(())):
        return ""
    while parents.get(owner):
        owner = parents[owner]
    return owner


def _word(change: FileChange) -> str:
    if change.before is None:
        return "created"
    return "deleted" if change.after is None else "modified"


def _lines(change: FileChange) -> list[str]:
    """Write one file's change as a unified diff, or in words where there is no text."""
    texts = [None if one is None else _text(one) for one in (change.old, change.new)]
    if None in texts and (change.old is not None or change.new is not None):
        texts = ["" if one is None else one for one in texts]
    old, new = texts
    if old is None or new is None or "\0" in old + new:
        return [f"{_word(change)}: {change.path}"]
    names = (f"a/{change.path}", f"b/{change.path}")
    rows = difflib.unified_diff(old.splitlines(), new.splitlines(), *names, lineterm="", n=3)
    return list(rows) or [f"{_word(change)}: {change.path}"]


def _text(data: bytes) -> str:
    return data.decode(errors="replace")
