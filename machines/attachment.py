"""What a person attached to a message by `@path`, as it was when they said it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from .value import Value

_TICKS = re.compile(r"`+")


class Attachment(Value):
    """One file or folder; `text` is what the model reads of it, empty if it was not attached.

    `size` is in words (`1.2 kB`); `note` says what was left out, or why it was not attached.
    """

    path: str
    text: str = ""
    size: str = ""
    note: str = ""
    is_refused: bool = False


def rendered(attached: Sequence[Attachment]) -> str:
    """Write what the model reads below the message; empty when nothing is attached.

    The fence around a file is longer than any in it, so that no file can end its own quotation.
    """
    return "".join(f"\n\n{_block(file)}" for file in attached)


def _block(one: Attachment) -> str:
    if one.is_refused:
        return f"[Not attached: {one.path}: {one.note}]"
    note = f", {one.note}" if one.note else ""
    longest = max((len(ticks) for ticks in _TICKS.findall(one.text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"[Attached: {one.path}{note}]\n{fence}\n{one.text}\n{fence}"


def told(attached: Sequence[Attachment]) -> str:
    """Say to the person what was attached and what was not; empty when nothing was named."""
    there = [_brief(file) for file in attached if not file.is_refused]
    lines = [f"Attached {', '.join(there)}."] if there else []
    lines += [f"Not attached: {file.path}: {file.note}." for file in attached if file.is_refused]
    return "\n".join(lines)


def _brief(one: Attachment) -> str:
    return f"{one.path} ({', '.join(filter(None, (one.size, one.note)))})"
