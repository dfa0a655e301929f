"""`/goal`: sets, shows, pauses, resumes and clears the goals of a session."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

from msgspec.structs import replace

from ...journal.record import SessionRecord
from ...machines import protocol as m
from ...machines.lifecycles import GOAL, REASONS
from ...ports.judging import gate_fault
from ...ports.tools.command_line import read_line
from ..client import SessionClient
from ..events.goal import goals_view
from ..views.saved_queues import goals_left
from .command import Argument, Reply, Text, command

LETS_END = "Goal paused: a running turn may finish, then nothing runs until /goal resume."
SHOWN = 200
"""Characters of a goal's text that are shown to people."""


Gates = Annotated[tuple[str, ...], Argument("--gate COMMAND")]
Turns = Annotated[int | None, Argument("--turns N")]
Tokens = Annotated[int | None, Argument("--tokens N")]
Minutes = Annotated[float | None, Argument("--minutes N")]


@command(
    "goal",
    "goal",
    "Work until a judge decides that a goal is met; show, pause, resume or clear it.",
    is_shared=True,
)
def goal(
    client: SessionClient,
    text: Text = "",
    *,
    gates: Gates = (),
    turns: Turns = None,
    tokens: Tokens = None,
    minutes: Minutes = None,
) -> Reply:
    """Set a goal; without arguments show the current one."""
    if not text and not (gates or turns or tokens or minutes):
        return goal_status.function(client)
    order = m.SetGoal(text=text, max_turns=turns, max_tokens=tokens, max_minutes=minutes)
    return _set(client, order, gates)


@goal.verb("status", "Show how far the goal is.")
def goal_status(client: SessionClient) -> Reply:
    """Show the current goal."""
    data = _view(client)
    text = draw_goal(data)
    if data["state"] is None:
        text = "\n".join((text, *goals_left(client.store, str(client.describe().folder))))
    return Reply(data=data, text=text)


@goal.verb("pause", "Begin no further turn for the goal; a running one ends.")
def pause_goal(client: SessionClient) -> Reply:
    """Start no further turn for the goal; a running one finishes.

    Example: steersman goal pause
    """
    return _change(client, m.ChangeGoal(op="pause"), LETS_END)


@goal.verb("resume", "Go on with the goal, with as many turns again.")
def resume_goal(client: SessionClient) -> Reply:
    """Resume the goal, with the same budget again.

    Example: steersman goal resume
    """
    return _change(client, m.ChangeGoal(op="resume"), "Goal resumed")


@goal.verb("clear", "Drop the goal.")
def clear_goal(client: SessionClient) -> Reply:
    """Clear the goal.

    Example: steersman goal clear
    """
    return _change(client, m.ChangeGoal(op="clear"), "Goal cleared.")


@goal.verb("next", "Line a goal up behind those that are there.")
def next_goal(
    client: SessionClient,
    text: Text = "",
    *,
    gates: Gates = (),
    turns: Turns = None,
    tokens: Tokens = None,
    minutes: Minutes = None,
) -> Reply:
    """Add a goal after the current ones."""
    order = m.SetGoal(
        text=text, max_turns=turns, max_tokens=tokens, max_minutes=minutes, is_next=True
    )
    return _set(client, order, gates)


def _view(client: SessionClient) -> dict[str, Any]:
    record = client.record()
    return client.view.redacted({"session": client.session, **goal_data(record)})


def goal_data(record: SessionRecord) -> dict[str, Any]:
    """Return a session's goals as people and programs see them, and whether they wait for the queue."""
    is_stuck = (
        record.goals.is_pursued and record.state == "idle" and bool(record.queue.waiting_count)
    )
    return {**goals_view(record.goals), "waits_for": "queue" if is_stuck else None}


def _change(client: SessionClient, order: m.ChangeGoal, text: str) -> Reply:
    used = _view(client).get("turns_total")
    answer = client.ask(order)
    if not answer.get("ok"):
        return _refused(answer)
    data = {**_view(client), **answer}
    if order.op == "resume":
        most = data.get("max_turns")
        text = f"{text}: {most} more turns, {used} taken before."
    if order.op == "clear" and data["next"]:
        text += f" {len(data['next'])} in line: /goal resume begins the next."
    return Reply(data=data, text=text, news=text if data["state"] == "active" else "")


def _set(client: SessionClient, order: m.SetGoal, gates: tuple[str, ...]) -> Reply:
    try:
        commands = tuple(map(_gate, gates))
    except ValueError as error:
        return _senseless(str(error))
    if not order.text:
        return _senseless("a goal needs a text: /goal TEXT")
    fault = _gate_fault(client, commands or client.host.config.goals.gates)
    answer = client.ask(replace(order, gates=commands or None, fault=fault))
    if not answer.get("ok"):
        return _refused(answer, " Or line it up: `/goal next TEXT`.")
    data = {**_view(client), **answer}
    if "place" in answer:
        text = f"In line as number {answer['place']}: {order.text[:SHOWN]}"
        text = f"{text}\nBut {fault}." if fault else text
        return Reply(data=data, text=text, news=text)
    replaced = answer.get("replaced")
    instead = f"\nIt replaces: {replaced[:SHOWN]}" if replaced else ""
    text = f"Goal set, at most {_limits(data)}: {order.text[:SHOWN]}{instead}"
    if fault:
        text += (
            f"\nIt is paused: {fault}. Set it again with another gate; /goal resume begins anyway."
        )
    elif data["state"] == "paused":
        there = f"`steersman chat --resume {client.session}`"
        text += f"\nIt is paused: {data['detail']}; {there} opens it, and /goal resume begins."
    return Reply(data=data, text=text, news=text if data["state"] == "active" else "")


def _gate(line: str) -> tuple[str, ...]:
    """Return the words of a gate; what is more than one plain command goes to a shell.

    Raises `ValueError`.
    """
    read = read_line(line)
    if read.fault or not read.programs:
        raise ValueError(read.fault or "a gate is a command")
    program, *others = read.programs
    words = [word.text for word in program.words]
    is_more = others or read.operators or program.redirections or program.assignments
    is_clear = all(word.is_clear and word.text[:1] not in ("~", "!") for word in program.words)
    return ("sh", "-c", line) if is_more or not is_clear else tuple(words)


def _gate_fault(client: SessionClient, gates: Sequence[Sequence[str]]) -> str:
    """Say which gate could not be started, and why; empty if all could."""
    folder = Path(client.record().folder)
    for gate in gates:
        if reason := gate_fault(tuple(gate), folder, os.environ):
            return f"the gate `{shlex.join(gate)}` cannot be started: {reason}"
    return ""


def _limits(data: dict[str, Any]) -> str:
    most = [f"{data['max_turns']} turns"]
    if data["max_tokens"] is not None:
        most.append(f"{data['max_tokens']:,} tokens")
    if data["max_minutes"] is not None:
        most.append(f"{data['max_minutes']:g} minutes")
    return ", ".join(most)


def _senseless(reason: str) -> Reply:
    return Reply(ok=False, data={"ok": False, "reason": reason}, text=f"{reason}.")


def _refused(answer: dict[str, Any], hint: str = "") -> Reply:
    reason = str(answer.get("reason", "refused"))
    return Reply(
        ok=False, data=answer, text=f"Not done: {reason}.{hint if answer.get('is_busy') else ''}"
    )


def draw_goal(data: dict[str, Any], way: str = "/goal resume") -> str:
    """Write the goals for people: state, turns used and left, the last verdict, the next goals.

    `way` is how a goal is resumed.
    """
    if data["state"] is None:
        lines = ["No goal. /goal TEXT sets one."]
    else:
        lines = [*_head(data, way), *_verdict(data)]
    lines += [f"next: {message['text'][:SHOWN]}" for message in data["next"]]
    return "\n".join(lines)


def _head(data: dict[str, Any], way: str) -> list[str]:
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
        why, detail = REASONS.get(data["reason"], data["reason"]), data["detail"] or ""
        if data["reason"] == "user" and detail:
            why, detail = detail, ""
        lines.append(f"paused: {why}{detail and f' ({detail})'}. {way} continues.")
    if data.get("waiting_for"):
        lines.append(f"waiting for {data['waiting_for']}; {way} continues at once.")
    if data.get("judging"):
        lines.append("being judged")
    if data.get("waits_for") == "queue":
        lines.append("it continues after the held messages: /queue resume")
    return lines


def _verdict(data: dict[str, Any]) -> list[str]:
    verdict = data["verdict"]
    if not verdict:
        return []
    who = {"gate": "gate", "gates": "gates"}.get(verdict["by"], "judge")
    usable = "" if verdict["usable"] else " (no usable verdict)"
    return [
        f"last verdict, by the {who}: {verdict['verdict']}{usable}. {verdict['reason']}".rstrip()
    ]
