"""A session's state as a tree, for people: what it is doing, since when, what waits."""

from typing import Any

from .progress import progress_text
from .terminal import clean

__all__ = ["draw_dump"]


def draw_dump(data: dict[str, Any]) -> str:
    """Draw a session's dump; no escape codes, whatever the texts hold."""
    lines = [_session(data), "", _owner(data), "last transitions:"]
    for one in data["transitions"]:
        moved = f"{one['from'] or '(new)'} -> {one['to']}"
        lines.append(f"  {one['seq']:>5}  {one['time']}  {one['what']}: {moved}  ({one['cause']})")
    waits = {name: actor["waiting_for"] for name, actor in data["actors"].items()}
    lines += [f"{name} waits for {what}" for name, what in waits.items() if what]
    return "\n".join(lines)


def _owner(data: dict[str, Any]) -> str:
    owner = data.get("owner")
    return f"owned by process {owner['pid']}" if owner else "no live process owns it"


def _session(data: dict[str, Any]) -> str:
    lines = [f"session {data['id']}  {data.get('state', 'idle')}  (entry {data.get('seq', 0)})"]
    lines += _facts(data)
    lines += _queue(data.get("queue", {}))
    turns = data.get("turns", {})
    newest = turns.get(data.get("turn", ""))
    if newest:
        lines += _turn(newest)
    lines += [_child(one) for one in data.get("children", {}).values()]
    for name, actor in data.get("actors", {}).items():
        mail = actor["mailbox"]
        depth = f"{mail['system']}/{mail['control']}/{mail['data']}"
        last = actor["last_message"] or "nothing yet"
        lines.append(f"├ actor {name}  {actor['supervised']}  mail {depth}  last {last}")
    if len(lines) > 1:
        lines[-1] = lines[-1].replace("├", "└", 1)
    return "\n".join(lines)


def _facts(data: dict[str, Any]) -> list[str]:
    return [
        f"├ folder {clean(data.get('folder', ''))}",
        f"├ agent {data.get('agent', '')}  model {clean(data.get('model', ''))}",
    ]


def _queue(queue: dict[str, Any]) -> list[str]:
    items = queue.get("items", {})
    live = [items[name] for name in queue.get("order", ())]
    lines = [f"├ queue  {queue.get('state', 'open')}  {len(live)} there"]
    for one in live:
        state = one.get("state", "pending").upper()
        text = clean(one["text"])[:60]
        lines.append(f"│   #{one['number']} [{state}]: {text}{progress_text(one.get('progress'))}")
    return lines


def _child(child: dict[str, Any]) -> str:
    task = clean(child["task"])[:60]
    return f"├ child {child['name']}  {child['state']}  {child['session']}  {task}"


def _turn(turn: dict[str, Any]) -> list[str]:
    step = turn.get("step", 0)
    lines = [f"├ turn {turn['id']}  {turn.get('state', 'boundary')}  step {step}"]
    for call in turn.get("calls", {}).values():
        lines.append(f"│   {call['id']} {call['tool']}  {call.get('state', 'requested')}")
    return lines
