"""What the actors of a live session say of themselves when it is asked.

Most of their classes are as large as a class of actors may be, so what they say is gathered here. Used
on the dispatcher's thread, between two messages.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..journal.child_record import at_work
from ..journal.codec import encode
from ..journal.log import Log
from .children import ChildSupervisor
from .decisions.turning import awaited
from .goal import Goal
from .judge import Judge
from .queue import Queue
from .turn import Turn

if TYPE_CHECKING:
    from ..journal.record import SessionRecord
    from ..journal.run_record import RunRecord
    from .actor import Actor
    from .supervisor import Child


Account = tuple[str, str]
"""What an actor says it does: its state, and what it waits for, empty for nothing."""


def inspect_session(
    session: Actor, record: SessionRecord, children: Mapping[str, Child]
) -> dict[str, Any]:
    """Return the session's record without its conversation, and its actors, as plain data."""
    data: dict[str, Any] = encode(replace(record, conversation=Log(), sources=Log()))
    data["messages"] = record.spoken
    goal = children["goal"].mailbox.owner if "goal" in children else None
    beneath = goal.children if isinstance(goal, Goal) else {}
    data["actors"] = {"session": _row(session, _session(record), "running")}
    for name, child in {**children, **beneath}.items():
        actor = child.mailbox.owner
        data["actors"][name] = _row(actor, _account(actor, record), child.state)
    return data


def _row(actor: Actor, account: Account, supervised: str) -> dict[str, Any]:
    system, control, data = actor.mailbox.depth()
    return {
        "state": account[0],
        "waiting_for": account[1],
        "mailbox": {"system": system, "control": control, "data": data},
        "last_message": actor.last_message,
        "restarts": actor.birth.incarnation,
        "supervised": supervised,
    }


def _account(actor: Any, record: SessionRecord) -> Account:
    match actor:
        case Queue():
            state = record.queue.state
            return state, "a person who resumes it" if state == "held" else ""
        case ChildSupervisor():
            return _children(actor, record)
        case Goal():
            return _goal(actor, record)
        case Judge():
            return actor.state, _JUDGE_WAITS.get(actor.state, "").format(turn=actor.at.turn)
        case Turn():
            return record.turns[actor.id].state, ", ".join(_turn_waits(actor, record))
        case _:  # a workflow's run
            assert record.run is not None
            return record.run.state, ", ".join(sorted(_work(actor, record.run)))


def _session(record: SessionRecord) -> Account:
    if record.running is not None:
        return record.state, f"turn {record.turn}"
    waits = {"idle": "a message", "suspended": "somebody who continues it"}
    return record.state, waits.get(record.state, "")


def _children(supervisor: ChildSupervisor, record: SessionRecord) -> Account:
    """Whoever is at work has a slot, or waits for one: else nobody here works for it."""
    working: list[str] = []
    for child in at_work(record.children):
        slot = supervisor.slots.get(child.name)
        if slot is not None:
            stage = " (closing)" if slot.is_closing else "" if slot.ref else " (opening)"
            working.append(child.name + stage)
        elif child.state == "waiting":
            working.append(f"{child.name} (no room yet)")
    return "working" if working else "idle", ", ".join(working)


_JUDGE_WAITS = {
    "gating": "a gate of the goal, after turn {turn}",
    "asking": "the model that judges turn {turn}",
    "comparing": "the files that turn {turn} changed",
}
_GOAL_WAITS = {
    "wait": "what the judge named",
    "pause": "the end of a pause before its next turn",
}


def _goal(actor: Goal, record: SessionRecord) -> Account:
    goal = record.goals.goal
    if goal is None:
        return "", "a goal"
    if "judge" in actor.children:
        return goal.state, f"the judge of turn {goal.judging}"
    if goal.judging:
        return goal.state, f"the end of what judged turn {goal.judging}"
    waits = f"turn {goal.turn}" if goal.turn else "its turn in the queue"
    by_state = {"active": waits, "paused": "a person who resumes it"}.get(goal.state, "")
    return goal.state, _GOAL_WAITS.get(actor.awaited.kind, by_state)


def _turn_waits(actor: Turn, record: SessionRecord) -> Iterator[str]:
    turn = record.turns[actor.id]
    match turn.state:
        case "calling" | "compacting":
            yield "the model"
        case "boundary" if actor.asked > turn.step:
            yield "the queue, where steers wait"
        case "boundary":
            yield from (f"subagent {child.name}" for child in awaited(record, actor.id))
        case "acting":
            for call in turn.calls.values():
                if call.state == "asking":
                    yield f"an answer to question {call.question}"
                elif call.state in ("running", "stopping"):
                    yield f"call {call.id}"
        case _:
            pass


def _work(actor: Any, run: RunRecord) -> Iterator[str]:
    """Name what a run has in hand: a step, or an item of it."""
    for one in actor.attempts.open.values():
        step = run.steps[one.step.id]
        yield f"step {step.id}" + (f" ({step.name(one.index)})" if step.is_many else "")
