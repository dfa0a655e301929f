"""The events of compaction, of attached and restored files, and of limits."""

from __future__ import annotations

from ...journal import entries as e
from ...journal.entries import Compacted, CompactionBegun, LimitReached, LimitsGranted
from ...journal.record import SessionRecord
from ...machines.conversation import Attachment, told
from .contract import CompactedEvent, ErrorEvent, Event, NoticeEvent, RevertedEvent, Stamp

# Files attached to a message ----------------------------------------------------------------------


def attachment_events(attached: tuple[Attachment, ...], at: Stamp) -> list[Event]:
    """Return a notice of what was attached and what was not; nothing where nothing was named."""
    return [NoticeEvent(type="notice", **at, text=told(attached))] if attached else []


# What a tool call's event tells of its output: enough to read, never a megabyte -------------------


SHOWN = 16_000
"""Characters; of more, the beginning and the end."""


def output_of(entry: e.ToolEnded | e.ToolRefused) -> tuple[int, str]:
    """Return how many lines the model received, and those lines, cut in the middle."""
    text = next((message.text for message in entry.messages if message.call == entry.call), "")
    lines = text.count("\n") + bool(text and not text.endswith("\n"))
    return lines, _cut(text)


def _cut(text: str) -> str:
    if len(text) <= SHOWN:
        return text
    half = SHOWN // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


# Files restored by a revert -----------------------------------------------------------------------


def of_revert(
    entry: e.RevertBegun | e.Reverted | e.RevertRefused, record: SessionRecord, at: Stamp
) -> list[Event]:
    """Return the events of a revert; of one that only looks there are none."""
    known = record.reverts[entry.id].asked
    if known.is_dry_run:
        return []
    match entry:
        case e.RevertBegun() if entry.files and known.scope != "undo":
            text = f"Reverting file {entry.files} changes..."
            return [NoticeEvent(type="notice", **at, text=text)]
        case e.RevertBegun():
            return []
        case e.RevertRefused():
            text = f"not reverted: {entry.reason}"
            return [ErrorEvent(type="error", **at, code="not_reverted", text=text, hint="")]
        case e.Reverted():
            return [
                RevertedEvent(
                    type="reverted",
                    **at,
                    id=entry.id,
                    scope=entry.scope,
                    turns=list(entry.turns),
                    restored=list(entry.restored),
                    kept=[path for path, _ in entry.kept],
                    why=dict(entry.kept),
                    shared=list(entry.shared),
                    yours=list(entry.yours),
                    notes=list(entry.notes),
                )
            ]


MORE = "`/limits more` grants the same amount again, `/queue resume` continues"


def of_limits(entry: LimitReached | LimitsGranted, at: Stamp) -> Event:
    """Return the event of a limit."""
    if isinstance(entry, LimitsGranted):
        text = "The session may use as much again."
        return NoticeEvent(type="notice", **at, text=text)
    text = f"A limit is reached, {entry.what}. The queue is held."
    return ErrorEvent(type="error", **at, code="limit_reached", text=text, hint=MORE)


def of_compaction(entry: CompactionBegun | Compacted, at: Stamp) -> list[Event]:
    """Return the events of a compaction: words for people, and what came of it."""
    if isinstance(entry, CompactionBegun):
        return [NoticeEvent(type="notice", **at, text=_begun(entry))]
    compacted = CompactedEvent(
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
    return [compacted, NoticeEvent(type="notice", **at, text=_done(entry))]


def _begun(entry: CompactionBegun) -> str:
    match entry.why:
        case "full":
            share = 100 * entry.tokens // max(1, entry.window)
            return (
                f"The model's window is {share} % full ({entry.tokens:,} of {entry.window:,} "
                "tokens): summing up older turns…"
            )
        case "refused":
            return "The conversation is too long for the model: summing up older turns…"
        case _:
            return "Summing up the conversation…"


def _done(entry: Compacted) -> str:
    size = f"about {entry.before:,} tokens are now {entry.after:,}"
    if entry.how == "pruned":
        what = f"{entry.left_out} older results of tools are left out or shortened instead; {size}"
        return f"No summary ({entry.reason}): {what}."
    return f"Summed up {entry.dropped} messages: {size}. The originals stay in the journal."
