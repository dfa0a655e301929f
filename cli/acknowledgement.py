"""How it reads that a message was taken, and how: the literal texts people know."""

from typing import Any
from unicodedata import east_asian_width

__all__ = ["acknowledgement"]

CUT = 40


def acknowledgement(event: dict[str, Any], *, can_utf8: bool = True) -> str:
    """Return the line for an event, empty when it needs none; plain words without UTF-8."""
    match event["type"]:
        case "accepted":
            text = _accepted(event)
        case "interrupted":
            text = "Stopping current task."
            if done := event["checkpoint"]:
                text += f" Progress saved at checkpoint {done['done']}/{done['total']}."
        case "child_started":
            text = f"🤖 {event['name']} {_begins(event)}: {event['task']}"
        case "child_ended":
            text = f"🤖 {event['name']} {event['status']}"
        case "side_talk_ended":
            text = f"🤖 Side talk done: /queue steer {event['number']} brings it into the work"
        case "steered":
            text = "[Steered]"
        case "rejected":
            hint = f"\n  {event['hint']}" if event.get("hint") else ""
            text = f"Not taken ({event['reason']}): {event['text']}{hint}"
        case "stopped" if event["survivors"]:
            text = f"Still alive, and not to be ended: {_pids(event['survivors'])}"
        case "stopped" if event["killed"]:
            text = f"Ended: {_pids(event['killed'])}"
        case _:
            return ""
    if not can_utf8:
        text = text.encode("ascii", "ignore").decode().strip()
    return text


def _accepted(event: dict[str, Any]) -> str:
    match event["as"]:
        case "queue" if event["ack"] == "subagent_working":
            return "⏳ Subagent working — your message is queued for when it finishes"
        case "side_talk":
            return "🤖 Side talk spawned (will notify when ready)"
        case "queue":
            return _cut(f"📥 Queued #{event['number']}: ", event["text"]) + _unheeded(event)
        case "interrupt" if event["matched"]:
            return f'⚠️ Interrupt detected: "{event["matched"]}"'
        case "steer":
            return _cut(f"Steering with #{event['number']}: ", event["text"]) + _unheeded(event)
        case _:
            return ""


def _begins(event: dict[str, Any]) -> str:
    if event.get("resumed"):
        return "goes on"
    return "waits for a place" if event.get("waiting") else "works"


def _unheeded(event: dict[str, Any]) -> str:
    """Say that a word which often stops did not, in case a stop was meant."""
    if event["ack"] not in ("word_queued", "word_steered"):
        return ""
    return f'\n"{event["matched"]}" in it stopped nothing: /stop stops everything.'


def _cut(lead: str, text: str) -> str:
    """Quote a message on one line of `CUT` columns in all, if the message is longer."""
    line = " ".join(text.split())
    room = CUT - sum(2 if east_asian_width(sign) in "WF" else 1 for sign in lead) - 2
    return f'{lead}"{line if len(line) <= room else f"{line[: room - 3].rstrip()}..."}"'


def _pids(pids: list[int]) -> str:
    word = "process" if len(pids) == 1 else "processes"
    return f"{word} {', '.join(str(pid) for pid in pids)}"
