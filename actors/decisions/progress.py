"""The decisions of a turn that repeats itself: tell the model, ask a person, end."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from ...journal import entries as e
from ...journal.record import SessionRecord
from ...journal.turn_record import CONTINUE, TurnRecord
from ...machines import protocol as m
from ...machines.conversation import ChatMessage, cut_short
from ...machines.delivery import Cause
from .decision import Decision
from .turning import Ending

if TYPE_CHECKING:
    from ..environment import Environment


NO_PROGRESS = Cause.NO_PROGRESS.value
"""Also the reason and the rule of what is done about a turn that repeats itself."""
ENDED = "[Ended: no progress. {evidence}]"

_WHAT = {
    "calls": "The same call gave the same result {count} times",
    "cycle": "The last {count} steps were made before, with the same results",
    "errors": "{count} calls in a row failed in the same way",
}
_TELL = (
    "[No progress] {what}: {evidence}. Nothing has changed in between. Do it in another way, or say what "
    "is missing."
)

Due = Literal["", "tell", "judge", "ask", "end"]


def due(record: SessionRecord, environment: Environment) -> Due:
    """Say what is to be done about repetitions of the turn that runs, before the model is asked again."""
    turn, policy = record.turns[record.turn], environment.progress
    count = turn.progress.count(policy.period)
    if turn.progress.is_off or count < min(policy.tell, policy.end):
        return ""
    can_ask = environment.policy.can_ask and policy.ask <= policy.end
    if can_ask and count >= policy.ask:
        return "ask"
    if count >= policy.end:
        return "end"
    if turn.progress.is_told or count < policy.tell:
        return ""
    item = record.queue.items.get(turn.item)
    return "judge" if item is not None and item.goal else "tell"


def told(turn: TurnRecord, environment: Environment) -> Decision:
    """Tell the model once, with the evidence."""
    text = _TELL.format(what=what(turn, environment), evidence=turn.progress.evidence)
    return Decision(entries=(_noted(turn, environment, "told", text),))


def asked(turn: TurnRecord, environment: Environment) -> Decision:
    """Ask a person whether the turn may go on."""
    question = e.QuestionAsked(
        turn=turn.id,
        call="",
        question=m.question_id(environment.path, f"{turn.id}.s{turn.step}"),
        tool=CONTINUE,
        arguments={NO_PROGRESS: what(turn, environment), "evidence": turn.progress.evidence},
        rule=NO_PROGRESS,
    )
    return Decision(entries=(_noted(turn, environment, "asked"), question))


def judged(turn: TurnRecord, environment: Environment) -> tuple[Ending, e.Entry]:
    """Return how the turn of a goal ends so that the goal is judged, and the entry that says so."""
    return Ending(reason=NO_PROGRESS, said=_last_word(turn)), _noted(turn, environment, "judged")


def ended(turn: TurnRecord, environment: Environment) -> tuple[Ending, e.Entry]:
    """Return how a turn ends that repeats itself, and the entry that says so."""
    ending = Ending(
        status="failed",
        reason=NO_PROGRESS,
        hint=f"{what(turn, environment)}: {turn.progress.evidence}",
        said=_last_word(turn),
        cause=Cause.NO_PROGRESS,
    )
    return ending, _noted(turn, environment, "ended")


def _last_word(turn: TurnRecord) -> ChatMessage:
    return cut_short("", ENDED.format(evidence=turn.progress.evidence))


def what(turn: TurnRecord, environment: Environment) -> str:
    """Say what repeats, and how often."""
    count = turn.progress.count(environment.progress.period)
    return _WHAT[turn.progress.kind].format(count=count)


def _noted(
    turn: TurnRecord,
    environment: Environment,
    did: Literal["told", "judged", "asked", "ended"],
    text: str = "",
) -> e.NoProgress:
    progress = turn.progress
    return e.NoProgress(
        turn=turn.id,
        what=progress.kind,
        count=progress.count(environment.progress.period),
        evidence=progress.evidence,
        did=did,
        messages=(ChatMessage(role="user", text=text),) if text else (),
    )
