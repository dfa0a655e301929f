"""A machine as a Mermaid state diagram, made from the same rows that run.

Text only: editors, code forges and documentation tools draw it. Syntax:
https://mermaid.js.org/syntax/stateDiagram.html
"""

import re
from typing import Final

from .machine import Machine, Transition

__all__ = ["label", "mermaid"]

_RESERVED: Final = frozenset(
    {"as", "class", "classdef", "default", "direction", "end", "note", "state", "style"}
)
_ESCAPES: Final = {"#": "#35;", ";": "#59;", '"': "#quot;"}
_HIGHLIGHT: Final = "fill:#ffd54f,stroke:#e65100,stroke-width:3px,color:#000"


def mermaid(machine: Machine, *current: str) -> str:
    """Draw a machine, with the states in `current` highlighted.

    Arrows read `event [guards] / effects`; an internal row is an arrow from a state to itself.
    Ignored events are comments, since an arrow for each would hide the others.
    """
    lines = ["stateDiagram-v2", f"    %% {_one_line(machine.name)}: {_one_line(machine.doc)}"]
    for state in machine.states:
        lines.append(f'    state "{label(state.name)}" as {_id(state.name)}')
    lines.append(f"    [*] --> {_id(machine.initial)}")
    for row in machine.transitions:
        lines += [_arrow(row, source) for source in row.source]
    lines += [f"    {_id(state.name)} --> [*]" for state in machine.states if state.is_final]
    lit = [_id(state.name) for state in machine.states if state.name in current]
    if lit:
        lines += [f"    classDef current {_HIGHLIGHT}", f"    class {','.join(lit)} current"]
    return "\n".join(lines) + "\n"


def _arrow(row: Transition, source: str) -> str:
    """Write one row as it applies to one of its sources."""
    if row.ignored:
        return f"    %% {source} ignores {row.event}: {_one_line(row.ignored)}"
    words = row.event
    if row.guards:
        words += f" [{', '.join(guard.replace('!', 'not ') for guard in row.guards)}]"
    if row.effects:
        words += f" / {', '.join(row.effects)}"
    dest = source if row.dest is None else row.dest
    return f"    {_id(source)} --> {_id(dest)} : {label(words)}"


def _id(name: str) -> str:
    """Make an identifier that Mermaid reads as one word and does not take for its own."""
    plain = re.sub(r"\W", "_", name, flags=re.ASCII)
    return f"{plain}_" if plain.lower() in _RESERVED else plain


def label(text: str) -> str:
    """Make a text one line, and escape what would end a label or a statement."""
    return re.sub('[#;"]', lambda found: _ESCAPES[found[0]], _one_line(text))


def _one_line(text: str) -> str:
    """Fold white space, so that no text can begin a line of its own."""
    return " ".join(text.split())
