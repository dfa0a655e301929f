"""The events of compaction, of attached and restored files, of tool output, and of limits."""

from __future__ import annotations

from datetime import datetime
from typing import assert_never

from ...journal import entries as e
from ...journal.record import SessionRecord
from ...machines.conversation import Attachment, told
from ..wording.formats import clock, iso, line_count
from . import contract as c

SHOWN = 16_000
"""Characters of a tool's output in an event; of more, the beginning and the end."""
MORE = "`/limits more` grants the same amount again, `/queue resume` continues"


def attachment_events(attached: tuple[Attachment, ...], at: c.Stamp) -> list[c.Event]:
    """Return a notice of the files that were attached or not; none if the message names no file."""
    return [c.notice(at, told(attached))] if attached else []


def output_of(entry: e.ToolEnded | e.ToolRefused) -> tuple[int, str]:
    """Return the number of lines that the model received, and the lines, cut in the middle."""
    text = next((message.text for message in entry.messages if message.call == entry.call), "")
    lines, half = line_count(text), SHOWN // 2
    if len(text) > SHOWN:
        left_out = f"[… {len(text) - 2 * half} characters left out …]"
        text = f"{text[:half]}\n{left_out}\n{text[-half:]}"
    return lines, text


UNITS = ("", "file", "files")
"""The units of a progress that counts files."""


def _reached(entry: e.RevertBegun, known: e.RevertAsked, record: SessionRecord) -> int:
    """Return how many files the turns to revert said that they had done, or how many go back."""
    turns = {known.turn, *known.turns}
    items = (item for item in record.queue.items.values() if item.turn in turns)
    reached = [
        int(item.progress["done"])
        for item in items
        if item.progress and item.progress["unit"] in UNITS
    ]
    return (reached[-1] if reached else 0) or entry.files


def of_revert(entry: e.AnyRevertEntry, record: SessionRecord, at: c.Stamp) -> list[c.Event]:
    """Return the events of a revert; a dry run has none."""
    known = record.reverts[entry.id].asked
    if known.is_dry_run:
        return []
    match entry:
        case e.RevertBegun() if entry.files and known.scope != "undo":
            return [c.notice(at, f"Reverting file {_reached(entry, known, record)} changes...")]
        case e.RevertBegun() | e.NoEvent():
            return []
        case e.RevertRefused():
            text = f"not reverted: {entry.reason}"
            return [c.ErrorEvent(type="error", **at, code="not_reverted", text=text, hint="")]
        case e.Reverted():
            reverted = c.RevertedEvent(
                type="reverted",
                **at,
                id=entry.id,
                scope=entry.scope,
                turns=list(entry.turns or known.turns),
                restored=list(entry.restored),
                kept=[path for path, _ in entry.kept],
                why=dict(entry.kept),
                shared=list(entry.shared),
                yours=list(entry.yours),
                notes=list(entry.notes),
                original=entry.is_original,
            )
            if known.user:
                reverted["user"] = known.user
            return [reverted]
        case _:
            assert_never(entry)


def of_limits(entry: e.LimitReached | e.LimitsGranted, at: c.Stamp) -> c.Event:
    """Return the event of a limit."""
    if isinstance(entry, e.LimitsGranted):
        return c.notice(at, "The session may use as much again.")
    text = f"A limit is reached, {entry.what}. The queue is held."
    return c.ErrorEvent(
        type="error", **at, code="limit_reached", text=text, hint=entry.hint or MORE
    )


def of_provider(entry: e.ModelAwaited, at: c.Stamp) -> c.Event:
    """Return the event of a turn that waits for the end of its provider's limit."""
    when = clock(iso(entry.until), "minutes")
    text = f"{entry.reason}. The model is asked again at {when}; `/stop` ends that."
    seconds = round(entry.until - datetime.fromisoformat(at["time"]).timestamp(), 1)
    return c.NoticeEvent(type="notice", **at, text=text, seconds=seconds)


_DONE = {
    "told": "the model was told",
    "judged": "the goal is judged",
    "ended": "it was ended",
    "cut": "the answer was ended",
}
NO_PROGRESS = "`/queue resume` lets it try again; say more, or `[progress]` allows more repetitions"


def of_no_progress(entry: e.NoProgress, at: c.Stamp) -> list[c.Event]:
    """Return the events of a turn that repeats itself: for programs, and for people."""
    event = c.NoProgressEvent(
        type="no_progress",
        **at,
        turn=entry.turn,
        kind=entry.what,
        streak=entry.count,
        evidence=entry.evidence,
        did=entry.did,
    )
    if entry.did == "asked":  # the question says the rest
        return [event]
    text = f"No progress, {entry.count} times: {entry.evidence}; {_DONE[entry.did]}."
    if entry.did == "ended":
        error = c.ErrorEvent(type="error", **at, code="no_progress", text=text, hint=NO_PROGRESS)
        return [event, error]
    return [event, c.notice(at, text)]


def of_compaction(entry: e.CompactionBegun | e.Compacted, at: c.Stamp) -> list[c.Event]:
    """Return the events of a compaction: a notice for people, and the result."""
    if isinstance(entry, e.CompactionBegun):
        return [c.notice(at, _begun(entry))]
    compacted = c.CompactedEvent(
        type="compacted",
        **at,
        turn=entry.turn,
        how=entry.how,
        dropped=entry.dropped,
        before=entry.before,
        after=entry.after,
        summary=entry.summary or None,
        reason=entry.reason or None,
    )
    return [compacted, c.notice(at, _done(entry))]


def _begun(entry: e.CompactionBegun) -> str:
    match entry.why:
        case "full":
            share = 100 * entry.tokens // max(1, entry.window)
            return (
                f"The model's window is {share} % full ({entry.tokens:,} of {entry.window:,} "
                f"tokens): {'summing up older turns' if entry.dropped else 'making room'}…"
            )
        case "refused":
            return "The conversation is too long for the model: summing up older turns…"
        case _:
            return "Summing up the conversation…"


def _done(entry: e.Compacted) -> str:
    size = f"about {entry.before:,} tokens are now {entry.after:,}"
    if entry.how == "pruned":
        if not entry.reason:
            return f"Left out {entry.left_out} old results of tools: {size}."
        what = f"{entry.left_out} older results of tools are left out or shortened instead; {size}"
        return f"No summary ({entry.reason}): {what}."
    return f"Summed up {entry.dropped} messages: {size}. The originals stay in the journal."
