"""The client of a session: what a program on this machine may say to it and ask of it.

Terminal, scripts, control socket, HTTP, editors and commands all use this. Everything here is a message
to the session, or reads what is durable: no code outside `actors/` touches what a live session holds.
Calls come from a client's own thread, never from the runtime's loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..actors.inspection import SessionDescription
from ..actors.runtime import REPLY_TIMEOUT
from ..journal.codec import decode
from ..journal.queue_record import ItemRecord
from ..journal.record import SessionRecord
from ..journal.store import Store
from ..machines import protocol as m
from ..machines.classification import TYPES, Classification, addressee, classify
from ..machines.conversation import Attachment, Picture
from ..machines.disposition import Intent
from ..machines.errors import AdmissionRefused, StoreError, UnknownSession, UsageError
from ..machines.pattern import lazy_pattern
from ..machines.permission_mode import mode_named
from ..ports.templates import Skill, Template, skill_faults, skills_in, templates_in
from .events.translation import EventPublisher, queue_of
from .open_questions import may_settle, settled
from .session_info import SessionChoice, resumable
from .session_view import ChangedFiles, MessageParts, SessionView
from .speaker import speaker, spoken_by
from .typed_text import TextReader, obey

if TYPE_CHECKING:
    from ..ports.tools.mcp_offer import McpOffer
    from .commands.command import CommandCall, Reply
    from .commands.own import OwnCommands
    from .host.host import Host

HERE = "here"
"""The client of the owner's own interface, of which a process has one."""

_PLAIN = (Intent.CONVERSE, Intent.ACKNOWLEDGEMENT, Intent.STEER_WORD)
"""What a text is that could be meant as the answer to an open question."""
_SLASH = lazy_pattern(r"/([A-Za-z][\w-]*(?::[^\s/]\S*)?)(?:\s|$)")
"""How a command begins, a template, or the prompt of an MCP server: `/server:prompt`."""


class SessionClient:
    """One session of a host of this process. What a person types is a message, or a slash command.

    `texts` reads what is typed, `view` what the session holds; `numbers` are for the commands. `room` is
    how many bytes a message may attach. `can_switch`: another session may be taken up in its place.
    """

    own_key = ""
    """How the client ids of what is typed here begin: nothing has one."""

    def __init__(self, host: Host, session: str, folder: Path, model: str = "") -> None:
        """`folder` is for sessions that are begun in its place, `model` one that is not built here."""
        self.host, self.session, self._folder, self._model = host, session, folder, model
        self._runtime = host.runtime
        self.texts = TextReader(host.config.auto_queue.keywords)
        self.view = SessionView(self)
        self.numbers, self.room, self.can_switch = count(1), host.opener.attachable, True

    # What a person types --------------------------------------------------------------------------

    def say(
        self,
        text: str,
        explicit: str = "auto",
        client_id: str = "",
        user: str = "",
        pictures: Sequence[Picture] = (),
    ) -> Reply | None:
        """Say something; returns a reply for a slash command, else nothing: events tell the rest."""
        found = self.texts.classify(text, explicit)
        if found.intent is Intent.COMMAND:
            from .commands.registry import parse  # all commands, which most sessions never need

            try:
                call = parse(found.command, found.argument)
            except UsageError as mistake:
                return obey(self, found.command, mistake, client_id)
            return self.run(call, client_id, user)
        prompt = self.parts.prompt(text)
        if explicit == "auto" and prompt is None and (slash := _SLASH.match(text)):
            template = self.templates().get(slash[1].lower())
            if template is not None:
                filled = template.filled(text[slash.end() :].strip())
                found = Classification(intent=Intent.CONVERSE)
                self.send_message(filled, explicit, client_id, user, found=found, pictures=pictures)
                return None
            self.publisher.rejected(
                "unknown_command", text, client_id, self.texts.nearest_command(text)
            )
            return None
        if explicit == "auto" and text.strip() and not pictures and found.intent in _PLAIN:
            if how := self._how_to_answer():
                self.publisher.rejected("question_open", text, client_id, how)
                return None
        if prompt is not None and prompt.is_refused:
            self.publisher.rejected("no_prompt", text, client_id, f"{prompt.path}: {prompt.note}")
            return None
        self.send_message(
            text, explicit, client_id, user, prompt=prompt, found=found, pictures=pictures
        )
        return None

    def _how_to_answer(self) -> str:
        """Say how the oldest open question of a step is answered if it has options, else nothing."""
        try:
            run = self.record().run if self._runtime.is_run(self.session) else None
        except UnknownSession:
            run = None
        if run is None:
            return ""
        asked = (known.asked for known in run.questions.values())
        question = next((known for known in asked if known and known.options), None)
        if question is None:
            return ""
        options = ", ".join(question.options)
        return (
            f"`/answer {question.question} ANSWER` answers it with one of: {options}; "
            "`/queue add TEXT` or `/steer TEXT` sends a message"
        )

    def run(
        self, call: CommandCall, client_id: str = "", user: str = "", editor: str = HERE
    ) -> Reply | None:
        """Carry out a command; none where it is a message, of which events tell the rest.

        `editor` is the client that gives it, as for `begin_edit`.
        """
        command = call.command
        if command.says:
            text = str(call.arguments["text"])
            if command.says == "side_talk":
                self.side_talk(text, client_id, user)
                return None
            to, text = addressee(text)
            self.send_message(text, command.says, client_id, user, to)
            return None

        with spoken_by(user, editor=editor):
            name = command.name.partition(" ")[0]
            return obey(self, name, call, client_id)

    # Messages to the session ----------------------------------------------------------------------

    def send_message(
        self,
        text: str,
        explicit: str = "auto",
        client_id: str = "",
        user: str = "",
        to: str = "",
        prompt: Attachment | None = None,
        found: Classification | None = None,
        pictures: Sequence[Picture] = (),
    ) -> None:
        """Send a message of a person; `to` addresses a steer. Events tell what becomes of it.

        `prompt` is what `parts.prompt` read of the text, `found` what it was classified as, if it was;
        `pictures` come with it.
        """
        found = found or classify(text, self.host.config.auto_queue.keywords, explicit)
        kind: Any = TYPES.get(found.intent, "normal")
        message = m.UserMessage(
            type=kind,
            said=m.Said(
                text=text,
                user=user or speaker().user,
                client_id=client_id,
                attached=(*filter(None, (prompt,)), *self.parts.attached(text, pictures)),
            ),
            intent=found.intent,
            matched=found.matched,
            then=text if found.says_more else "",
            utterance=self._runtime.next_utterance(),
            to=to,
            revert=found.revert,
        )
        self.post(message, text, client_id)

    def side_talk(self, text: str, client_id: str = "", user: str = "") -> None:
        """Ask something beside the work. Events tell what becomes of it."""
        said = m.Said(text=text, user=user or speaker().user, client_id=client_id)
        self.post(m.SideTalk(said=said), text, client_id)

    def post(self, message: m.Message, text: str, client_id: str = "") -> None:
        """Send what carries a person's `text`; a refusal is an event with that text.

        A session whose journal could not be written goes on with it, once there is room again.
        """
        try:
            self._runtime.recover(self.session)
            self._runtime.tell(self.session, speaker().signed(message))
        except AdmissionRefused as refusal:
            self.publisher.rejected("mailbox_full", text, client_id, refusal.hint)
        except UnknownSession:  # another process ended it
            self.publisher.rejected("session_finalized", text, client_id, m.ANOTHER_CHAT)
        except StoreError as fault:
            self.publisher.rejected("store_failed", text, client_id, fault.hint)

    def ask(self, message: m.Message, timeout: float = REPLY_TIMEOUT) -> dict[str, Any]:
        """Send a message and return the session's reply; `timeout` in seconds. Raises `StoreError`.

        Open questions about calls that it allows, or refuses, are answered.
        """
        self._runtime.recover(self.session)
        reply: dict[str, Any] | None = self._runtime.ask(
            self.session, speaker().signed(message), timeout
        )
        reply = reply or {"ok": True}
        if may_settle(message) and reply.get("ok"):
            for decided in settled(self._runtime, self.session):
                self.ask(decided, timeout)
        return reply

    def item_of(self, client_id: str) -> ItemRecord | None:
        """Return what a message with this key became; none if it was refused."""
        self._runtime.ask(self.session, m.Inspect(is_last=True, is_of_queue=True))
        queue = self.record().queue
        return queue.items.get(queue.clients.get(client_id, ""))

    def edit(self, number: int | None) -> bool:
        """Keep only this waiting message from starting while it is edited here; none: let go.

        Return whether it may be edited: somebody else may do so already.
        """
        self.end_edit(HERE)
        if number is None:
            return True
        return bool(self.ask(m.QueueChange(op="begin_edit", number=number, editor=HERE)).get("ok"))

    def begin_edit(self, number: int, editor: str) -> None:
        """Keep a waiting message from starting while a person edits it in the client `editor`."""
        self._tell_edit(m.QueueChange(op="begin_edit", number=number, editor=editor))

    def end_edit(self, editor: str) -> None:
        """Let the messages go that were edited in a client, where its person left that or it is gone."""
        self._tell_edit(m.QueueChange(op="end_edit", editor=editor))

    def _tell_edit(self, change: m.QueueChange) -> None:
        with suppress(AdmissionRefused, UnknownSession):  # a message that is sent says why
            self._runtime.tell(self.session, speaker().signed(change))

    def interrupt(self, turn: str = "") -> dict[str, Any]:
        """Stop the running turn, or only the one that is named, and all that it started."""
        return self.ask(m.Interrupt(order=self._stop(), turn=turn))

    def begin_interrupt(self) -> None:
        """Do that without waiting for the reply; safe in a signal's handler."""
        self._runtime.tell(self.session, m.Interrupt(order=self._stop()))

    def _stop(self) -> m.StopOrder:
        said = m.Said(text="", user=speaker().user)
        return m.StopOrder(cause="stop", said=said, utterance=self._runtime.next_utterance())

    def answer(self, question: str, choice: str, reason: str = "") -> bool:
        """Answer a question: `choice` is allow, always or deny. False when it is not open."""
        return bool(self.ask(m.Answer(question=question, choice=choice, reason=reason)).get("ok"))

    @property
    def parts(self) -> MessageParts:
        """What reads the parts of messages, and what MCP servers offer."""
        return MessageParts(self._runtime, self, self._model)

    @property
    def files(self) -> ChangedFiles:
        """The files that the session changed."""
        return ChangedFiles(self._runtime, self.session)

    # Questions about the session ------------------------------------------------------------------

    def describe(self) -> SessionDescription:
        """Return what the session goes by, and what was said in it."""
        return self._runtime.describe(self.session)

    def record(self) -> SessionRecord:
        """Return the state after all that was said: through the session, through its queue."""
        self._runtime.inspect(self.session, is_last=True)
        return decode(SessionRecord, self._runtime.inspect(self.session, is_last=True))

    def queue(self, *, is_all: bool = False) -> dict[str, Any]:
        """Return the queue as `{session, state, items}`; `is_all`: with what was replaced."""
        record = decode(SessionRecord, self._runtime.inspect(self.session, is_last=True))
        return {"session": self.session, **queue_of(record, is_all=is_all)}

    @cached_property
    def own_commands(self) -> OwnCommands:
        """The shell commands of the person, which no model sees."""
        from .commands.own import OwnCommands  # most sessions have none

        return OwnCommands(self)

    def is_quiet(self) -> bool:
        """Whether nothing runs and no queued item will start automatically."""
        if self.__dict__.get("own_commands") and self.own_commands.running:
            return False
        if not self.is_open:
            return True
        found = self._runtime.ask(self.session, m.Inspect(is_last=True, is_of_queue=True))
        return found.get("quiet", True) or self._runtime.is_broken(self.session)

    def publish_all(self) -> None:
        """Block until every event of what the session decided so far has been published."""
        with suppress(UnknownSession):  # another thread has left it
            self._runtime.publish_all(self.session)

    @property
    def is_open(self) -> bool:
        """Whether the session still lives here: another terminal may have finalized it."""
        return self._runtime.is_open(self.session)

    def templates(self) -> Mapping[str, Template]:
        """Return the prompt templates by name; reads files."""
        return templates_in(self.host.opener.markdown(self._folder))

    def skills(self) -> tuple[Sequence[Skill], Sequence[str]]:
        """Return the skills that a new session has, and why others are left out; reads files."""
        folders = self.host.opener.markdown(self._folder)
        return skills_in(folders), tuple(skill_faults(folders))

    def resumable(self) -> Sequence[SessionChoice]:
        """Return the sessions that `/resume` can take up in this one's place; may block."""
        return resumable(self.store, self.view.redactor, self.session)

    @property
    def offers(self) -> Mapping[str, McpOffer]:
        """What the session's MCP servers offer, by their names; for any thread."""
        return self.parts.offers

    def changes(self) -> list[str]:
        """Name the files that a run has changed; see `ChangedFiles.changed_by_run`."""
        return self.files.changed_by_run()

    # What the program around it does --------------------------------------------------------------

    @property
    def store(self) -> Store:
        """The home's store."""
        return self._runtime.store

    def settle(self) -> None:
        """Block until everything decided so far is durable."""
        self._runtime.settle()

    @property
    def publisher(self) -> EventPublisher:
        """What publishes events of this session that no actor knows of."""
        return self.host.publisher(self.session)

    def stop_asking(self) -> bool:
        """Stop asking: from now on, every call that needs a question is denied. Return true."""
        self._runtime.stop_asking(self.session)
        return True

    def renew(self) -> None:
        """Finalize this session and begin another in its place."""
        before = self.session
        self._go_on_in(self.host.begin(self._folder).session)
        self._runtime.finalize(before, "new")

    def switch(self, session: str, mode: str = "") -> None:
        """Take up another session, in this mode if one is named, and leave this one.

        What may run there is told. Raises `SteersmanError`: then it stays.
        """
        if not self.can_switch:
            raise UsageError("another session cannot be resumed here", "`steersman chat --resume`")
        before = self.session
        self._go_on_in(self.host.resume(session).session)
        self._runtime.leave(before)
        if mode:
            self.ask(m.PolicyChange(mode=mode_named(mode)))
        from .wording.first_run import chosen_line, rights_line

        rights = rights_line(self.describe(), self.host.opener.sandbox)
        chosen = chosen_line(self._runtime.inspect(session))
        self.publisher.notice(f"Session {session} goes on: {rights}. {chosen}".rstrip())

    def _go_on_in(self, session: str) -> None:
        """Be the conversation about another session, also for those who follow it from elsewhere."""
        self.publisher.replaced(session)
        self.session = session
        self.host.register(self)

    def finalize(self, cause: str = "user") -> None:
        """Finalize the session."""
        self._runtime.finalize(self.session, cause)

    def leave(self, cause: str = "exit") -> None:
        """Stop what runs, keep everything, let go of the session."""
        self._runtime.leave(self.session, cause)
