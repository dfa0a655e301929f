"""The inspection of a live session: what its actors report of themselves.

Most of their classes are as large as a class of actors may be, so what they say is gathered here. Used
on the dispatcher's thread, between two messages.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..journal.child_record import at_work
from ..journal.codec import encode
from ..journal.record import without_conversation
from ..machines.conversation import ChatMessage, ToolRequest, ToolSchema, Usage
from ..machines.policy import Limits, Policy
from ..machines.value import Value
from ..ports.tools.permission import Permissions, Rule
from .children import ChildSupervisor
from .decisions.compacting import filled_tokens
from .decisions.queries import policy_of
from .decisions.turning import awaited
from .goal import Goal
from .judge import Judge
from .queue import Queue
from .turn import Turn

if TYPE_CHECKING:
    from ..journal.record import SessionRecord
    from ..journal.run_record import RunRecord
    from .environment import Environment, Permit
    from .kernel.actor import Actor
    from .kernel.supervisor import Child


class SessionDescription(Value):
    """A live session as a client may know it beside its record.

    `policy` is what is in force, `messages` the whole conversation, `tools` what the agent has. `limits`
    are granted `shares` times; `used` and `seconds` are what they count. `filled` of the model's
    `window` are taken, in tokens; 0 for a window that is not known. `detached` are the agents that are
    declared to go on without the turn that waits for them. `is_offline`: no program has the session
    open, so that only its queue can be changed, and nothing in it runs. `permit` decides about a call by
    the rules, what is allowed here, and the mode.
    """

    folder: Path
    policy: Policy
    messages: Sequence[ChatMessage]
    permissions: Permissions
    allowed: tuple[Rule, ...]
    permit: Callable[[ToolRequest], Permit]
    tools: tuple[ToolSchema, ...]
    limits: Limits
    shares: int
    used: Usage
    seconds: float
    detached: tuple[str, ...]
    is_offline: bool
    window: int
    filled: int


def describe_session(record: SessionRecord, environment: Environment) -> SessionDescription:
    """Describe a session as it is now."""
    account = environment.account
    permissions, allowed = environment.tool_policy.rules()
    return SessionDescription(
        folder=Path(record.folder),
        policy=policy_of(record, environment.policy),
        messages=record.conversation,
        permissions=permissions,
        allowed=allowed,
        permit=environment.tool_policy.permit,
        tools=environment.tool_policy.schemas(),
        limits=account.limits,
        shares=account.shares,
        used=account.used,
        seconds=account.seconds,
        detached=environment.delegation.detached,
        is_offline=environment.is_offline,
        window=environment.compaction.window,
        filled=filled_tokens(record, environment.compaction),
    )


Account = tuple[str, str]
"""An actor's report: its state, and what it waits for, empty for nothing."""


def inspect_session(
    session: Actor, record: SessionRecord, children: Mapping[str, Child]
) -> dict[str, Any]:
    """Return the session's record without its conversation, and its actors, as plain data."""
    data: dict[str, Any] = encode(without_conversation(record))
    data["messages"] = record.spoken
    goal = children["goal"].mailbox.owner if "goal" in children else None
    beneath = goal.children if isinstance(goal, Goal) else {}
    data["actors"] = {"session": _row("session", session, _session(record), "running", record)}
    for name, child in {**children, **beneath}.items():
        actor = child.mailbox.owner
        data["actors"][name] = _row(name, actor, _account(actor, record), child.state, record)
    return data


def _row(
    name: str, actor: Actor, account: Account, supervised: str, record: SessionRecord
) -> dict[str, Any]:
    system, control, data = actor.mailbox.depth()
    return {
        "state": account[0],
        "waiting_for": account[1],
        "rule": _rule(name, record),
        "mailbox": {"system": system, "control": control, "data": data},
        "last_message": actor.last_message,
        "restarts": actor.birth.incarnation,
        "supervised": supervised,
    }


def _rule(name: str, record: SessionRecord) -> str:
    """Name the routing row that the actor obeys: of the stop, or of the message it works at.

    The queue's is that of the message that comes next. Empty for an actor to which no message was routed.
    """
    if name == "queue":
        queued = (record.queue.items[item] for item in record.queue.order)
        return next((item.routed.rule for item in queued if item.state != "running"), "")
    if name not in ("session", "turn") or record.running is None:
        return ""
    for stop in record.stops.values():
        if stop.turn == record.turn and stop.state in ("planned", "stopping"):
            return stop.order.routed.rule or stop.order.cause
    return record.queue.items[record.running.item].routed.rule


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
            return record.run.state, ", ".join(sorted(_work(record.run)))


def _session(record: SessionRecord) -> Account:
    if record.running is not None:
        return record.state, f"turn {record.turn}"
    waits = {"idle": "a message", "suspended": "a client that continues it"}
    return record.state, waits.get(record.state, "")


def _children(supervisor: ChildSupervisor, record: SessionRecord) -> Account:
    """A child at work has a slot, or waits for one; else no actor here works for it."""
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
    "wait": "the judge's condition",
    "pause": "the end of a pause before its next turn",
}


def _goal(actor: Goal, record: SessionRecord) -> Account:
    goal = record.goals.goal
    if goal is None:
        return "", "a goal"
    judge = actor.children.get("judge")
    if judge is not None and judge.state == "running":
        return goal.state, f"the judge of turn {goal.judging}"
    if goal.judging:
        return goal.state, f"the end of the judge of turn {goal.judging}"
    waits = f"turn {goal.turn}" if goal.turn else "its turn in the queue"
    by_state = {"active": waits, "paused": "a person who resumes it"}.get(goal.state, "")
    return goal.state, _GOAL_WAITS.get(actor.awaited.kind, by_state)


def _turn_waits(actor: Turn, record: SessionRecord) -> Iterator[str]:
    turn = record.turns[actor.id]
    if turn.state in ("calling", "compacting"):
        yield "the model"
    elif turn.state == "paused":
        yield f"an answer to question {turn.question}"
    elif turn.state == "waiting":
        yield "the end of its provider's limit"
    elif turn.state == "boundary" and actor.asked > turn.step:
        yield "the queue, where steers wait"
    elif turn.state == "boundary":
        yield from (f"subagent {child.name}" for child in awaited(record, actor.id))
    elif turn.state == "acting":
        for call in turn.calls.values():
            if call.state == "asking":
                yield f"an answer to question {call.question}"
            elif call.state in ("running", "stopping"):
                yield f"call {call.id}"


def _work(run: RunRecord) -> Iterator[str]:
    """Name the work that a run has open: a step, or an item of it."""
    for attempt in run.open.values():
        step = run.steps[attempt.step]
        name = f"step {step.id}" + (f" ({step.name(attempt.index)})" if step.is_many else "")
        asked = attempt.asked
        yield f"an answer to question {asked.question} of {name}" if asked is not None else name
