"""The facts of a turn: which files it changed, and how its last command ended."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from msgspec import field
from msgspec.structs import replace

from ..machines import protocol as m
from ..machines.conversation import ChatMessage
from ..machines.pattern import lazy_pattern
from ..machines.protocol import exit_words
from ..machines.value import Value
from . import entries as e

LOOKS = ("read", "list", "search", "survey", "progress", "defer", "dismiss")
"""Tools that change no file."""
_WRITERS = ("write", "edit")
"""Tools that say which files they changed."""


class TurnFacts(Value):
    """What is known of a turn: `files` by path, its last `command`, and that one's `exit_code`.

    `is_blind`: something ran that may have changed files beside these. `calls` counts those that ran;
    `is_told`: the model was told what its answer contradicts.
    """

    files: Mapping[str, m.ChangedFile] = field(default_factory=dict[str, m.ChangedFile])
    command: str = ""
    exit_code: int | None = None
    is_blind: bool = False
    calls: int = 0
    is_told: bool = False

    def after(self, entry: e.ToolEnded, command: object) -> TurnFacts:
        """Return the facts after the end of a call; `command` is its argument of this name."""
        files = {**self.files}
        for file in entry.end.changed:
            files[file.path] = _summed(files.get(file.path), file)
        is_command = entry.end.exit_code is not None and isinstance(command, str)
        is_quiet = bool(entry.end.changed) or entry.tool in (*LOOKS, *_WRITERS)
        return TurnFacts(
            files=files,
            command=str(command) if is_command else self.command,
            exit_code=entry.end.exit_code if is_command else self.exit_code,
            is_blind=self.is_blind or not is_quiet,
            calls=self.calls + 1,
            is_told=self.is_told,
        )

    def resumed(self, restored: Collection[str]) -> TurnFacts:
        """Return what a turn that goes on from this one begins with; `restored`: taken back since.

        How the last command ended is no news of it: it was stopped, or is run anew.
        """
        files = {path: file for path, file in self.files.items() if path not in restored}
        return TurnFacts(files=files, is_blind=self.is_blind, calls=self.calls)

    def amid(self, tools: Iterable[str]) -> TurnFacts:
        """Return the facts while calls of these tools have not ended: they are still being stopped."""
        is_blind = self.is_blind or any(tool not in LOOKS for tool in tools)
        return replace(self, is_blind=is_blind)


def _summed(before: m.ChangedFile | None, file: m.ChangedFile) -> m.ChangedFile:
    if before is None:
        return file
    return m.ChangedFile(
        path=file.path,
        added=before.added + file.added,
        removed=before.removed + file.removed,
        is_new=before.is_new,
    )


def written(facts: TurnFacts) -> str:
    """Write the facts as one line for people; empty if the turn only spoke."""
    parts: list[str] = []
    if facts.files:
        more = "; commands may have changed more" if facts.is_blind else ""
        parts.append(f"Changed: {', '.join(map(_file, facts.files.values()))}{more}.")
    elif facts.calls and not facts.is_blind:
        parts.append("No file was changed.")
    if facts.exit_code:
        how = exit_words(facts.exit_code)
        parts.append(f"The last command failed, {how}: {_short(facts.command)}")
    return " ".join(parts)


def _file(file: m.ChangedFile) -> str:
    if file.is_new:
        return f"{file.path} (new)"
    signs = [f"{sign}{n}" for sign, n in (("+", file.added), ("-", file.removed)) if n]
    return f"{file.path} ({' '.join(signs) or 'the same lines'})"


def _short(command: str) -> str:
    line = " ".join(command.split())
    return line if len(line) <= 80 else f"{line[:79]}…"


_DONE = "fixed|added|updated|changed|created|renamed|removed|replaced|written|implemented|modified"
_CLAIM = lazy_pattern(
    rf"\b(?:i(?:.ve| have)?|(?:has|have) been|(?:is|are) now|it.s now|successfully)"
    rf" (?:now |successfully )?(?:{_DONE})\b|\bthe bug is fixed\b",
    re.IGNORECASE,
)
_PASSES = lazy_pattern(
    r"\btests? (?:now )?(?:all )?pass|\b(?:it|which|that) (?:now )?(?:works|passes)\b|\bsucceed|"
    rf"\b(?:bug|issue|problem|error) (?:is|has been) (?:now )?(?:{_DONE})\b",
    re.IGNORECASE,
)
_NOT = lazy_pattern(
    r"\b(?:not|no|nothing|never|cannot|can.t|couldn.t|unable|fail(?:s|ed)?|still)\b", re.IGNORECASE
)


def contradicted(facts: TurnFacts, conversation: Iterable[ChatMessage]) -> str:
    """Say which facts the last answer contradicts; empty if none, or if that was said once."""
    if facts.is_told or not facts.calls:
        return ""
    answer = "".join(said.text for said in conversation if said.role == "assistant")
    if _NOT.search(answer):
        return ""
    if not facts.files and not facts.is_blind and _CLAIM.search(answer):
        return "no file was changed in this turn"
    if facts.exit_code and _PASSES.search(answer):
        return f"the last command failed with exit code {facts.exit_code}: {_short(facts.command)}"
    return ""
