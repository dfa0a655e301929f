"""What an entry says of a message, as a sentence for people."""

from __future__ import annotations

from typing import Any

from ...machines.disposition import DEFAULT_DISPOSITIONS

_WHY = {row.name: row.doc for row in DEFAULT_DISPOSITIONS.rows}
_PLAIN = {
    "model_called": "the model was asked, step {step}",
    "answer_cut": "the answer was cut off, so that a steer enters at once",
    "model_call_failed": "the model gave no answer: {reason}",
    "question_asked": "asked whether {tool} may run (question {question})",
    "question_answered": "question {question}: {choice}",
    "tool_refused": "{tool} did not run ({status}): {reason}",
    "steer_addressed": "handed to turn {turn}, as a steer",
    "steered": "taken in by turn {turn}, step {step}: the model sees it from here on",
    "requeued": "waits as a message of its own: {why}",
    "deferred": "the model handed it back: {why}",
    "withdrawn": "taken back by a person",
    "edited": 'said anew: "{text}"',
    "moved": "moved to another place",
    "queue_held": "the queue is held: nothing that waits runs by itself",
    "queue_released": "the queue runs again",
    "session_suspended": "the program was left ({cause}); everything is kept",
    "session_leaving": "the program is being left ({cause})",
    "session_resumed": "somebody took the session up again",
    "session_finalized": "the session ended for good ({cause})",
    "recovered": "the session was taken up after a {cause}: nothing runs until a person says so",
    "interrupted": "turn {turn} was interrupted ({cause})",
    "stopped": "everything that turn {turn} started is dead",
    "child_cancelled": "subagent {child} was told to end",
    "child_started": "subagent {child} was given a task",
    "child_interrupted": "subagent {child} was cut off, and can go on",
    "child_resumed": "subagent {child} goes on",
    "child_ended": "subagent {child} is over: {status}",
    "offered": "has a place in the queue, and never runs by itself",
    "offer_answered": "the answer is there",
    "offer_wanted": "decided before the answer is there: {wants}",
    "kept": "kept: it runs in its turn",
    "steer_arrived": "entered the context of subagent {child}",
}


class _Fields(dict[str, Any]):
    """What an entry does not say is left empty: defaults are not stored."""

    def __missing__(self, key: str) -> str:
        return ""


def told(data: dict[str, Any]) -> str:
    """Say what happened, in a sentence that begins small."""
    kind = data["kind"]
    match kind:
        case "queued":
            return _queued(data)
        case "interrupt_requested" | "interrupt_planned":
            return _order(data)
        case "turn_started":
            again = f", going on from {data['resumes']}" if data.get("resumes") else ""
            return f"turn {data['turn']} began with it{again}"
        case "answered":
            return _answered(data)
        case "tool_intended":
            words = ", ".join(str(one) for one in data.get("arguments", {}).values())
            return f"{data['tool']} starts: {_short(words)}"
        case "tool_ended":
            code = data.get("exit_code")
            return f"{data['tool']} ended: {data['status']}" + (
                f", exit {code}" if code is not None else ""
            )
        case "progress_made":
            return f"{data.get('unit', '')} {data['done']}/{data['total']}".strip()
        case "turn_ended":
            reason = f": {data['reason']}" if data.get("reason") else ""
            return f"turn {data['turn']} ended: {data['status']}{reason}"
        case _:
            form = _PLAIN.get(kind) or str(kind).replace("_", " ")
            return form.format_map(_Fields(data)).replace(" ()", "")


def _queued(data: dict[str, Any]) -> str:
    position = data.get("position", 1)
    where = "" if data["said_as"] == "turn" else f", place {position}"
    parts = [f"taken in as {data['said_as']} #{data['number']}{where}"]
    if data.get("matched"):
        parts.append(f'by the word "{data["matched"]}"')
    return " ".join(parts) + _row(data.get("rule", ""))


def _order(data: dict[str, Any]) -> str:
    word = f' by the word "{data["matched"]}"' if data.get("matched") else ""
    when = " when the running tools have ended" if data["kind"] == "interrupt_planned" else ""
    turn = f" turn {data['turn']}" if data.get("turn") else ""
    return f"an order to stop{turn}{when} ({data['cause']}){word}{_row(data.get('rule', ''))}"


def _row(rule: str) -> str:
    if not rule:
        return ""
    why = _WHY.get(rule, "").rstrip(".")
    return f", by row `{rule}`" + (f" ({why[:1].lower()}{why[1:]})" if why else "")


def _answered(data: dict[str, Any]) -> str:
    messages: list[dict[str, Any]] = data.get("messages", [])
    said = next((one for one in messages if one["role"] == "assistant"), dict[str, Any]())
    calls = len(said.get("tool_calls", ()))
    text = f'the model answered: "{_short(str(said["text"]))}"' if said.get("text") else ""
    wants = f"the model wants {calls} tool call{'s' if calls != 1 else ''}" if calls else ""
    return ", and ".join(part for part in (text, wants) if part) or "the model answered nothing"


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 100 else f"{line[:99]}…"
