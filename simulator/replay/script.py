"""A recorded session as a replay reads it: its entries in order, and when two are the same."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Final

from ...actors.decisions.wording import NAMED
from ...journal import entries as e
from ...journal.codec import decode_entry, encode_entry
from ...journal.entries import Entry
from ...journal.record import SessionRecord, apply
from ...journal.store import StoredEntry
from ...machines import protocol as m
from ...machines.errors import UsageError
from ...machines.form import FORM
from ...machines.value import Value

_PASSING: dict[str, tuple[str, ...]] = {
    "turn_started": ("storage", "ancestors"),
    "model_called": ("tokens",),
    "compaction_begun": ("tokens", "window"),
    "compacted": ("before", "after"),
    "question_asked": ("source",),
    "tool_intended": ("allowed_by",),
    "session_suspended": ("cause",),
    "recovered": ("last_active",),
}
"""What of an entry depends on the machine, the clock or an estimate, and is not compared."""

# A replay gives what came from outside at the place where the record has it, and lets the runtime decide
# all else again. Some kinds come from either side: a queue is held by a person, or by the rule of a stop.
# Such a one is given if the runtime would decide as recorded, or has nothing else to do.

# fmt: off
INPUTS: Final[tuple[type[Entry], ...]] = (
    e.SessionOpened, e.SessionRenamed, e.SessionResumed, e.SessionLeaving, e.SessionFinalizing,
    e.Recovered, e.PolicyChanged, e.AllowanceForgotten, e.LimitsGranted, e.InterruptPlanned,
    e.InterruptCalledOff, e.InterruptRequested, e.StopNoted, e.Queued, e.Requeued, e.Withdrawn,
    e.EditBegun, e.EditEnded, e.Edited, e.Moved, e.SteerAddressed, e.OfferWanted, e.Kept,
    e.QueueHeld, e.QueueReleased, e.QuestionAnswered, e.AllowanceGiven, e.GoalSet, e.GoalBegun,
    e.GoalPaused, e.GoalResumed, e.GoalCleared, e.RevertAsked,
)
"""What people and programs may have said, chosen or ordered."""
NOTED: Final[tuple[type[Entry], ...]] = (
    e.SessionRenamed, e.PolicyChanged, e.AllowanceForgotten, e.LimitsGranted, e.HookRan,
)
"""What is only noted, whoever said it: nothing is to be decided about it."""
REFUSED: Final[tuple[type[Entry], ...]] = (
    *e.AnyRunEntry.__args__, e.AgentSessionKnown, e.CallReported, *e.AnyChildEntry.__args__,
    e.Offered, e.OfferAnswered, e.OfferWanted, e.SteerArrived,
)
"""What a session has in which others work, and cannot be replayed."""
# fmt: on


class Recorded(Value):
    """One recorded entry; `data` is what of it is compared."""

    seq: int
    time: float
    entry: Entry
    data: dict[str, Any]


def comparable(entry: dict[str, Any]) -> dict[str, Any]:
    """Return what of an entry, as it is stored, is the same in each replay."""
    data = dict(entry)
    for name in _PASSING.get(data["kind"], ()):
        data.pop(name, None)
    return data


class Script:
    """The recorded entries of one session, oldest first."""

    def __init__(self, entries: Iterable[StoredEntry]) -> None:
        self.entries = tuple(_read(entries))
        if not self.entries or not isinstance(self.entries[0].entry, e.SessionOpened):
            raise UsageError("the session has no beginning", "`steersman sessions list`")

    @property
    def opened(self) -> e.SessionOpened:
        """How it began."""
        first = self.entries[0].entry
        assert isinstance(first, e.SessionOpened)
        return first

    def check(self) -> None:
        """Raise `UsageError` for a session that cannot be replayed."""
        if self.opened.workflow is not None:
            raise UsageError(
                f"`{self.opened.session}` is a run of a workflow, which is not replayed",
                "`steersman run` runs it again; `steersman sessions diff` compares the runs",
            )
        for recorded in self.entries:
            if isinstance(recorded.entry, REFUSED):
                raise UsageError(
                    f"`{self.opened.session}` had others work for it (entry {recorded.seq}), "
                    "which is not replayed",
                    "replay the session of the subagent (`steersman agents list`)",
                )

    @cached_property
    def owner(self) -> str:
        """The name of the person who ran it: whose messages the model read without a name."""
        users = dict[str, str]()
        for entry in (recorded.entry for recorded in self.entries):
            if isinstance(entry, e.Queued):
                users[entry.item] = entry.said.user
            elif isinstance(entry, e.TurnStarted) and (user := users.get(entry.item)):
                if not any(NAMED in message.text for message in entry.messages):
                    return user
        return ""

    @cached_property
    def tools(self) -> dict[str, tuple[bool, bool]]:
        """Whether each tool that was called changes something, and may be repeated, as was seen."""
        found: dict[str, tuple[bool, bool]] = {}
        before: e.ToolIntended | None = None
        for entry in (recorded.entry for recorded in self.entries):
            if not isinstance(entry, e.ToolIntended):
                before = None
                continue
            alone, _ = found.get(entry.tool, (True, False))
            found[entry.tool] = alone, entry.is_idempotent
            for one in (before, entry) if before is not None else ():
                found[one.tool] = False, found[one.tool][1]
            before = entry
        return found

    def messages_after(self, seq: int) -> int:
        """Count the messages of people behind an entry."""
        later = (one.entry for one in self.entries[seq:])
        return sum(
            isinstance(entry, e.Queued) and entry.item_kind is m.ItemKind.MESSAGE and not entry.goal
            for entry in later
        )

    def record(self) -> SessionRecord:
        """Return the state at the end."""
        record = SessionRecord()
        for recorded in self.entries:
            apply(record, recorded.entry, recorded.seq, recorded.time)
        return record

    def start_of(self, turn: str) -> int:
        """Return the number of the entry with which a turn begins. Raises `UsageError`."""
        turn = f"t{turn}" if turn.isdigit() else turn
        for recorded in self.entries:
            if isinstance(recorded.entry, e.TurnStarted) and recorded.entry.turn == turn:
                return recorded.seq
        raise UsageError(
            f"session `{self.opened.session}` has no turn `{turn}`",
            f"`steersman sessions show {self.opened.session}` shows it",
        )

    def answer(self, name: str, choice: str) -> tuple[str, str]:
        """Return another answer to a question, by its id or as `q2`. Raises `UsageError`."""
        asked = [one.entry for one in self.entries if isinstance(one.entry, e.QuestionAsked)]
        number = name.removeprefix("q")
        found = [entry for entry in asked if entry.question == name]
        if number.isdigit() and 0 < int(number) <= len(asked):
            found = [asked[int(number) - 1]]
        if not found:
            known = ", ".join(f"q{at} ({entry.question})" for at, entry in enumerate(asked, 1))
            raise UsageError(f"there was no question `{name}`", f"there were: {known or 'none'}")
        asked_for = m.CHOICES_OF_FORM if found[0].tool == FORM else m.CHOICES
        choices = m.CHOICES_OF_HOLD if found[0].is_hold else asked_for
        if choice not in choices:
            raise UsageError(
                f"`{choice}` is no answer to `{name}`", f"there are: {', '.join(choices)}"
            )
        return found[0].question, choice

    @property
    def was_asked(self) -> bool:
        """Whether a person was asked about a call that was not held."""
        kinds = (one.entry for one in self.entries if isinstance(one.entry, e.QuestionAsked))
        return any(not entry.is_hold for entry in kinds)


def _read(entries: Iterable[StoredEntry]) -> Iterator[Recorded]:
    for stored in entries:
        entry = decode_entry(stored.data)
        yield Recorded(
            seq=stored.seq, time=stored.time, entry=entry, data=comparable(encode_entry(entry))
        )
