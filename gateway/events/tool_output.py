"""What a tool call's event tells of its output: enough to read, never a megabyte."""

from __future__ import annotations

from typing import Any

from ...journal import entries as e

__all__ = ["output_of"]

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
