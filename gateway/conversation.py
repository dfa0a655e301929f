"""One client's place at a session: say something, ask something, leave.

Every face (terminal, JSON lines, and whatever comes) goes through this and nothing else. What is said
is classified here, by a pure function, before it enters a mailbox.
"""

from __future__ import annotations

import os
import re
import threading
from collections.abc import Callable
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any

from ..actors.runtime import Runtime
from ..journal.codec import decode
from ..journal.queue_record import ItemRecord
from ..journal.record import SessionRecord
from ..machines.attachment import Attachment
from ..machines.classification import Classification, addressee, classify
from ..machines.delegation import SideTalk
from ..machines.disposition import Intent
from ..machines.errors import AdmissionRefused, UnknownSession, UsageError
from ..machines.messages import Answer, Message, UserMessage
from ..machines.orders import Inspect
from ..machines.words import Words
from ..ports.attachment import MOST, attach
from ..ports.tools.permission import PermissionDecision
from .commands.model import Models
from .commands.registry import COMMANDS
from .commands.reply import Reply
from .dumps.dump import Traces, dump_live
from .events.contract import Narrator, queue_view
from .redaction import Redactor
from .router import Router
from .shelf import Shelf

_SLASH = re.compile(r"/[A-Za-z][A-Za-z-]*(\s|$)")

TYPES = {
    Intent.STEER_WORD: "steer",
    Intent.EXPLICIT_STEER: "steer",
    Intent.INTERRUPT_BARE: "interrupt",
    Intent.INTERRUPT_MORE: "interrupt",
    Intent.EXPLICIT_INTERRUPT: "interrupt",
    Intent.REVERT: "interrupt",
}


class Conversation:
    """A session as one client has it; calls come from the client's own thread.

    `narrator_of` gives a session's voice on the event bus; `open_another` begins a new session in
    the same folder with the same agent and returns its id.
    """

    def __init__(
        self,
        runtime: Runtime,
        session: str,
        words: Words,
        narrator_of: Callable[[str], Narrator],
        open_another: Callable[[], str],
        user: str = "",
    ) -> None:
        self.runtime = runtime
        self.session = session
        self.user = user
        self._words = words
        self._narrator_of = narrator_of
        self._open_another = open_another
        self.shelf: Shelf | None = None
        self.router: Router | None = None
        self.models: Models | None = None
        self.room = MOST
        self.take_up: Callable[[str], str] | None = None
        self._commands = 0
        self._lock = threading.Lock()
        self._looking = threading.Lock()
        self._traces: Traces = {}

    def say(
        self, text: str, explicit: str = "auto", client_id: str = "", user: str = ""
    ) -> Reply | None:
        """Say something; returns a reply for a slash command, else nothing: events tell the rest."""
        found, to = classify(text, self._words, explicit, COMMANDS), ""
        if found.intent is Intent.COMMAND:
            says = COMMANDS[found.command].says
            if not says or not found.argument:
                return self._command(found, client_id)
            if says == "side_talk":
                self._side_talk(found.argument, client_id, user)
                return None
            to, text = addressee(found.argument) if says == "steer" else ("", found.argument)
            explicit = says
            found = classify(text, self._words, explicit, COMMANDS)
        if explicit == "auto" and _SLASH.match(text):
            self._reject("unknown_command", text, client_id, _nearest(text))
            return None
        kind: Any = TYPES.get(found.intent, "normal")
        message = UserMessage(
            kind,
            text,
            found.intent,
            found.matched,
            text if found.says_more else "",
            user=user or self.user,
            client_id=client_id,
            said=self.runtime.next_said(),
            to=to,
            revert=found.revert,
            attached=self.attached(text),
        )
        self._post(message, text, client_id)
        return None

    def attached(self, text: str) -> tuple[Attachment, ...]:
        """Read what a text names by `@path`, in the session's folder, under its permissions."""
        live = self.runtime.sessions.get(self.session)
        if live is None:
            return ()
        folder, rules = Path(live.record.folder), live.profile.permissions

        def ask(tool: str, path: str) -> PermissionDecision:
            return rules.decide(tool, {"path": path}, folder, live.toolbook.allowed)

        return attach(text, folder, ask, self.room)

    def _side_talk(self, text: str, client_id: str, user: str) -> None:
        """Ask something beside the work."""
        message = SideTalk(text, user or self.user, client_id)
        self._post(message, text, client_id)

    def _post(self, message: Message, text: str, client_id: str) -> None:
        try:
            self.runtime.tell(self.session, message)
        except AdmissionRefused as refusal:
            self._reject("mailbox_full", text, client_id, refusal.hint)
        except UnknownSession:  # somebody ended it from elsewhere
            self._reject("session_finalized", text, client_id, "`steersman chat` begins another")

    def classify(self, text: str, explicit: str = "auto") -> Classification:
        """Say what a text is, without saying it."""
        return classify(text, self._words, explicit, COMMANDS)

    def would_stop(self, text: str) -> bool:
        """Whether a text is a command, or says to stop, rather than something to talk about."""
        intent = self.classify(text).intent
        return intent is Intent.COMMAND or TYPES.get(intent) == "interrupt"

    def answer(self, question: str, choice: str, reason: str = "") -> bool:
        """Answer a question: `choice` is allow, always or deny. False when it is not open."""
        return bool(self.ask(Answer(question, choice, reason)).get("ok"))

    def ask(self, message: Message) -> dict[str, Any]:
        """Send a message to the session and return its reply."""
        reply: dict[str, Any] | None = self.runtime.ask(self.session, message)
        return reply or {"ok": True}

    def inspect(self) -> dict[str, Any]:
        """Return the session's state as plain data, without secrets or terminal escapes."""
        with self._looking:
            return self.redacted(dump_live(self.runtime, self.session, self._traces))

    def redacted(self, data: dict[str, Any]) -> dict[str, Any]:
        """Take secrets and terminal escapes out of data."""
        shown: dict[str, Any] = Redactor(os.environ).data(data)
        return shown

    def record(self) -> SessionRecord:
        """Return the state after all that was said: through the session, through its queue."""
        self.runtime.inspect(self.session, is_last=True)
        return decode(SessionRecord, self.runtime.inspect(self.session, is_last=True))

    def queue(self, *, is_all: bool = False) -> dict[str, Any]:
        """Return the queue as `{session, state, items}`; `is_all`: with what was replaced."""
        record = decode(SessionRecord, self.runtime.inspect(self.session, is_last=True))
        return {"session": self.session, **queue_view(record.queue, is_all=is_all)}

    def item_of(self, client_id: str) -> ItemRecord | None:
        """Return what a message with this key became; none if it was refused."""
        self.runtime.ask(self.session, Inspect(is_last=True, is_of_queue=True))
        queue = self.record().queue
        return queue.items.get(queue.clients.get(client_id, ""))

    def is_quiet(self) -> bool:
        """Whether nothing runs and nothing that waits will run by itself."""
        return self.session not in self.runtime.sessions or self.record().is_quiet

    def narrate(self, kind: str, **fields: Any) -> None:
        """Publish an event of this session that no actor knows of."""
        self._narrator_of(self.session).say(kind, **fields)

    @property
    def is_open(self) -> bool:
        """Whether the session still lives here: another terminal may have finalized it."""
        return self.session in self.runtime.sessions

    def can_ask(self) -> bool:
        """Whether somebody can answer questions."""
        live = self.runtime.sessions.get(self.session)
        return live is not None and live.environment.policy.can_ask

    def stop_asking(self) -> None:
        """From now on nobody answers questions: what would be asked is denied."""
        for live in self.runtime.family(self.session):
            amend = partial(live.environment.amend, can_ask=False)
            self.runtime.loop.call_soon_threadsafe(amend)

    def renew(self) -> None:
        """Finalize this session and begin another in its place."""
        before = self.session
        self.session = self._open_another()
        self.runtime.finalize(before, "new")

    def switch(self, session: str) -> None:
        """Take up another session, and leave this one. Raises `SteersmanError`: then it stays."""
        if self.take_up is None:
            raise UsageError("another session cannot be taken up here", "`steersman chat --resume`")
        before, self.session = self.session, self.take_up(session)
        self.runtime.leave(before)

    def leave(self, cause: str = "exit") -> None:
        """Stop what runs, keep everything, let go of the session."""
        self.runtime.leave(self.session, cause)

    def _command(self, found: Classification, client_id: str) -> Reply:
        with self._lock:
            self._commands += 1
            receipt = f"c{self._commands}"
        said = self._narrator_of(self.session)
        fields: dict[str, Any] = {"id": receipt, "client_id": client_id or None}
        said.say(
            "accepted",
            **{**fields, "as": "command"},
            number=None,
            position=None,
            matched=f"/{found.command}",
            rule="command",
            ack=None,
            text="",
        )
        command = COMMANDS[found.command]
        try:
            if not command.is_urgent and self.is_open:
                self.record()
            reply = command.run(self, found.argument)
        except UnknownSession:
            over = f"Session {self.session} has ended for good. /new begins another, /exit leaves."
            reply = Reply(False, text=over)
        if not command.is_urgent:
            self.runtime.settle()  # what it changed is on disk before anybody reads that it is
        self._narrator_of(self.session).say(
            "result", **fields, name=found.command, ok=reply.ok, data=reply.data, text=reply.text
        )
        return reply

    def _reject(self, reason: str, text: str, client_id: str, hint: str = "") -> None:
        self._narrator_of(self.session).say(
            "rejected", reason=reason, text=text, client_id=client_id or None, hint=hint
        )


def _nearest(text: str) -> str:
    """Say which command was probably meant."""
    near = get_close_matches(text.split()[0].lstrip("/"), COMMANDS, 1)
    meant = f"did you mean `/{near[0]}`? " if near else ""
    return f"{meant}`/help` lists the commands; begin with a space to say it to the agent"
