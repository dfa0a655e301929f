"""What the model is told when files that it changed were given back."""

from __future__ import annotations

from .revert_entries import Reverted

__all__ = ["news_of"]

NAMED = 20
"""Files that it is told by name."""


def news_of(entry: Reverted) -> str:
    """Say to the model what became of its files, in front of the next message; empty if nothing."""
    if entry.is_dry_run or not entry.restored:
        return ""
    count = len(entry.restored)
    names = ", ".join(entry.restored[:NAMED]) + (", …" if count > NAMED else "")
    files = "1 file" if count == 1 else f"{count} files"
    what = (
        f"took back a revert: {files} hold your changes again"
        if entry.scope == "undo"
        else f"reverted your changes of {files}, which are as they were before"
    )
    return f"[The user {what}: {names}. Read them anew before you go on.]"
