"""What would become of a message, for programs and for people: the dry run of the routing tables."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..actors.reception import situation
from ..journal.child_record import at_work
from ..journal.record import SessionRecord
from ..machines.classification import Classification
from ..machines.delivery import Cause, Delivery, Relation
from ..machines.disposition import ACKS, Intent, Situation
from ..machines.explanation import RELATIONS, SITUATIONS, Companion, explain, receipts
from ..machines.policy import Policy
from ..machines.routes import Routes

__all__ = ["company_of", "draw_explanation", "explanation", "state_of"]

COMMAND_CAUSES = {"stop": Cause.STOP, "new": Cause.NEW, "finalize": Cause.FINALIZE}
RUNNING = ("busy", "accompanied", "delegating", "interrupting")


def state_of(record: SessionRecord) -> tuple[Situation, tuple[Companion, ...]]:
    """Say what a session is doing, and who is around it: the turn, and children by their names."""
    own = (Companion(RELATIONS[Relation.SELF], Relation.SELF),)
    children = (Companion(one.name, Relation(one.relation)) for one in at_work(record.children))
    return situation(record), (*(own if record.running is not None else ()), *children)


def company_of(
    doing: str, children: int = 0, background: int = 0, side_talks: int = 0
) -> list[Companion]:
    """Name whoever is around a session: the turn if one runs, so many children and side talks."""
    found = [Companion("the turn", Relation.SELF)] if doing in RUNNING else []
    for relation, word, count in (
        (Relation.FOREGROUND_CHILD, "child", children),
        (Relation.BACKGROUND_CHILD, "background child", background),
        (Relation.SIDE_TALK, "side talk", side_talks),
    ):
        found += [Companion(f"{word} {number + 1}", relation) for number in range(count)]
    return found


def explanation(
    routes: Routes,
    text: str,
    found: Classification,
    doing: str,
    policy: Policy,
    company: Iterable[Companion],
) -> dict[str, Any]:
    """Say what would become of a message, as programs see it. Nothing is done."""
    company = list(company)
    auto_queue = "on" if policy.is_auto_queue else "off"
    key = (found.intent, doing, policy.busy_mode, policy.strategy, auto_queue)
    decided = explain(routes, key, company)
    cause = decided.row.cause or COMMAND_CAUSES.get(found.command, "")
    given = receipts(routes, cause, company) if cause else ()
    nobody = () if cause else tuple(company)
    receives = [
        {"who": one.who.name, "what": str(one.row.action), "rule": one.row.name, "why": one.row.why}
        for one in given
    ]
    receives += [{"who": one.name, "what": "none", "rule": "", "why": ""} for one in nobody]
    return {
        "table": routes.name,
        "text": text,
        "intent": str(found.intent),
        "matched": found.matched or found.command or None,
        "state": str(doing),
        "busy": policy.busy_mode,
        "strategy": policy.strategy,
        "auto_queue": auto_queue,
        "rule": decided.row.name,
        "why": decided.row.doc,
        "action": str(decided.row.action),
        "cause": str(cause) or None,
        "ack": decided.row.ack or None,
        "receives": receives,
        "below": _below(
            routes, [str(one.row.action) for one in given if one.who.name != "the turn"]
        ),
    }


def _below(routes: Routes, actions: list[str]) -> dict[str, str]:
    """Say what the children of a child get that is stopped or ended."""
    for action, cause in ((Delivery.FINALIZE, Cause.FINALIZE), (Delivery.CANCEL, Cause.PARENT)):
        if action in actions:
            row = routes.deliveries.decide((cause, Relation.FOREGROUND_CHILD))
            return {"what": str(row.action), "rule": row.name, "cause": str(cause)}
    return {}


INTENTS = {
    Intent.CONVERSE: "talk: no word of any list",
    Intent.STEER_WORD: "talk with a steer word",
    Intent.INTERRUPT_BARE: "nothing but interrupt words and filler",
    Intent.INTERRUPT_MORE: "an interrupt word, and more",
    Intent.REVERT: "a stop that restores files",
    Intent.EXPLICIT_QUEUE: "for the queue, as the sender chose",
    Intent.EXPLICIT_STEER: "a steer, as the sender chose",
    Intent.EXPLICIT_INTERRUPT: "an interrupt, as the sender chose",
    Intent.COMMAND: "a slash command",
}


def draw_explanation(data: dict[str, Any]) -> str:
    """Write an explanation for people."""
    word = f" (`{data['matched']}`)" if data["matched"] else ""
    lines = [
        f'"{data["text"]}"',
        f"is {data['intent']}: {INTENTS[Intent(data['intent'])]}{word}.",
        f"The session is {data['state']}: {SITUATIONS[data['state']]}. "
        f"Mode {data['busy']}, strategy {data['strategy']}, auto-queue {data['auto_queue']}.",
        "",
        f"dispositions: row `{data['rule']}`: {data['action']}. {data['why']}".rstrip(),
    ]
    if data["cause"]:
        lines.append(f"deliveries: cause `{data['cause']}`")
        lines += _receipt_lines(data["receives"])
        if below := data["below"]:
            told = f"{below['what']}, by cause `{below['cause']}` (row `{below['rule']}`)"
            lines.append(f"  and their own children: {told}")
    else:
        lines.append("deliveries: nobody is told anything")
    if data["ack"]:
        lines += ["", f"You are told (`{data['ack']}`): {data.get('told') or ACKS[data['ack']]}"]
    return "\n".join(lines)


def _receipt_lines(receives: list[dict[str, Any]]) -> list[str]:
    """Write who gets what by which row, then why, each row once."""
    width = max((len(one["who"]) for one in receives), default=0)
    lines = [
        f"  {one['who']:<{width}}  {one['what'] if one['what'] != 'none' else 'nothing'}"
        f" (row `{one['rule']}`)"
        for one in receives
    ]
    whys = dict.fromkeys((one["rule"], one["why"]) for one in receives)
    return [*lines, *(f"  `{rule}`: {why}" for rule, why in whys)]
