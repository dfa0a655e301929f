"""An agent's own tool call, as the rules of a session know calls: a tool by its name, its arguments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast

COMMANDS = ("command", "cmd", "script")
PATHS = ("path", "file_path", "filePath", "filepath", "file")
PATTERNS = ("pattern", "query", "regex")
ADDRESSES = ("url", "uri")

Params = Mapping[str, Any]


def as_call(about: Params) -> tuple[str, dict[str, Any]]:
    """Return tool and arguments of a call as the protocol describes it, by its kind.

    What has no counterpart here keeps its kind as the tool's name, and its title.
    """
    given = about.get("rawInput")
    raw = cast("Params", given if isinstance(given, dict) else {})
    title = str(about.get("title") or "")
    match about.get("kind"):
        case "execute":
            return "shell", {"command": _first(raw, COMMANDS) or title}
        case "read":
            return "read", {"path": _place(about, raw) or title}
        case "edit" | "delete" | "move":
            return "edit", {"path": _place(about, raw) or title}
        case "search":
            place = _place(about, raw)
            found = {"pattern": _first(raw, PATTERNS) or title}
            return "search", {**found, **({"path": place} if place else {})}
        case "fetch":
            return "fetch", {"url": _first(raw, ADDRESSES) or title}
        case kind:
            return str(kind or "other"), {"title": title}


def option(options: list[dict[str, Any]], is_allowed: bool) -> str:
    """Choose among an agent's options: for this once where there is such a one; empty if none fits."""
    kinds = ("allow_once", "allow_always") if is_allowed else ("reject_once", "reject_always")
    for kind in kinds:
        for one in options:
            if one.get("kind") == kind:
                return str(one.get("optionId", ""))
    return ""


def _place(about: Params, raw: Params) -> str:
    listed = about.get("locations")
    places = cast("list[Params]", listed if isinstance(listed, list) else [])
    return _first(raw, PATHS) or next((str(one.get("path")) for one in places), "")


def _first(raw: Params, names: tuple[str, ...]) -> str:
    """Return the first of these that is there, as one line of text."""
    for name in names:
        match raw.get(name):
            case str(text) if text:
                return text
            case words if isinstance(words, list) and words:
                return " ".join(map(str, cast("list[object]", words)))
            case _:
                pass
    return ""
