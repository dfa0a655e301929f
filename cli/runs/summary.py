"""The result of a run and its steps, in a few lines."""

from __future__ import annotations

from ...gateway.events.contract import RunEndedEvent, StepEvent, StepView
from ...gateway.wording.terminal import clean
from ...machines.steps import UNDECIDED

MOST_FILES = 8


def elapsed_text(seconds: float) -> str:
    """Write a duration: `12.3 s`, `3 min 5 s`, `2 h 5 min`."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours else f"{minutes} min {rest} s"


def item_text(event: StepEvent) -> str:
    """Name the subject of a step's event: the step, and the item if it has one."""
    item = event.get("item")
    return event["step"] if item is None else f"{event['step']} {item}"


def failure_line(event: StepEvent) -> str:
    """Return a line for a failed, repeated, lost or blocked step; empty for other events."""
    reason = event.get("reason", "").splitlines()[:1]
    why = f": {clean(reason[0])}" if reason else ""
    match event["state"]:
        case "failed":
            return f"failed: {item_text(event)}{why}"
        case "unknown":
            return f"unknown: {item_text(event)}{why}"
        case "retrying":
            return f"again: {item_text(event)}{why}"
        case "blocked":
            return f"not run: {item_text(event)}{why}"
        case _:
            return ""


def summary(ended: RunEndedEvent, changed: list[str], seconds: float) -> list[str]:
    """Return the result of a run, the files that it changed, and the next steps."""
    run, status = ended["run"], ended["status"]
    counts = [_counted(step) for step in ended["steps"]]
    lines = [
        f"Run {run} {status} after {elapsed_text(seconds)}: {', '.join(counts) or 'nothing ran'}."
    ]
    if reason := ended.get("reason"):
        lines.append(clean(reason.splitlines()[0]))
    if changed:
        names = ", ".join(changed[:MOST_FILES]) + (", …" if len(changed) > MOST_FILES else "")
        noun = "file" if len(changed) == 1 else "files"
        lines.append(f"Changed {len(changed)} {noun}: {names}")
        lines.append(f"`steersman sessions revert {run}` brings everything back.")
    if status == "interrupted":
        lines.append(f"`steersman run --resume {run}` continues where it stopped.")
    elif ended.get("reason", "").startswith(UNDECIDED):
        lines.append(f"`steersman run --resume {run}` says how it goes on.")
    elif status == "failed":
        lines.append(
            f"When the cause is repaired, `steersman run --resume {run}` repeats the failed work."
        )
    if output := ended.get("output"):
        lines += ["", *clean(output).splitlines()]
    return lines


def _counted(step: StepView) -> str:
    if "total" not in step:
        return f"{step['step']} {step['state']}"
    return f"{step['step']} {step['state']} ({step.get('done')} of {step['total']})"
