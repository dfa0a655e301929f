"""The nursery: supervisor of a session's children, and the one authority on them.

A child is a session, with its own turn, queue, journal and, beneath it, its own nursery. Here it is
decided who may begin, who is told to end, and what became of them; the parent's routing table has
said before whom a message or a cancel reaches. After Trio's nurseries, which own what they start:
https://trio.readthedocs.io/en/stable/reference-core.html#nurseries-and-spawning
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from ...journal import entries as e
from ...journal.child_record import ChildRecord, apply_to_children, at_work
from ...machines.delegation import (
    CancelChildren,
    ChildLost,
    ChildOpened,
    ChildReport,
    Delegate,
    DetachChildren,
    Dismiss,
    EndChild,
    PassSteer,
    Recall,
    ResumeChildren,
    SetTimer,
    StartTalk,
    StopChild,
)
from ...machines.delivery import Relation
from ...machines.messages import Answer, Finalize, ResumeQueue, Suspend
from ...machines.orders import Down, Inspect, Journalled, Settle, TimerFired
from ...machines.results import ToolFinished
from ...machines.subagent import SUBAGENT
from ..actor import Forward
from ..mailbox import reply, tell
from .ward import Ward, say_to_child

__all__ = ["Nursery"]

WRAP_UP = (
    "You are asked to end now. Begin nothing new: sum up in one answer what you have done and found, "
    "and what is left."
)
NOT_STARTED = "[It was stopped before it started.]"


class Nursery(Ward):
    """What is asked of one session's children, by its turn, its parent, and people."""

    def on_receive(self, message: Any) -> Any:
        """Decide; what is decided goes to the session, which journals it."""
        match message:
            case Delegate():
                self._delegate(message)
            case StartTalk():
                self._start_talk(message)
            case ResumeChildren():
                self._resume(message)
            case Dismiss():
                self._dismiss(message)
            case StopChild():
                self._stop_call(message)
            case CancelChildren():
                self._cancel(message)
            case DetachChildren(names):
                there = [one for one in names if self.records[one].is_at_work]
                self._decide(*(e.ChildDetached(one) for one in there))
            case EndChild():
                return self._end_one(message)
            case PassSteer():
                self._pass_steer(message)
            case Answer():
                return self._pass_answer(message)
            case Inspect():
                return {"at_work": [one.name for one in at_work(self.records)]}
            case _:
                return self._hear(message)
        return None

    def _hear(self, message: Any) -> Any:
        """Take note of what happened elsewhere."""
        match message:
            case ChildOpened():
                self._opened(message)
            case ChildLost(name=name):
                if self.cribs.pop(name, None) is not None:
                    if self.records[name].state not in SUBAGENT.final:
                        self._over(name, "failed", reason=message.reason)
                    self._settle_if_empty()
            case ChildReport():
                self._report(message)
            case TimerFired(name=name):
                self._time_is_up(name)
            case Journalled(entry):
                apply_to_children(self.records, entry, self.system.now())
            case Suspend(cause=cause):
                self._leave(cause)
            case Finalize(cause=cause):
                self._finalize(cause)
            case Settle():
                self._roll.is_asked = True
                self._settle_if_empty()
            case Down():
                self._down(message)
            case _:
                return super().on_receive(message)
        return None

    # Beginning ------------------------------------------------------------------------------------

    def _delegate(self, message: Delegate) -> None:
        wanted, policy = message.arguments, self._environment.delegation
        agent = str(wanted.get("agent") or self._environment.agent)
        name = self._name(str(wanted.get("name") or ""), agent)
        is_full = self._is_full()
        fault = self._fault(name, agent, is_full)
        if fault:
            self._answer_call(message, "failed", f"[delegate was not run: {fault}]")
            return
        is_background = bool(wanted.get("background"))
        self._begin(
            e.ChildStarted(
                name,
                f"{self._parent}-{self._made + 1}",
                agent,
                str(wanted["task"]),
                Relation.BACKGROUND_CHILD if is_background else Relation.FOREGROUND_CHILD,
                message.turn,
                "" if is_background else message.call,
                message.epoch,
                is_full,
                user=self._environment.agent,
                goal=dict(wanted.get("goal") or {}),
            )
        )
        if is_background:
            when = f"when one of the {policy.max_children} at work ends" if is_full else "now"
            said = f"Subagent `{name}` works in the background, from {when}; its result will come."
            self._answer_call(message, "ok", said)

    def _start_talk(self, message: StartTalk) -> None:
        self._begin(
            e.ChildStarted(
                message.child,
                f"{self._parent}-{self._made + 1}",
                self._environment.agent,
                message.task,
                Relation.SIDE_TALK,
                epoch=message.epoch,
                item=message.item,
                user=message.user,
            ),
            message,
        )

    def _resume(self, message: ResumeChildren) -> None:
        for child in self.records.values():
            is_foreground = child.relation == Relation.FOREGROUND_CHILD
            is_meant = child.turn in message.earlier if message.earlier else not is_foreground
            if child.state != "interrupted" or not is_meant:
                continue
            crib = self.cribs.get(child.name)
            opening = [] if crib is not None else [self._open(child.name, child)]
            turn = message.turn or child.turn
            self._decide(e.ChildResumed(child.name, turn), effects=opening)
            if crib is not None:
                crib.tell(ResumeQueue())

    def _name(self, wanted: str, agent: str) -> str:
        """Return the name that was wanted, or one like it while another child can still bear that."""
        known = self.records.get(wanted)
        is_kept = known is not None and known.state == "interrupted"
        is_ending = wanted in self.cribs and known is not None and not known.is_at_work
        if wanted and not is_kept and not is_ending:
            return wanted
        base = wanted or agent
        number = 2 if wanted else 1 + sum(one.agent == agent for one in self.records.values())
        while f"{base}-{number}" in self.records or f"{base}-{number}" in self.cribs:
            number += 1
        return f"{base}-{number}"

    def _fault(self, name: str, agent: str, is_full: bool) -> str:
        policy = self._environment.delegation
        known = self.records.get(name)
        if policy.depth >= policy.max_depth:
            return f"agents may delegate {policy.max_depth} deep, and you are that deep already"
        if agent not in policy.agents:
            return f"there is no agent `{agent}`; there are {', '.join(policy.agents)}"
        if known is not None and known.is_at_work:
            return f"a subagent named `{name}` is at work: choose another name"
        if name in ("parent", "all"):
            return f"`{name}` means somebody else: choose another name"
        if is_full and policy.when_full == "refuse":
            return f"{policy.max_children} subagents are at work, which is as many as may be"
        return ""

    # Cancels --------------------------------------------------------------------------------------

    def _cancel(self, message: CancelChildren) -> None:
        there = [self.records[one] for one in message.names if self.records[one].is_at_work]
        if message.order is not None:
            self._decide(self._roll.expect(message.order, [one.name for one in there]))
        for child in there:
            self._cancel_one(child, message.cause, message.receipt, is_kept=True)
        self._answer_orders("", None)

    def _stop_call(self, message: StopChild) -> None:
        """End the child of a call; one that has not begun has its result at once."""
        waiting = [one for one in self.records.values() if one.call == message.call]
        if not waiting:
            self._answer_call(message, "killed", NOT_STARTED)
        for child in waiting:
            self._cancel_one(child, "parent", "", is_kept=True)

    def _cancel_one(self, child: ChildRecord, cause: str, receipt: str, is_kept: bool) -> None:
        match child.state:
            case "waiting" if is_kept:
                self._decide(e.ChildInterrupted(child.name, cause))
                self._answer_orders(child.name, None)
            case "waiting" | "interrupted" if not is_kept:
                self._over(child.name, "cancelled", reason=cause)
            case "working":
                self._decide(e.ChildCancelled(child.name, cause, receipt, is_kept))
                crib = self.cribs.get(child.name)
                if crib is None or crib.ref is None:
                    self._stopped(child)  # it has not begun anything, and never will
                else:
                    self._tell_to_stop(child, crib)
            case _:
                pass

    def _end_one(self, message: EndChild, cause: str = "user") -> Any:
        head, _, rest = message.child.partition("/")
        crib = self.cribs.get(head)
        if rest and crib is not None and crib.ref is not None:
            return Forward(crib.ref, replace(message, child=rest))
        child = self.records.get(message.child)
        if child is None or not (child.is_at_work or child.state == "interrupted"):
            there = ", ".join(one.name for one in at_work(self.records)) or "none"
            return {
                "ok": False,
                "reason": f"No subagent `{message.child}` works. There are: {there}",
            }
        if not message.is_gentle:
            self._cancel_one(child, cause, "", is_kept=False)
            return {"ok": True, "name": child.name, "state": child.state}
        crib = self.cribs.get(child.name)
        if crib is None or child.state != "working":
            return {"ok": False, "reason": f"`{child.name}` is {child.state}: stop it instead"}
        crib.tell(say_to_child(WRAP_UP, message.user or "user", f"wrap {child.name}"))
        seconds = self._environment.delegation.wrap_up
        self._decide(effects=[SetTimer(f"wrap {child.name}", seconds)])
        return {"ok": True, "name": child.name, "state": child.state, "seconds": seconds}

    def _dismiss(self, message: Dismiss) -> None:
        """Do for the agent itself what a person can do; it has no way to name anybody else's."""
        wanted, gently = str(message.arguments["name"]), bool(message.arguments.get("wrap_up"))
        done = self._end_one(EndChild(wanted, gently, self._environment.agent), "parent")
        if isinstance(done, Forward):  # a child of a child: it is told, and says so itself
            tell(done.ref, done.message)
            done = {"ok": True}
        if not done["ok"]:
            self._answer_call(message, "failed", f"[dismiss was not run: {done['reason']}]")
            return
        how = "was asked to sum up" if gently else "was told to stop"
        text = f"`{wanted}` {how}; what it has comes as its result."
        self._answer_call(message, "ok", text)

    def _leave(self, cause: str) -> None:
        """The parent is being left: everybody stops where they are."""
        self._roll.is_ending = True
        for child in list(self.records.values()):
            crib = self.cribs.get(child.name)
            if child.state == "waiting":
                self._decide(e.ChildInterrupted(child.name, cause))
            elif child.state == "working":
                self._decide(e.ChildCancelled(child.name, cause, is_kept=True))
            if crib is not None:
                crib.tell(Suspend(cause))

    def _finalize(self, cause: str) -> None:
        """The parent ends for good, and nothing outlives it."""
        self._roll.is_ending = True
        for child in list(self.records.values()):
            crib = self.cribs.get(child.name)
            if child.state in ("waiting", "interrupted"):
                self._over(child.name, "cancelled", reason=cause)
            elif child.is_at_work:
                self._decide(e.ChildCancelled(child.name, cause))
                if crib is not None:
                    crib.tell(Finalize(cause))

    # Steers, questions, time ----------------------------------------------------------------------

    def _pass_steer(self, message: PassSteer) -> None:
        late = self._environment.delegation.steer_deadline
        for name in message.names:
            child, crib = self.records.get(name), self.cribs.get(name)
            if child is not None and child.state in ("waiting", "stopping", "interrupted"):
                continue  # it is handed on again when the child begins or goes on
            if child is None or child.state != "working" or crib is None:
                self._decide(e.SteerArrived(message.item, name))
                continue
            crib.steers = (*crib.steers, message)
            crib.tell(self._steer(message))
        if late:
            self._decide(effects=[SetTimer(f"steer {message.item}", late)])

    def _pass_answer(self, message: Answer) -> Any:
        """Pass an answer on to the child that asked."""
        start = f"q-{self._environment.path}"
        for name in sorted(self.cribs, key=len, reverse=True):
            ref = self.cribs[name].ref
            if ref is not None and message.question.startswith(f"{start}{name}-"):
                return Forward(ref)
        return {"ok": False, "reason": f"no question `{message.question}` is open"}

    def _time_is_up(self, timer: str) -> None:
        kind, _, name = timer.partition(" ")
        child = self.records.get(name)
        if kind == "steer":
            for crib in self.cribs.values():
                if any(one.item == name for one in crib.steers):
                    crib.tell(Recall(f"{self._parent}:{name}"))
        elif child is not None and child.is_at_work:
            cause = "timeout" if kind == "limit" else "user"
            self._cancel_one(child, cause, "", is_kept=False)

    def _answer_call(self, order: Delegate | Dismiss | StopChild, status: str, text: str) -> None:
        reply(order.reply_to, ToolFinished(order.turn, order.epoch, order.call, status, text))
