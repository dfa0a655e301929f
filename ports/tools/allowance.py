"""The pattern that a question offers for the answer `always`: this call, and others like it. Pure.

An offer is narrow, since a person accepts it with one key: the folder of a file, or a program of the
table with its subcommand (`git status*`). Any other command is offered for exactly this call.
"""

from glob import escape
from pathlib import Path
from typing import Any

from ...machines.errors import ToolError
from ...workflows.tools import kind_of
from .command_line import read_line
from .known_words import known_words
from .permission import rule_mismatch, ruled_as, wider_rule
from .place import find_place


def offered_pattern(tool: str, arguments: dict[str, Any], folder: Path) -> str:
    """Return the pattern to offer for calls like this one; empty for exactly this call."""
    pattern = _of_command(arguments) if tool == "shell" else _of_path(tool, arguments, folder)
    call = tool, arguments, folder
    rule = wider_rule(ruled_as(tool, arguments), pattern)
    return pattern if pattern and not rule_mismatch(rule, *call) else ""


def _of_command(arguments: dict[str, Any]) -> str:
    line = read_line(str(arguments.get("command") or "").strip(" \t\n"))
    if len(line.programs) != 1 or not line.programs[0].words:
        return ""
    words = line.programs[0].words
    known = known_words(words)
    if known.row is None or known.row.is_group or len(known.named) < known.row.named:
        return ""
    if any(at in known.faults for at in known.named):
        return ""
    names = [words[at].text for at in (*known.places, *known.named)]
    return " ".join(names) + ("*" if len(names) > 1 else " *")


def _of_path(tool: str, arguments: dict[str, Any], folder: Path) -> str:
    if kind_of(tool) not in ("read", "edit", "search"):
        return ""
    try:
        place = find_place(str(arguments.get("path") or "."), folder)
    except ToolError:
        return ""
    above = Path(place.relative).parent.as_posix()
    if place.is_outside or above == ".":
        return ""
    return f"{escape(above)}/*"
