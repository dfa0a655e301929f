"""What a room is told of its session: events of the journal become messages, each with its own key."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import cast

from ..acknowledgement import acknowledgement, reverted_text
from ..event_feed import Event
from ..events.contract import Event as EventFields
from ..events.contract import RecoveredEvent
from ..formats import call_words
from ..outcome import Outcome
from ..saved_queues import announce
from ..terminal import exposed
from .book import Book, Letter, Subject
from .parts import parts
from .platform import Limits, Outgoing

SHOWN = 1_500
"""Characters of a tool call that a question shows: what is left out is said."""
_GOAL_ENDS = ("achieved", "paused", "impossible", "cleared")


def client_id(gateway: str, room: str, message: str) -> str:
    """Return the key under which a session knows a message of a room."""
    return f"chat:{gateway}:{room}:{message}"


def stream_key(session: str, turn: str) -> str:
    """Return the key of the message in which a turn's answer is shown while it is written."""
    return f"{session}:{turn}:stream"


def notes(
    key: str, room: str, text: str, limits: Limits, about: Subject | None = None
) -> list[Letter]:
    """Return a text as messages with keys that begin so, in answer to what it is about."""
    found = about or Subject(message="")
    return [
        Letter(
            outgoing=Outgoing(
                key=f"{key}:{number}",
                room=room,
                text=part,
                to=found.message,
                thread=found.thread,
                mentions=found.sender,
            ),
            item=found.item,
            number=found.number,
        )
        for number, part in enumerate(parts(text, limits))
    ]


class Narrator:
    """Tells one room about one session. `outcome` returns what became of an item."""

    def __init__(
        self,
        book: Book,
        gateway: str,
        room: str,
        session: str,
        limits: Limits,
        outcome: Callable[[str], Awaitable[Outcome]],
    ) -> None:
        self._book = book
        self._ours = client_id(gateway, room, "")
        self._room = room
        self._session = session
        self._limits = limits
        self._outcome = outcome

    async def letters(self, event: Event) -> list[Letter]:
        """Return what is to be said of an event of the journal."""
        match event.type:
            case "accepted":
                return await self._accepted(event)
            case "turn_ended":
                return await self._answer(event)
            case "steered" | "requeued":
                about = await self._book.said(self._room, str(event["id"]))
                return self._notes(event, _said(event), about)
            case "side_talk_ended":
                about = await self._book.said(self._room, str(event["item"]))
                return self._notes(event, _said(event), about)
            case "interrupted" | "stopped":
                return self._notes(event, _said(event))
            case "question":
                return self._question(event)
            case "answered":
                return self._notes(event, _answered(event))
            case "reverted":
                return self._notes(event, reverted_text(event.data))
            case "recovered":
                return self._notes(event, announce(cast("RecoveredEvent", event.data), time.time()))
            case "error":
                return self._notes(event, f"error: {event['text']}\n{event['hint']}".strip())
            case "goal" if event["state"] in _GOAL_ENDS:
                why = event["detail"] or event["reason"] or ""
                return self._notes(
                    event, f"Goal {event['state']}: {event['text']}{f' ({why})' if why else ''}"
                )
            case _:
                return []

    def _notes(self, event: Event, text: str, about: Subject | None = None) -> list[Letter]:
        key = f"{self._session}:{event.seq}:{event.type}"
        return notes(key, self._room, text, self._limits, about)

    async def _accepted(self, event: Event) -> list[Letter]:
        """Acknowledge a message of the room; say what was said elsewhere."""
        key = str(event["client_id"] or "")
        if key.startswith(self._ours):
            message = key.removeprefix(self._ours)
            await self._book.became(self._room, message, str(event["id"]), event["number"])
            about = await self._book.subject(self._room, message)
            text = "" if event.taken_as == "turn" else _said(event)
            return self._notes(event, text, about)
        if event.get("user") and event.taken_as in ("turn", "queue", "steer"):
            return self._notes(event, f"{event['user']} said elsewhere: {event['text']}")
        return []

    async def _answer(self, event: Event) -> list[Letter]:
        """Say the answer of a turn, in the place where it was shown while it was written."""
        if event["status"] == "interrupted":
            return []
        item = str(event["item"])
        about = await self._book.said(self._room, item)
        outcome = await self._outcome(item)
        if event["status"] == "failed":
            return self._notes(event, f"That went wrong: {event.get('reason', '')}", about)
        letters = self._notes(event, outcome.text, about)
        shown = stream_key(self._session, str(event["turn"]))
        return [
            Letter(
                outgoing=_as_answer(letter.outgoing),
                replaces=shown if number == 0 else "",
                item=letter.item,
                number=letter.number,
            )
            for number, letter in enumerate(letters)
        ]

    def _question(self, event: Event) -> list[Letter]:
        """Ask the room; what is consented to is shown with everything that hides made visible."""
        asked = str(event["id"])
        if event["kind"] == "permission":
            words = exposed(" ".join(call_words(event["arguments"])))
            left = len(words) - SHOWN
            shown = f"{words[:SHOWN]} … {left} more characters" if left > 0 else words
            text = f"May I run `{event['tool']}`?\n{shown}"
        else:
            text = str(event["arguments"]["text"])
        options = tuple(event["options"])
        ways = ", ".join(options) or "your answer"
        letters = self._notes(event, f"{text}\nAnswer with `!answer {asked} …`: {ways}")
        last = letters[-1]
        asking = Outgoing(
            key=last.outgoing.key,
            room=self._room,
            text=last.outgoing.text,
            kind="question",
            choices=options,
        )
        return [*letters[:-1], Letter(outgoing=asking, question=asked)]


def _said(event: Event) -> str:
    """Return the words of a terminal for an event."""
    return acknowledgement(cast("EventFields", event.data))


def _as_answer(sent: Outgoing) -> Outgoing:
    return Outgoing(
        key=sent.key,
        room=sent.room,
        text=sent.text,
        kind="answer",
        to=sent.to,
        thread=sent.thread,
        mentions=sent.mentions,
    )


def _answered(event: Event) -> str:
    choice = str(event["choice"])
    said = {"allow": "allowed", "always": "allowed from now on", "deny": "denied"}
    return f"Question {event['id']}: {said.get(choice, choice)}."
