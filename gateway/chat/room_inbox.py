"""Deals with what people do in a room, one after another, in the order in which it came."""

from __future__ import annotations

import asyncio
import logging
import re
from datetime import UTC, datetime
from typing import Any, Never

from ...machines.errors import SteersmanError
from ...machines.people import Person
from ..commands.command import Reply
from ..commands.registry import NAMES
from ..library import Receipt, Rejected, SessionHandle
from .book import CLOSED, Letter, Received, Subject
from .letter_writer import MORE, LetterWriter
from .narrator import for_a_room
from .platform import Chosen, Gap, Removed, Said
from .room_options import RoomOptions
from .room_session import GatewayContext, RoomSession

log = logging.getLogger("steersman.chat")

NOT_HERE = ("exit", "quit", "detach", "new", "resume")
"""Commands that are about a terminal."""
AGAIN = "again"
"""The command of a room that says once more what may not have arrived."""
STEER, REMOVE = ("steer",), ("remove", "drop", "pop")
"""What a reply to a message that waits says, to do something else than change it."""
_STRANGERS = 1_000  # names that are remembered as refused
_YES = {"yes": "allow", "ok": "allow", "no": "deny"}
_LATE = (
    "That is at work already, and was not changed: say what is different, or `!edit-last TEXT` takes "
    "your last message back for TEXT."
)
_OVER = "That question is not open any more."
_UNKNOWN = (
    "I do not know you, so I read nothing of yours: the person who runs me can add you to [people]."
)


class RoomInbox:
    """Deals with what people do in one room; `came` is set when there is something new."""

    def __init__(
        self,
        context: GatewayContext,
        session: RoomSession,
        writer: LetterWriter,
        options: RoomOptions,
    ) -> None:
        self.came = asyncio.Event()
        self._context = context
        self._session = session
        self._writer = writer
        self._options = options
        self._room = writer.room
        self._book = context.book
        self._refused = set[str]()

    async def run(self) -> Never:
        """Deal with what people did, one after another, whatever goes wrong with one of them."""
        while True:
            self.came.clear()
            received = await self._book.next_received(self._room)
            if received is None:
                await self.came.wait()
                continue
            [fault] = await asyncio.gather(self._deal_with(received), return_exceptions=True)
            if fault is not None:
                await self._failed(received, fault)
            self._session.posted.set()

    async def _failed(self, received: Received, fault: BaseException) -> None:
        """Tell a person that something they did cannot be done; it is not tried again."""
        about = _about(received)
        match fault:
            case SteersmanError():
                log.warning("room %s: %s", self._room, fault.message)
                why = f"{fault.message}. {fault.hint}".strip()
            case OSError():
                log.warning("room %s: %s", self._room, fault)
                why = fault.strerror or type(fault).__name__
            case _:
                log.error("room %s: a mistake in steersman", self._room, exc_info=fault)
                why = "a mistake in steersman; its log says more"
        await self._book.done(received, *self._note(received, f"That failed: {why}", about))

    async def _deal_with(self, received: Received) -> None:
        match received.event:
            case Gap(since=since):
                at = datetime.fromtimestamp(since, UTC).strftime("%H:%M:%S UTC")
                text = f"I was away: what was said here since {at} I did not hear."
                await self._book.done(received, *self._note(received, text))
            case Said() as said:
                await self._said(received, said)
            case Removed() as removed:
                await self._removed(received, removed)
            case Chosen() as chosen:
                await self._chosen(received, chosen)

    async def _said(self, received: Received, said: Said) -> None:
        text, is_addressed = self._addressed(said)
        about = Subject(message=said.id, thread=said.thread, sender=said.sender)
        target = await self._book.subject(self._room, said.replaces or said.to)
        is_answer = target is not None and not target.sender
        is_for_us = is_addressed or said.is_addressed or said.is_private or is_answer
        if self._options.only_addressed and not is_for_us:
            await self._book.done(received)
            return
        person = self._person(said.sender)
        if person is None:
            await self._book.done(received, *self._refuse(received, about))
            return
        text = "\n\n".join([text, *map(_file_text, said.files)]).strip()
        session = await self._session.open()
        line = _meant(session, said, text, target)
        if line in (f"/{AGAIN}", f"/{MORE}"):
            await self._repeat(received, line, about)
        elif line is None:
            is_question = target is not None and target.question
            note = _OVER if is_question else _LATE
            await self._book.done(received, *self._note(received, note, about))
        elif line.startswith("/"):
            await self._book.note(self._room, about)
            await self._book.done(received)  # before, because a command is carried out at most once
            await self._command(session, received, line, person, about)
        else:
            await self._hand_on(session, received, line, person)

    async def _hand_on(
        self, session: SessionHandle, received: Received, line: str, person: Person
    ) -> None:
        """Say something to the session; its id in the room is its key, so that is done once."""
        about = _about(received)
        assert about is not None
        await self._book.note(self._room, about)
        key = f"{self._session.ours}{about.message}"
        letters: list[Letter] = []
        try:
            if about.thread:
                await session.side_talk(line, person, key=key)
            else:
                await session.enter(line, person, key=key)
        except Rejected as refusal:
            letters = self._note(received, _in_words(refusal), about)
        await self._book.done(received, *letters)

    async def _repeat(self, received: Received, line: str, about: Subject) -> None:
        """Say what may not have arrived, or the next part of what was cut."""
        text = ""
        if line == f"/{AGAIN}":
            if not await self._book.again(self._room):
                text = "Nothing is uncertain."
        else:
            count, left = await self._book.more(self._room, self._writer.most)
            text = self._writer.rest(left) if left else "" if count else "There is no more."
        await self._book.done(received, *self._note(received, text, about))

    def _person(self, sender: str) -> Person | None:
        """Return who a sender is; which names are the same may be known only when connected."""
        known, platform = self._context.people.items(), self._context.platform
        return next((person for name, person in known if platform.sender_of(name) == sender), None)

    def _addressed(self, said: Said) -> tuple[str, bool]:
        """Return what a person said without the name of this gateway, and whether that was there.

        A name alone is a word like any other: an address ends in `:` or `,`, or begins with `@`.
        """
        name = re.escape(self._context.platform.own_name)
        lead = re.compile(rf"(?:@?{name}[:,]|@{name}(?=\s|$))\s*", re.IGNORECASE) if name else None
        found = lead.match(said.text) if lead is not None else None
        return (said.text[found.end() :] if found else said.text), found is not None

    async def _command(
        self, session: SessionHandle, received: Received, line: str, person: Person, about: Subject
    ) -> None:
        """Carry a command out, and say what came of it."""
        name = line[1:].split(None, 1)[0].lower()
        if name in NOT_HERE:
            text = f"!{name} is for a terminal, not for a room."
        else:
            key = f"{self._session.ours}{about.message}"
            try:
                done: Receipt | Reply = await session.enter(line, person, key=key)
                text = for_a_room(done.text) if isinstance(done, Reply) else ""
                if isinstance(done, Reply) and done.data.get("left"):
                    await self._session.go_to(str(done.data["session"]))
            except Rejected as refusal:
                text = _in_words(refusal)
        await self._book.write(*self._note(received, text, about))

    async def _removed(self, received: Received, removed: Removed) -> None:
        """Take a message back that waits."""
        person = self._person(removed.sender)
        about = await self._book.subject(self._room, removed.message)
        await self._book.done(received)
        session = self._session.current
        if person is None or about is None or session is None or about.sender != removed.sender:
            return
        if _waits(session, about.item):
            await self._command(session, received, f"/queue pop {about.number}", person, about)

    async def _chosen(self, received: Received, chosen: Chosen) -> None:
        """Answer a question by a button or a reaction."""
        person = self._person(chosen.sender)
        asked = await self._book.subject(self._room, chosen.message)
        choice, session = chosen.choice.strip(), self._session.current
        if person is None or asked is None or not asked.question or session is None or not choice:
            await self._book.done(received)
        elif asked.question == CLOSED:
            await self._book.done(received, *self._note(received, _OVER, _about(received)))
        else:
            await self._book.done(received)
            line = f"/answer {asked.question} {choice}"
            about = Subject(message=chosen.message, sender=chosen.sender)
            await self._command(session, received, line, person, about)

    def _refuse(self, received: Received, about: Subject) -> list[Letter]:
        """Tell a stranger once that their messages are not read."""
        if about.sender in self._refused or len(self._refused) >= _STRANGERS:
            return []
        self._refused.add(about.sender)
        return self._note(received, _UNKNOWN, about)

    def _note(self, received: Received, text: str, about: Subject | None = None) -> list[Letter]:
        """Answer something of the inbox."""
        return self._writer.write(f"{self._room}:{received.id}", text, about)


def _about(received: Received) -> Subject | None:
    """Return what an answer to something of the inbox is about."""
    match received.event:
        case Said() as said:
            return Subject(message=said.id, thread=said.thread, sender=said.sender)
        case Chosen() as chosen:
            return Subject(message=chosen.message, sender=chosen.sender)
        case _:
            return None


def _meant(session: SessionHandle, said: Said, text: str, about: Subject | None) -> str | None:
    """Return what a message comes to: a command, or a text; none for what comes too late.

    `about` is what the message is about that it answers or takes the place of.
    """
    is_waiting = about is not None and _waits(session, about.item)
    word = text.strip().lower()
    if about is not None and about.question and not said.replaces:
        is_over = about.question == CLOSED
        return None if is_over else f"/answer {about.question} {_YES.get(word, text)}"
    if about is not None and is_waiting:
        if not said.replaces and word in STEER:
            return f"/queue steer {about.number}"
        if not said.replaces and word in REMOVE:
            return f"/queue pop {about.number}"
        return f"/queue edit {about.number} {text}"
    if said.replaces:
        return None if about is not None else text
    name = re.match(r"[!/]([A-Za-z][A-Za-z-]*)(?=\s|$)", text)
    if name is not None and (name[1].lower() in NAMES or name[1].lower() in (AGAIN, MORE)):
        return f"/{text[1:]}"
    return f" {text}" if text.startswith(("/", "!", "\uff01")) else text  # no command


def _waits(session: SessionHandle, item: str) -> bool:
    """Whether a message waits in the queue."""
    items = session.queue()["items"]
    return any(found["id"] == item and found["state"] != "running" for found in items)


def _in_words(refusal: Rejected) -> str:
    """Say why something was not accepted."""
    text = refusal.message[:1].upper() + refusal.message[1:]
    return for_a_room(f"{text}. {refusal.hint}" if refusal.hint else f"{text}.")


def _file_text(file: Any) -> str:
    """Write a file that came with a message as a part of its text."""
    if file.text is None:
        return f"[`{file.name}`, {file.size} bytes, is no text or too long, and is left out]"
    return f"`{file.name}` holds:\n```\n{file.text}\n```"
