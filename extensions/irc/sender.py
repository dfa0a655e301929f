"""Sends lines to an IRC server, one at a time, and waits until the server confirms each."""

from __future__ import annotations

import asyncio
import itertools
import re
import time
from dataclasses import dataclass

from irctokens.line import Line

from ...gateway.chat.platform import NotSent, Outgoing
from .connection import IrcConnection, washed
from .reader import OWN_ID, IrcIds, IrcReader, refuses, seconds

CONFIRM_SECONDS = 30.0  # a connection that does not confirm a line by then is dead
ECHO_SECONDS = 5.0  # an echo that has not come by then is asked after
PREFIX_BYTES = 1 + 1 + 20 + 1 + 64 + 1  # ":", "!", the user, "@", the host, and the space


@dataclass
class IrcSending:
    """A line that the server has not confirmed."""

    target: str
    text: str
    label: str
    token: str
    confirmed: asyncio.Future[str]


class IrcPace:
    """How fast lines may follow each other: so many at once, and one each `interval` seconds."""

    def __init__(self, interval: float, burst: int) -> None:
        self._interval = interval
        self._burst = float(burst)
        self._tokens, self._filled_at = self._burst, time.monotonic()

    async def wait(self) -> None:
        """Wait until the next line may be sent."""
        if not self._interval:
            return
        now = time.monotonic()
        filled = self._tokens + (now - self._filled_at) / self._interval
        self._tokens, self._filled_at = min(filled, self._burst) - 1, now
        if self._tokens < 0:
            await asyncio.sleep(-self._tokens * self._interval)


class IrcSender:
    """Sends lines, and sees what the server says of them."""

    def __init__(self, reader: IrcReader, ids: IrcIds, pace: IrcPace) -> None:
        self.pace = pace
        self._reader = reader
        self._ids = ids
        self._numbers = itertools.count(1)
        self._sending: IrcSending | None = None

    async def deliver(self, connection: IrcConnection, message: Outgoing) -> str:
        """Send a line and return its id. Raises `NotSent`, or `OSError` if its outcome is unknown."""
        text, target = self._text(message), message.room
        if re.search(r"[\s,\0:]", target) or not target:
            raise NotSent(f"`{washed(target)}` is not the name of a room on IRC")
        prefix = len(connection.prefix.encode()) + 2 if connection.prefix else PREFIX_BYTES + 34
        if prefix + len(f"PRIVMSG {target} :{text}\r\n".encode()) > 512:
            raise NotSent("the line is longer than IRC takes")
        number = next(self._numbers)
        sending = IrcSending(
            target=connection.fold(target),
            text=text,
            label=f"s{number}",
            token=f"steersman-{self._ids.began}-{number}",
            confirmed=asyncio.get_running_loop().create_future(),
        )
        self._sending = sending
        try:
            connection.write("PRIVMSG", target, text, tags=_tags(connection, message, sending))
            await connection.drain()
            return await self._confirmed(connection, sending)
        finally:
            self._sending = None

    def _text(self, message: Outgoing) -> str:
        text = washed(message.text).strip()
        if not text:
            raise NotSent("a line without text is not taken by IRC")
        nick = self._reader.nick_of(message.mentions)
        return f"{nick}: {text}" if nick and " " not in nick else text

    async def _confirmed(self, connection: IrcConnection, sending: IrcSending) -> str:
        """Wait for the server's echo, else for its answer to a question that came after the line."""
        if "echo-message" in connection.caps:
            done, _ = await asyncio.wait((sending.confirmed,), timeout=ECHO_SECONDS)
            if done:
                return await sending.confirmed
        connection.write("PING", sending.token)
        try:
            async with asyncio.timeout(CONFIRM_SECONDS):
                return await sending.confirmed
        except TimeoutError:
            connection.close()
            raise

    def take(self, connection: IrcConnection, line: Line) -> None:
        """See whether a line says what became of the one that is being sent."""
        sending = self._sending
        if sending is None or sending.confirmed.done():
            return
        words, tags = line.params, line.tags or {}
        if line.command == "PONG" and sending.token in words:
            if "echo-message" in connection.caps:
                refusal = NotSent("the IRC server did not pass the line on")
                sending.confirmed.set_exception(refusal)
            else:
                sending.confirmed.set_result(self._ids.next())
        elif line.command == "PRIVMSG" and _is_echo(connection, line, sending):
            sending.confirmed.set_result(tags.get("msgid", "") or self._ids.next())
        elif refuses(line) and (
            tags.get("label", "") == sending.label
            or any(connection.fold(word) in (sending.target, "privmsg") for word in words[:-1])
        ):
            refusal = NotSent(
                f"refused by the IRC server: {washed(words[-1])}", seconds=seconds(line)
            )
            sending.confirmed.set_exception(refusal)

    def broke(self) -> None:
        """Take in that the connection broke: what became of the line is not known."""
        if self._sending is not None and not self._sending.confirmed.done():
            self._sending.confirmed.set_exception(
                ConnectionResetError("the connection broke before the server confirmed the line")
            )


def _tags(
    connection: IrcConnection, message: Outgoing, sending: IrcSending
) -> dict[str, str] | None:
    tags: dict[str, str] = {}
    if {"labeled-response", "echo-message"} <= connection.caps:
        tags["label"] = sending.label
    is_answer = 0 < len(message.to) <= 200 and message.to[0] != OWN_ID
    if "message-tags" in connection.caps and is_answer:
        tags["+draft/reply"] = message.to
    return tags or None


def _is_echo(connection: IrcConnection, line: Line, sending: IrcSending) -> bool:
    nick = line.hostmask.nickname if line.source else ""
    if "echo-message" not in connection.caps or connection.fold(nick) != connection.fold(
        connection.nick
    ):
        return False
    label = (line.tags or {}).get("label", "")
    is_same = connection.fold(line.params[0]) == sending.target and line.params[-1] == sending.text
    return label == sending.label if label else is_same
