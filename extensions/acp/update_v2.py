"""Updates as version 2 of the protocol has them.

A message has an id and is told when it enters the conversation, what the session does is an update of its
own (`state_update`), and what is not the agent's word is a notice.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from acp.schema import SessionConfigOptionSelect
from acp.utils import serialize_params
from pydantic import BaseModel

from ...gateway.events.contract import (
    AnsweredEvent,
    CompactedEvent,
    Event,
    QuestionEvent,
    TurnEndedEvent,
)
from ...journal.record import SessionRecord
from ...ports.models.loose_json import table, tables
from .update import KEY, EditorUpdates, Update, text_of

Params = dict[str, Any]


class UpdatesV2(EditorUpdates):
    """Translates the events of one session into updates of version 2."""

    def __init__(self, session: str, folder: Path, words: Callable[[Event], str]) -> None:
        super().__init__(session, folder, words)
        self._is_running = False
        self._aside: set[str] = set()

    # Events ---------------------------------------------------------------------------------------

    def updates(self, event: Event) -> list[Update]:
        """Return the updates of an event, in order."""
        is_own = event["session"] == self._session
        match event["type"]:
            case "queue" if is_own:
                for gone in event.get("removed", ()):
                    self.messages.read(gone)
                return self.note(self._words(event))
            case "accepted" if is_own:
                is_sent = self.messages.accept(event["id"], event["client_id"], event["text"])
                told = self._accepted(event["id"], event["as"]) if is_sent else []
                return [*told, *self.note(self._words(event))]
            case "turn_started" if is_own:
                super().updates(event)
                self._is_running = True
                return [state("running"), *self._entered(event["item"])]
            case "steered" if is_own:
                return self._entered(event["id"])
            case "requeued" if is_own:
                self.messages.hand_back(event["id"], event["item"])
                return self.note(self._words(event))
            case "rejected":
                self.messages.refuse(event["client_id"])
                return self.note(self._words(event))
            case "result" if is_own and str(event["client_id"]).startswith(KEY):
                ended = [] if self._is_running else [state("idle", "end_turn")]
                return [*self.note(self._words(event)), *ended]
            case "turn_ended" if is_own:
                super().updates(event)
                self._is_running = False
                return _idle(event)
            case "stopped" if is_own and not self._is_running:
                return [state("idle", "cancelled")]
            case "tool_ended" if event["status"] == "killed":
                told = [one for update in super().updates(event) for one in self.told(update)]
                return [{**one, "status": "cancelled"} for one in told if isinstance(one, dict)]
            case "compacted" if is_own:
                return [_compaction(event)]
            case "child_started":
                if event.get("relation", "foreground_child") != "foreground_child":
                    self._aside.add(str(event.get("id")))
                return []
            case "question" | "answered":
                told = [one for update in super().updates(event) for one in self.told(update)]
                return [*told, *self._waits(event)]
            case _:
                return [one for update in super().updates(event) for one in self.told(update)]

    def _accepted(self, item: str, taken: str) -> list[Update]:
        """Return the message of a command or of a side talk, which is read at once."""
        if taken not in ("command", "side_talk"):
            return []
        starts = taken == "command" and not self._is_running
        return [*([state("running")] if starts else []), *self._entered(item)]

    def _entered(self, item: str) -> list[Update]:
        """Return the message that enters the conversation; none for one that nobody sent."""
        name, text = self.messages.read(item)
        content = [{"type": "text", "text": text}]
        update = {"sessionUpdate": "user_message", "messageId": name, "content": content}
        return [update] if text else []

    def _waits(self, event: QuestionEvent | AnsweredEvent) -> list[Update]:
        """Return what the session does while a call of its own work asks, and afterwards."""
        if not self._is_running or event["session"] in self._aside:
            return []
        return [state("requires_action" if event["type"] == "question" else "running")]

    # What is told outside of events ---------------------------------------------------------------

    def note(self, text: str) -> list[Update]:
        """Return a notice."""
        title, _, more = text.strip().partition("\n")
        if not title:
            return []
        severity = "error" if title.startswith("error: ") else "info"
        told: Params = {"sessionUpdate": "notice", "severity": severity, "title": title}
        return [{**told, "description": more} if more else told]

    def settings(self, options: list[SessionConfigOptionSelect]) -> list[Update]:
        """Return the update that tells the settings of the session."""
        return [{"sessionUpdate": "config_option_update", "configOptions": options_of(options)}]

    def state_of(self, record: SessionRecord) -> list[Update]:
        """Return the update of what a session does now, and know of the messages that wait."""
        self.messages.know(record.queue.live())
        self._is_running = record.running is not None
        if record.running is None:
            return [state("idle")]
        asks = any(call.state == "asking" for call in record.running.calls.values())
        return [state("requires_action" if asks else "running")]

    def told(self, update: Update) -> list[Update]:
        """Return an update of version 1 as this version has it."""
        about = serialize_params(update) if isinstance(update, BaseModel) else dict(update)
        match about["sessionUpdate"]:
            case "user_message_chunk":
                content = [about["content"]]
                return [{**about, "sessionUpdate": "user_message", "content": content}]
            case "tool_call" | "tool_call_update":
                return [{**call_of(about), "sessionUpdate": "tool_call_update"}]
            case "plan":
                plan = {"type": "items", "planId": "progress", "entries": about["entries"]}
                return [{"sessionUpdate": "plan_update", "plan": plan}]
            case "available_commands_update":
                return [{**about, "availableCommands": commands_of(about)}]
            case _:
                return [about]


def state(name: str, reason: str = "") -> Params:
    """Return the update of what a session does."""
    about = {"sessionUpdate": "state_update", "state": name}
    return {**about, "stopReason": reason} if reason else about


def _idle(event: TurnEndedEvent) -> list[Update]:
    """Return the update of a turn's end; that of a stopped one comes when its processes are dead."""
    match event["status"]:
        case "interrupted":
            return []
        case "completed":
            return [state("idle", "end_turn")]
        case _:
            error = {"code": -32603, "message": event.get("reason") or "the turn failed"}
            return [{**state("idle", "error"), "error": error}]


def _compaction(event: CompactedEvent) -> Update:
    told: Params = {"sessionUpdate": "compaction_update", "compactionId": f"c{event['seq']}"}
    if event["reason"]:
        return {**told, "status": "failed", "error": event["reason"]}
    summary = [{"type": "text", "text": event["summary"]}] if event["summary"] else []
    return {**told, "status": "completed", "summary": summary}


def commands_of(about: Params) -> list[Params]:
    """Return the commands of an update."""
    found: list[Params] = []
    for command in tables(about.get("availableCommands")):
        hint = table(command.get("input")).get("hint")
        given = {"input": {"type": "text", "hint": hint}} if hint else {}
        kept = {key: command[key] for key in ("name", "description")}
        found.append({"type": "command", **kept, **given})
    return found


def options_of(options: list[SessionConfigOptionSelect]) -> list[Params]:
    """Return the settings of a session."""
    plain = (option.model_dump(mode="json", by_alias=True, exclude_none=True) for option in options)
    return [{"configId": option.pop("id"), **option} for option in plain]


def call_of(about: Params) -> Params:
    """Return a tool call with its changes of files."""
    content = about.get("content")
    if content is None:
        return about
    return {**about, "content": [_change(one) if one["type"] == "diff" else one for one in content]}


def _change(diff: Params) -> Params:
    """Return a change of one file, with a patch where the whole file is known."""
    path, old, new = str(diff["path"]), diff.get("oldText"), str(diff["newText"])
    before = text_of(Path(path))
    operation = "add" if before is None and not old else "modify"
    told: Params = {"type": "diff", "changes": [{"operation": operation, "path": path}]}
    if old is not None and before is not None and before != old:  # a part of it is replaced
        if old not in before:
            return told  # it is so already
        new = before.replace(old, new)
    lines = difflib.unified_diff(
        (before or "").splitlines(keepends=True),
        new.splitlines(keepends=True),
        f"a{path}" if before is not None else "/dev/null",
        f"b{path}",
    )
    text = "".join(
        line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n" for line in lines
    )
    head = f"diff --git a{path} b{path}\n"
    return {**told, "patch": {"format": "git_patch", "text": head + text}} if text else told
