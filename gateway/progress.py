"""How progress reads: ` (file 23/50)`."""

from typing import Any

__all__ = ["progress_text"]


def progress_text(progress: dict[str, Any] | None) -> str:
    """Write progress in brackets with a space before it; empty when there is none."""
    if not progress:
        return ""
    unit = f"{progress['unit']} " if progress.get("unit") else ""
    return f" ({unit}{progress['done']}/{progress['total']})"
