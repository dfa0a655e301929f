"""What is told when older turns are summed up, and the command that asks for it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...journal.compaction_entries import Compacted, CompactionBegun
from ...machines.messages import Compact
from ..commands.reply import Reply

if TYPE_CHECKING:
    from ..conversation import Conversation

__all__ = ["compact_command", "of_compaction"]


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
