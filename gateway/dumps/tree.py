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
    for transition in data.get("transitions", ()):
        moved = f"{transition['from'] or '(new)'} -> {transition['to']}"
        moment = f"{transition['seq']:>5}  {clock(transition['time'])}"
        line = f"  {moment}  {transition['what']}: {moved}  ({transition['cause']})"
        lines.append(cut(line, width))
    for letter in data.get("dead_letters") or ():
        lines.append(
            cut(f"actor {letter['actor']} died of {letter['message']}: {letter['reason']}", width)
        )
    return "\n".join(lines)


def tree_of(data: dict[str, Any]) -> Branch:
    """Make the tree of a dump: the session, its facts, its queue, its turn, its actors, its children."""
    actors = data.get("actors", {})
    since = actors.get("session", {}).get("since", "")
    owner, name = data.get("owner"), data.get("name", "")
    unowned = "no live process owns it" if data.get("lease") else "process ?"
    who = f"process {owner['pid']}" if owner else unowned
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
    twigs += [_actor(name, actor) for name, actor in actors.items()]
    return Branch(title=title, state=data.get("state", "idle"), about=about, twigs=twigs)


def _facts(data: dict[str, Any]) -> Iterator[Branch]:
    yield Branch(title="folder", state="", about=data.get("folder", ""))
    usage = data.get("usage", {})
    spent = f"  {usage.get('input', 0)} tokens in, {usage.get('output', 0)} out" if usage else ""
    model = f"  model {data['model']}" if data.get("model") else ""
    said = f"{data.get('agent', '')}{model}  {data.get('messages', 0)} messages{spent}"
    yield Branch(title="agent", state="", about=said)


def _queue(data: dict[str, Any]) -> Branch:
    queue = data.get("queue", {})
    items = queue.get("items", {})
    live = [items[name] for name in queue.get("order", ())]
    twigs = [
        Branch(
            title=f"#{item['number']}",
            state=f"[{item.get('state', 'pending').upper()}]",
            about=f"{item['text'][:_TEXT]}{progress_text(item.get('progress'))}{_sender(item)}",
        )
        for item in live
    ]
    return Branch(
        title="queue", state=queue.get("state", "open"), about=f"{len(live)} there", twigs=twigs
    )


def _sender(item: dict[str, Any]) -> str:
    return f"  from {item['user']}" if item.get("user") else ""


def _turns(data: dict[str, Any]) -> Iterator[Branch]:
    turn = data.get("turns", {}).get(data.get("turn", ""))
    if turn is None:
        return
    calls = [_call(call) for call in turn.get("calls", {}).values()]
    since = f"since {clock(iso(turn['since']))}" if turn.get("since") else ""
    reason = f"  {turn['reason']}" if turn.get("reason") else ""
    about = f"step {turn.get('step', 0)}  {since}{reason}"
    yield Branch(
        title=f"turn {turn['id']}", state=turn.get("state", "boundary"), about=about, twigs=calls
    )


def _call(call: dict[str, Any]) -> Branch:
    words = ", ".join(
        str(argument) for argument in call.get("arguments", {}).values() if argument is not None
    )
    pid = f"process {call['pid']}  " if call.get("pid") else ""
    title = f"call {call['id']} {call['tool']}"
    return Branch(title=title, state=call.get("state", "requested"), about=f"{pid}{words[:_TEXT]}")


def _run(data: dict[str, Any]) -> Iterator[Branch]:
    """Show a workflow's run: each step that has begun or ended, and the work of it that runs."""
    if run := data.get("run"):
        reason = f"  {run['reason']}" if run.get("reason") else ""
        twigs = [_step(step) for step in run["steps"].values()]
        yield Branch(
            title=f"run of {run['workflow']['name']}", state=run["state"], about=reason, twigs=twigs
        )


def _step(step: dict[str, Any]) -> Branch:
    counts = f"{step['marks'].count('d')}/{len(step['marks'])}  " if step["is_many"] else ""
    twigs = [_attempt(step, index, call) for index, call in step["calls"].items()]
    return Branch(
        title=f"step {step['id']}",
        state=step["state"],
        about=f"{counts}{step['reason']}",
        twigs=twigs,
    )


def _attempt(step: dict[str, Any], index: str, call: str) -> Branch:
    pid, child = step.get("pids", {}).get(call), step["children"].get(index)
    parts = [
        f"process {pid}" if pid else "",
        f"child {child}" if child else "",
        str(step["items"][int(index)])[:_TEXT] if step["is_many"] else "",
    ]
    return Branch(
        title=f"call {call}", state="running", about="  ".join(part for part in parts if part)
    )


def _orders(data: dict[str, Any]) -> Iterator[Branch]:
    """Show the interrupts that are not done yet."""
    for interrupt in data.get("interrupts", {}).values():
        if interrupt.get("state") in ("planned", "stopping"):
            yield Branch(
                title=f"interrupt {interrupt['id']}",
                state=interrupt["state"],
                about=f"by {interrupt['cause']}",
            )


def _goal(data: dict[str, Any]) -> Iterator[Branch]:
    goals = data.get("goals", {})
    goal = goals.get("goals", {}).get(goals.get("current", ""))
    if goal is not None:
        used = goal["turns_total"] - goal.get("base_turns", 0)
        spent = f"turn {used}/{goal['max_turns']}"
        yield Branch(title="goal", state=goal["state"], about=f"{spent}  {goal['text'][:_TEXT]}")


def _children(data: dict[str, Any]) -> Iterator[Branch]:
    inner = data.get("subagents", {})
    for child in data.get("children", {}).values():
        beneath = [tree_of(inner[child["name"]])] if child["name"] in inner else []
        about = f"{child['session']}  {child['task'][:_TEXT]}"
        yield Branch(
            title=f"child {child['name']}", state=child["state"], about=about, twigs=beneath
        )


def _actor(name: str, actor: dict[str, Any]) -> Branch:
    """Show what an actor reports of itself, with `?` for what is unknown."""
    known = {key: "?" if value is None else value for key, value in actor.items()}
    mail = actor["mailbox"]
    parts = [
        f"journal: {actor['differs'] or 'nothing'}" if "differs" in actor else "",
        {"running": "", "?": "runs ?"}.get(known["supervised"], known["supervised"]),
        f"waits for {known['waiting_for']}" if known["waiting_for"] else "",
        f"by rule {known['rule']}" if known["rule"] else "",
        f"mail {mail['system']}/{mail['control']}/{mail['data']}" if mail else "mail ?",
        f"last {known['last_message'] or 'nothing yet'}",
        f"restarts {known['restarts']}" if known["restarts"] else "",
    ]
    return Branch(
        title=f"actor {name}", state=known["state"], about="  ".join(part for part in parts if part)
    )
