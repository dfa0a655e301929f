"""What a slash command answers."""

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Reply:
    """A command's one answer. `leaves`: the face that typed it should end."""

    ok: bool
    data: dict[str, Any] = field(default_factory=dict[str, Any])
    text: str = ""
    leaves: bool = False
