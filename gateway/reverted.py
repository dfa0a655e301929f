"""How it reads that files were given back."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

NAMED = 10
"""Paths that are listed where their number says enough."""
MOST = 100
"""Paths that are listed where a person may look for one: a run's commands may change thousands."""


def reverted_text(about: Mapping[str, Any]) -> str:
    """Write a `reverted` event, or what `/revert` answers, for people."""
    if about.get("reason"):
        return f"Not reverted: {about['reason']}."
    lines = [_head(about)]
    if about["kept"]:
        lines += _kept(about)
    if about["yours"]:
        lines.append(f"Back to your own version: {_names(about['yours'])}.")
    if about["shared"] and about["scope"] != "undo":
        lines.append(
            "Changed while a command ran, so counted as the agent's: "
            f"{_names(about['shared'], MOST)}. `/revert undo PATH` brings one back."
        )
    lines += [f"Not covered: {note}." for note in about["notes"]]
    return "\n".join(lines)


def _head(about: Mapping[str, Any]) -> str:
    restored = about["restored"]
    files = "1 file" if len(restored) == 1 else f"{len(restored)} files"
    if not restored and not about["kept"]:
        is_undo = about["scope"] == "undo"
        return "There is no revert to undo." if is_undo else "There is nothing to revert."
    if about.get("dry_run"):
        turns = f" of {', '.join(about['turns'])}" if about["turns"] else ""
        return f"Would revert {files}{turns}{f': {_names(restored)}' if restored else ''}."
    if not restored:
        return "Nothing was reverted."
    match about["scope"]:
        case "undo":
            return f"Undid the revert of {files}: {_names(restored)}."
        case "last":
            return f"Reverted {files}: {_names(restored)}."
        case _:
            return f"Reverted {files}. Original state restored."


def _kept(about: Mapping[str, Any]) -> list[str]:
    """Name what was kept, by the reason."""
    reasons: dict[str, list[str]] = {}
    for path in about["kept"]:
        reasons.setdefault(about["why"][path], []).append(path)
    kept = "Would keep" if about.get("dry_run") else "Kept"
    lines = [f"{kept} {_names(paths, len(paths))}: {why}." for why, paths in reasons.items()]
    if about["scope"] == "undo":
        hint = ["`/revert undo --force` undoes what it can."]
        return lines + (hint if about["turns"] else [])
    return [*lines, "`/revert --force` reverts what it can; `/revert undo` undoes that."]


def _names(paths: Sequence[str], most: int = NAMED) -> str:
    shown = [path if path.isprintable() else json.dumps(path) for path in paths[:most]]
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
