"""What a person probably meant by a key that does not exist."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

from .document import is_table
from .fault import Fault, Where, dotted

__all__ = ["ALIASES", "suggest"]

ALIASES = {
    "api_key": "api_key_env",
    "approval_policy": "permissions.rules",
    "display.busy_text_mode": "busy_input_mode",
    "display.busy_steer_ack_enabled": "auto_queue.show_queue_on_input",
    "max_turns": "goals.max_turns",
    "mode": "busy_input_mode",
    "model": "agents.assistant.model",
    "model_provider": "models.main.provider",
    "permissions.allow": "permissions.rules",
    "permissions.ask": "permissions.rules",
    "permissions.deny": "permissions.rules",
    "providers": "models",
    "queue": "auto_queue",
    "tool_output_limit": "tools.output_limit",
}
"""Spellings of other programs, and ours; a key whose name alone is listed is found in any table."""


def suggest(fault: Fault, known: Sequence[Where]) -> list[Fault]:
    """Say which known key an unknown one means; a strange table is taken apart if that helps."""
    if not fault.is_unknown:
        return [fault]
    inner = [
        (where, key) for where in _inside(fault.where, fault.value) if (key := _other(where, known))
    ]
    if inner:
        return [
            replace(fault, where=where, message=f"unknown key `{dotted(where)}`", hint=_here(key))
            for where, key in inner
        ]
    return [replace(fault, hint=_hint(fault.where, known))]


def _inside(where: Where, value: Any) -> Iterator[Where]:
    """List the paths of a strange table's keys; none of a plain value."""
    if is_table(value):
        for name, item in value.items():
            yield (*where, name)
            yield from _inside((*where, name), item)


def _other(where: Where, known: Sequence[Where]) -> str:
    """Find a key that is ours under another program's roof: `display.busy_input_mode`."""
    if alias := ALIASES.get(dotted(where)):
        return alias
    tails = [where[start:] for start in range(1, len(where))]
    return next((dotted(tail) for tail in tails if tail in known), "")


def _hint(where: Where, known: Sequence[Where]) -> str:
    from difflib import get_close_matches

    if other := _other(where, known) or ALIASES.get(str(where[-1]), ""):
        return _here(other)
    leaf, siblings = str(where[-1]), _siblings(where, known)
    if close := get_close_matches(leaf, siblings, 1):
        return _here(dotted((*where[:-1], close[0])))
    if same := [key for key in known if key[-1] == leaf]:
        return _here(dotted(same[0]))
    anywhere = {dotted(key): key for key in known}
    if close := get_close_matches(dotted(where), anywhere, 1, 0.75):
        return _here(close[0])
    return "known here: " + ", ".join(f"`{name}`" for name in siblings) if siblings else ""


def _siblings(where: Where, known: Sequence[Where]) -> list[str]:
    parent = where[:-1]
    return [str(key[-1]) for key in known if len(key) == len(where) and _fits(parent, key[:-1])]


def _fits(where: Where, pattern: Where) -> bool:
    return all(want in ("*", part) for part, want in zip(where, pattern, strict=True))


def _here(key: str) -> str:
    return f"did you mean `{key}`?"
