"""What is told when older turns are summed up, and the command that asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...journal import entries as e
from ...journal import revert_entries as r
from ...journal.compaction_entries import Compacted, CompactionBegun
from ...journal.record import SessionRecord
from ...machines.attachment import Attachment, told
from ...machines.messages import Compact
from ..commands.reply import Reply

if TYPE_CHECKING:
    from ..conversation import Conversation


# What is told of the files that a message brought along -------------------------------------------


def attachment_events(attached: tuple[Attachment, ...]) -> list[dict[str, Any]]:
    """Return a notice of what was attached and what was not; nothing where nothing was named."""
    return [{"type": "notice", "text": told(attached)}] if attached else []


# What a tool call's event tells of its output: enough to read, never a megabyte -------------------


SHOWN = 16_000
"""Characters; of more, the beginning and the end."""


def output_of(entry: e.ToolEnded | e.ToolRefused) -> dict[str, Any]:
    """Return `lines`, how many the model was told, and `output`, those lines, cut in the middle."""
    text = next((one.text for one in entry.messages if one.call == entry.call), "")
    lines = text.count("\n") + bool(text and not text.endswith("\n"))
    return {"lines": lines, "output": _cut(text)}


def _cut(text: str) -> str:
    if len(text) <= SHOWN:
        return text
    half = SHOWN // 2
    return f"{text[:half]}\n[… {len(text) - 2 * half} characters left out …]\n{text[-half:]}"


# What is told when files are given back -----------------------------------------------------------


def of_revert(
    entry: r.RevertBegun | r.Reverted | r.RevertRefused, record: SessionRecord
) -> list[dict[str, Any]]:
    """Return the events of a revert; of one that only looks there are none."""
    known = record.reverts[entry.id]
    if known.is_dry_run:
        return []
    match entry:
        case r.RevertBegun() if entry.files and known.scope != "undo":
            return [{"type": "notice", "text": f"Reverting file {entry.files} changes..."}]
        case r.RevertRefused():
            text = f"not reverted: {entry.reason}"
            return [{"type": "error", "code": "not_reverted", "text": text, "hint": ""}]
        case r.Reverted():
            return [
                {
                    "type": "reverted",
                    "id": entry.id,
                    "scope": entry.scope,
                    "turns": list(entry.turns),
                    "restored": list(entry.restored),
                    "kept": [path for path, _ in entry.kept],
                    "why": dict(entry.kept),
                    "shared": list(entry.shared),
                    "yours": list(entry.yours),
                    "notes": list(entry.notes),
                }
            ]
        case _:
            return []


def of_compaction(entry: CompactionBegun | Compacted) -> list[dict[str, Any]]:
    """Return the events of a compaction: words for people, and what came of it."""
    if isinstance(entry, CompactionBegun):
        return [{"type": "notice", "text": _begun(entry)}]
    fields = {
        "turn": entry.turn,
        "how": entry.how,
        "dropped": entry.dropped,
        "before": entry.before,
        "after": entry.after,
        "summary": entry.summary or None,
        "reason": entry.reason or None,
    }
    return [{"type": "compacted", **fields}, {"type": "notice", "text": _done(entry)}]


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


def compact_command(conversation: Conversation, argument: str) -> Reply:
    """Have the conversation summed up: now, or right after the running turn."""
    answer = conversation.ask(Compact(argument.strip(), conversation.user))
    if not answer.get("ok"):
        return Reply(False, answer, f"Not summed up: {answer.get('reason', '')}.")
    when = "" if answer.get("runs") else "It is summed up when the running turn has ended."
    return Reply(True, answer, when)
