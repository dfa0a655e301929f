"""The texts that acknowledge what a person asked for: how a message was routed, what was reverted.

Each row of the routing table names its acknowledgement (`ACKS` in `machines/disposition.py`); this
module has the texts. The screen shows them, and `accepted` events carry them, so that every interface
shows the same.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from ...journal.queue_record import ItemRecord
from ...journal.revert_record import REVERTED
from ...machines import protocol as m
from ...machines.pattern import lazy_pattern
from ...workflows.spelling import counted_paths
from ...workspace.restore_plan import FORCIBLE
from ..events.contract import (
    AcceptedEvent,
    Event,
    RejectedEvent,
    RequeuedEvent,
    Stamp,
)
from .formats import sender

CUT = 40
"""Characters of a quoted message where the width of the terminal is not known."""
SHORT = 16
"""Characters of a quoted message in the narrowest terminal."""
_PLACE = lazy_pattern(r"\{\w+\}")
SIGNS = {"📥 ": "", "🤖 ": "", "⚠️ ": "", "⏳ ": "", "—": "-"}
"""The signs beyond ASCII in the texts, with their replacements for terminals without UTF-8."""
NAMED = 10
"""Reverted paths that are listed where their number says enough."""
MOST = 100
"""Reverted paths that are listed where a person may look for one: a run may change thousands."""


About = Mapping[str, Any]
"""A message that is acknowledged: `text`, and what is known of the other fields of `accepted`."""


def accepted(
    at: Stamp,
    *,
    id: str,
    said: m.Said,
    routed: m.Routed,
    number: int | None = None,
    position: int | None = None,
    children: Iterable[str] = (),
    replaces: ItemRecord | None = None,
    steers: Iterable[ItemRecord] = (),
    has_words: bool = True,
) -> AcceptedEvent:
    """Return the `accepted` event of a message; `has_words`: with the text of the acknowledgement.

    `replaces` is the message whose turn it stops, with the `steers` that the turn did not take in.
    """
    event: AcceptedEvent = {
        "type": "accepted",
        **at,
        "id": id,
        "as": routed.said_as,
        "number": number,
        "position": position,
        "client_id": said.client_id or None,
        "matched": routed.matched or None,
        "rule": routed.rule or None,
        "ack": routed.ack or None,
        "text": said.text,
    }
    if said.user:
        event["user"] = said.user
    if names := list(children):
        event["children"] = names
    if replaces is not None:
        event["replaces"] = replaces.number
        if numbers := [steer.number for steer in steers]:
            event["replaces_steers"] = numbers
    if has_words:
        event["ack_text"] = accepted_text(event) or None
    return event


def accepted_text(event: AcceptedEvent, *, can_utf8: bool = True, columns: int = 0) -> str:
    """Return the acknowledgement of an `accepted` event as text; empty if the event has none."""
    said = acknowledgement_text(event["ack"], event, can_utf8=can_utf8, columns=columns)
    if old := event.get("replaces") if said else None:
        steers = [f"#{number}" for number in event.get("replaces_steers", ())]
        its = f", with {' and '.join(steers)}" if steers else ""
        said += f"\n`/queue resume {old}` brings #{old} back{its}."
    return said


def acknowledgement_text(
    ack: str | None, message: About, *, can_utf8: bool = True, columns: int = 0
) -> str:
    """Return the text of an acknowledgement; empty if there is none of this name.

    Its first line ends with the sender, where that is not the owner of the session. `columns` is the
    width of the line that quotes the message, 0 where that is not known.
    """
    text = TEXTS.get(ack or "")
    if text is None:
        return ""
    by = f" (from {who})" if (who := sender(message.get("user", ""))) else ""
    template = plain(text if isinstance(text, str) else text(message), can_utf8)
    first, *rest = _filled(template, message, columns and max(1, columns - len(by))).split("\n")
    return "\n".join((first + by, *rest))


def _filled(template: str, message: About, columns: int) -> str:
    """Put the facts of a message into a text of `TEXTS`; what it quotes is cut to one line."""
    number = message.get("number")
    facts = {
        "{number}": f" #{number}" if number else "",
        "{children}": " and ".join(message.get("children") or ("the next subagent",)),
        "{matched}": str(message.get("matched")),
        "{text}": message["text"],
    }
    lead, quote, after = template.partition("{quoted}")
    lead, after = (_PLACE.sub(lambda found: facts[found[0]], part) for part in (lead, after))
    return (cut(lead, message["text"], columns) if quote else lead) + after


def plain(text: str, can_utf8: bool) -> str:
    """Replace the signs of a text by ASCII, unless the terminal has UTF-8."""
    for sign, instead in SIGNS.items() if not can_utf8 else ():
        text = text.replace(sign, instead)
    return text


def cut(lead: str, text: str, columns: int = 0) -> str:
    """Quote a message on one line of `columns` (0: unknown), a longer message up to a word of its own."""
    most = max(SHORT, columns - len(f'{lead} "..."')) if columns else CUT
    line = " ".join(text[: 4 * most].split())
    if len(line) > most or len(text) > 4 * most:
        line = (line[: most + 1].rpartition(" ")[0] or line[:most]) + "..."
    return f'{lead}"{line}"'


TEXTS: dict[str, str | Callable[[About], str]] = {
    "already_stopping": lambda message: (
        "Already stopping.{number} runs next." if message.get("number") else "Already stopping."
    ),
    "finalizing": "The session is ending, so the message was not accepted. Your text: {text}",
    "interrupt_detected": '⚠️ Interrupt detected: "{matched}"',
    "interrupting": lambda message: (
        "Interrupting for{number}: {quoted}" if message.get("number") else "Interrupting."
    ),
    "next_after_stop": "After the stop,{number}: {quoted}",
    "next_turn": "Too late to steer, next is{number}: {quoted}",
    "not_yours": "📥 Queued{number}: {quoted}\nThe running turn is another person's, so this waits.",
    "queued": "📥 Queued{number}: {quoted}",
    "refused": "The message was not accepted. Your text: {text}",
    "revert_hint": "Nothing runs, so this is a message. /revert restores files.",
    "steered": lambda message: (
        'Steering with{number}: {quoted}\n"{matched}" steers.'
        if message.get("matched")
        else "Steering with{number}: {quoted}"
    ),
    "no_subagent": "No subagent of that name works: /agents lists them. Your text: {text}",
    "side_talk": "🤖 Side talk spawned (will notify when ready)",
    "steered_child": "Steering {children} with{number}: {quoted}",
    "stopped": "📥 Queued{number}: {quoted}\nIt was said before the stop, so it waits: /queue resume",
    "subagent_working": "⏳ Subagent working — your message is queued for when it finishes",
    "word_interrupts": (
        '⚠️ Interrupt detected: "{matched}"\n'
        "This turn stops, subagents go on: /stop stops them, too."
    ),
    "word_queued": '📥 Queued{number}: {quoted}\n"{matched}" stopped nothing: /stop stops everything.',
    "word_steered": lambda message: (
        f"Steering {'{children} ' if message.get('children') else ''}with{{number}}: {{quoted}}\n"
        '"{matched}" stopped nothing: /stop stops everything.'
    ),
}
"""The text of each name in `ACKS`; `{quoted}` is the message on one line."""
REJECTIONS: dict[str, str] = {
    "empty": "there is nothing in it",
    "fault": "a fault in the program cut it off",
    "finalizing": "the session is ending",
    "handle_closed": "this handle of the session is closed",
    "in_run": "a workflow's run has no agent of its own that could answer",
    "mailbox_full": "too many messages have not been read yet",
    "no_prompt": "the prompt cannot be used",
    "no_subagent": "no subagent of that name works",
    "not_allowed": "you may not do that here",
    "question_open": "a step asks something",
    "queue_full": "the queue is full",
    "refused": "the routing table refuses it",
    "run_succeeded": "the run has succeeded",
    "session_finalized": "the session is finalized",
    "session_left": "the session was left",
    "session_suspended": "the session is being left",
    "store_failed": "the journal cannot be written",
    "unknown_command": "there is no such command",
}
"""Why a message was not accepted, as people read it, by the `reason` of a `rejected` event."""


def not_accepted(reason: str) -> str:
    """Say that a message was not accepted, and why."""
    return f"the message was not accepted: {REJECTIONS.get(reason, reason)}"


def discarding(session: str, result: str) -> str:
    """Say what becomes of messages that wait in a run that has succeeded or was reverted."""
    how = "was" if result == REVERTED else "has"
    return f"`steersman queue discard {session}` deletes them: the run {how} {result}"


def waiting_text(session: str, *, is_run: bool) -> str:
    """Say how a message to a session that no program has open gets to run."""
    if is_run:
        how = f"`steersman run --resume {session}` resumes it, and its next agent gets the message"
    else:
        how = f"`steersman chat --resume {session}` opens it, and `/queue resume` there runs it"
    return f"It waits, because no program has session {session} open: {how}."


def rejected_text(event: RejectedEvent, *, can_utf8: bool = True) -> str:
    """Return a `rejected` event as text: why, the message, and on a second line the next step."""
    reason = event["reason"]
    hint = f"\n  {hint}" if (hint := event.get("hint")) else ""
    if said := acknowledgement_text(reason, event, can_utf8=can_utf8):
        return f"{said}{hint}"
    text = f"the message was not accepted. Your text: {event['text']}"
    if why := REJECTIONS.get(reason):
        return f"{why[:1].upper()}{why[1:]}, so {text}{hint}"
    return f"{text[:1].upper()}{text[1:]}\n  {reason}{hint}"


# What becomes of it ------------------------------------------------------------------------------


def acknowledgement(
    event: Event, *, can_utf8: bool = True, shows_queued: bool = True, columns: int = 0
) -> str:
    """Return the line for an event, empty if it needs none; plain words without UTF-8.

    `shows_queued` false leaves out the plain acknowledgement of a queued message. A message is quoted on
    one line of `columns` (0: unknown).
    """
    match event["type"]:
        case "accepted" if shows_queued or event["ack"] != "queued":
            text = accepted_text(event, can_utf8=can_utf8, columns=columns)
        case "interrupting":
            who = sender(event.get("user", ""))
            text = f"{who} stops the work." if who and event["cause"] == "stop" else ""
        case "interrupted":
            text = "Stopping current task."
            if done := event["checkpoint"]:
                text += f" Progress saved at checkpoint {done['done']}/{done['total']}."
        case "child_started":
            does = "waits for a place" if event.get("waiting") else "works"
            does = "continues" if event.get("resumed") else does
            text = plain(f"🤖 {event['name']} {does}: {event['task']}", can_utf8)
        case "child_ended":
            end = "stopped" if event.get("resumable") else event["status"]
            # Where more than a subagent is stopped, the `stopped` event names the processes.
            if end == "cancelled" and event["killed"]:
                end = f"{end}. Ended: {_pids(event['killed'])}"
            text = plain(f"🤖 {event['name']} {end}", can_utf8)
        case "side_talk_ended":
            number = event["number"]
            if event.get("resumable"):
                end = f" #{number} stopped: /queue resume continues it, /queue pop {number} removes it"
            else:
                said = event["text"] or event["status"]
                end = f": {said}\n/queue steer {number} brings it into the work"
            text = plain(f"🤖 Side talk{end}", can_utf8)
        case "steered":
            child = f"{event['child']}, " if "child" in event else ""
            text = cut(f"[Steered] {child}#{event['number']}: ", event["text"], columns)
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


# Reverts ------------------------------------------------------------------------------------------


def reverted_text(about: Mapping[str, Any], way: str = "/revert") -> str:
    """Return the text of a `reverted` event or of an answer to `/revert`; `way` is how it is typed."""
    if about.get("reason"):
        return f"Not reverted: {about['reason']}."
    who = sender(about.get("user") or "")
    lines = [*([f"By {who}:"] if who else []), _head(about, way)]
    if about["kept"]:
        lines += _kept(about, way)
    if about["yours"]:
        names = path_names(about["yours"])
        lines.append(f"With what you or others had changed in between: {names}.")
    if about["shared"]:
        lines.append(_shared(about, way))
    lines += [f"Not restored: {note}." for note in about["notes"]]
    return "\n".join(lines)


def _shared(about: Mapping[str, Any], way: str) -> str:
    """Say whose the changes are that may have been anybody's: they were made while a command ran."""
    names = path_names(about["shared"], MOST)
    if about["scope"] == "undo":
        return f"Yours from now on, no longer the agent's: {names}."
    files = [path for path in about["restored"] if not path.endswith("/")]
    is_all = {*files} == {*about["shared"]} and len(files) > 1
    they = "All that were reverted" if about["kept"] else "They"
    who = they if is_all else names
    undo = "" if about.get("dry_run") else f": `{way} undo PATH` brings one back"
    return f"{who} changed while a command ran, by the command or by another person{undo}."


def _head(about: Mapping[str, Any], way: str) -> str:
    restored = about["restored"]
    files = counted_paths(restored)
    if not restored and not about["kept"]:
        if about["scope"] == "undo":
            return "There is no revert to undo."
        if not about["turns"]:
            return "There is nothing to revert."
        more = "" if about.get("dry_run") else f" Again {way} takes back the turn before it."
        return f"There is nothing to revert of {about['turns'][0]}.{more}"
    if about.get("dry_run"):
        turns = f" of {', '.join(about['turns'])}" if about["turns"] else ""
        would = "undo the revert of" if about["scope"] == "undo" else "revert"
        return f"Would {would} {files}{turns}{f': {path_names(restored)}' if restored else ''}."
    if not restored:
        return "Nothing was brought back." if about["scope"] == "undo" else "Nothing was reverted."
    match about["scope"]:
        case "undo":
            return f"Undid the revert of {files}: {path_names(restored)}."
        case "turn" if about.get("original"):
            of = f"\n{', '.join(about['turns'])}: {path_names(restored)}." if about["turns"] else ""
            return f"Reverted {files}. Original state restored.{of}"
        case _:
            return f"Reverted {files}: {path_names(restored)}."


def _kept(about: Mapping[str, Any], way: str) -> list[str]:
    """List the paths that were not reverted, by the reason."""
    reasons: dict[str, list[str]] = {}
    for path in about["kept"]:
        reasons.setdefault(about["why"][path], []).append(path)
    kept = "Would keep" if about.get("dry_run") else "Kept"
    lines = [
        f"{kept} {path_names(paths, MOST)}: {why if len(paths) == 1 else _of_each(why)}."
        for why, paths in reasons.items()
    ]
    if about["scope"] == "undo":
        hint = f"`{way} undo --force` undoes what it can."
    else:
        hint = f"`{way} --force` reverts what it can."
    return [*lines, hint] if about["turns"] and FORCIBLE.intersection(reasons) else lines


def _of_each(why: str) -> str:
    return why.replace("it ", "each ", 1) if why.startswith("it ") else why


_SPLITS = lazy_pattern(r"[\s'\"\\]")
"""What a word that is typed cannot have outside of quotes."""


def _typed(path: str) -> str:
    if not path.isprintable():
        return json.dumps(path)
    return shlex.quote(path) if _SPLITS.search(path) else path


def path_names(paths: Sequence[str], most: int = NAMED) -> str:
    """Name files or sessions, at most so many: each as it can be typed behind a command."""
    shown = list(map(_typed, paths[:most]))
    more = len(paths) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more > 0 else "")
