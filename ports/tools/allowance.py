"""The pattern that a question offers for the answer `always`: this call, and others like it. Pure.

An offer is narrow, since a person accepts it with one key: the folder of a file, or a program with its
subcommand (`git status*`). A program is offered with any arguments only if all that it does is read or
check. What runs other commands (`sudo`, `sh`, `python`) is offered for exactly this call.
"""

from pathlib import Path
from typing import Any

from ...machines.errors import ToolError
from ...machines.pattern import lazy_pattern
from ...workflows.tools import kind_of
from .command_line import is_wrapper, operators
from .permission import rule_mismatch, wider_rule
from .place import find_place

_READERS = frozenset(
    "cat cut df diff du echo eslint file flake8 grep head jest ls mypy nl printf ps pwd pyright "
    "pytest ruff seq stat tail tree tsc uname uniq vitest wc which".split()
)
"""Programs that read or check, whatever their arguments."""
_RUNNERS = frozenset(
    "awk bun bunx cp curl dd deno find fish gawk install kill killall ln lua mv node npx perl php "
    "pipx pkill pwsh python rm rmdir rsync ruby scp sed shred tee truncate uvx wget".split()
)
"""Programs that run what they are given, or that change or send things themselves."""
_PROGRAM = lazy_pattern(r"[A-Za-z][\w.+-]*")
_SUBCOMMAND = lazy_pattern(r"[a-z][a-z\d]*(?:[-:][a-z\d]+)*")


def offered_pattern(tool: str, arguments: dict[str, Any], folder: Path) -> str:
    """Return the pattern to offer for calls like this one; empty for exactly this call."""
    pattern = _of_command(arguments) if tool == "shell" else _of_path(tool, arguments, folder)
    call = tool, arguments, folder
    return pattern if pattern and not rule_mismatch(wider_rule(tool, pattern), *call) else ""


def _of_command(arguments: dict[str, Any]) -> str:
    command = str(arguments.get("command") or "").strip()
    program, *others = command.split() or [""]
    if operators(command) or not _PROGRAM.fullmatch(program) or _runs_others(program):
        return ""
    if others and _SUBCOMMAND.fullmatch(others[0]) and command.startswith(f"{program} {others[0]}"):
        return f"{program} {others[0]}*"
    return f"{program} *" if others and program in _READERS else ""


def _runs_others(program: str) -> bool:
    name = program.rstrip("0123456789.")
    return name in _RUNNERS or is_wrapper(name)


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
    return "".join(f"[{sign}]" if sign in "*?[" else sign for sign in above) + "/*"
