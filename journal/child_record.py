"""A session's children as data, and the fold of the entries that change them.

The child supervisor decides them, all but those of a recovery; the children that a stop reaches are
marked when the stop is folded (see `record.py`).
"""

from collections.abc import Iterator, Mapping
from typing import Any, assert_never

from msgspec import field
from msgspec.structs import replace

from ..machines.conversation import Usage
from ..machines.delivery import Relation
from ..machines.lifecycles import AT_WORK, SUBAGENT
from ..machines.result_routing import Return
from ..machines.value import Value
from . import entries as e
from .fold import EntryKinds, moved

REMEMBERED_CHILDREN = 50
EVENT_OF_STATUS = {
    "completed": "complete",
    "failed": "fail",
    "cancelled": "stopped",
    "disconnected": "disconnect",
}


class ChildRecord(Value):
    """One child as its parent knows it."""

    name: str
    """What people and the model call it."""
    session: str
    """Its session's id."""
    agent: str
    """Its agent."""
    task: str
    """What it was asked."""
    relation: str
    """Its relation to the parent."""
    turn: str = ""
    """The turn that waits for it, if one does."""
    call: str = ""
    """The tool call whose result it is; empty if it was resumed."""
    state: str = "working"
    """A state of the subagent machine."""
    epoch: int = 0
    """The parent's epoch of the newest order that gave it life."""
    above: tuple[int, ...] = ()
    """Those of the parent's ancestors, nearest first."""
    stopped: int = 0
    """The epoch of the newest stop that reached it."""
    stopped_by: str = ""
    """The receipt of that stop."""
    stop_cause: str = ""
    """The cause of that stop."""
    is_patient: bool = False
    """That stop lets what runs in it end."""
    was_interrupted: bool = False
    """It was, since its newest order."""
    detached_from: str = ""
    """The call that does not wait for it any more."""
    item: str = ""
    """A side talk's place in the queue."""
    withdrawn: tuple[str, ...] = ()
    """The steers that it was handed and that a person has taken back since it stopped."""
    user: str = ""
    """Who gave it its task."""
    cause: str = ""
    """Why it is ended or was interrupted."""
    reason: str = ""
    """Why it failed."""
    text: str = ""
    """Its last word, or what it had when it was stopped."""
    steps: int = 0
    """How many model calls it made."""
    started: float = 0.0
    """When it began, in seconds since 1970."""
    since: float = 0.0
    """When it came into its state."""
    is_kept: bool = False
    """It was stopped, and can be resumed."""
    is_returned: bool = False
    """Its result has gone where results go."""
    goes: str = ""
    """Where its result goes, by the third routing table."""
    goal: Mapping[str, Any] = field(default_factory=dict[str, Any])
    """What it works for beyond its first turn: text, gates, max_turns."""
    usage: Usage = field(default_factory=Usage)
    """What its model calls took."""

    @property
    def is_at_work(self) -> bool:
        """Whether it works, is about to, or is being stopped."""
        return self.state in AT_WORK

    @property
    def goes_on(self) -> bool:
        """Whether it works, or goes on once its parent does."""
        return self.state == "interrupted" or (self.is_at_work and self.state != "stopping")


Children = Mapping[str, ChildRecord]


def at_work(children: Children, *relations: str) -> Iterator[ChildRecord]:
    """Give the children that have not ended, oldest first; of these relations, if any are named."""
    for child in children.values():
        if child.is_at_work and (not relations or child.relation in relations):
            yield child


def names_for(children: Children, turn: str) -> list[str]:
    """Return the children for which a turn waits."""
    waited = at_work(children, Relation.FOREGROUND_CHILD)
    return [child.name for child in waited if child.turn == turn]


_Folded = (
    e.AnyChildEntry
    | e.Recovered
    | e.SessionFinalized
    | e.ToolEnded
    | e.Queued
    | e.Withdrawn
    | e.Offered
    | e.OfferAnswered
)
_FOLDED = EntryKinds[_Folded](_Folded)


def apply_to_children(children: Children, entry: e.Entry, time: float) -> Children:
    """Return the children after one entry; one that names none leaves them as they are."""
    if not _FOLDED.include(entry):
        return children
    match entry:
        case e.ChildStarted():
            return _start(children, entry, time)
        case e.Recovered() | e.SessionFinalized():
            return _lose(children, entry, time)
        case e.ToolEnded() | e.Queued() | e.Offered() | e.OfferAnswered():
            return _return(children, entry)
        case e.Withdrawn():
            there = [children[name] for name in entry.children if name in children]
            taken = {
                child.name: replace(child, withdrawn=(*child.withdrawn, entry.item))
                for child in there
            }
            return {**children, **taken} if taken else children
        case (
            e.ChildAdmitted()
            | e.ChildCancelled()
            | e.ChildDetached()
            | e.ChildInterrupted()
            | e.ChildResumed()
            | e.ChildEnded()
        ):
            child = children[entry.child]
            after = _change(child, entry)
            if after.state != child.state:
                after = replace(after, since=time)
            return {**children, entry.child: after}
        case _:
            assert_never(entry)


def _start(children: Children, entry: e.ChildStarted, time: float) -> Children:
    child = ChildRecord(
        name=entry.child,
        session=entry.session,
        agent=entry.agent,
        task=entry.task,
        relation=entry.relation,
        turn=entry.turn,
        call=entry.call,
        state="waiting" if entry.is_waiting else moved(SUBAGENT, "waiting", "admit"),
        epoch=entry.epoch,
        item=entry.item,
        user=entry.user,
        started=time,
        goal=entry.goal,
        since=time,
        above=entry.above,
    )
    after = {**children, entry.child: child}
    ended = [known.name for known in after.values() if known.state in SUBAGENT.final]
    for name in ended[: max(0, len(ended) - REMEMBERED_CHILDREN)]:
        del after[name]
    return after


def _change(
    child: ChildRecord,
    entry: e.ChildAdmitted
    | e.ChildCancelled
    | e.ChildDetached
    | e.ChildInterrupted
    | e.ChildResumed
    | e.ChildEnded,
) -> ChildRecord:
    match entry:
        case e.ChildAdmitted():
            return _moved(child, "admit")
        case e.ChildCancelled():
            return _moved(child, "cancel", cause=entry.cause, is_kept=entry.is_kept)
        case e.ChildDetached():
            background = {"relation": Relation.BACKGROUND_CHILD, "call": ""}
            return _moved(child, "detach", detached_from=child.call, **background)
        case e.ChildInterrupted():
            told = {"text": entry.text, "steps": entry.steps, "usage": entry.usage}
            return _moved(child, "interrupted", reason=entry.why, was_interrupted=True, **told)
        case e.ChildResumed():
            fresh = {"call": "", "cause": "", "reason": "", "is_kept": False, "stopped_by": ""}
            epochs = {"epoch": entry.epoch, "above": entry.above}
            fresh |= {"is_patient": False, "was_interrupted": False}
            return _moved(child, "resume", turn=entry.turn, **fresh, **epochs)
        case e.ChildEnded():
            told = {"text": entry.text, "steps": entry.steps, "usage": entry.usage}
            event = EVENT_OF_STATUS[entry.status]
            told |= {"reason": entry.reason, "goes": entry.goes, "withdrawn": ()}
            told["is_returned"] = child.is_returned or entry.goes == Return.KEEP
            return _moved(child, event, **told)


def _moved(child: ChildRecord, event: str, **changes: Any) -> ChildRecord:
    return replace(child, state=moved(SUBAGENT, child.state, event), **changes)


def _return(
    children: Children, entry: e.ToolEnded | e.Queued | e.Offered | e.OfferAnswered
) -> Children:
    """Note that a result has gone where it goes."""
    returned = {
        child.name: replace(child, is_returned=True)
        for child in _brought(children, entry)
        if not child.is_returned
    }
    return {**children, **returned} if returned else children


def _brought(
    children: Children, entry: e.ToolEnded | e.Queued | e.Offered | e.OfferAnswered
) -> list[ChildRecord]:
    """List the children whose result an entry brings to where it goes. There may be a thousand."""
    match entry:
        case e.ToolEnded():
            found = [child for child in children.values() if child.call == entry.call]
            return [child for child in found if child.state in SUBAGENT.final]
        case e.Queued():
            child = children.get(entry.child)
            return [child] if child is not None and child.state in SUBAGENT.final else []
        case e.Offered():
            child = children.get(entry.child)
            return [child] if child is not None and entry.is_answered else []
        case e.OfferAnswered():
            return [child for child in children.values() if child.item == entry.item]


def _lose(children: Children, entry: e.Recovered | e.SessionFinalized, time: float) -> Children:
    """Their owner is gone: they can be resumed, unless their parent is over."""
    event = "stopped" if isinstance(entry, e.SessionFinalized) else "interrupted"
    lost = {
        name: _moved(child, event, since=time, cause=child.cause or entry.cause)
        for name, child in children.items()
        if child.is_at_work
    }
    return {**children, **lost} if lost else children
