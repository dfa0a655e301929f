"""A session that another process runs, as if it were here: what a face needs of it, and nothing else.

Events come through one connection, what is said goes through another, in order and from a thread of
its own, so that no face ever waits for a busy owner. Leaving leaves the session as it is.
"""

from __future__ import annotations

import queue
import secrets
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..journal.codec import decode
from ..journal.entries import QuestionAsked, ToolIntended
from ..journal.goal_record import GoalsRecord
from ..journal.lock import Owner
from ..journal.queue_record import QueueRecord
from ..journal.record import SessionRecord
from ..machines.classification import Classification, classify
from ..machines.disposition import Intent
from ..machines.errors import SteersmanError
from ..machines.messages import Answer
from ..machines.words import Words
from .commands.registry import COMMANDS
from .commands.reply import Reply
from .conversation import TYPES
from .events.contract import Event, Narrator, queue_view, translate
from .events.goal import goals_view
from .remote import Remote
from .router import Hub

# What somebody who comes to a running session is told first: how it is, as events, from its dump


def how_it_is(data: dict[str, Any], now: float) -> Iterator[Event]:
    """Yield the events; `now` in seconds since the epoch."""
    yield {"type": "session_started", "resumed": True, "folder": data["folder"]}
    turn = data["turns"].get(data["turn"], {})
    if data["state"] == "busy" and turn:
        elapsed = round(max(0.0, now - turn["started"]), 3)
        about = {"item": turn["item"], "number": turn["number"], "elapsed": elapsed}
        yield {"type": "turn_started", "turn": turn["id"], **about}
        yield from _calls(turn)
    for child in data["children"].values():
        if inner := data["subagents"].get(child["name"]):
            about = {name: child[name] for name in ("name", "task", "agent", "relation")}
            yield {"type": "child_started", **about, "id": child["session"], "waiting": False}
            whose = {"session": child["session"], "parent": data["id"]}
            for event in _calls(inner["turns"].get(inner["turn"], {})):
                yield {**event, **whose}
    goals = decode(GoalsRecord, data["goals"])
    if goals.goal is not None and not goals.goal.is_over:
        yield {"type": "goal", **goals_view(goals)}
    yield {"type": "queue", **queue_view(decode(QueueRecord, data["queue"]))}


def _calls(turn: dict[str, Any]) -> Iterator[Event]:
    """Tell of the calls of a turn that run, or are asked about."""
    for call in turn.get("calls", {}).values():
        about = (call["id"], call["tool"], call["arguments"])
        if call["state"] == "asking":
            asked = QuestionAsked(turn["id"], about[0], call["question"], *about[1:])
            yield from translate(asked, SessionRecord())
        elif call["state"] in ("running", "stopping"):
            yield from translate(ToolIntended(turn["id"], 0, *about), SessionRecord())


LEAVES = "exit"
"""The one command that is carried out here: it leaves, and the session goes on."""
PATIENCE = 5.0
"""Seconds that what was said last may take, on leaving."""
OVER = ("session_suspended", "session_finalized")


class Attached:
    """One terminal's place at a session elsewhere; stands where a `Conversation` stands.

    `on_end` is called, in a thread of its own, when the owner goes or the session is over.
    """

    def __init__(
        self,
        state: Path,
        session: str,
        owner: Owner,
        words: Words,
        hub: Hub,
        user: str,
        on_end: Callable[[], None],
    ) -> None:
        self.session = session
        self.user = user
        self._words, self._hub, self._on_end = words, hub, on_end
        self._key = f"a-{secrets.token_hex(4)}"
        self._made = 0
        self._is_closing = False
        self._heard = Remote.connect(state, session, owner)
        self._spoken = Remote.connect(state, session, owner)
        self._work: queue.SimpleQueue[tuple[str, dict[str, Any]] | None] = queue.SimpleQueue()
        self._narrator = Narrator(session, hub.publish, time.time)
        self._talking = threading.Thread(target=self._talk, name="attached-talk", daemon=True)

    def start(self) -> None:
        """Tell how the session is, then whatever happens in it. Raises `SteersmanError`."""
        events = self._heard.events()  # first, so that nothing happens in between unheard
        data: dict[str, Any] = self._spoken.call("inspect")
        for event in how_it_is(data, time.time()):
            self.narrate(event.pop("type"), **event)
        threading.Thread(
            target=self._listen, args=(events, data["seq"]), name="attached-hear", daemon=True
        ).start()
        self._talking.start()

    # What a face says -------------------------------------------------------------------------------

    def say(
        self, text: str, explicit: str = "auto", client_id: str = "", user: str = ""
    ) -> Reply | None:
        """Say something; only leaving is answered here, events tell the rest."""
        found = classify(text, self._words, explicit, COMMANDS)
        if found.intent is Intent.COMMAND and found.command == LEAVES:
            return Reply(True, leaves=True)
        self._made += 1
        key = client_id or f"{self._key}-{self._made}"
        said = {"text": text, "as": explicit, "client_id": key, "user": user or self.user}
        self._work.put(("say", said))
        return None

    def classify(self, text: str) -> Classification:
        """Say what a text is, without saying it."""
        return classify(text, self._words, "auto", COMMANDS)

    def would_stop(self, text: str) -> bool:
        """Whether a text is a command, or says to stop, rather than something to talk about."""
        intent = self.classify(text).intent
        return intent is Intent.COMMAND or TYPES.get(intent) == "interrupt"

    def answer(self, question: str, choice: str, reason: str = "") -> bool:
        """Answer a question; what is wrong with the answer comes as an event."""
        params = {"id": question, "choice": choice, "reason": reason, "user": self.user}
        self._work.put(("answer", params))
        return True

    def ask(self, message: Answer) -> dict[str, Any]:
        """Send on the one message that faces ask themselves."""
        return {"ok": self.answer(message.question, message.choice, message.reason)}

    def is_quiet(self) -> bool:
        """Nobody has to wait for the session before leaving it."""
        return True

    def stop_asking(self) -> None:
        """Whoever has the session open goes on answering."""

    def can_ask(self) -> bool:
        """Whoever is attached can answer."""
        return True

    def narrate(self, kind: str, /, **fields: Any) -> None:
        """Tell the face something that no actor knows of."""
        self._narrator.say(kind, **fields)

    def leave(self, cause: str = "exit") -> None:
        """Say what is on its way, then hang up; the session goes on. Idempotent."""
        if self._is_closing:
            return
        self._is_closing = True
        self._work.put(None)
        if self._talking.is_alive():
            self._talking.join(PATIENCE)
        self._heard.close()
        self._spoken.close()

    # Threads ----------------------------------------------------------------------------------------

    def _talk(self) -> None:
        while (work := self._work.get()) is not None:
            method, params = work
            try:
                self._spoken.call(method, **params)
            except (SteersmanError, OSError, ValueError) as error:
                hint = getattr(error, "hint", "")
                self.narrate("error", code="not_said", text=str(error), hint=hint)

    def _listen(self, events: Iterator[Event], told: int) -> None:
        """Pass events on; what is in the journal up to entry `told` is known."""
        try:
            for event in events:
                is_known = event["session"] == self.session and (event["seq"] or told + 1) <= told
                if not is_known:
                    self._tell(event)
                if event["type"] in OVER and event["session"] == self.session:
                    break
        except (SteersmanError, OSError, ValueError):
            pass  # it went, or we did
        if not self._is_closing:
            self._on_end()

    def _tell(self, event: Event) -> None:
        """Pass an event on; what others say is told with their words, what we said is known here."""
        key = str(event.get("client_id") or "")
        if event["type"] == "notice" and key.startswith(self._key):
            return
        is_message = event["type"] == "accepted" and event["as"] != "command"
        if is_message and not key and event["text"]:
            who = event.get("user") or "there"
            self.narrate("notice", text=f"{who}: {event['text']}")
        self._hub.publish(event)
