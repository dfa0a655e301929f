"""What a chat platform has to do so that people in its rooms can talk to a session.

A platform is an object with the protocol `Platform`: it yields what people do in its rooms, and sends
what it is given. Everything else is done for it (`bridge.py`): who may do what, receipts, answers in
parts, questions, and that nothing is lost or said twice.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Literal, Protocol

from ...machines.errors import SteersmanError
from ...machines.value import Value

# What people do -----------------------------------------------------------------------------------


class SentFile(Value):
    """A file that came with a message; `text` is its content, none if it is no text or too long."""

    name: str
    size: int
    text: str | None = None


class Said(Value, tag=True):
    """A person says something, or changes what they said.

    `id` names it in its room, and is the same when the platform delivers it again. `sender` is the
    platform's own name of the person, which no other person can take, and `name` what others see. `to` is
    the message that it answers, `thread` the thread that it stands in, `replaces` the message that it
    takes the place of; each empty if there is none. `is_private`: no other person reads that room.
    `is_addressed`: the platform itself says that it is for this gateway, such as by a mention.
    """

    id: str
    room: str
    sender: str
    text: str
    name: str = ""
    to: str = ""
    thread: str = ""
    replaces: str = ""
    is_private: bool = False
    is_addressed: bool = False
    files: tuple[SentFile, ...] = ()


class Removed(Value, tag=True):
    """A person takes a message back."""

    room: str
    sender: str
    message: str


class Chosen(Value, tag=True):
    """A person presses a button of a message of ours, or reacts to one: `choice` is what it says.

    `id` names it in its room, and is the same when the platform delivers it again.
    """

    id: str
    room: str
    sender: str
    message: str
    choice: str
    name: str = ""


class Gap(Value, tag=True):
    """The platform keeps nothing for us: what was said in a room since then was not received.

    `since` is in seconds since 1970.
    """

    room: str
    since: float


Inbound = Said | Removed | Chosen | Gap

# What is sent -------------------------------------------------------------------------------------


class Outgoing(Value):
    """A message for a room. `key` is the same when it is sent again, and no other message has it.

    `kind`: an answer of the agent may contain Markdown, everything else is plain text. `to` is the
    message that it answers, `thread` where it stands. `choices` are buttons, if the platform has any.
    `mentions` is the platform's name of the person whom it is for; no other name in it is a mention.
    """

    key: str
    room: str
    text: str
    kind: Literal["answer", "note", "question"] = "note"
    to: str = ""
    thread: str = ""
    choices: tuple[str, ...] = ()
    mentions: str = ""


class PlatformLimits(Value):
    """What a platform takes.

    `bytes` of UTF-8 and `characters` (as the platform counts them) of one message, 0 for any; `lines`
    likewise. `interval`: seconds between two messages to one room, and `edit_interval` between two
    changes of a message, in the long run. `can_edit`, `has_choices`: whether a message can be changed,
    and have buttons or reactions. `is_idempotent`: what is sent twice with one key is there once.
    """

    characters: int = 0
    bytes: int = 0
    lines: int = 0
    interval: float = 0.0
    edit_interval: float = 1.0
    can_edit: bool = False
    has_choices: bool = False
    is_idempotent: bool = False


class NotSent(SteersmanError):
    """A message was certainly not sent; it may be tried again after `seconds`, if that is above 0.

    With `seconds` 0 it never will: the platform refuses it, and the message says why.
    """

    def __init__(self, message: str, hint: str = "", seconds: float = 0.0) -> None:
        super().__init__(message, hint)
        self.seconds = seconds


class Memory(Protocol):
    """A few words that a platform keeps over restarts, such as the place up to which it has read."""

    def get(self, name: str) -> str:
        """Return a word, empty if there is none."""
        ...

    async def put(self, name: str, word: str) -> None:
        """Keep a word; returns when it is on disk."""
        ...


class Platform(Protocol):
    """A connection to a chat platform, for one asyncio loop.

    It connects when `inbound` is read, and again whenever the connection breaks, with growing pauses; it
    raises `ConfigError` for what no waiting repairs (a wrong password, a room that does not exist). An
    unreachable server at the start is waited for, too.
    """

    limits: PlatformLimits

    @property
    def own_name(self) -> str:
        """What people call this gateway in a room, empty as long as that is not known."""
        ...

    def sender_of(self, name: str) -> str:
        """Return a name as it stands in `[people]` in the form that `Said.sender` has.

        Raises `ValueError` for one that no person there can have. It may be called before a connection.
        """
        ...

    def inbound(self, memory: Memory) -> AsyncIterator[Inbound]:
        """Yield what people do in the rooms, except what this gateway itself sent.

        When the next one is asked for, the one before is on disk; what `memory` remembers must never be
        further on than that. What came while the connection was broken is yielded if the platform has
        it, else a `Gap` for each room.
        """
        ...

    async def send(self, message: Outgoing) -> str:
        """Send a message, and return its id. It is within `limits`.

        Returns when the platform has it. Waits while there is no connection. Raises `NotSent`, or
        `OSError` if it is not known whether the platform has it.
        """
        ...

    async def change(self, room: str, message: str, sent: Outgoing) -> None:
        """Change a message that was sent. Raises like `send`. Only if `limits.can_edit`."""
        ...

    async def typing(self, room: str, *, is_typing: bool) -> None:
        """Show that the agent is at work, for some seconds, or not any more; does nothing if it cannot.

        Raises nothing.
        """
        ...

    async def check(self) -> list[str]:
        """Connect once, and return lines about what was found: the server, the account, each room.

        Raises `SteersmanError` with what is wrong and what to do.
        """
        ...

    async def aclose(self) -> None:
        """Disconnect. Idempotent."""
        ...
