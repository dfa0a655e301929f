"""A session as one interface has it: what a person types is a message, or a slash command.

Which of the two is decided here, by a pure function of the text, before anything enters a mailbox.
"""

from __future__ import annotations

import threading
from collections.abc import Container, Mapping, Sequence
from typing import TYPE_CHECKING

from ..actors.runtime import Runtime
from ..machines import protocol as m
from ..machines.classification import Classification, addressee, classify
from ..machines.conversation import Picture
from ..machines.disposition import Intent
from ..machines.errors import UnknownSession, UsageError
from ..machines.pattern import lazy_pattern
from ..machines.people import Deed, objection
from ..ports.templates import Template
from .client import TYPES, Services, SessionClient
from .events.contract import ResultEvent
from .session_choice import SessionChoice, resumable
from .wording.acknowledgement import accepted

if TYPE_CHECKING:
    from .commands.command import CommandCall, Reply

HERE = "here"
"""The client of the owner's own interface, of which a process has one."""

_SLASH = lazy_pattern(r"/([A-Za-z][A-Za-z-]*)(?:\s|$)")


class CommandNames(Container[str]):
    """The names of all slash commands, which are imported when a text begins like one of them."""

    def __contains__(self, name: object) -> bool:
        from .commands.registry import NAMES

        return name in NAMES


NAMES = CommandNames()


class Conversation(SessionClient):
    """A client that understands what people type; calls come from the client's own thread."""

    def __init__(self, runtime: Runtime, session: str, services: Services, user: str = "") -> None:
        super().__init__(runtime, session, services, user)
        self._commands = 0
        self._lock = threading.Lock()

    def say(
        self,
        text: str,
        explicit: str = "auto",
        client_id: str = "",
        user: str = "",
        pictures: Sequence[Picture] = (),
    ) -> Reply | None:
        """Say something; returns a reply for a slash command, else nothing: events tell the rest."""
        found = self.classify(text, explicit)
        if found.intent is Intent.COMMAND:
            from .commands.registry import parse

            try:
                call = parse(found.command, found.argument)
            except UsageError as mistake:
                return self._obey(found.command, mistake, client_id)
            return self.run(call, client_id, user)
        if explicit == "auto" and (slash := _SLASH.match(text)):
            template = self.services.templates().get(slash[1].lower())
            if template is not None:
                filled = template.filled(text[slash.end() :].strip())
                found = Classification(intent=Intent.CONVERSE)
                self.send_message(filled, explicit, client_id, user, found=found, pictures=pictures)
                return None
            self.reject("unknown_command", text, client_id, _nearest(text))
            return None
        prompt = self.prompt(text)
        if prompt is not None and prompt.is_refused:
            self.reject("no_prompt", text, client_id, f"{prompt.path}: {prompt.note}")
            return None
        self.send_message(
            text, explicit, client_id, user, prompt=prompt, found=found, pictures=pictures
        )
        return None

    def run(self, call: CommandCall, client_id: str = "", user: str = "") -> Reply | None:
        """Carry out a command; none where it is a message, of which events tell the rest."""
        command = call.command
        if command.says:
            text = str(call.arguments["text"])
            if command.says == "side_talk":
                self.side_talk(text, client_id, user)
                return None
            to, text = addressee(text)
            self.send_message(text, command.says, client_id, user, to)
            return None

        with self.spoken_by(user):
            return self._obey(command.name.partition(" ")[0], call, client_id)

    def _obey(self, name: str, call: CommandCall | UsageError, client_id: str) -> Reply:
        """Carry a command out, or report its fault, as events and as the reply to its sender."""
        with self._lock:
            self._commands += 1
            receipt = f"c{self._commands}"
        taken = accepted(
            self.publisher.stamp(),
            id=receipt,
            said=m.Said(text="", client_id=client_id),
            routed=m.Routed(said_as="command", matched=f"/{name}", rule="command"),
            has_words=False,
        )
        self.publisher.publish(taken)
        from .commands.command import Reply

        why = call.message if isinstance(call, UsageError) else self._refusal(call)
        if why or isinstance(call, UsageError):
            reply = Reply(ok=False, data={"ok": False, "reason": why}, text=why)
        else:
            reply = self._reply(call)
        result = ResultEvent(
            type="result",
            **self.publisher.stamp(),
            id=receipt,
            client_id=client_id or None,
            name=name,
            ok=reply.ok,
            data=reply.data,
            text=reply.text,
        )
        self.publisher.publish(result)
        return reply

    def _refusal(self, call: CommandCall) -> str:
        """Say why who speaks may not give a command; empty if they may."""
        if self.rights is None:
            return ""
        from .commands.registry import needing_approval

        what = needing_approval(call)
        why = objection(self.rights, Deed.APPROVE if what else Deed.SPEAK, self.speaker, "")
        return f"{what or 'this'} is refused: {why}" if why else ""

    def _reply(self, call: CommandCall) -> Reply:
        from .commands.command import Reply

        is_urgent = call.command.is_urgent
        try:
            if not is_urgent and self.is_open:
                self.record()  # what was said before is done
            reply = call.run(self)
        except UnknownSession:
            over = f"Session {self.session} is finalized. /new starts another, /exit leaves."
            reply = Reply(ok=False, text=over)
        if not is_urgent:
            self.settle()  # what it changed is on disk before anybody reads that it is
        return reply

    def edit(self, number: int | None) -> None:
        """Keep only this waiting message from starting while it is edited here; none: let go."""
        self.end_edit(HERE)
        if number is not None:
            self.begin_edit(number, HERE)

    def classify(self, text: str, explicit: str = "auto") -> Classification:
        """Say what a text is, without saying it."""
        return classify(text, self.services.words, explicit, NAMES)

    def templates(self) -> Mapping[str, Template]:
        """Return the prompt templates by name; reads files."""
        return self.services.templates()

    def resumable(self) -> Sequence[SessionChoice]:
        """Return the sessions that `/resume` can take up in this one's place; may block."""
        return resumable(self.store, self.redactor, self.session)

    def is_urgent(self, text: str) -> bool:
        """Whether a text stops something, so that it does not wait for what was said before it."""
        found = self.classify(text)
        if found.intent is Intent.COMMAND:
            from .commands.registry import NAMES

            return NAMES[found.command].is_urgent
        return TYPES.get(found.intent) == "interrupt"

    def would_stop(self, text: str) -> bool:
        """Whether a text is a command, or says to stop, rather than something to talk about."""
        intent = self.classify(text).intent
        return intent is Intent.COMMAND or TYPES.get(intent) == "interrupt"


ELSEWHERE = {
    **dict.fromkeys(("approvals", "allowed-tools"), "permissions"),
    **dict.fromkeys(("clear", "reset"), "new"),
    **dict.fromkeys(("cost", "stats", "tokens"), "usage"),
    **dict.fromkeys(("edit", "resend"), "edit-last"),
    **dict.fromkeys(("rewind", "restore"), "revert"),
    **dict.fromkeys(("sessions", "continue"), "resume"),
    **dict.fromkeys(("bye", "q"), "exit"),
    **{"plan": "mode plan", "run": "shell", "status": "context", "models": "model"},
}
"""What other agents call a command, and its name here."""


def _nearest(text: str) -> str:
    """Say which command was probably meant."""
    from difflib import get_close_matches

    from .commands.registry import NAMES

    typed = text.split()[0].lstrip("/").lower()
    near = [ELSEWHERE[typed]] if typed in ELSEWHERE else get_close_matches(typed, NAMES, 1)
    meant = f"did you mean `/{near[0]}`? " if near else ""
    return f"{meant}`/help` lists the commands; begin with a space to send it to the agent"
