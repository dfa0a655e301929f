"""Translates the tool calls that an external agent reports into ids, tools and arguments."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import count
from typing import Any

from ...machines.conversation import ToolRequest
from ...machines.json_shape import is_array
from ..models.loose_json import table, tables

_COMMANDS = ("command", "cmd", "script")
_PATHS = ("path", "file_path", "filePath", "filepath", "file")
_PATTERNS = ("pattern", "query", "regex")
_ADDRESSES = ("url", "uri")

Params = Mapping[str, Any]


class ReportedCalls:
    """The calls that an agent makes during one prompt; `call` is the id of the prompt's call."""

    def __init__(self, call: str) -> None:
        self._call = call
        self._known: dict[str, dict[str, Any]] = {}
        self._ids: dict[str, str] = {}
        self._numbers = count(1)

    def __contains__(self, theirs: str) -> bool:
        return theirs in self._ids

    def update(self, theirs: str, update: Params) -> str:
        """Merge an update into the known data of a call; returns the status of the call."""
        known = self._known.setdefault(theirs, {})
        known.update({name: value for name, value in update.items() if value not in (None, {})})
        return str(known.get("status") or "")

    def request(self, theirs: str) -> ToolRequest:
        """Assign a new id to a call, and return the call as a request."""
        self._ids[theirs] = f"{self._call}.{next(self._numbers)}"
        tool, arguments = as_call(self._known[theirs])
        return ToolRequest(call=self._ids[theirs], tool=tool, arguments=arguments)

    def id_of(self, theirs: str) -> str:
        """Return the latest id that was assigned to a call."""
        return self._ids[theirs]


def as_call(about: Params) -> tuple[str, dict[str, Any]]:
    """Translate a call of the protocol, by its kind, into a tool and arguments.

    A kind without a counterpart here becomes the tool's name, with the title as argument.
    """
    raw = table(about.get("rawInput"))
    title = str(about.get("title") or "")
    places = (str(place.get("path")) for place in tables(about.get("locations")))
    path = _first(raw, _PATHS) or next(places, "")
    match about.get("kind"):
        case "execute":
            return "shell", {"command": _first(raw, _COMMANDS) or title}
        case "read":
            return "read", {"path": path or title}
        case "edit" | "delete" | "move":
            return "edit", {"path": path or title}
        case "search":
            found = {"pattern": _first(raw, _PATTERNS) or title}
            return "search", found | ({"path": path} if path else {})
        case "fetch":
            return "fetch", {"url": _first(raw, _ADDRESSES) or title}
        case kind:
            return str(kind or "other"), {"title": title}


def option(options: list[dict[str, Any]], is_allowed: bool) -> str:
    """Return the id of the option to choose, preferably for this call only; empty if none fits."""
    kinds = ("allow_once", "allow_always") if is_allowed else ("reject_once", "reject_always")
    for kind in kinds:
        for choice in options:
            if choice.get("kind") == kind:
                return str(choice.get("optionId", ""))
    return ""


def _first(raw: Params, names: tuple[str, ...]) -> str:
    """Return the first of these values that is set, as one line of text."""
    for name in names:
        value = raw.get(name)
        if isinstance(value, str) and value:
            return value
        if is_array(value) and value:
            return " ".join(map(str, value))
    return ""
