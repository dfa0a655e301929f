"""The messages that a room gets of its session's events, each with a key of its own."""

from __future__ import annotations

import asyncio
import json
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, cast

from msgspec.structs import replace

from ...machines.errors import SteersmanError
from ..commands.registry import NAMES
from ..events.contract import Event as EventFields
from ..events.contract import RecoveredEvent
from ..follow import Event
from ..library import SessionHandle
from ..views.saved_queues import announce
from ..wording.acknowledgement import acknowledgement, reverted_text
from ..wording.formats import call_words, form_lines
from ..wording.terminal import exposed
from .gateway_store import OutboxMessage, Subject
from .room import Room

SHOWN = 1_500
"""Characters of a tool call that a question shows: what is left out is said."""
_COMMAND = re.compile(rf"(?<![\w/.])/({'|'.join(sorted(NAMES))})(?![\w/.-])")
_GOAL_ENDS = ("achieved", "paused", "impossible", "cleared")
_CHOICES = {
    **{"allow": "allowed", "always": "allowed from now on", "deny": "denied"},
    **{"change": "let run with other arguments", "answer": "answered in its place"},
}


def stream_key(session: str, turn: str) -> str:
    """Return the key of the message in which a turn's answer is shown while it is written."""
    return f"{session}:{turn}:stream"


class EventMessages:
    """Writes the messages for one room about its session."""

    def __init__(self, room: Room, session: SessionHandle) -> None:
        self._room, self._store, self._session = room, room.store, session

    async def messages(self, event: Event) -> list[OutboxMessage]:
        """Return what is to be said of an event of the journal."""
        match event.type:
            case "accepted":
                return await self._accepted(event)
            case "turn_ended":
                return await self._answer(event)
            case "steered" | "requeued" | "side_talk_ended":
                item = event["item" if event.type == "side_talk_ended" else "id"]
                about = await self._store.said(self._room.name, str(item))
                return self._notes(event, _said(event), about)
            case "interrupted" | "stopped":
                return self._notes(event, _said(event))
            case "question":
                return await self._question(event)
            case "answered":
                await self._store.close(self._room.name, str(event["id"]))
                choice = str(event["choice"])
                said = _CHOICES.get(choice, choice)
                return self._notes(event, f"Question {event['id']}: {said}.")
            case "reverted":
                return self._notes(event, reverted_text(event.data))
            case "recovered":
                found = cast("RecoveredEvent", event.data)
                is_resumed = self._room.options.on_restart == "resume"
                said = announce(found, time.time(), sign="!", is_resumed=is_resumed)
                return self._notes(event, said)
            case "error":
                return self._notes(event, f"error: {event['text']}\n{event['hint']}".strip())
            case "goal" if event["state"] in _GOAL_ENDS:
                why = event["detail"] or event["reason"]
                because = f" ({why})" if why else ""
                return self._notes(event, f"Goal {event['state']}: {event['text']}{because}")
            case _:
                return []

    def _notes(self, event: Event, text: str, about: Subject | None = None) -> list[OutboxMessage]:
        return self._room.write(event_key(event), text, about)

    async def _accepted(self, event: Event) -> list[OutboxMessage]:
        """Acknowledge a message of the room; say what was said elsewhere."""
        key, room = str(event["client_id"] or ""), self._room
        if key.startswith(room.ours):
            message = key.removeprefix(room.ours)
            await self._store.became(room.name, message, str(event["id"]), event["number"])
            about = await self._store.subject(room.name, message)
            text = "" if event.taken_as == "turn" else _said(event)
            return self._notes(event, text, about)
        if event.get("user") and event.taken_as in ("turn", "queue", "steer"):
            return self._notes(event, f"{event['user']} said elsewhere: {event['text']}")
        return []

    async def _answer(self, event: Event) -> list[OutboxMessage]:
        """Say the answer of a turn, in the place where it was shown while it was written."""
        if event["status"] == "interrupted":
            return []
        item = str(event["item"])
        about = await self._store.said(self._room.name, item)
        outcome = await self._session.outcome(item)
        if event["status"] == "failed":
            said = f"That went wrong: {event.get('reason', '')}"
            again = "\n`/queue resume` goes on with it." if event.get("resumable") else ""
            return self._notes(event, said + again, about)
        messages = self._room.write(event_key(event), outcome.text, about, kind="answer")
        shown = stream_key(self._session.id, str(event["turn"]))
        return [replace(messages[0], replaces=shown), *messages[1:]] if messages else []

    async def _question(self, event: Event) -> list[OutboxMessage]:
        """Ask the room; what is consented to is shown with everything that hides made visible."""
        asked = str(event["id"])
        asker = f"{await self._asker(event)} asks: " if event.get("parent") else ""
        options = tuple(event["options"])
        ways = ", ".join(options) or "your answer"
        if event["kind"] == "hold":  # a button has no words
            options = ("allow", "deny")
            ways = f"allow, deny, change {json.dumps(event['arguments'])}, answer TEXT"
        if event["kind"] == "form":
            options, ways = ("deny",), "answer TEXT, deny"
            text = asker + "\n".join(form_lines(event["arguments"]))
        elif event["kind"] != "ask":
            words = exposed(" ".join(call_words(event["arguments"])))
            left = len(words) - SHOWN
            shown = f"{words[:SHOWN]} … {left} more characters" if left > 0 else words
            why = f"\n{exposed(event['why'])}" if event.get("why") else ""
            text = f"{asker}May I run `{event['tool']}`?\n{shown}{why}"
        else:
            text = f"{asker}{event['arguments']['text']}"
        said = f"{text}\nAnswer with `!answer {asked} …`: {ways}"
        messages = self._room.write(event_key(event), said, is_whole=True)
        asking = replace(messages[-1].outgoing, kind="question", choices=options)
        return [*messages[:-1], OutboxMessage(outgoing=asking, question=asked)]

    async def _asker(self, event: Event) -> str:
        """Return the name of the subagent that asks, with those above it."""
        with suppress(SteersmanError):  # the session was left meanwhile
            state = await asyncio.to_thread(self._session.inspect)
            if path := _path_to(state, event.data["session"]):
                return "/".join(path)
        return "A subagent"


def _said(event: Event) -> str:
    """Return the words for an event."""
    return for_a_room(acknowledgement(cast("EventFields", event.data)))


def event_key(event: Event) -> str:
    """Return what distinguishes an event of a session's journal; a subagent's has no number."""
    number = event.seq if event.seq is not None else event["id"]
    return f"{event.data['session']}:{number}:{event.type}"


def for_a_room(text: str) -> str:
    """Write the commands in a text for a terminal as they are given in a room: `!queue resume`."""
    return _COMMAND.sub(r"!\1", text)


def _path_to(state: Mapping[str, Any], session: str) -> list[str]:
    """Return the names that lead to the session of a subagent; empty if it is not there."""
    for name, child in state["children"].items():
        if child["session"] == session:
            return [name]
    for name, inner in state.get("subagents", {}).items():
        if path := _path_to(inner, session):
            return [name, *path]
    return []
