"""`/agents`: shows the subagents as a tree, and ends a subagent."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

from ...journal.codec import encode
from ...journal.record import apply
from ...journal.recovery import is_cut_off, load_record, recovered
from ...machines import protocol as m
from ...machines.errors import UnknownSession
from ...machines.lifecycles import AT_WORK, meant
from ..client import SessionClient
from ..wording.formats import one_line, plain_words
from ..wording.redaction import Redactor
from .command import Argument, Reply, command
from .session import newest_messages

if TYPE_CHECKING:
    from ...journal.store import Store


State = Callable[[str], dict[str, Any]]

SHOWN = 60
"""Characters of a task that a line shows."""


Name = Annotated[str, Argument("NAME", of="subagent", help="The name in the list.")]


@command(
    "agents",
    "agents",
    "Show the subagents, or end one: at once, or after it has summed up.",
    is_shared=True,
)
def agents(client: SessionClient) -> Reply:
    """Show the subagents as a tree."""
    found = agents_of(partial(_live_state, client), client.session, client.view.redactor)
    return Reply(data={"agents": found}, text=draw_agents(found))


agents.verb("list", "Show the subagents as a tree.")(agents.function)


@agents.verb("show", "Show the last messages of a subagent.")
def show_agent(client: SessionClient, name: Name) -> Reply:
    """Show the newest messages of a subagent's conversation, also while it works.

    Example: steersman agents show last kid
    """
    found = agents_of(partial(_live_state, client), client.session, client.view.redactor)
    name = name.removeprefix("@")
    wanted = meant([agent["name"] for agent in found], name)
    sessions = [agent["id"] for agent in found if agent["name"] in wanted or agent["path"] == name]
    if not sessions:
        there = ", ".join(agent["name"] for agent in found) or "none"
        return Reply(ok=False, text=f"No subagent `{name}`. There are: {there}.")
    data, lines = newest_messages(client, sessions[-1])
    return Reply(
        data={"id": sessions[-1], "messages": data},
        text="\n".join(lines) or f"`{name}` has said nothing yet.",
    )


@agents.verb("stop", "Stop a subagent and everything it started.")
def stop_agent(client: SessionClient, name: Name) -> Reply:
    """Stop one subagent with all its processes; its parent gets the partial result.

    Example: steersman agents stop last kid
    """
    return _end(client, name.removeprefix("@"), is_gentle=False)


@agents.verb("wrap-up", "Let a subagent sum up what it has, and end.")
def wrap_up_agent(client: SessionClient, name: Name) -> Reply:
    """Ask one subagent to sum up its work and end.

    Example: steersman agents wrap-up last kid
    """
    return _end(client, name.removeprefix("@"), is_gentle=True)


def _end(client: SessionClient, name: str, *, is_gentle: bool) -> Reply:
    found = agents_of(partial(_live_state, client), client.session, client.view.redactor)
    working = [agent for agent in found if agent["state"] in AT_WORK]
    wanted = meant([agent["name"] for agent in working], name)
    paths = [agent["path"] for agent in working if agent["name"] in wanted]
    if len(paths) > 1:
        return Reply(
            ok=False, data={}, text=f"Several are called `{name}`. Which one: {', '.join(paths)}?"
        )
    child = paths[0] if paths else name
    answer = client.ask(m.EndChild(child=child, is_gentle=is_gentle))
    if not answer.get("ok"):
        return Reply(ok=False, data=answer, text=f"{answer.get('reason', 'Refused')}.")
    if is_gentle:
        return Reply(
            data=answer, text=f"`{name}` is asked to sum up; at most {answer['seconds']:g} s."
        )
    return Reply(data=answer, text=f"Stopping `{name}`; its partial result goes to its parent.")


def agents_of(state: State, session: str, redactor: Redactor) -> list[dict[str, Any]]:
    """List a session's descendants, parents first, as programs see them.

    `state` returns a session's state as plain data, by its id; empty if it was never opened.
    """
    found = list(_below(state, session, ()))
    for agent in found:
        agent["task"] = redactor.text(agent["task"])
        agent["reason"] = redactor.text(agent["reason"]) if agent["reason"] else None
    return found


def _below(state: State, session: str, above: tuple[str, ...]) -> Iterator[dict[str, Any]]:
    for child in state(session).get("children", {}).values():
        own, path = state(child["session"]), (*above, child["name"])
        place = {"path": "/".join(path), "depth": len(above)}
        yield {**_view(child, own, time.time()), **place}
        if own:
            yield from _below(state, child["session"], path)


def stored_state(store: Store, session: str) -> dict[str, Any]:
    """Read a state from the store; that of an unowned session is as its next owner will find it."""
    try:
        record = load_record(store, session)
    except UnknownSession:
        return {}
    if is_cut_off(record) and not store.is_owned(session):
        apply(record, recovered(record), record.seq + 1, record.updated)
    data: dict[str, Any] = encode(record)
    return data


def _live_state(client: SessionClient, session: str) -> dict[str, Any]:
    """Ask a session that is open in this process; read another from the store."""
    try:
        return client.view.state(session)
    except UnknownSession:
        return stored_state(client.store, session)


def _view(child: dict[str, Any], own: dict[str, Any], now: float) -> dict[str, Any]:
    state, usage = child.get("state", "working"), own.get("usage", {})
    return {
        "name": child["name"],
        "id": child["session"],
        "agent": child["agent"],
        "relation": child["relation"],
        "state": state,
        "task": child["task"],
        "elapsed": round(_worked(own, now), 3),
        "steps": sum(turn.get("step", 0) for turn in own.get("turns", {}).values()),
        "tokens": usage.get("input", 0) + usage.get("output", 0),
        "reason": child.get("reason") or child.get("cause") or None,
    }


def _worked(own: dict[str, Any], now: float) -> float:
    """Return for how many seconds a subagent's turns have run; not those in which it was stopped."""
    turn = own.get("turns", {}).get(own.get("turn"), {})
    done: float = own.get("seconds", 0.0)
    is_running = bool(turn) and not turn.get("ended")
    return done + (max(0.0, now - turn["started"]) if is_running else 0.0)


def draw_agents(agents: list[dict[str, Any]]) -> str:
    """Write the subagents for people: one line each, below the agent that started it."""
    if not agents:
        return "No subagents."
    return "\n".join(_line(agent) for agent in agents)


def _line(agent: dict[str, Any]) -> str:
    task = one_line(agent["task"], SHOWN, "...")
    kind = {"background_child": ", background", "side_talk": ", side talk"}.get(
        agent["relation"], ""
    )
    reason = "" if agent["state"] in AT_WORK else agent["reason"]
    why = f" ({reason if ' ' in reason else plain_words(reason)})" if reason else ""
    steps = "1 step" if agent["steps"] == 1 else f"{agent['steps']} steps"
    spent = f"{agent['elapsed']:.0f} s, {steps}, {agent['tokens']} tokens"
    indent = "  " * agent["depth"]
    return f"{indent}{agent['name']} [{agent['state'].upper()}{kind}]{why} {task} ({spent})"
