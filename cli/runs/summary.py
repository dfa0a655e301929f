"""What a run came to, in a few lines."""

from __future__ import annotations

from typing import Any

MOST_FILES = 8


def elapsed_text(seconds: float) -> str:
    """Write a time as people read it."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def item_text(event: dict[str, Any]) -> str:
    """Name what an event of a step is about: the step, and the item if it has one."""
    item = event.get("item")
    return f"{event['step']}" if item is None else f"{event['step']} {item}"


def failure_line(event: dict[str, Any]) -> str:
    """Say what failed, or is tried again; empty for anything else."""
    reason = str(event.get("reason", "")).splitlines()[:1]
    why = f": {reason[0]}" if reason else ""
    match event["state"]:
        case "failed":
            return f"failed: {item_text(event)}{why}"
        case "retrying":
            return f"again: {item_text(event)}{why}"
        case "blocked":
            return f"not run: {item_text(event)}{why}"
        case _:
            return ""


def summary(ended: dict[str, Any], changed: list[str], seconds: float) -> list[str]:
    """Say how a run ended, what it changed, and what can be done now."""
    run, status = ended["run"], ended["status"]
    counts = [_counted(one) for one in ended["steps"]]
    lines = [
        f"Run {run} {status} after {elapsed_text(seconds)}: {', '.join(counts) or 'nothing ran'}."
    ]
    if ended.get("reason"):
        lines.append(str(ended["reason"]).splitlines()[0])
    if changed:
        names = ", ".join(changed[:MOST_FILES]) + (", …" if len(changed) > MOST_FILES else "")
        noun = "file" if len(changed) == 1 else "files"
        lines.append(f"Changed {len(changed)} {noun}: {names}")
        lines.append(f"`steersman sessions revert {run}` brings everything back.")
    if status == "interrupted":
        lines.append(f"`steersman run --resume {run}` goes on where it was.")
    elif status == "failed":
        lines.append(
            f"Once that is mended, `steersman run --resume {run}` goes on with what failed."
        )
    if ended.get("output"):
        lines += ["", *str(ended["output"]).splitlines()]
    return lines


def _counted(step: dict[str, Any]) -> str:
    if "total" not in step:
        return f"{step['step']} {step['state']}"
    return f"{step['step']} {step['state']} ({step['done']} of {step['total']})"
