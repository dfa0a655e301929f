"""Copies of a session: a fork, a file in Markdown for people, a file in JSON for another home.

A fork is a new session that begins with the conversation of another one, up to the end of a turn or to
an entry, and with its settings; it has no queue, and files are not touched. The JSON has the journal,
entry by entry; the import folds the entries again, and rejects a file that cannot be folded. What a file
says carries no authority: see `_without_authority`. Secrets are removed from both files unless the caller
asks for all.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.codec import decode_entry, encode_entry
from ...journal.entries import Entry
from ...journal.history import record_at
from ...journal.lock import host_name
from ...journal.record import SessionRecord
from ...journal.recovery import closing_messages, load_record, whole_conversation
from ...journal.store import RowFilter, SessionRow, Store, StoredEntry, check_identifier
from ...machines.conversation import ChatMessage
from ...machines.errors import SteersmanError, UsageError
from ...machines.json_shape import DEEPEST, parse_json
from ...workflows.document import is_list, is_table
from ...workflows.foreign_file import read_foreign
from ..host.offline_writer import writing
from ..wording.formats import document_lines, iso
from ..wording.redaction import Redactor
from .evidence import check_file, with_hashes

FORMAT, VERSION = "steersman-session", 2
LIMIT = 256 * 1024 * 1024
"""Bytes of a file that is imported."""
_DEEPEST = DEEPEST + 36  # what the arguments of a call may have, within what a journal has around
# fmt: off
_TALK: tuple[type[Entry], ...] = (
    e.SessionRenamed, e.SessionResumed, e.SessionLeaving, e.SessionSuspended,
    e.SessionFinalizing, e.SessionFinalized, e.Recovered, e.AllowanceForgotten, e.HookRan,
    e.InterruptPlanned, e.InterruptCalledOff, e.InterruptRequested, e.StopNoted, e.Queued,
    e.Requeued, e.Deferred, e.Withdrawn, e.EditBegun, e.EditEnded, e.Edited, e.Moved,
    e.SteerAddressed, e.Steered, e.SteerArrived, e.Offered, e.OfferAnswered, e.OfferWanted,
    e.Kept, e.QueueHeld, e.QueueReleased, e.TurnStarted, e.ModelCalled, e.Answered,
    e.AnswerGrew, e.AnswerCut, e.ModelCallFailed, e.QuestionAsked, e.QuestionAnswered,
    e.ToolIntended, e.ToolRefused, e.ToolEnded, e.CallReported, e.ProgressMade,
    e.NoProgress, e.ClaimDoubted, e.LimitReached, e.ModelAwaited, e.ModelAskedAgain,
    e.CompactionBegun, e.Compacted,
    e.Interrupted, e.Stopped, e.TurnEnded, e.LateResult, e.ChildAdmitted, e.ChildCancelled,
    e.ChildDetached, e.ChildInterrupted, e.ChildResumed, e.ChildEnded, e.GoalBegun,
    e.GoalTurnFailed, e.JudgingBegun, e.JudgingStopped, e.GoalJudged, e.GoalPaused,
    e.GoalResumed, e.GoalWoken, e.GoalCleared,
)
# fmt: on
"""What an import keeps as it is: what was said and done, and what stops or ends something."""
_FENCE = "````"


# Forks --------------------------------------------------------------------------------------------


def fork(store: Store, row: SessionRow, turn: str, now: float) -> str:
    """Make a session from the conversation of another, up to the end of `turn`, or all if empty.

    Returns the new session's id. Raises `UsageError` if the session has no such turn.
    """
    seq = end_of_turn(store, row, turn) if turn else row.seq
    name = f"{row.name or row.session}, forked" + (f" at {_id(turn)}" if turn else "")
    return fork_at(store, row, seq, name, now)


def fork_at(store: Store, row: SessionRow, seq: int, name: str, now: float) -> str:
    """Make a session from another as it was at entry `seq`; return its id.

    It has the conversation up to there, and what the person has chosen and allowed by now.
    """
    then, chosen = load_record(store, row.session, seq), record_at(store, row.session, row.seq)
    session = secrets.token_hex(4)
    store.create(
        SessionRow(
            session=session,
            folder=row.folder,
            agent=row.agent,
            created=now,
            updated=now,
            place=row.place,
        )
    )
    with writing(store, session) as offline_writer:
        opened = e.SessionOpened(
            session=session,
            folder=then.folder,
            agent=then.agent,
            model=chosen.model,
            system=then.system,
            tools=then.tools,
            messages=(*then.conversation, *closing_messages(then)),
            forked_from=f"{row.session}@{seq}",
            turns=then.turns_made,
            asked_model=then.asked_model,
            model_name=then.model_name,
            imported_from=then.imported_from,
            news=then.queue.news,
        )
        left = (e.SessionLeaving(cause="fork"), e.SessionSuspended(cause="fork"))
        named = (e.SessionRenamed(name=name),) if name else ()
        offline_writer.write(now, opened, *named, *_chosen(chosen), *left)
    return session


def _chosen(record: SessionRecord) -> Iterator[Entry]:
    """Yield the entries that make a session's choices and allowances those of another one."""
    yield e.PolicyChanged(
        busy_mode=record.busy_mode,
        is_auto_queue=record.is_auto_queue,
        routes=record.routes,
        model=record.chosen_model,
        mode=record.mode,
        holds=record.holds,
    )
    for tool, pattern in record.allowed:
        yield e.AllowanceGiven(tool=tool, pattern=pattern)


def end_of_turn(store: Store, row: SessionRow, turn: str) -> int:
    """Return the number of the last entry before the next turn. Raises `UsageError`."""
    wanted, is_found, known = _id(turn), False, list[str]()
    for stored in store.entries(row.session, 0, row.seq):
        if stored.data["kind"] != "turn_started":
            continue
        if is_found:
            return stored.seq - 1
        entry = decode_entry(stored.data)
        assert isinstance(entry, e.TurnStarted)
        is_found = entry.turn == wanted
        known.append(entry.turn)
    if not is_found:
        none = "it has had none of its own yet"
        has = f"its turns are {known[0]} to {known[-1]}" if known else none
        raise UsageError(f"session `{row.session}` has no turn `{turn}`", has)
    return row.seq


def _id(turn: str) -> str:
    """Return the id of a turn that a person may also name by its number: `3` is `t3`."""
    return f"t{turn}" if turn.isdigit() else turn


# Export and import --------------------------------------------------------------------------------


def exported(store: Store, row: SessionRow, redactor: Redactor | None) -> Iterator[str]:
    """Yield the lines of a session's journal as one JSON document, with a chain of hashes.

    Without `redactor` secrets stay in it.
    """
    about = {"id": row.session, "folder": row.folder, "agent": row.agent, "name": row.name}
    head = {"format": FORMAT, "version": VERSION, "session": about}
    entries = (
        {"seq": stored.seq, "time": stored.time, "data": stored.data}
        for stored in store.entries(row.session, 0, row.seq)
    )
    if redactor is None:
        return document_lines(head, "entries", with_hashes(row.session, entries), is_ascii=True)
    told = with_hashes(row.session, map(redactor.data, entries))
    return document_lines(redactor.data(head), "entries", told)


def markdown(store: Store, row: SessionRow, redactor: Redactor) -> Iterator[str]:
    """Yield the lines of a session's whole conversation as Markdown; one may have line breaks in it."""
    record = record_at(store, row.session, row.seq)
    yield f"# {redactor.line(record.name or f'Session {record.id}')}"
    yield ""
    yield f"- session `{record.id}`, begun {iso(record.created)}"
    yield f"- folder `{redactor.line(record.folder)}`"
    yield f"- agent {redactor.line(record.agent)}, model {redactor.line(record.model)}"
    for message in whole_conversation(store, row.session):
        yield ""
        yield from _message(message, redactor)


def _message(message: ChatMessage, redactor: Redactor) -> Iterator[str]:
    text = redactor.text(message.text)
    yield f"## {message.role}" + (f" `{message.call}`" if message.call else "")
    yield ""
    if message.role == "tool":
        yield from (f"{_FENCE}text", text.replace(_FENCE, "'" * 4), _FENCE)
    elif text:
        yield text
    for call in message.tool_calls:
        arguments = json.dumps(redactor.data(call.arguments), ensure_ascii=False, indent=2)
        yield from ("", f"Tool call `{call.call}`: **{redactor.line(call.tool)}**", "")
        yield from (f"{_FENCE}json", arguments.replace(_FENCE, "'" * 4), _FENCE)


def write_new(path: Path, lines: Iterable[str]) -> None:
    """Write lines to a new file; if that fails, there is none. Raises `OSError`."""
    with open(path, "x", encoding="utf-8") as out, ExitStack() as undoing:
        undoing.callback(path.unlink)
        out.writelines(f"{line}\n" for line in lines)
        undoing.pop_all()


def read_export(path: Path) -> dict[str, Any]:
    """Read a file that `exported` made. Raises `UsageError` for any other file."""
    try:
        data = parse_json(read_foreign(path, LIMIT), _DEEPEST)
    except OSError as error:
        reason = error.strerror or error
        raise UsageError(f"`{path}` cannot be read: {reason}", "name a file") from error
    except ValueError as error:
        how = "`steersman sessions export ID FILE.json` makes such a file"
        raise UsageError(f"`{path}` is not JSON: {error}", how) from error
    if not is_table(data) or data.get("format") != FORMAT:
        raise UsageError(
            f"`{path}` is no session", "`steersman sessions export ID` makes such files"
        )
    if data.get("version") not in (1, VERSION):
        raise UsageError(
            f"`{path}` has version {data.get('version')}; this program knows {VERSION}",
            "a later version of steersman wrote it: update this one",
        )
    if data["version"] != 1:  # which had no hashes
        about, listed = data.get("session"), data.get("entries")
        session = str(about.get("id")) if is_table(about) else ""
        check_file(session, listed if is_list(listed) else [], str(path))
    return data


def exported_entries(path: Path) -> list[StoredEntry]:
    """Return the entries of a file that `exported` made. Raises `UsageError` for any other file."""
    return [stored for stored, _ in _entries(read_export(path), str(path))]


def imported(
    store: Store, data: dict[str, Any], file: str, folder: str, agent: str, new_id: str = ""
) -> tuple[str, bool]:
    """Import a session under its own id or a new one; all of the session, or nothing.

    It works in `folder` from now on, as `agent` of this home. Returns the id, and whether the session is
    new here: the same session is not imported twice. Raises `UsageError` if the data is no session, if it
    is a workflow's run, and if another session has the id.
    """
    entries = list(_entries(data, file))
    row = _checked(entries, file)
    if row.workflow:
        raise UsageError(
            f"`{file}` is a run of workflow `{row.workflow}`, whose commands it would bring along",
            "copy the workflow's file, read it, and run it here",
        )
    session = check_identifier("session", new_id or row.session)
    if any(row.session == session for row in store.sessions(RowFilter(begins=session))):
        before = [stored.data for stored in store.entries(session)]
        if [stored.data for stored, _ in entries] == before:
            return session, False
        again = _without_authority(entries, session, file, folder, agent)
        is_import = bool(before[0].get("imported_from"))
        if is_import and [stored.data for stored, _ in again][1:] == before[1:]:
            return session, False
        raise UsageError(
            f"another session `{session}` is here, and is not the one in `{file}`",
            "`--new-id` imports it under a new id",
        )
    entries = _without_authority(entries, session, file, folder, agent)
    store.create(
        SessionRow(
            session=session, folder=folder, agent=agent, created=row.created, place=host_name()
        )
    )
    with writing(store, session) as offline_writer:
        offline_writer.keep_all(entries)
    return session, True


def _without_authority(
    entries: list[tuple[StoredEntry, Entry]], session: str, file: str, folder: str, agent: str
) -> list[tuple[StoredEntry, Entry]]:
    """Return the entries of a file without what would decide anything here.

    Neither its folder, agent, system prompt and tools, nor what its person allowed, granted and chose,
    nor commands that judge a goal, nor the id of another program's session, nor runs and reverts that are
    not over. What was said stays. A kind that is not listed is left out; the numbers stay.
    """
    found: list[tuple[StoredEntry, Entry]] = []
    reverted = {entry.id for _, entry in entries if isinstance(entry, e.Reverted | e.RevertRefused)}
    for stored, entry in entries:
        match entry:
            case e.SessionOpened():
                entry = replace(
                    entry,
                    session=session,
                    folder=folder,
                    agent=agent,
                    system="",
                    tools=(),
                    parent="",
                    imported_from=Path(file).name,
                )
            case e.AllowanceGiven():
                entry = e.AllowanceForgotten(tool=entry.tool, pattern=entry.pattern)
            case e.GoalSet():
                entry = replace(entry, gates=())
            case e.ChildStarted():
                entry = replace(entry, goal={})
            case e.RevertEntry() if entry.id in reverted:
                found.append((stored, entry))
                continue
            case _ if type(entry) in _TALK:
                found.append((stored, entry))
                continue
            case _:
                entry = e.PolicyChanged()
        found.append((replace(stored, data=encode_entry(entry)), entry))
    return found


def _checked(entries: list[tuple[StoredEntry, Entry]], file: str) -> SessionRow:
    """Fold all entries and return the session's row. Raises `UsageError` if an entry does not fit."""
    from ...actors.commits import row_of
    from ...journal.record import apply

    record = SessionRecord()
    try:
        for stored, entry in entries:
            apply(record, entry, stored.seq, stored.time)
        row = row_of(record)
        check_identifier("session", row.session)
    except (SteersmanError, KeyError, AttributeError, TypeError) as error:
        raise UsageError(
            f"`{file}`: entry {record.seq} does not fit: {error}", "export it again"
        ) from error
    return row


def _entries(data: dict[str, Any], file: str) -> Iterator[tuple[StoredEntry, Entry]]:
    listed = data.get("entries")
    for number, line in enumerate(listed if is_list(listed) else [], 1):
        try:
            stored = StoredEntry(
                seq=int(line["seq"]), time=float(line["time"]), data=dict(line["data"])
            )
            entry = decode_entry(stored.data)
        except (SteersmanError, KeyError, TypeError, ValueError, AttributeError) as error:
            raise UsageError(
                f"`{file}`: entry {number} cannot be read: {error}", "export it again"
            ) from error
        if stored.seq != number:
            raise UsageError(f"`{file}`: entry {number} is missing", "export it again")
        yield stored, entry
