"""What people write in a step who know other programs' files, and how it is written here."""

from dataclasses import replace
from typing import Final

from ..fault import Fault, dotted

__all__ = ["translated"]

_KEYS: Final = {
    "after": "needs",
    "args": "run",
    "cmd": "run",
    "command": "run",
    "condition": "when",
    "dependencies": "needs",
    "depends_on": "needs",
    "dir": "cwd",
    "environment": "env",
    "foreach": "for_each",
    "if": "when",
    "loop": "for_each",
    "matrix": "for_each",
    "name": "id",
    "requires": "needs",
    "retries": "retry",
    "script": "shell",
    "uses": "workflow",
    "with_items": "for_each",
    "workdir": "cwd",
    "working_directory": "cwd",
}
_WAYS: Final = {
    "ask": 'write a table, as in `ask = { text = "Go on?" }`',
    "goal": 'write a table, as in `goal = { text = "the tests pass" }`',
    "judge": 'write a table, as in `judge = { text = "it is right", of = "…" }`',
    "retry": "write a table, as in `retry = { max = 3 }`",
    "run": 'write a list, as in `run = ["ls", "-l"]`, or `shell = "ls -l"`',
}


def translated(fault: Fault) -> Fault:
    """Give a fault of a step the hint that helps who knows another program's words for it."""
    if fault.where[:1] != ("step",) or len(fault.where) != 3:
        return fault
    key = str(fault.where[2])
    if fault.is_unknown and key in _KEYS:
        meant = (*fault.where[:-1], _KEYS[key])
        return replace(fault, hint=f"did you mean `{dotted(meant)}`?")
    if not fault.is_unknown and key in _WAYS and " must be " in fault.message:
        return replace(fault, hint=_WAYS[key])
    return fault
