"""The decisions of the child supervisor: which children begin, are stopped, have ended."""

from __future__ import annotations

from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from ...journal import entries as e
from ...journal.child_record import ChildRecord, at_work
from ...journal.record import SessionRecord
from ...journal.revert_record import taken_back
from ...machines import protocol as m
from ...machines.delivery import ENDS, Cause, Delivery, Relation, deliver
from ...machines.disposition import Intent
from ...machines.lifecycles import SUBAGENT
from ...machines.result_routing import Return
from ..gate import never_started
from .decision import NOTHING, Decision
from .queries import CLOSES, given_up
from .results import returned, seed, way_home
from .wording import TASK

if TYPE_CHECKING:
    from ..environment import Environment


LOST = "a fault in the program ended it"


# Beginning ----------------------------------------------------------------------------------------


def delegate(
    record: SessionRecord, order: m.Delegate, taken: Iterable[str], environment: Environment
) -> Decision:
    """Start the child that a tool call asks for, or let it wait for room, or say why not.

    `taken` are the names of children whose sessions are still open here.
    """
    wanted, policy = order.arguments, environment.delegation
    agent = str(wanted.get("agent") or environment.agent)
    name = _name(record, str(wanted.get("name") or ""), agent, set(taken))
    is_full = _is_full(record, environment)
    fault = _fault(record, name, agent, is_full, environment)
    if fault:
        return answered(order, "failed", f"[delegate was not run: {fault}]")
    is_background = bool(wanted.get("background"))
    started = e.ChildStarted(
        child=name,
        session=f"{record.id}-{record.children_made + 1}",
        agent=agent,
        task=str(wanted["task"]),
        relation=Relation.BACKGROUND_CHILD if is_background else Relation.FOREGROUND_CHILD,
        turn=order.turn,
        call="" if is_background else order.call,
        epoch=order.epoch,
        is_waiting=is_full,
        user=environment.agent,
        goal=dict(wanted.get("goal") or {}),
        above=order.ancestors,
    )
    begun = Decision(entries=(started,), effects=() if is_full else (opening(record, started),))
    if not is_background:
        return begun
    when = f"when one of the {policy.max_children} at work ends" if is_full else "now"
    said = f"Subagent `{name}` works in the background, from {when}; its result will come."
    return begun + answered(order, "ok", said)


def answered(order: m.Delegate | m.Dismiss, status: m.ToolStatus, text: str) -> Decision:
    """Answer a tool call."""
    result = m.ToolResult(status=status, text=text)
    return Decision(orders=(("turn", m.finished(order, result)),))


def talk(record: SessionRecord, asked: e.Offered, environment: Environment) -> e.ChildStarted:
    """Start the side talk about a question, with the question's place in the queue."""
    return e.ChildStarted(
        child=asked.child,
        session=f"{record.id}-{record.children_made + 1}",
        agent=environment.agent,
        task=asked.said.text,
        relation=Relation.SIDE_TALK,
        epoch=record.epoch,
        item=asked.item,
        user=asked.said.user,
        above=environment.ancestors.mandate(),
    )


def unopened(record: SessionRecord, opened: Container[str]) -> list[ChildRecord]:
    """Return the children that were started, and whose sessions are not open yet."""
    there = record.children.values()
    return [child for child in there if child.state == "working" and child.name not in opened]


def opening(record: SessionRecord, child: e.ChildStarted | ChildRecord) -> m.OpenChild:
    """Return the effect that opens a child's session; a side talk has seen what was said so far."""
    name = child.child if isinstance(child, e.ChildStarted) else child.name
    is_talk = child.relation == Relation.SIDE_TALK
    return m.OpenChild(
        number=record.seq,
        name=name,
        session=child.session,
        agent=child.agent,
        relation=child.relation,
        seed=seed(record.conversation) if is_talk else (),
        task=child.task,
    )


def _name(record: SessionRecord, wanted: str, agent: str, taken: set[str]) -> str:
    """Return the name that was wanted, or one like it while another child can still bear that.

    That child may be kept, its session may still be closing, or its result on the way.
    """
    known = record.children.get(wanted)
    if wanted and (known is None or known.is_at_work):
        return wanted
    if wanted and known is not None and known.state != "interrupted" and wanted not in taken:
        is_owed = record.run is None and known.goes not in ("", Return.KEEP)
        if known.is_returned or not is_owed:
            return wanted
    base = wanted or agent
    same = sum(child.agent == agent for child in record.children.values())
    number = 2 if wanted else 1 + same
    while f"{base}-{number}" in record.children or f"{base}-{number}" in taken:
        number += 1
    return f"{base}-{number}"


def _fault(
    record: SessionRecord, name: str, agent: str, is_full: bool, environment: Environment
) -> str:
    policy = environment.delegation
    known = record.children.get(name)
    if policy.depth >= policy.max_depth:
        return f"agents may delegate {policy.max_depth} deep, and you are that deep already"
    if agent not in policy.agents:
        return f"there is no agent `{agent}`; there are {', '.join(policy.agents)}"
    if known is not None and known.is_at_work:
        return f"a subagent named `{name}` is at work: choose another name"
    if name in ("parent", "all"):
        return f"`{name}` has a meaning of its own: choose another name"
    if is_full and policy.when_full == "refuse":
        return f"{policy.max_children} subagents are at work, which is as many as may be"
    return ""


def _is_full(record: SessionRecord, environment: Environment) -> bool:
    busy = sum(child.state in ("working", "stopping") for child in record.children.values())
    return busy >= environment.delegation.max_children


def admit(record: SessionRecord, environment: Environment) -> ChildRecord | None:
    """Return the child that waited longest for room, if there is room now."""
    if record.state in CLOSES:
        return None
    waiting = [child for child in record.children.values() if child.state == "waiting"]
    return waiting[0] if waiting and not _is_full(record, environment) else None


def resumable(record: SessionRecord, order: m.ResumeChildren) -> list[ChildRecord]:
    """Return the interrupted children that go on with a turn, or those for which no turn waits.

    None if a stop has reached such children since that was decided, and none that a run has given up.
    """
    found: list[ChildRecord] = []
    left = given_up(record)
    for child in record.children.values():
        is_foreground = child.relation == Relation.FOREGROUND_CHILD
        is_meant = child.turn in order.earlier if order.earlier else not is_foreground
        is_stopped = order.epoch < record.stopped.get(child.relation, 0)
        is_gone = not order.earlier and bool(taken_back(record.reverts, child.turn))
        if (
            child.state == "interrupted"
            and is_meant
            and not (is_stopped or is_gone or child in left)
        ):
            found.append(child)
    return found


def first_message(child: ChildRecord) -> m.SetGoal | m.UserMessage:
    """Give a child its task, or the goal that begins with it; either may come twice."""
    if not child.goal:
        return m.UserMessage(
            type="normal",
            said=m.Said(text=child.task, user=child.user, client_id=TASK),
            intent=Intent.CONVERSE,
        )
    gates = tuple(tuple(gate) for gate in child.goal.get("gates", ()))
    turns = child.goal.get("max_turns") or None
    return m.SetGoal(
        text=child.goal["text"],
        gates=gates,
        max_turns=turns,
        prompt=child.task,
        is_only=True,
        user=child.user,
    )


def go_on(child: ChildRecord) -> tuple[m.ChangeGoal | m.ResumeQueue, ...]:
    """Continue a child: its turn, or its goal, which begins another, and what waits beside that."""
    if child.goal:
        return m.ChangeGoal(op="resume"), m.ResumeQueue(is_beside_goal=True)
    return (m.ResumeQueue(),)


def say_to_child(said: m.Said, key: str, to: str = "") -> m.UserMessage:
    """Return a message for a child's running turn; with the same key it enters only once."""
    said = replace(said, client_id=key)
    return m.UserMessage(type="steer", said=said, intent=Intent.EXPLICIT_STEER, to=to)


# Stopping -----------------------------------------------------------------------------------------


def to_be_cancelled(record: SessionRecord) -> list[ChildRecord]:
    """Return the children at work that a stop has reached, and that did not get it yet."""
    return [
        child
        for child in at_work(record.children)
        if child.state != "stopping" and child.stopped > child.epoch
    ]


def cause_below(child: ChildRecord) -> Cause:
    """Return the cause by which a stop that reached a child arises there."""
    if child.cause == Cause.TIMEOUT:
        return Cause.TIMEOUT
    return Cause.PARENT_BOUNDARY if child.is_patient else Cause.PARENT


def is_kept(record: SessionRecord, child: ChildRecord, environment: Environment) -> bool:
    """Whether a child that a stop has reached can be resumed: not where the table finalizes it."""
    if record.state in CLOSES or child.stop_cause not in tuple(Cause):
        return record.state != "finalizing"
    row = deliver(environment.deliveries, child.stop_cause, child.relation)
    return row.action is not Delivery.FINALIZE


def cancel(
    record: SessionRecord,
    child: ChildRecord,
    cause: str,
    is_kept: bool,
    environment: Environment,
    is_open: bool = True,
    user: str = "",
) -> Decision:
    """Stop a child: for its parent to resume, or permanently; `user` asked for it, if a person did.

    `is_open`: its session is open here, or being opened, and will say when everything is dead.
    """
    receipt = child.stopped_by
    match child.state:
        case "waiting" if is_kept:
            return Decision(entries=(e.ChildInterrupted(child=child.name, why=cause),))
        case "waiting" | "interrupted" if not is_kept:
            had = m.ChildReport(
                name=child.name, kind="ended", text=child.text, steps=child.steps, usage=child.usage
            )
            return ended(record, child, "cancelled", environment, had, reason=cause)
        case "stopping" if is_open and child.is_patient and not is_kept:  # it does not wait
            return Decision(entries=(e.ChildCancelled(child=child.name, cause=cause, user=user),))
        case "working" if is_open:
            return Decision(
                entries=(
                    e.ChildCancelled(
                        child=child.name, cause=cause, receipt=receipt, is_kept=is_kept, user=user
                    ),
                )
            )
        case "working" if is_kept:
            return Decision(entries=(e.ChildInterrupted(child=child.name, why=cause),))
        case "working":
            return ended(record, child, "cancelled", environment, reason=cause)
        case _:
            return NOTHING


def is_timed_out(child: ChildRecord, environment: Environment) -> bool:
    """Whether a child's limit ends it, by the table: the cause arises at the child itself."""
    row = deliver(environment.deliveries, Cause.TIMEOUT, Relation.SELF)
    return child.is_at_work and row.action in ENDS


def stop_call(record: SessionRecord, order: m.StopChild) -> Decision:
    """Answer a stopped call whose child has not begun, and never will."""
    if any(child.call == order.call for child in record.children.values()):
        return NOTHING  # the result is the child's, when it has stopped
    return Decision(orders=(("turn", never_started(order)),))


def is_stale(child: ChildRecord, report: m.ChildReport) -> bool:
    """Whether a child reports a stop that came before its newest order: it says nothing of that."""
    is_awaited = child.state == "stopping" and child.is_kept
    return report.order < child.stopped if is_awaited else 0 < report.order < child.epoch


def stopped(
    record: SessionRecord,
    child: ChildRecord,
    report: m.ChildReport | None,
    environment: Environment,
) -> Decision:
    """Nothing of a child is at work any more: it is for its parent to resume, or has ended.

    It has stopped with everything it started, or its session is open nowhere: then there is no report,
    and no order by which it would go on.
    """
    if not child.is_at_work:
        return NOTHING
    if child.state != "stopping" or not child.is_kept:
        return ended(record, child, "cancelled", environment, report, child.cause)
    told = report or m.ChildReport(name=child.name, kind="stopped")
    entry = e.ChildInterrupted(
        child=child.name,
        why=child.cause,
        text=told.text,
        steps=told.steps,
        usage=told.usage,
        killed=told.killed,
        survivors=told.survivors,
    )
    return Decision(entries=(entry,))


def ended(
    record: SessionRecord,
    child: ChildRecord,
    status: str,
    environment: Environment,
    report: m.ChildReport | None = None,
    reason: str = "",
) -> Decision:
    """A child is over; what was on its way to it goes back to its parent."""
    told = report or m.ChildReport(name=child.name, kind="ended")
    waiting = record.queue.handed_on(child.name)
    entry = e.ChildEnded(
        child=child.name,
        status=status,
        text=told.text,
        reason=reason or told.reason,
        steps=told.steps,
        usage=told.usage,
        killed=told.killed,
        survivors=told.survivors,
        goes=way_home(record, child, environment).action,
    )
    return Decision(
        entries=(entry, *(e.SteerArrived(item=item.id, child=child.name) for item in waiting))
    )


def lose(record: SessionRecord) -> Decision:
    """The child supervisor failed, and with it the actors of the children: they can be resumed."""
    busy = [
        e.ChildInterrupted(child=child.name, why=LOST, text=child.text)
        for child in at_work(record.children)
    ]
    closing = tuple(m.CloseChild(session=child.session) for child in record.children.values())
    return Decision(entries=tuple(busy), effects=closing)


def give_back(
    record: SessionRecord,
    name: str,
    environment: Environment,
    report: m.ChildReport | None = None,
) -> Decision:
    """Send a child's result where it goes, with the processes that its report names."""
    child = record.children[name]
    killed = report.killed if report is not None else ()
    survivors = report.survivors if report is not None else ()
    return Decision(orders=returned(record, child, environment, killed, survivors))


def let_go(record: SessionRecord) -> Decision:
    """Close the sessions of children that are over: the process that was to do it may have died."""
    over = [child for child in record.children.values() if child.state in SUBAGENT.final]
    return Decision(effects=tuple(m.CloseChild(session=child.session) for child in over))


def stranded(record: SessionRecord) -> list[str]:
    """Name the children whose result went to a turn that is over, and had not taken it in."""
    turn = record.unfinished
    return [
        name
        for name in unreturned(record)
        if record.children[name].relation == Relation.FOREGROUND_CHILD
        and (turn is None or record.children[name].turn != turn.id)
    ]


def unreturned(record: SessionRecord) -> list[str]:
    """Name the children that have ended, and whose result was not delivered."""
    return [
        child.name
        for child in record.children.values()
        if not child.is_at_work and child.state != "interrupted" and not child.is_returned
    ]
