"""Deals with what people do in a room, one after another, in the order in which it came."""

from __future__ import annotations

import asyncio
import logging
import re
from datetime import UTC, datetime
from typing import Any, Never

from ...machines.errors import SteersmanError
from ...machines.people import Person
from ..commands.command import CommandCall, Reply
from ..commands.help import explained, help_
from ..commands.registry import NAMES, call
from ..library import Rejected, SessionHandle
from .event_messages import for_a_room
from .gateway_store import CLOSED, InboxRow, OutboxMessage, Subject
from .platform import Chosen, Gap, Removed, Said
from .room import MORE, Room
from .room_session import RoomSession

log = logging.getLogger("steersman.chat")

NOT_HERE = ("exit", "detach", "new", "resume")
"""Commands that are about a terminal."""
AGAIN = "again"
"""The command of a room that says once more what may not have arrived."""
_AGAIN, _MORE = "/" + AGAIN, "/" + MORE
STEER, REMOVE = ("steer",), ("remove", "drop", "pop")
"""What a reply to a message that waits says, to do something else than change it."""
_STRANGERS = 1_000  # names that are remembered as refused
_KEYS = f"!{MORE} says what was cut, !{AGAIN} what may not have arrived."
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
    """Deals with what people do in one room."""

    def __init__(self, room: Room, session: RoomSession) -> None:
        self._room, self._name, self._store = room, room.name, room.store
        self._session = session
        self._refused = set[str]()

    async def run(self) -> Never:
        """Deal with what people did, one after another, whatever goes wrong with one of them."""
        while True:
            self._room.came.clear()
            row = await self._store.next_received(self._name)
            if row is None:
                await self._room.came.wait()
                continue
            [fault] = await asyncio.gather(self._deal_with(row), return_exceptions=True)
            if fault is not None:
                await self._failed(row, fault)
            self._room.posted.set()

    async def _failed(self, row: InboxRow, fault: BaseException) -> None:
        """Tell a person that something they did cannot be done; it is not tried again."""
        match fault:
            case SteersmanError():
                log.warning("room %s: %s", self._name, fault.message)
                why = f"{fault.message}. {fault.hint}".strip()
            case OSError():
                log.warning("room %s: %s", self._name, fault)
                why = fault.strerror or type(fault).__name__
            case _:
                log.error("room %s: a mistake in steersman", self._name, exc_info=fault)
                why = "a mistake in steersman; its log says more"
        await self._store.done(row, *self._note(row, f"That failed: {why}"))

    async def _deal_with(self, row: InboxRow) -> None:
        match row.event:
            case Gap(since=since):
                at = datetime.fromtimestamp(since, UTC).strftime("%H:%M:%S UTC")
                text = f"I was away: what was said here since {at} I did not hear."
                await self._store.done(row, *self._note(row, text))
            case Said() as said:
                await self._said(row, said)
            case Removed() as removed:
                await self._removed(row, removed)
            case Chosen() as chosen:
                await self._chosen(row, chosen)

    async def _said(self, row: InboxRow, said: Said) -> None:
        text, is_addressed = self._addressed(said)
        about = _subject(said)
        target = await self._store.subject(self._name, said.replaces or said.to)
        is_answer = target is not None and not target.sender
        is_for_us = is_addressed or said.is_addressed or said.is_private or is_answer
        if self._room.options.only_addressed and not is_for_us:
            await self._store.done(row)
            return
        person = self._person(said.sender)
        if person is None:
            await self._store.done(row, *self._refuse(row, said.sender))
            return
        text = "\n\n".join([text, *map(_file_text, said.files)]).strip()
        session = await self._session.open()
        meant = _meant(session, said, text, target)
        if meant in (_AGAIN, _MORE):
            await self._repeat(row, meant == _MORE)
        elif meant is None:
            is_question = target is not None and target.question
            note = _OVER if is_question else _LATE
            await self._store.done(row, *self._note(row, note))
        elif isinstance(meant, CommandCall) or meant.startswith("/"):
            await self._store.note(self._name, about)
            await self._store.done(row)  # before, because a command is carried out at most once
            await self._command(session, row, meant, person, about)
        else:
            await self._say(session, row, meant, person, about)

    async def _say(
        self, session: SessionHandle, row: InboxRow, text: str, person: Person, about: Subject
    ) -> None:
        """Say something to the session; its id in the room is its key, so that is done once."""
        await self._store.note(self._name, about)
        key, messages = f"{self._room.ours}{about.message}", list[OutboxMessage]()
        try:
            if about.thread:
                await session.side_talk(text, person, key=key)
            else:
                await session.enter(text, person, key=key)
        except Rejected as refusal:
            messages = self._note(row, _in_words(refusal))
        await self._store.done(row, *messages)

    async def _repeat(self, row: InboxRow, is_more: bool) -> None:
        """Say what may not have arrived, or with `is_more` the next part of what was cut."""
        if is_more:
            count, left = await self._store.more(self._name, self._room.options.parts)
            text = self._room.rest(left) if left else "" if count else "There is no more."
        else:
            text = "" if await self._store.again(self._name) else "Nothing is uncertain."
        await self._store.done(row, *self._note(row, text))

    def _person(self, sender: str) -> Person | None:
        """Return who a sender is; which names are the same may be known only when connected."""
        known, platform = self._room.people.items(), self._room.platform
        return next((person for name, person in known if platform.sender_of(name) == sender), None)

    def _addressed(self, said: Said) -> tuple[str, bool]:
        """Return what a person said without the name of this gateway, and whether that was there.

        A name alone is a word like any other: an address ends in `:` or `,`, or begins with `@`.
        """
        name = re.escape(self._room.platform.own_name)
        lead = re.compile(rf"(?:@?{name}[:,]|@{name}(?=\s|$))\s*", re.IGNORECASE) if name else None
        found = lead.match(said.text) if lead is not None else None
        return (said.text[found.end() :] if found else said.text), found is not None

    async def _command(
        self,
        session: SessionHandle,
        row: InboxRow,
        command: CommandCall | str,
        person: Person,
        about: Subject,
    ) -> None:
        """Carry out a command, as it was typed or as data, and say what came of it."""
        name = command[1:].split(None, 1)[0].lower() if isinstance(command, str) else ""
        declared = NAMES.get(name)
        if declared is not None and declared.name in NOT_HERE:
            text = f"!{name} is for a terminal, not for a room."
        elif declared is help_:
            said = str(command).partition(" ")[2]
            text = for_a_room(explained(said.strip(), (), _KEYS, left_out=NOT_HERE).text)
        else:
            key = f"{self._room.ours}{about.message}"
            try:
                done = await session.enter(command, person, key=key)
                text = for_a_room(done.text) if isinstance(done, Reply) else ""
                if isinstance(done, Reply) and done.data.get("left"):
                    await self._session.go_to(str(done.data["session"]))
            except Rejected as refusal:
                text = _in_words(refusal)
        await self._store.write(*self._note(row, text, about))

    async def _removed(self, row: InboxRow, removed: Removed) -> None:
        """Take a message back that waits."""
        person = self._person(removed.sender)
        about = await self._store.subject(self._name, removed.message)
        await self._store.done(row)
        session = self._session.current
        if person is None or about is None or session is None or about.sender != removed.sender:
            return
        if _waits(session, about.item):
            await self._command(session, row, _queue("pop", about), person, about)

    async def _chosen(self, row: InboxRow, chosen: Chosen) -> None:
        """Answer a question by a button or a reaction."""
        person = self._person(chosen.sender)
        asked = await self._store.subject(self._name, chosen.message)
        choice, session = chosen.choice.strip(), self._session.current
        if person is None or asked is None or not asked.question or session is None or not choice:
            await self._store.done(row)
        elif asked.question == CLOSED:
            await self._store.done(row, *self._note(row, _OVER))
        else:
            await self._store.done(row)
            await self._command(session, row, _answer(asked, choice), person, _subject(chosen))

    def _refuse(self, row: InboxRow, sender: str) -> list[OutboxMessage]:
        """Tell a stranger once that their messages are not read."""
        if sender in self._refused or len(self._refused) >= _STRANGERS:
            return []
        self._refused.add(sender)
        return self._note(row, _UNKNOWN)

    def _note(self, row: InboxRow, text: str, about: Subject | None = None) -> list[OutboxMessage]:
        """Answer something of the inbox; `about` is for what is no message of its own."""
        if isinstance(row.event, Said | Chosen):
            about = _subject(row.event)
        return self._room.write(f"{self._name}:{row.id}", text, about)


def _subject(event: Said | Chosen) -> Subject:
    """Return what an answer to a person is about: what they said, or the message that they chose at."""
    if isinstance(event, Chosen):
        return Subject(event.message, sender=event.sender)
    return Subject(event.id, thread=event.thread, sender=event.sender)


def _queue(verb: str, about: Subject, **more: str) -> CommandCall:
    """Return a command about a message that waits."""
    return call(f"queue {verb}", {"number": about.number, **more})


def _answer(asked: Subject, said: str) -> CommandCall:
    """Return the command that answers a question; the words after the first one are the reason."""
    choice, *reason = said.split(None, 1) or [""]
    answer: dict[str, object] = {
        "question": asked.question,
        "choice": choice,
        "reason": "".join(reason),
    }
    return call("answer", answer)


def _meant(
    session: SessionHandle, said: Said, text: str, about: Subject | None
) -> CommandCall | str | None:
    """Return what a message comes to: a command, a text, or none for what comes too late.

    A command that was typed begins with a slash. `about` is what the message is about that it answers or
    takes the place of.
    """
    is_waiting = about is not None and _waits(session, about.item)
    word = text.strip().lower()
    if about is not None and about.question and not said.replaces:
        return None if about.question == CLOSED else _answer(about, _YES.get(word, text))
    if about is not None and is_waiting:
        if not said.replaces and word in STEER:
            return _queue("steer", about)
        if not said.replaces and word in REMOVE:
            return _queue("pop", about)
        return _queue("edit", about, text=text)
    if said.replaces:
        return None if about is not None else text
    name = re.match(r"[!/]([A-Za-z][A-Za-z-]*)(?=\s|$)", text)
    if name is not None and (name[1].lower() in NAMES or name[1].lower() in (AGAIN, MORE)):
        return "/" + text[1:]
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
