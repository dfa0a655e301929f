"""One line of the doctor's report."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Verdict = Literal["ok", "warn", "bad"]


@dataclass(frozen=True, slots=True)
class Finding:
    """What was looked at and how it is; `hint` is what to do, empty if nothing."""

    name: str
    verdict: Verdict
    text: str
    hint: str = ""
