"""`/goal`: set what a session works for, see how far it is, pause it, let it go on, drop it."""

from __future__ import annotations

import re
import shlex
from typing import TYPE_CHECKING, Any

from ...journal.record import SessionRecord
from ...machines.lifecycles import GOAL, REASONS
from ...machines.pursuit import ChangeGoal, SetGoal
from ..events.goal import goals_view
from .reply import Reply

if TYPE_CHECKING:
    from ..conversation import Conversation


GOAL_USAGE = (
    "[[--gate COMMAND] [--turns N] [--tokens N] [--minutes N] TEXT"
    "|status|pause|resume|clear|next TEXT]"
)
_OPTION = re.compile(r"""(--[a-z]+)\b[ =]*("[^"]*"|'[^']*'|\S*)\s*(.*)""", re.DOTALL)
_BUDGETS = {"--turns": "max_turns", "--tokens": "max_tokens", "--minutes": "max_minutes"}
LETS_END = "Goal paused: a turn that runs is let end, then nothing goes on until /goal resume."
SHOWN = 200
"""Characters of a goal's text that are shown to people."""


def goal_command(conversation: Conversation, argument: str) -> Reply:
    """Carry out what follows `/goal`; nothing is the same as `status`, any other words are a goal."""
    words = argument.strip()
    verb, _, rest = words.partition(" ")
    match verb.lower():
        case "" | "status" if not rest.strip():
            return _status(conversation)
        case "pause" if not rest.strip():
            return _change(conversation, ChangeGoal("pause"), LETS_END)
        case "resume" if not rest.strip():
            return _change(conversation, ChangeGoal("resume"), "Goal resumed")
        case "clear" if not rest.strip():
            return _change(conversation, ChangeGoal("clear"), "Goal cleared.")
        case "next":
            return _set(conversation, rest.strip(), is_next=True)
        case _:
            return _set(conversation, words, is_next=False)


def _status(conversation: Conversation) -> Reply:
    data = _view(conversation)
    return Reply(True, data, draw_goal(data))


def _view(conversation: Conversation) -> dict[str, Any]:
    record = conversation.record()
    return conversation.redacted({"session": conversation.session, **goal_data(record)})


def goal_data(record: SessionRecord) -> dict[str, Any]:
    """Return a session's goals as people and programs are shown them, with what they wait for."""
    is_stuck = record.goals.is_pursued and record.state == "idle" and bool(record.queue.waiting())
    return {**goals_view(record.goals), "waits_for": "queue" if is_stuck else None}


def _change(conversation: Conversation, order: ChangeGoal, said: str) -> Reply:
    answer = conversation.ask(order)
    if not answer.get("ok"):
        return _refused(answer)
    data = {**_view(conversation), **answer}
    if order.op == "resume":
        used, most = data.get("turns_total"), data.get("max_turns")
        said = f"{said}: {most} more turns, {used} were taken before."
    if order.op == "clear" and data["next"]:
        said += f" {len(data['next'])} in line: /goal resume begins the next."
    return Reply(True, data, said)


def _set(conversation: Conversation, words: str, *, is_next: bool) -> Reply:
    try:
        order = _order(words, conversation.user, is_next=is_next)
    except ValueError as error:
        return Reply(False, {"ok": False, "reason": str(error)}, f"{error}.")
    answer = conversation.ask(order)
    if not answer.get("ok"):
        return _refused(answer, " Or line it up: /goal next TEXT.")
    data = {**_view(conversation), **answer}
    if "place" in answer:
        return Reply(True, data, f"In line as number {answer['place']}: {order.text[:SHOWN]}")
    replaced = answer.get("replaced")
    instead = f"\nIt replaces: {replaced[:SHOWN]}" if replaced else ""
    said = f"Goal set, at most {_limits(data)}: {order.text[:SHOWN]}{instead}"
    return Reply(True, data, said)


def _limits(data: dict[str, Any]) -> str:
    most = [f"{data['max_turns']} turns"]
    if data["max_tokens"] is not None:
        most.append(f"{data['max_tokens']:,} tokens")
    if data["max_minutes"] is not None:
        most.append(f"{data['max_minutes']:g} minutes")
    return ", ".join(most)


def _order(words: str, user: str, *, is_next: bool) -> SetGoal:
    """Read a goal with its options, which stand in front of its text. Raises `ValueError`."""
    text, gates, budgets = words, list[tuple[str, ...]](), dict[str, Any]()
    while match := _option(text):
        name, value, text = match
        if name == "--gate":
            gate = tuple(shlex.split(value))
            if not gate:
                raise ValueError("a gate is a command")
            gates.append(gate)
        else:
            budgets[_BUDGETS[name]] = _number(name, value)
    text = text.removeprefix("-- ").strip()  # what follows is text, whatever it looks like
    if not text:
        raise ValueError("a goal says what is to be reached: /goal TEXT")
    return SetGoal(text, tuple(gates) or None, **budgets, is_next=is_next, user=user)


def _number(name: str, value: str) -> float:
    """Read a budget; minutes may have a fraction. Raises `ValueError`."""
    try:
        return float(value) if name == "--minutes" else int(value)
    except ValueError:
        raise ValueError(f"`{name} {value}` is no number") from None


def _option(text: str) -> tuple[str, str, str] | None:
    """Take the first option off a text; its value may be quoted. Raises `ValueError`."""
    found = _OPTION.match(text)
    if found is None:
        return None
    name, value, rest = found.groups()
    if name not in ("--gate", *_BUDGETS):
        known = ", ".join(("--gate", *_BUDGETS))
        raise ValueError(f"`{name}` is none of {known}; `--` goes before a text that begins so")
    if not value:
        raise ValueError(f"`{name}` needs a value")
    is_quoted = len(value) > 1 and value[0] in "\"'" and value[0] == value[-1]
    return name, value[1:-1] if is_quoted else value, rest


def _refused(answer: dict[str, Any], hint: str = "") -> Reply:
    reason = str(answer.get("reason", "refused"))
    return Reply(False, answer, f"Not done: {reason}.{hint if answer.get('is_busy') else ''}")


def draw_goal(data: dict[str, Any]) -> str:
    """Draw it for people: state, turns used and left, the last verdict, and what is in line."""
    if data["state"] is None:
        lines = ["No goal. /goal TEXT sets one."]
    else:
        lines = [*_head(data), *_verdict(data)]
    lines += [f"next: {one['text'][:SHOWN]}" for one in data["next"]]
    return "\n".join(lines)


def _head(data: dict[str, Any]) -> list[str]:
    used, most, total = data["turns_used"], data["max_turns"], data["turns_total"]
    before = f", {total} in all" if total != used else ""
    left = "" if data["state"] in GOAL.final else f", {max(0, most - used)} left"
    lines = [
        f"Goal [{data['state'].upper()}]: {data['text'][:SHOWN]}",
        f"turns: {used}/{most}{left}{before}",
    ]
    if data["max_tokens"] is not None:
        lines.append(f"tokens: {data['tokens_used']:,} of {data['max_tokens']:,}")
    if data["max_minutes"] is not None:
        lines.append(f"minutes: {data['minutes_used']:.1f} of {data['max_minutes']:g}")
    if data["state"] == "paused":
        why = REASONS.get(data["reason"], data["reason"])
        detail = f" ({data['detail']})" if data["detail"] else ""
        lines.append(f"paused: {why}{detail}. /goal resume goes on.")
    if data.get("waiting_for"):
        lines.append(f"waiting for {data['waiting_for']}; /goal resume goes on at once.")
    if data.get("judging"):
        lines.append("being judged")
    if data.get("waits_for") == "queue":
        lines.append("it goes on behind what is held: /queue resume")
    return lines


def _verdict(data: dict[str, Any]) -> list[str]:
    said = data["verdict"]
    if not said:
        return []
    who = {"gate": "gate", "gates": "gates"}.get(said["by"], "judge")
    usable = "" if said["usable"] else " (no usable verdict)"
    return [f"last verdict, by the {who}: {said['verdict']}{usable}. {said['reason']}".rstrip()]
