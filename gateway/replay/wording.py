"""What a replay came to, for people and for programs."""

from __future__ import annotations

import json
from typing import Any

from ...journal.codec import encode_entry
from ...ports.tools.text import counted
from ...simulator.replay.player import Difference
from ..views.comparison import step_text
from ..wording.redaction import Redactor
from .replay import Replay


def replay_text(found: Replay, redactor: Redactor) -> str:
    """Write what a replay came to for people."""
    kept = f", kept as {found.session}" if found.session else ""
    asked = (
        f", {counted(found.asked, 'call')} of a model" if found.asked else ", nothing was called"
    )
    if found.is_same:
        return f"{found.of}: all {found.entries} entries decided as recorded{asked}{kept}."
    head = f"{found.of}: the same for {found.common} of {found.entries} entries{asked}{kept}."
    if found.difference is None:
        return head
    difference = found.difference
    if difference.recorded is None and difference.came is None:
        return f"{head}\nIt ended there: {difference.why}."
    where = difference.turn or "no turn"
    lines = [head, f"The first difference is at entry {difference.seq}, in {where}:"]
    sides = (("recorded", difference.recorded), ("replayed", difference.came))
    texts = [step_text(entry, redactor) if entry else "nothing more" for _, entry in sides]
    if texts[0] == texts[1]:  # people read both alike: say which fields are others
        texts = [redactor.line(json.dumps(others, default=str)) for others in _others(difference)]
    lines += [f"  {side}  {text}" for (side, _), text in zip(sides, texts, strict=True)]
    lines += [f"  {difference.why}"] if difference.why else []
    if found.folder:
        lines.append(f"It goes on in {found.folder}, a copy of the folder as it was then.")
    if found.folder and found.unsaid:
        lines.append(f"{counted(found.unsaid, 'later message')} of the record is not said again.")
    if found.lost:
        lines.append(f"Not as they were then: {', '.join(map(redactor.line, found.lost))}.")
    return "\n".join(lines)


def _others(difference: Difference) -> list[dict[str, Any]]:
    """Return the fields of both entries that are not the same."""
    both = [encode_entry(entry) for entry in (difference.recorded, difference.came) if entry]
    return [
        {name: value for name, value in one.items() if other.get(name) != value}
        for one, other in (both, both[::-1])
    ]


def replay_data(found: Replay, redactor: Redactor) -> dict[str, Any]:
    """Write what a replay came to as data."""
    difference = found.difference
    data: dict[str, Any] = {
        "of": found.of,
        "session": found.session or None,
        "entries": found.entries,
        "common": found.common,
        "asked": found.asked,
        "is_same": found.is_same,
        "unsaid": found.unsaid,
        "folder": found.folder or None,
        "lost": list(found.lost),
        "difference": None,
    }
    if difference is not None:
        data["difference"] = {
            "seq": difference.seq,
            "turn": difference.turn or None,
            "recorded": encode_entry(difference.recorded) if difference.recorded else None,
            "replayed": encode_entry(difference.came) if difference.came else None,
            "why": difference.why,
        }
    redacted: dict[str, Any] = redactor.data(data)
    return redacted
