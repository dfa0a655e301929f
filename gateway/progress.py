"""How a queue item and its progress read: `#1 [RUNNING]: TEXT (file 23/50)`."""

from collections.abc import Mapping
from typing import Any


def item_line(item: Mapping[str, Any]) -> str:
    """Write an item on one line, whatever lines its words have: number, state, words, progress."""
    text = " ".join(item["text"].split())
    return f"#{item['number']} [{item['state'].upper()}]: {text}{progress_text(item['progress'])}"


def progress_text(progress: Mapping[str, Any] | None) -> str:
    """Write progress in brackets with a space before it; empty when there is none."""
    if not progress:
        return ""
    unit = f"{progress['unit']} " if progress.get("unit") else ""
    return f" ({unit}{progress['done']}/{progress['total']})"
