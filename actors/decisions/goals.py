"""The decisions of a goal's actor: orders of people, boundaries, verdicts, and when it goes on."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ...journal import entries as e
from ...journal.goal_record import GoalRecord
from ...journal.record import SessionRecord
from ...machines import protocol as m
from ...machines.delivery import Cause, Delivery, Relation, deliver
from ...machines.lifecycles import REASONS
from ...machines.policy import GoalPolicy
from ...machines.value import Value
from .decision import Decision, answer, refusal
from .queries import DELEGATE, is_reverting, last_word, not_open, workers

if TYPE_CHECKING:
    from ..environment import Environment


MOST_IN_LINE = 20
MOST_OUTPUT = 2_000
"""Characters of a gate's output that go with a continuation."""
HAVE_RUN = ("running", "stopping", "done", "failed", "timed_out", "killed", "unknown")


# Orders of people ---------------------------------------------------------------------------------


def obstacle(record: SessionRecord, wish: m.SetGoal | m.ChangeGoal) -> Decision | None:
    """Say why a wish cannot be carried out now, whatever it says: the rules in the middle of a turn."""
    if record.state in ("finalizing", "finalized"):
        return refusal(m.FINALIZED)
    goals = record.goals
    is_there = bool(goals.line) or (goals.goal is not None and not goals.goal.is_over)
    is_start = isinstance(wish, m.ChangeGoal) and wish.op == "resume" and is_there
    is_start = is_start or (isinstance(wish, m.SetGoal) and not wish.is_next)
    if is_start and record.running is not None and record.run is None:
        return refusal("a turn runs: `/stop` ends it", is_busy=True)
    return None


def order(record: SessionRecord, wish: m.SetGoal | m.ChangeGoal, policy: GoalPolicy) -> Decision:
    """Carry out an order about goals."""
    if record.run is not None:
        return refusal("a workflow's run pursues no goal; a `goal` step in its file has one")
    if isinstance(wish, m.SetGoal):
        return _set(record, wish, policy)
    return _change(record, wish)


def _set(record: SessionRecord, wish: m.SetGoal, policy: GoalPolicy) -> Decision:
    """Set a goal, in place of the one that is there, or line it up behind that."""
    goals = record.goals
    fault = _fault(wish)
    if wish.is_only and goals.goals:
        fault = "there is a goal already"
    if fault:
        return refusal(fault)
    old = goals.goal
    is_free = old is None or old.is_over
    if wish.is_next and not (is_free and not goals.line):
        if len(goals.line) >= MOST_IN_LINE:
            return refusal(f"{MOST_IN_LINE} goals are in line, which is as many as may be")
        entry = _entry(record, wish, policy, is_next=True)
        return Decision(entries=(entry,), reply=answer(goal=entry.goal, place=len(goals.line) + 1))
    if wish.fault and not is_free:
        return refusal(f"{wish.fault}; the goal that is there stays")
    entry = _entry(record, wish, policy, is_next=False)
    cleared: tuple[e.Entry, ...] = ()
    replaced = None
    if old is not None and not old.is_over:
        replaced = old.text
        cleared = (*withdrawn(record, old.id), e.GoalCleared(goal=old.id, cause="replaced"))
    reply = answer(goal=entry.goal, replaced=replaced)
    if wish.fault:
        paused = e.GoalPaused(goal=entry.goal, reason="gate_unusable", detail=wish.fault)
        return Decision(entries=(*cleared, entry, paused), reply=reply)
    said = m.Said(text=wish.prompt or wish.text, user=wish.user)
    first = m.GoalMessage(goal=entry.goal, said=said, is_first=True)
    return Decision(entries=(*cleared, entry), orders=(("queue", first),), reply=reply)


def _fault(wish: m.SetGoal) -> str:
    if not wish.text.strip():
        return "a goal needs a text"
    if wish.max_turns is not None and wish.max_turns < 1:
        return (
            f"a goal takes at least 1 turn, not {wish.max_turns}: its own first message is turn 1"
        )
    if wish.max_tokens is not None and wish.max_tokens < 1:
        return f"a goal takes at least 1 token, not {wish.max_tokens}: leave it out for no limit"
    if wish.max_minutes is not None and not 0 < wish.max_minutes < math.inf:
        return f"a goal takes time, not {wish.max_minutes:g} minutes: leave it out for no limit"
    if any(not gate or not gate[0] for gate in wish.gates or ()):
        return "a gate is a command"
    return ""


def _entry(
    record: SessionRecord, wish: m.SetGoal, policy: GoalPolicy, *, is_next: bool
) -> e.GoalSet:
    minutes = policy.max_minutes if wish.max_minutes is None else wish.max_minutes
    return e.GoalSet(
        goal=f"g{record.goals.made + 1}",
        text=wish.text,
        max_turns=wish.max_turns or policy.max_turns,
        gates=policy.gates if wish.gates is None else wish.gates,
        max_tokens=wish.max_tokens or policy.max_tokens,
        max_seconds=None if minutes is None else minutes * 60.0,
        is_next=is_next,
        user=wish.user,
        epoch=record.epoch,
        boundary=rest_turn(record),
    )


def _change(record: SessionRecord, wish: m.ChangeGoal) -> Decision:
    """Pause the goal, let it go on, or drop it."""
    goals = record.goals
    goal = goals.goal
    if goal is None or goal.is_over:
        if goals.line and wish.op != "pause":
            return _of_line(record, wish)
        last = f" at work, the last one is {goal.state}" if goal is not None else ""
        return refusal(f"there is no goal{last}: `/goal TEXT` sets one")
    match wish.op:
        case "pause":
            if not goal.is_pursued:
                return refusal(f"it is paused already: {REASONS.get(goal.reason, goal.reason)}")
            paused: tuple[e.Entry, ...] = (
                *withdrawn(record, goal.id, "pending"),
                e.GoalPaused(goal=goal.id, reason="user"),
            )
            return Decision(entries=paused, reply=answer(goal=goal.id))
        case "resume":
            return _resume(record, goal)
        case "clear":
            cleared: tuple[e.Entry, ...] = (
                *withdrawn(record, goal.id),
                e.GoalCleared(goal=goal.id),
            )
            return Decision(entries=cleared, reply=answer(goal=goal.id, left=len(goals.line)))


def _of_line(record: SessionRecord, wish: m.ChangeGoal) -> Decision:
    """The last goal is over, and was not achieved: others wait for a word."""
    goals = record.goals
    after = goals.goals[goals.line[0]]
    if wish.op == "clear":
        reply = answer(goal=after.id, left=len(goals.line) - 1)
        return Decision(entries=(e.GoalCleared(goal=after.id),), reply=reply)
    return Decision(reply=answer(goal=after.id)) + next_goal(record, record.epoch)


def next_begins(record: SessionRecord, goal: GoalRecord) -> bool:
    """Whether the first goal in line begins by itself now that this one is achieved.

    One that was in line at a stop waits for a word if this one was set after it, in its place.
    """
    goals = record.goals
    if not goals.line:
        return False
    after, names = goals.goals[goals.line[0]], list(goals.goals)
    is_stopped = after.epoch < record.stopped.get(Relation.GOAL, 0)
    return not is_stopped or names.index(after.id) > names.index(goal.id)


def next_goal(record: SessionRecord, epoch: int) -> Decision:
    """Begin the first of the goals in line."""
    after = record.goals.goals[record.goals.line[0]]
    begun = e.GoalBegun(goal=after.id, epoch=epoch, boundary=rest_turn(record))
    said = m.Said(text=after.text, user=after.user)
    first = m.GoalMessage(goal=after.id, said=said, is_first=True)
    return Decision(entries=(begun,), orders=(("queue", first),))


def _resume(record: SessionRecord, goal: GoalRecord) -> Decision:
    if goal.state == "active":
        return refusal("it is active: nothing is to be resumed")
    resumed = e.GoalResumed(
        goal=goal.id,
        turns=goal.turns_total,
        tokens=goal.tokens_total,
        seconds=goal.seconds_total,
        epoch=record.epoch,
        boundary=rest_turn(record),
    )
    said = m.Said(text=continuation(goal), user=goal.user)
    first = m.GoalMessage(goal=goal.id, said=said)
    return Decision(entries=(resumed,), orders=(("queue", first),), reply=answer(goal=goal.id))


# Boundaries ---------------------------------------------------------------------------------------


class GoalBoundary(Value):
    """The newest turn that said something, once nothing runs: a boundary of a goal.

    `status` is the turn's, `ended` when that was, in seconds since the epoch; `answer` what the agent
    said last. `has_acted`: a tool ran. `may_have_changed`: one that can change files. `is_persons`: it
    was no turn of the goal.
    """

    turn: str = ""
    status: str = "interrupted"
    ended: float = 0.0
    reason: str = ""
    answer: str = ""
    has_acted: bool = False
    may_have_changed: bool = False
    is_persons: bool = False


def rest_turn(record: SessionRecord) -> str:
    """Return the newest turn that said something to the model; empty if there is none."""
    items = record.queue.items
    turns = [
        turn
        for turn in record.turns.values()
        if turn.item not in items or items[turn.item].kind not in m.SILENT
    ]
    return turns[-1].id if turns else ""


def rest(record: SessionRecord, goal: GoalRecord, environment: Environment) -> GoalBoundary:
    """Say what the newest turn did."""
    name = rest_turn(record)
    if not name:
        return GoalBoundary()
    turn, book = record.turns[name], environment.tool_policy
    ran = [call.tool for call in turn.calls.values() if call.state in HAVE_RUN]
    is_unsure = turn.id != record.turn  # its calls are forgotten
    item = record.queue.items.get(turn.item)
    return GoalBoundary(
        turn=turn.id,
        status=turn.state,
        ended=turn.ended,
        reason=turn.reason,
        answer=last_word(record),
        has_acted=bool(ran) or is_unsure,
        may_have_changed=is_unsure
        or any(book.is_mutating(tool) or tool == DELEGATE for tool in ran),
        is_persons=item is None or item.goal != goal.id,
    )


def is_at_rest(record: SessionRecord) -> bool:
    """Whether nothing runs, in the session or its children, and nothing waits, held or not."""
    queue = record.queue
    is_still = record.state == "idle" and record.unfinished is None and not workers(record)
    is_empty = not queue.is_ahead and queue.next_item() is None
    return is_still and is_empty and not is_reverting(record)


def is_judging(record: SessionRecord) -> bool:
    """Whether a gate or a judge of any goal is still at work."""
    return any(goal.judging for goal in record.goals.goals.values())


def cycle(answers: Sequence[str]) -> int:
    """Count the answers that the agent has just given for the second time, in the same order."""
    for length in range(1, len(answers) // 2 + 1):
        if answers[-length:] == answers[-2 * length : -length]:
            return length
    return 0


def digest(text: str) -> str:
    """Tell answers apart, spaces and case aside."""
    plain = "".join(text.casefold().split())
    return hashlib.sha256(plain.encode("utf-8", "replace")).hexdigest()[:32]


def judging_stopped(record: SessionRecord, message: m.JudgeDead) -> Decision:
    """Nothing of gate and judge is left: what waits for that may go on."""
    why = "a stop or a message came first"
    dead: dict[str, Any] = {"killed": message.killed, "survivors": message.survivors}
    return Decision(
        entries=tuple(
            e.JudgingStopped(goal=goal.id, turn=goal.judging, why=why, **dead)
            for goal in record.goals.goals.values()
            if goal.judging
        )
    )


def judged(goal: GoalRecord, message: m.Judged, at: GoalBoundary) -> e.GoalJudged:
    """Tell what the judge said of what was reached at a boundary."""
    verdict = message.verdict
    return e.GoalJudged(
        goal=goal.id,
        turn=message.turn,
        verdict=verdict.kind,
        reason=verdict.reason,
        condition=verdict.condition.as_data() if verdict.condition else None,
        by=message.by,
        fault=message.fault,
        answer=digest(at.answer),
        is_idle=not at.has_acted,
        is_unchanged=message.is_unchanged,
        gates=message.gates,
        usage=message.usage,
    )


# How far, and how fast ----------------------------------------------------------------------------


def what_is_spent(goal: GoalRecord) -> str:
    """Say what of a goal's budget is spent, so that no further turn may begin; empty if nothing is."""
    if not goal.turns_left:
        return f"{goal.turns_used} of {goal.max_turns} turns are spent"
    return goal.overdraft


def pause_before(goal: GoalRecord, policy: GoalPolicy) -> float:
    """Return for how many seconds nothing happens, after turns that did nothing, or failed."""
    times = max(goal.idle, goal.failing) - 2
    doubled = policy.backoff * 2.0 ** min(times, 30) if times >= 0 else 0.0
    return min(doubled, policy.backoff_limit)


# Stops --------------------------------------------------------------------------------------------


def paused_by_stop(record: SessionRecord, environment: Environment) -> tuple[e.Entry, ...]:
    """Pause, or drop, the goals that a stop has reached; nothing if none has."""
    goals = record.goals
    if record.state == "finalizing":
        cause = Cause.NEW if record.finalize_cause == Cause.NEW else Cause.FINALIZE
        row = deliver(environment.deliveries, cause, Relation.GOAL)
        if row.action == Delivery.FINALIZE:
            live = [goal.id for goal in goals.goals.values() if not goal.is_over]
            gone = tuple(entry for name in live for entry in withdrawn(record, name))
            return (*gone, *(e.GoalCleared(goal=name, cause="finalize") for name in live))
    goal = goals.goal
    if goal is None or not goal.is_pursued or not is_stopped(record, goal):
        return ()
    reason, detail = stopped_by(record)
    return (
        *withdrawn(record, goal.id, "pending"),
        e.GoalPaused(goal=goal.id, reason=reason, detail=detail),
    )


def withdrawn(record: SessionRecord, goal: str, *states: str) -> tuple[e.Withdrawn, ...]:
    """Take back a goal's messages that wait or were interrupted; those in `states`, if any are named."""
    wanted = states or ("pending", "interrupted")
    return tuple(e.Withdrawn(item=item.id) for item in record.queue.of_goal(goal, *wanted))


def is_stopped(record: SessionRecord, goal: GoalRecord) -> bool:
    """Whether a stop that reaches goals is newer than the order that set this one."""
    return goal.epoch < record.stopped.get(Relation.GOAL, 0)


def stopped_by(record: SessionRecord) -> tuple[str, str]:
    """Say why a goal pauses, by the stop that reached it: a reason, and a detail for people."""
    if record.state == "leaving":
        return "interrupt", "the program was left"
    epoch = record.stopped.get(Relation.GOAL, 0)
    stop = next((stop for stop in record.stops.values() if stop.epoch == epoch), None)
    if stop is not None and stop.order.cause == Cause.BUDGET:
        return "budget", "a limit of the session is reached"
    return "interrupt", ""


# Words --------------------------------------------------------------------------------------------


def continuation(goal: GoalRecord) -> str:
    """Write the message that a goal's next turn begins with."""
    parts = [f"Go on working towards the goal: {goal.text}"]
    last = goal.verdicts[-1] if goal.verdicts else None
    failed = next((gate for gate in goal.gate_results if not gate.passed), None)
    if last is not None and last.verdict == "wait":
        parts.append(f"You waited ({last.reason or 'as the judge said'}): {goal.detail}.")
    elif last is not None and last.by == "gate" and failed is not None:
        output = failed.output[-MOST_OUTPUT:].strip()
        parts.append(f"It is not reached yet: {last.reason}." + (f"\n{output}" if output else ""))
    elif last is not None and not last.fault and last.reason:
        parts.append(f"It is not reached yet: {last.reason}")
    parts.append("When it is reached, say so and how one can see it. If it cannot be, say why.")
    return "\n\n".join(parts)


def earlier_verdicts(goal: GoalRecord) -> tuple[str, ...]:
    """Write the judge's last verdicts, oldest first."""
    said = [verdict for verdict in goal.verdicts if verdict.by == "judge" and not verdict.fault]
    return tuple(f"{verdict.verdict}: {verdict.reason}" for verdict in said)


def offline(
    record: SessionRecord, wish: m.SetGoal | m.ChangeGoal, environment: Environment
) -> Decision:
    """Note an order about a goal of a session that no process has open; it begins later."""
    if isinstance(wish, m.ChangeGoal) and wish.op == "resume" and record.goals.is_pursued:
        return refusal(not_open(record))
    found = order(record, wish, environment.goals)
    starts = [message for _, message in found.orders if isinstance(message, m.GoalMessage)]
    is_set = any(isinstance(entry, e.GoalSet) for entry in found.entries)
    if starts and not is_set:
        return refusal(not_open(record))
    paused: tuple[Any, ...] = ()
    if starts:
        paused = (
            e.GoalPaused(
                goal=starts[0].goal, reason="user", detail="no program has the session open"
            ),
        )
    return Decision(entries=(*found.entries, *paused), reply=found.reply)
