"""Whether the steps of a turn lead anywhere: a fold over its calls and what came of them. Pure.

A step is one answer of the model with its calls and their results. A step that was made before, with the
same results and without a change since, is a repetition, however the steps between are ordered; so a
cycle of up to `period` steps is found like a single call that is repeated. Calls that fail one after
another in the same way are no progress either, whatever their arguments. A change counts once: writing
back what a file held before is no progress.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from typing import Any, Literal

import msgspec

from .value import Value

LONGEST = 32
"""Steps that are remembered: the longest cycle that a setting can ask for."""
_EVIDENCE = 160  # characters of a call, and of its result

Kind = Literal["", "calls", "cycle", "errors", "text"]
"""What repeats: one step, several in turn, a failure, or the text of an answer."""


class ProgressPolicy(Value):
    """After how many repetitions the model is told, a person is asked, and the turn ends.

    `period`: in steps, the longest cycle that counts.
    """

    tell: int = 3
    ask: int = 5
    end: int = 6
    period: int = 8


class CallOutcome(Value):
    """One call and what came of it, as far as repetitions are concerned.

    `mark` is the same for the same call with the same result, `failure` for failures of the same kind,
    and `change` for the same change; the latter two may be empty. `evidence` is one line.
    """

    mark: str
    failure: str = ""
    change: str = ""
    is_poll: bool = False
    evidence: str = ""


class TurnProgress(Value):
    """What the newest steps of a turn came to.

    `marks` and `changes` are those of the newest steps and changes, oldest first. `streak` is how many
    steps in a row were repetitions, and `reach` how far back, in steps, the farthest of them was
    known. `failures` counts those of the kind `failure` in a row. `is_told`: the model was told of
    it, `is_asked`: a person is asked; `is_off`: a person said that it may go on for ever.
    """

    marks: tuple[str, ...] = ()
    changes: tuple[str, ...] = ()
    streak: int = 0
    reach: int = 0
    failure: str = ""
    failures: int = 0
    evidence: str = ""
    is_told: bool = False
    is_asked: bool = False
    is_off: bool = False

    @property
    def kind(self) -> Kind:
        """What repeats."""
        if self.failures > self.streak + 1:
            return "errors"
        return ("calls" if self.reach == 1 else "cycle") if self.streak else ""

    def count(self, period: int) -> int:
        """Return how often it was done, the first time included; 0 or 1: nothing repeats."""
        steps = self.streak + 1 if self.streak and self.reach <= period else 0
        return max(steps, self.failures)


def outcome(
    tool: str,
    arguments: Mapping[str, Any],
    status: str,
    text: str,
    *,
    has_run: bool = True,
    changed: Iterable[str] = (),
    is_poll: bool = False,
) -> CallOutcome:
    """Describe a call that has ended. `changed`: what it changed; `has_run`: a command of it did."""
    called = msgspec.json.encode([tool, arguments], order="deterministic", enc_hook=str)
    failure = "" if status == "ok" or has_run else f"{tool}: {_kind_of_failure(text)}"
    changes = list(changed)
    said = ", ".join(f"{name}: {_shown(value)}" for name, value in arguments.items())
    return CallOutcome(
        mark=_digest(called, status.encode(), text.encode("utf-8", "replace")),
        failure=failure,
        change=_digest(called, *(path.encode("utf-8", "replace") for path in changes))
        if changes
        else "",
        is_poll=is_poll,
        evidence=f"{tool} ({_line(said)}): {_line(text) or status}",
    )


def after_step(progress: TurnProgress, outcomes: Iterable[CallOutcome]) -> TurnProgress:
    """Return the progress after a step with these outcomes; polls do not count."""
    counted = [one for one in outcomes if not one.is_poll]
    if not counted:
        return progress
    mark = "+".join(sorted(one.mark for one in counted))
    fresh = [one.change for one in counted if one.change and one.change not in progress.changes]
    if fresh:
        changes = (*progress.changes, *fresh)[-LONGEST:]
        return TurnProgress(marks=(mark,), changes=changes, is_off=progress.is_off)
    reach = next((at for at, known in enumerate(progress.marks[::-1], 1) if known == mark), 0)
    streak = progress.streak + 1 if reach else 0
    failure = "+".join(one.failure for one in counted) if all(o.failure for o in counted) else ""
    failures = progress.failures + 1 if failure and failure == progress.failure else bool(failure)
    return TurnProgress(
        marks=(*progress.marks, mark)[-LONGEST:],
        changes=progress.changes,
        streak=streak,
        reach=max(reach, progress.reach) if streak else 0,
        failure=failure,
        failures=int(failures),
        evidence=counted[-1].evidence,
        is_told=progress.is_told and (streak > 0 or failures > 1),
        is_off=progress.is_off,
    )


def _digest(*parts: bytes) -> str:
    return hashlib.blake2b(b"\0".join(parts), digest_size=8).hexdigest()


def _shown(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value, enc_hook=str).decode()


def _line(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _EVIDENCE else f"{line[: _EVIDENCE - 1]}…"


_VARIES = re.compile(r"`[^`]*`|\"[^\"]*\"|'[^']*'|\S*[/\\.]\S*|\d+")


def _kind_of_failure(text: str) -> str:
    """Return what an error says without the names, paths and numbers in it."""
    return " ".join(_VARIES.sub("…", text[:500].lower()).split())[:_EVIDENCE]
