"""A session's dump as a tree, for people: what each part is doing, since when, what waits for what."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..formats import clock, iso
from ..progress import progress_text
from .branch import Branch, cut, draw

_TEXT = 80  # characters of a message


def draw_dump(data: dict[str, Any], width: int = 0, *, is_coloured: bool = False) -> str:
    """Draw a session's dump; no escape codes but our own colours, whatever the texts hold."""
    lines = draw(tree_of(data), width, is_coloured=is_coloured)
    if data.get("transitions"):
        lines += ["", "last transitions:"]
    for one in data.get("transitions", ()):
        moved = f"{one['from'] or '(new)'} -> {one['to']}"
        line = f"  {one['seq']:>5}  {clock(one['time'])}  {one['what']}: {moved}  ({one['cause']})"
        lines.append(cut(line, width))
    for one in data.get("dead_letters") or ():
        lines.append(cut(f"actor {one['actor']} died of {one['message']}: {one['reason']}", width))
    return "\n".join(lines)


def tree_of(data: dict[str, Any]) -> Branch:
    """Make the tree of a dump: the session, its facts, its queue, its turn, its actors, its children."""
    actors = data.get("actors", {})
    since = actors.get("session", {}).get("since", "")
    owner, name = data.get("owner"), data.get("name", "")
    nobody = "no live process owns it" if data.get("lease") else "process ?"
    who = f"process {owner['pid']}" if owner else nobody
    about = f"(entry {data.get('seq', 0)}, since {clock(since)}, {who})" if since else ""
    title = f"session {data['id']}" + (f' "{name}"' if name else "")
    twigs = [
        *_facts(data),
        _queue(data),
        *_turns(data),
        *_run(data),
        *_orders(data),
        *_goal(data),
        *_children(data),
    ]
    twigs += [_actor(name, one) for name, one in actors.items()]
    return Branch(title, data.get("state", "idle"), about, twigs)


def _facts(data: dict[str, Any]) -> Iterator[Branch]:
    yield Branch("folder", "", data.get("folder", ""))
    usage = data.get("usage", {})
    spent = f"  {usage.get('input', 0)} tokens in, {usage.get('output', 0)} out" if usage else ""
    model = f"  model {data['model']}" if data.get("model") else ""
    said = f"{data.get('agent', '')}{model}  {data.get('messages', 0)} messages{spent}"
    yield Branch("agent", "", said)


def _queue(data: dict[str, Any]) -> Branch:
    queue = data.get("queue", {})
    items = queue.get("items", {})
    live = [items[name] for name in queue.get("order", ())]
    twigs = [
        Branch(
            f"#{one['number']}",
            f"[{one.get('state', 'pending').upper()}]",
            f"{one['text'][:_TEXT]}{progress_text(one.get('progress'))}{_sender(one)}",
        )
        for one in live
    ]
    return Branch("queue", queue.get("state", "open"), f"{len(live)} there", twigs)


def _sender(item: dict[str, Any]) -> str:
    return f"  from {item['user']}" if item.get("user") else ""


def _turns(data: dict[str, Any]) -> Iterator[Branch]:
    turn = data.get("turns", {}).get(data.get("turn", ""))
    if turn is None:
        return
    calls = [_call(one) for one in turn.get("calls", {}).values()]
    since = f"since {clock(iso(turn['since']))}" if turn.get("since") else ""
    reason = f"  {turn['reason']}" if turn.get("reason") else ""
    about = f"step {turn.get('step', 0)}  {since}{reason}"
    yield Branch(f"turn {turn['id']}", turn.get("state", "boundary"), about, calls)


def _call(call: dict[str, Any]) -> Branch:
    words = ", ".join(str(one) for one in call.get("arguments", {}).values() if one is not None)
    pid = f"process {call['pid']}  " if call.get("pid") else ""
    title = f"call {call['id']} {call['tool']}"
    return Branch(title, call.get("state", "requested"), f"{pid}{words[:_TEXT]}")


def _run(data: dict[str, Any]) -> Iterator[Branch]:
    """Show a workflow's run: each step that has begun or ended, and the work of it that runs."""
    if run := data.get("run"):
        reason = f"  {run['reason']}" if run.get("reason") else ""
        twigs = [_step(one) for one in run["steps"].values()]
        yield Branch(f"run of {run['workflow']['name']}", run["state"], reason, twigs)


def _step(step: dict[str, Any]) -> Branch:
    counts = f"{step['marks'].count('d')}/{len(step['marks'])}  " if step["is_many"] else ""
    twigs = [_attempt(step, index, call) for index, call in step["calls"].items()]
    return Branch(f"step {step['id']}", step["state"], f"{counts}{step['reason']}", twigs)


def _attempt(step: dict[str, Any], index: str, call: str) -> Branch:
    pid, child = step.get("pids", {}).get(call), step["children"].get(index)
    parts = [
        f"process {pid}" if pid else "",
        f"child {child}" if child else "",
        str(step["items"][int(index)])[:_TEXT] if step["is_many"] else "",
    ]
    return Branch(f"call {call}", "running", "  ".join(part for part in parts if part))


def _orders(data: dict[str, Any]) -> Iterator[Branch]:
    """Show the interrupts that are not done yet."""
    for one in data.get("interrupts", {}).values():
        if one.get("state") in ("planned", "stopping"):
            yield Branch(f"interrupt {one['id']}", one["state"], f"by {one['cause']}")


def _goal(data: dict[str, Any]) -> Iterator[Branch]:
    goals = data.get("goals", {})
    goal = goals.get("goals", {}).get(goals.get("current", ""))
    if goal is not None:
        used = goal["turns_total"] - goal.get("base_turns", 0)
        spent = f"turn {used}/{goal['max_turns']}"
        yield Branch("goal", goal["state"], f"{spent}  {goal['text'][:_TEXT]}")


def _children(data: dict[str, Any]) -> Iterator[Branch]:
    inner = data.get("subagents", {})
    for child in data.get("children", {}).values():
        beneath = [tree_of(inner[child["name"]])] if child["name"] in inner else []
        about = f"{child['session']}  {child['task'][:_TEXT]}"
        yield Branch(f"child {child['name']}", child["state"], about, beneath)


def _actor(name: str, actor: dict[str, Any]) -> Branch:
    """Show what an actor says of itself, with `?` for what nobody can say."""
    known = {key: "?" if value is None else value for key, value in actor.items()}
    mail = actor["mailbox"]
    parts = [
        f"journal: {actor['differs'] or 'nothing'}" if "differs" in actor else "",
        {"running": "", "?": "runs ?"}.get(known["supervised"], known["supervised"]),
        f"waits for {known['waiting_for']}" if known["waiting_for"] else "",
        f"mail {mail['system']}/{mail['control']}/{mail['data']}" if mail else "mail ?",
        f"last {known['last_message'] or 'nothing yet'}",
        f"restarts {known['restarts']}" if known["restarts"] else "",
    ]
    return Branch(f"actor {name}", known["state"], "  ".join(part for part in parts if part))
