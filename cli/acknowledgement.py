"""The texts for the outcome of a message and of a stop, as people read them."""

from ..gateway.acknowledgement import accepted_text, cut, plain, rejected_text
from ..gateway.events.contract import (
    ChildStartedEvent,
    Event,
    RequeuedEvent,
    SideTalkEndedEvent,
)


def acknowledgement(event: Event, *, can_utf8: bool = True, shows_queued: bool = True) -> str:
    """Return the line for an event, empty if it needs none; plain words without UTF-8.

    `shows_queued` false leaves out the plain acknowledgement of a queued message.
    """
    match event["type"]:
        case "accepted" if shows_queued or event["ack"] != "queued":
            text = accepted_text(event, can_utf8=can_utf8)
        case "interrupted":
            text = "Stopping current task."
            if done := event["checkpoint"]:
                text += f" Progress saved at checkpoint {done['done']}/{done['total']}."
        case "child_started":
            text = plain(f"🤖 {event['name']} {_start_word(event)}: {event['task']}", can_utf8)
        case "child_ended":
            text = plain(f"🤖 {event['name']} {event['status']}", can_utf8)
        case "side_talk_ended":
            text = plain(f"🤖 Side talk{_side_talk_end(event)}", can_utf8)
        case "steered":
            child = f"{event['child']}, " if "child" in event else ""
            text = cut(f"[Steered] {child}#{event['number']}: ", event["text"])
        case "requeued":
            text = _requeued(event)
        case "rejected":
            text = rejected_text(event, can_utf8=can_utf8)
        case "stopped" if event["survivors"]:
            pids = event["survivors"]
            text = f"Still alive, and not to be ended: {_pids(pids)}\n  "
            listed = ",".join(map(str, pids))
            text += f"`ps -p {listed}` shows what it does; `kill` ends it, perhaps only as root"
        case "stopped" if event["killed"]:
            text = f"Ended: {_pids(event['killed'])}"
        case _:
            return ""
    return text


def _side_talk_end(event: SideTalkEndedEvent) -> str:
    number = event["number"]
    if event.get("resumable"):
        return f" #{number} stopped: /queue resume continues it, /queue pop {number} removes it"
    said = event["text"] or event["status"]
    return f": {said}\n/queue steer {number} brings it into the work"


def _start_word(event: ChildStartedEvent) -> str:
    if event.get("resumed"):
        return "continues"
    return "waits for a place" if event.get("waiting") else "works"


def _requeued(event: RequeuedEvent) -> str:
    """Report a requeued message, unless the person took it back."""
    match event["why"]:
        case "taken back":
            return ""
        case why if event["item"] == event["id"]:
            return f"#{event['number']} is a message of its own now: {why}."
        case why:
            return f"The agent hands a message back, it waits as #{event['number']}: {why}"


def _pids(pids: list[int]) -> str:
    word = "process" if len(pids) == 1 else "processes"
    return f"{word} {', '.join(str(pid) for pid in pids)}"
