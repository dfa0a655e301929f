"""The commands about subagents: who is there, ending one, a talk beside the work, a question answered."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from ...journal.codec import encode
from ...journal.record import apply
from ...journal.recovery import is_cut_off, load_record, recovered
from ...machines.delegation import EndChild
from ...machines.errors import UnknownSession
from ...machines.lifecycles import AT_WORK, meant
from ...machines.messages import Answer
from ..redaction import Redactor
from .reply import Reply

if TYPE_CHECKING:
    from ...actors.runtime import Runtime
    from ...journal.store import Store
    from ..conversation import Conversation


State = Callable[[str], dict[str, Any]]

AGENTS_USAGE = "[stop NAME|wrap-up NAME]"
CHOICES = ("allow", "always", "deny")
SHOWN = 60
"""Characters of a task that a line shows."""


def agents_command(conversation: Conversation, argument: str) -> Reply:
    """Show the subagents as a tree, or end one: at once, or after it has summed up."""
    verb, _, name = argument.strip().partition(" ")
    match verb.lower():
        case "" | "list":
            agents = agents_of(_live_state(conversation.runtime), conversation.session)
            return Reply(True, {"agents": agents}, draw_agents(agents))
        case "stop" | "wrap-up" if name.strip():
            return _end(conversation, name.strip().removeprefix("@"), verb.lower() == "wrap-up")
        case "stop" | "wrap-up":
            return Reply(False, text=f"Which one? /agents {verb} NAME")
        case _:
            return Reply(False, text=f"No `/agents {verb}`. There are: list, stop, wrap-up.")


def _end(conversation: Conversation, name: str, is_gentle: bool) -> Reply:
    there = agents_of(_live_state(conversation.runtime), conversation.session)
    working = [one for one in there if one["state"] in AT_WORK]
    wanted = meant([one["name"] for one in working], name)
    paths = [one["path"] for one in working if one["name"] in wanted]
    if len(paths) > 1:
        return Reply(False, {}, f"Several are called `{name}`. Which one: {', '.join(paths)}?")
    which = paths[0] if paths else name
    answer = conversation.ask(EndChild(which, is_gentle, conversation.user))
    if not answer.get("ok"):
        return Reply(False, answer, f"{answer.get('reason', 'Refused')}.")
    if is_gentle:
        return Reply(True, answer, f"`{name}` is asked to sum up; at most {answer['seconds']:g} s.")
    return Reply(True, answer, f"Stopping `{name}`; what it has goes to whoever asked for it.")


def smalltalk_command(conversation: Conversation, argument: str) -> Reply:
    """Say what is missing; with a text it is no command but a message."""
    return Reply(False, text="Ask what? /smalltalk TEXT")


def answer_command(conversation: Conversation, argument: str) -> Reply:
    """Answer a question that a tool call, anybody's, waits for."""
    words = argument.split(maxsplit=2)
    if len(words) < 2 or words[1].lower() not in CHOICES:
        return Reply(
            False, text="/answer ID allow, /answer ID always [PATTERN], /answer ID deny [WHY]"
        )
    question, choice, reason = words[0], words[1].lower(), " ".join(words[2:])
    answer = conversation.ask(Answer(question, choice, reason))
    if not answer.get("ok"):
        why = str(answer.get("reason", f"no question `{question}` is open"))
        return Reply(False, {"id": question, "reason": why}, f"{why[:1].upper()}{why[1:]}.")
    return Reply(True, {"id": question, "choice": choice}, f"{question}: {choice}.")


def agents_of(state: State, session: str) -> list[dict[str, Any]]:
    """List a session's children and theirs, parents first, as machine interfaces get them.

    `state` gives a session's state as plain data, by its id; empty where it was never opened.
    """
    redactor = Redactor(os.environ)
    found = list(_below(state, session, ()))
    for one in found:
        one["task"] = redactor.text(one["task"])
        one["reason"] = redactor.text(one["reason"]) if one["reason"] else None
    return found


def _below(state: State, session: str, above: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for child in state(session).get("children", {}).values():
        own, path = state(child["session"]), (*above, child["name"])
        place = {"path": "/".join(path), "depth": len(above)}
        yield {**_view(child, own, time.time()), **place}
        if own:
            yield from _below(state, child["session"], path)


def stored_state(store: Store) -> State:
    """Look in the store; a session that nobody has open is as its next owner will find it."""

    def look(session: str) -> dict[str, Any]:
        try:
            record = load_record(store, session)
        except UnknownSession:
            return {}
        if is_cut_off(record) and not store.is_owned(session):
            apply(record, recovered(record), record.seq + 1, record.updated)
        data: dict[str, Any] = encode(record)
        return data

    return look


def _live_state(runtime: Runtime) -> State:
    """Ask a session that is open here; of one that is not, the store tells."""
    look = stored_state(runtime.store)

    def ask(session: str) -> dict[str, Any]:
        try:
            return runtime.inspect(session)
        except UnknownSession:
            return look(session)

    return ask


def _view(child: dict[str, Any], own: dict[str, Any], now: float) -> dict[str, Any]:
    state, usage = child.get("state", "working"), own.get("usage", {})
    end = now if state in AT_WORK else child.get("since", now)
    return {
        "name": child["name"],
        "id": child["session"],
        "agent": child["agent"],
        "relation": child["relation"],
        "state": state,
        "task": child["task"],
        "elapsed": round(max(0.0, end - child.get("started", now)), 3),
        "steps": sum(one.get("step", 0) for one in own.get("turns", {}).values()),
        "tokens": usage.get("input", 0) + usage.get("output", 0),
        "reason": child.get("reason") or child.get("cause") or None,
    }


def draw_agents(agents: list[dict[str, Any]]) -> str:
    """Draw them for people: one line each, beneath whoever asked for it."""
    if not agents:
        return "No subagents."
    return "\n".join(_line(one) for one in agents)


def _line(one: dict[str, Any]) -> str:
    task = " ".join(one["task"].split())
    task = task if len(task) <= SHOWN else f"{task[: SHOWN - 3]}..."
    kind = {"background_child": ", background", "side_talk": ", side talk"}.get(one["relation"], "")
    why = f" ({one['reason']})" if one["reason"] and one["state"] not in AT_WORK else ""
    steps = "1 step" if one["steps"] == 1 else f"{one['steps']} steps"
    spent = f"{one['elapsed']:.0f} s, {steps}, {one['tokens']} tokens"
    indent = "  " * one["depth"]
    return f"{indent}{one['name']} [{one['state'].upper()}{kind}]{why} {task} ({spent})"
