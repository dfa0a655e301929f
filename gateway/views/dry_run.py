"""The dry run of the routing tables: the outcome of a message or cause, for programs and people."""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from typing import Any

from msgspec.structs import replace

from ...actors.decisions.queries import recipient, situation
from ...actors.decisions.routing import addressed
from ...journal.child_record import at_work
from ...journal.record import SessionRecord
from ...machines.classification import Classification, addressee
from ...machines.delivery import FINAL, WAITED, Cause, Delivery, Relation, never_asked
from ...machines.disposition import ACKS, Action, Intent, Situation
from ...machines.lifecycles import meant
from ...machines.policy import Policy
from ...machines.routes import Routes
from ...proofs.explanation import (
    CAUSES,
    RELATIONS,
    SITUATIONS,
    ExplainedDelivery,
    Recipient,
    explain,
    receipts,
)

COMMAND_CAUSES = {
    "stop": Cause.STOP,
    "new": Cause.NEW,
    "finalize": Cause.FINALIZE,
    "exit": Cause.SIGNAL,
}
RUNNING = ("busy", "accompanied", "delegating", "interrupting")
_FIRM = {Relation.DETACHED_CHILD: Relation.FOREGROUND_CHILD}
NO_SUBAGENT = "no_subagent"
"""The acknowledgement of a steer if no subagent of that name receives it."""
CHILDREN = (*WAITED, Relation.BACKGROUND_CHILD, Relation.SIDE_TALK)


def state_of(
    record: SessionRecord, detached: Container[str] = ()
) -> tuple[Situation, tuple[Recipient, ...]]:
    """Return the situation of a session, and its possible recipients: turn, children by name, goal.

    `detached` are the agents that are declared to go on without the turn that waits for them.
    """
    own = (Recipient(name=RELATIONS[Relation.SELF], relation=Relation.SELF),)
    children = (
        Recipient(name=child.name, relation=recipient(child, detached))
        for child in at_work(record.children)
    )
    goal = (Recipient(name=RELATIONS[Relation.GOAL], relation=Relation.GOAL),)
    return situation(record), (
        *(own if record.running is not None else ()),
        *children,
        *(goal if record.goals.is_pursued else ()),
    )


def company_of(
    doing: str,
    children: int = 0,
    background: int = 0,
    side_talks: int = 0,
    *,
    detached: Iterable[str] = (),
    has_goal: bool = False,
) -> list[Recipient]:
    """Return the recipients in a session with a running turn, so many children, and a goal.

    Where there are children that the turn waits for, there is one of each agent in `detached`, too.
    """
    found = [Recipient(name="the turn", relation=Relation.SELF)] if doing in RUNNING else []
    for relation, word, count in (
        (Relation.FOREGROUND_CHILD, "child", children),
        (Relation.BACKGROUND_CHILD, "background child", background),
        (Relation.SIDE_TALK, "side talk", side_talks),
    ):
        found += [
            Recipient(name=f"{word} {number + 1}", relation=relation) for number in range(count)
        ]
    found += [
        Recipient(name=f"a child of {agent}", relation=Relation.DETACHED_CHILD)
        for agent in detached
        if children
    ]
    return [*found, *([Recipient(name="the goal", relation=Relation.GOAL)] if has_goal else [])]


def as_said(
    text: str, way: str, classify: Callable[[str, str], Classification]
) -> tuple[Classification, str, str]:
    """Classify a text as a session does; returns the intent, the address of a steer, and the text."""
    found = classify(text, way)
    if found.command == "steer" and found.argument:
        to, rest = addressee(found.argument)
        return classify(rest, "steer"), to, rest
    return found, "", text


def named(company: Iterable[Recipient], to: str) -> list[Recipient]:
    """Return the children that an address means; `kid/helper` is a child of `kid`."""
    children = [companion for companion in company if companion.relation in CHILDREN]
    names = [companion.name for companion in children]
    wanted = names if to == "all" else meant(names, to.partition("/")[0])
    return [companion for companion in children if companion.name in wanted]


def explanation(
    routes: Routes,
    text: str,
    found: Classification,
    doing: str,
    policy: Policy,
    company: Iterable[Recipient],
    to: str = "",
) -> dict[str, Any]:
    """Return the outcome of a message as programs see it. Nothing is done.

    `to` is the address of a steer: a child's name, `all`, `parent`, or empty. A revert leaves no child
    at work, whatever its agent is declared.
    """
    company = list(company)
    if found.intent is Intent.REVERT:
        company = [replace(one, relation=_FIRM.get(one.relation, one.relation)) for one in company]
    routes = routes.in_force(policy.interrupt_at)
    auto_queue = "on" if policy.is_auto_queue else "off"
    doing = addressed(Situation(doing), to)
    key = (found.intent, doing, policy.busy_mode, policy.strategy, auto_queue)
    decided = explain(routes, key, company)
    cause = decided.row.cause or COMMAND_CAUSES.get(found.command, "")
    action, ack, reached = str(decided.row.action), decided.row.ack, company
    if decided.row.action == Action.STEER and to not in ("", "parent"):
        cause, reached = Cause.STEER_NAMED, named(company, to)
    given = _receipts(routes, cause, reached)
    if cause == Cause.STEER_NAMED and not any(
        receipt.row.action == Delivery.STEER for receipt in given
    ):
        action, ack = str(Action.REFUSE), NO_SUBAGENT
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
        "action": action,
        "cause": str(cause) or None,
        "ack": ack or None,
        **_received(routes, given, company),
    }


def cause_explanation(routes: Routes, cause: str, company: Iterable[Recipient]) -> dict[str, Any]:
    """Return the outcome of a cause that no message raises: a limit, the end of a turn, leaving.

    Raises `MachineError` for an unknown cause.
    """
    company = list(company)
    routes.deliveries.decide((cause, Relation.SELF))
    given = _receipts(routes, cause, company)
    return {"table": routes.name, "cause": cause, **_received(routes, given, company)}


def _receipts(
    routes: Routes, cause: str, company: list[Recipient]
) -> tuple[ExplainedDelivery, ...]:
    """Return the receipts of a cause; if the cause ends the session, the session is a recipient."""
    if cause in FINAL:
        others = [companion for companion in company if companion.relation != Relation.SELF]
        company = [Recipient(name="the session", relation=Relation.SELF), *others]
    asked = [companion for companion in company if not never_asked(cause, companion.relation)]
    return receipts(routes, cause, asked) if cause else ()


def _received(
    routes: Routes, given: tuple[ExplainedDelivery, ...], company: list[Recipient]
) -> dict[str, Any]:
    """Return what each recipient receives by which row, and what children of children receive."""
    receives = [
        {
            "who": receipt.who.name,
            "what": str(receipt.row.action),
            "rule": receipt.row.name,
            "why": receipt.row.why,
        }
        for receipt in given
    ]
    names = {receipt.who.name for receipt in given}
    is_session = "the session" in names
    receives += [
        {"who": companion.name, "what": "none", "rule": "", "why": ""}
        for companion in company
        if companion.name not in names and not (is_session and companion.relation == Relation.SELF)
    ]
    below = [str(receipt.row.action) for receipt in given if receipt.who.relation in CHILDREN]
    return {"receives": receives, "below": _below(routes, below)}


def _below(routes: Routes, actions: list[str]) -> dict[str, str]:
    """Return what the children of a stopped or finalized child receive."""
    for action, cause in (
        (Delivery.FINALIZE, Cause.FINALIZE),
        (Delivery.CANCEL, Cause.PARENT),
        (Delivery.BOUNDARY, Cause.PARENT_BOUNDARY),
    ):
        if action in actions:
            row = routes.deliveries.decide((cause, Relation.FOREGROUND_CHILD))
            return {"what": str(row.action), "rule": row.name, "cause": str(cause)}
    return {}


INTENTS = {
    Intent.CONVERSE: "talk: no word of any list",
    Intent.ACKNOWLEDGEMENT: "talk that asks for nothing",
    Intent.STEER_WORD: "talk with a steer word",
    Intent.INTERRUPT_BARE: "nothing but interrupt words and filler",
    Intent.INTERRUPT_MORE: "an interrupt word, and more",
    Intent.REVERT: "a stop that restores files",
    Intent.EXPLICIT_QUEUE: "for the queue, as the sender chose",
    Intent.EXPLICIT_TURN: "a turn of its own after what runs, as the sender chose",
    Intent.EXPLICIT_STEER: "a steer, as the sender chose",
    Intent.EXPLICIT_INTERRUPT: "an interrupt, as the sender chose",
    Intent.COMMAND: "a slash command",
}


def draw_explanation(data: dict[str, Any]) -> str:
    """Write the outcome of a message or cause for people."""
    lines = _message_lines(data) if "intent" in data else [_cause_line(data["cause"]), ""]
    if data["cause"]:
        lines.append(f"deliveries: cause `{data['cause']}`")
        lines += _receipt_lines(data["receives"])
        if below := data["below"]:
            effect = f"{below['what']}, by cause `{below['cause']}` (row `{below['rule']}`)"
            lines.append(f"  and their own children: {effect}")
    else:
        lines.append("deliveries: no recipients")
    if ack := data.get("ack"):
        lines += [
            "",
            f"Acknowledgement (`{ack}`): {data.get('told') or ACKS.get(ack) or NO_RECIPIENT}",
        ]
    return "\n".join(lines)


NO_RECIPIENT = "no subagent of that name works; here is your text"
"""The text of `no_subagent`, which no row names."""


def _cause_line(cause: str) -> str:
    where = " It arises at the child itself: the turn and the other recipients are the child's."
    return f"{CAUSES.get(cause, 'a route raises it')}.{where if cause == Cause.TIMEOUT else ''}"


def _message_lines(data: dict[str, Any]) -> list[str]:
    word = f" (`{data['matched']}`)" if data["matched"] else ""
    return [
        f'"{data["text"]}"',
        f"is {data['intent']}: {INTENTS[Intent(data['intent'])]}{word}.",
        f"The session is {data['state']}: {SITUATIONS[data['state']]}. "
        f"Mode {data['busy']}, strategy {data['strategy']}, auto-queue {data['auto_queue']}.",
        "",
        f"dispositions: row `{data['rule']}`: {data['action']}. {data['why']}".rstrip(),
    ]


def _receipt_lines(receives: list[dict[str, Any]]) -> list[str]:
    """Write what each recipient receives by which row, then the reason of each row once."""
    width = max((len(receipt["who"]) for receipt in receives), default=0)
    lines = [
        f"  {receipt['who']:<{width}}  {receipt['what'] if receipt['what'] != 'none' else 'nothing'}"
        + (f" (row `{receipt['rule']}`)" if receipt["rule"] else "")
        for receipt in receives
    ]
    whys = dict.fromkeys(
        (receipt["rule"], receipt["why"]) for receipt in receives if receipt["rule"]
    )
    return [*lines, *(f"  `{rule}`: {why}" for rule, why in whys)]
