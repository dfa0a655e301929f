"""A session's children as data, and the fold of the entries that change them.

The session and its nursery each keep a copy and fold the same entries; the nursery decides them, all
but those of a recovery.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from ..machines.conversation import Usage
from ..machines.delivery import Relation
from ..machines.subagent import AT_WORK, SUBAGENT
from . import entries as e
from .entry import Entry
from .fold import move

__all__ = ["ChildRecord", "apply_to_children", "at_work", "names_for"]

REMEMBERED_CHILDREN = 50
EVENT_OF_STATUS = {
    "completed": "complete",
    "failed": "fail",
    "cancelled": "stopped",
    "disconnected": "disconnect",
}


@dataclass(slots=True)
class ChildRecord:
    """One child as its parent knows it; `name` is what people and the model call it.

    `turn` waits for it, through tool call `call` or, when it was resumed, at a boundary. `item` is a
    side talk's place in the queue. `text` is its last word, or what it had when it was stopped.
    `is_kept`: it was told to stop, and can be resumed. `is_returned`: its result has gone where
    results go. `gentle`: it was asked to sum up.
    """

    name: str
    session: str
    agent: str
    task: str
    relation: str
    turn: str = ""
    call: str = ""
    state: str = "working"
    epoch: int = 0
    item: str = ""
    user: str = ""
    cause: str = ""
    reason: str = ""
    text: str = ""
    steps: int = 0
    started: float = 0.0
    since: float = 0.0
    is_kept: bool = False
    is_returned: bool = False
    goal: dict[str, Any] = field(default_factory=dict[str, Any])
    usage: Usage = field(default_factory=Usage)

    @property
    def is_at_work(self) -> bool:
        """Whether it works, is about to, or is being stopped."""
        return self.state in AT_WORK


Children = dict[str, ChildRecord]


def at_work(children: Children, *relations: str) -> Iterator[ChildRecord]:
    """Give the children that have not ended, oldest first; of these relations, if any are named."""
    for child in children.values():
        if child.is_at_work and (not relations or child.relation in relations):
            yield child


def names_for(children: Children, turn: str) -> list[str]:
    """Return the children for which a turn waits."""
    waited = at_work(children, Relation.FOREGROUND_CHILD)
    return [one.name for one in waited if one.turn == turn]


def apply_to_children(children: Children, entry: Entry, time: float) -> None:
    """Fold one entry into the children, in place; entries that name none leave them alone."""
    match entry:
        case e.ChildStarted():
            _start(children, entry, time)
        case e.Recovered() | e.SessionFinalized():
            _lose(children, entry, time)
        case e.ToolEnded() | e.Queued() | e.Offered() | e.OfferAnswered():
            _return(children, entry)
        case (
            e.ChildAdmitted()
            | e.ChildCancelled()
            | e.ChildDetached()
            | e.ChildInterrupted()
            | e.ChildResumed()
            | e.ChildEnded()
        ):
            child = children[entry.child]
            state = child.state
            _change(child, entry)
            if child.state != state:
                child.since = time
        case _:
            pass


def _start(children: Children, entry: e.ChildStarted, time: float) -> None:
    children[entry.child] = ChildRecord(
        entry.child,
        entry.session,
        entry.agent,
        entry.task,
        entry.relation,
        entry.turn,
        entry.call,
        "waiting",
        entry.epoch,
        entry.item,
        entry.user,
        started=time,
        goal=entry.goal,
        since=time,
    )
    if not entry.is_waiting:
        move(SUBAGENT, children[entry.child], "admit")
    ended = [one.name for one in children.values() if one.state in SUBAGENT.final]
    for name in ended[: max(0, len(ended) - REMEMBERED_CHILDREN)]:
        del children[name]


def _change(child: ChildRecord, entry: Entry) -> None:
    match entry:
        case e.ChildAdmitted():
            move(SUBAGENT, child, "admit")
        case e.ChildCancelled():
            move(SUBAGENT, child, "cancel")
            child.cause, child.is_kept = entry.cause, entry.is_kept
        case e.ChildDetached():
            move(SUBAGENT, child, "detach")
            child.relation, child.call = Relation.BACKGROUND_CHILD, ""
        case e.ChildInterrupted():
            move(SUBAGENT, child, "interrupted")
            child.reason, child.text = entry.why, entry.text
            child.steps, child.usage = entry.steps, entry.usage
        case e.ChildResumed():
            move(SUBAGENT, child, "resume")
            child.turn, child.call = entry.turn, ""
            child.cause, child.reason, child.is_kept = "", "", False
        case e.ChildEnded():
            move(SUBAGENT, child, EVENT_OF_STATUS[entry.status])
            child.reason, child.text = entry.reason, entry.text
            child.steps, child.usage = entry.steps, entry.usage
        case _:
            pass


def _return(children: Children, entry: Entry) -> None:
    """Note that a result has gone where it goes."""
    for child in children.values():
        match entry:
            case e.ToolEnded() if child.call == entry.call and child.state in SUBAGENT.final:
                child.is_returned = True
            case e.Queued() if child.name == entry.child and child.state in SUBAGENT.final:
                child.is_returned = True
            case e.Offered() if child.name == entry.child and entry.is_answered:
                child.is_returned = True
            case e.OfferAnswered() if child.item == entry.item:
                child.is_returned = True
            case _:
                pass


def _lose(children: Children, entry: e.Recovered | e.SessionFinalized, time: float) -> None:
    """Nobody runs them any more: they can be resumed, unless their parent is over."""
    for child in children.values():
        if child.is_at_work:
            is_over = isinstance(entry, e.SessionFinalized)
            move(SUBAGENT, child, "stopped" if is_over else "interrupted")
            child.since, child.cause = time, child.cause or entry.cause
