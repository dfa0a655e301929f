"""Telegram as a chat platform, against a server of the Bot API."""

import asyncio
import base64
import contextlib
import gc
import logging
import socket
import time
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from inspect import signature
from pathlib import Path
from typing import Any

import pytest
from support.patience import seconds

pytest.importorskip("telegram", reason="python-telegram-bot is not installed")

from support.platform_reader import PlatformReader, Words
from support.telegram_server import TOKEN, TelegramServer
from support.until import looked_until

from steersman.extensions.telegram.client import TelegramSettings
from steersman.extensions.telegram.platform import KEPT, Telegram
from steersman.gateway.chat.platform import (
    Chosen,
    Gap,
    NotSent,
    Outgoing,
    Platform,
    Said,
    SentFile,
)
from steersman.machines.errors import ConfigError, SteersmanError

GROUP, FORUM, PRIVATE, CHANNEL = -1001234567890, -1009, 42, -1007
ROOM = str(GROUP)
ANN, BEN = 42, 43

Test = Callable[[Telegram], Coroutine[Any, Any, None]]


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Generator[TelegramServer]:
    """Start a server with two people, a group, a forum, a channel, and a private chat."""
    monkeypatch.setenv("STEERSMAN_TELEGRAM_TOKEN", TOKEN)
    with TelegramServer(tmp_path) as started:
        started.act("person", id=ANN, first_name="Ann", last_name="Lee", username="ann")
        started.act("person", id=BEN, first_name="Ben")
        started.act(
            "chat", id=GROUP, type="supergroup", title="Crew", managers=[ANN], username="crew"
        )
        started.act("chat", id=FORUM, type="supergroup", title="Topics", is_forum=True, topics=[7])
        started.act("chat", id=PRIVATE, type="private", first_name="Ann")
        started.act("chat", id=CHANNEL, type="channel", title="News")
        yield started


def gateway(server: TelegramServer, *rooms: str | int, **settings: Any) -> Telegram:
    """Make a platform for the server."""
    names = tuple(str(room) for room in rooms) or (ROOM,)
    return Telegram(TelegramSettings(server=server.url, **settings), names)


def run(platform: Telegram, body: Test) -> None:
    """Run a test with a platform, and close it; nothing may be left running."""

    async def whole() -> None:
        try:
            async with asyncio.timeout(seconds(40)):
                await body(platform)
        finally:
            await platform.aclose()
            await platform.aclose()
        left = asyncio.all_tasks() - {asyncio.current_task()}
        async with asyncio.timeout(seconds(10)):
            await asyncio.gather(*left, return_exceptions=True)

    asyncio.run(whole())
    gc.collect()  # an unclosed socket would be a warning, which is an error


def in_rooms(
    *rooms: str | int, **settings: Any
) -> Callable[[Callable[..., Any]], Callable[..., None]]:
    """Make a test of a coroutine that takes the server and a platform in these rooms."""

    def decorate(test: Callable[..., Any]) -> Callable[..., None]:
        @wraps(test)
        def tried(server: TelegramServer, **more: Any) -> None:
            run(gateway(server, *rooms, **settings), lambda it: test(server, telegram=it, **more))

        own = signature(test)
        taken = [each for name, each in own.parameters.items() if name != "telegram"]
        vars(tried)["__signature__"] = own.replace(parameters=taken)
        return tried

    return decorate


def out(text: str, room: str = ROOM, **more: Any) -> Outgoing:
    """Make a message."""
    return Outgoing(key="k", room=room, text=text, **more)


def calls(server: TelegramServer, method: str) -> list[dict[str, Any]]:
    """Return the parameters of all calls of a method."""
    return [row["given"] for row in server.act("calls") if row["method"] == method]


def sent(server: TelegramServer, chat: int = GROUP) -> list[dict[str, Any]]:
    """Return the messages of the bot in a chat."""
    found = server.act("messages", chat=chat)
    return [row for row in found if row.get("from", {}).get("is_bot")]


# What people do


@in_rooms(GROUP, FORUM, PRIVATE)
async def test_what_is_said(server: TelegramServer, telegram: Telegram) -> None:
    """Messages come with their room, sender, name; answers, topics and private chats are told apart."""
    read = PlatformReader(telegram)
    server.act("say", chat=GROUP, user=ANN, text="hello 😀 <b>x</b>\n\u001b[31m")
    first = await read.said()
    assert first == Said(
        id=f"{GROUP}/1",
        room=ROOM,
        sender="42",
        name="Ann Lee",
        text="hello 😀 <b>x</b>\n\u001b[31m",
    )
    server.act("say", chat=GROUP, user=BEN, text="yes", to=1)
    assert (await read.said()).to == f"{GROUP}/1"
    opening = server.act(
        "say",
        chat=FORUM,
        user=ANN,
        text="topic",
        forum_topic_created={"name": "t", "icon_color": 1},
    )
    assert (await read.said()).thread == ""
    server.act("say", chat=FORUM, user=ANN, text="in it", to=opening, thread=7)
    inside = await read.said()
    assert (inside.thread, inside.to, inside.room) == ("7", "", str(FORUM))
    server.act("say", chat=PRIVATE, user=ANN, text="psst")
    assert (await read.said()).is_private


@in_rooms(GROUP, CHANNEL)
async def test_who_says_it(server: TelegramServer, telegram: Telegram) -> None:
    """A person is their number, whatever they call themselves; a chat is no person; bots are left out."""
    read = PlatformReader(telegram)
    server.act("person", id=66, first_name="Ann", last_name="Lee\n\u202e<b>", username="ann")
    server.act("person", id=77, first_name="Robot", is_bot=True)
    server.act("say", chat=GROUP, user=66, text="I am Ann")
    said = await read.said()
    assert (said.sender, said.name) == ("66", "Ann Lee <b>")
    server.act("say", chat=GROUP, user=77, text="a bot")
    server.act("say", chat=GROUP, user=0, sender_chat=GROUP, text="anonymous")
    assert (await read.said()).sender == f"chat:{GROUP}"
    server.act("say", chat=CHANNEL, user=0, sender_chat=CHANNEL, text="post")
    said = await read.said()
    assert (said.sender, said.name, said.room) == (f"chat:{CHANNEL}", "News", str(CHANNEL))
    server.act("say", chat=GROUP, user=BEN, sender_chat=CHANNEL, text="as the channel")
    assert (await read.said()).sender == f"chat:{CHANNEL}"
    server.act("chat", id=5, type="private", first_name="Eve")
    server.act("say", chat=5, user=66, text="not a room of ours")
    server.act("say", chat=GROUP, user=BEN, text="last")
    assert (await read.said()).text == "last"


@in_rooms()
async def test_edits(server: TelegramServer, telegram: Telegram) -> None:
    """Each edit replaces its message under an id of its own; one that changes no text is left out."""
    read = PlatformReader(telegram)
    server.act("say", chat=GROUP, user=ANN, text="one")
    assert (await read.said()).replaces == ""
    for text in ("one", "two", "two", "three"):
        server.act("edit", chat=GROUP, message=1, text=text)
    edits = [await read.said(), await read.said()]
    assert [(edit.text, edit.replaces) for edit in edits] == [
        ("two", f"{GROUP}/1"),
        ("three", f"{GROUP}/1"),
    ]
    assert len({edit.id for edit in edits} | {f"{GROUP}/1"}) == 3


@in_rooms(file_bytes=2000)
async def test_files(server: TelegramServer, telegram: Telegram) -> None:
    """A small text comes with its content; others with name and size."""

    def document(name: str, content: bytes) -> dict[str, str]:
        return {"name": name, "content": base64.b64encode(content).decode()}

    read = PlatformReader(telegram)
    for name, content in (
        ("notes.txt", "Grüße\n".encode()),
        ("big.txt", b"x" * 3000),
        ("\u202ecod.exe", b"\x00\xff"),
    ):
        server.act("say", chat=GROUP, user=ANN, text="see", document=document(name, content))
    found = [await read.said() for _ in range(3)]
    assert [one.text for one in found] == ["see"] * 3
    assert [one.files[0] for one in found] == [
        SentFile(name="notes.txt", size=8, text="Grüße\n"),
        SentFile(name="big.txt", size=3000),
        SentFile(name="cod.exe", size=2),
    ]
    sizes = [
        {
            "file_id": str(size),
            "file_unique_id": str(size),
            "width": 1,
            "height": 1,
            "file_size": size,
        }
        for size in (5, 50)
    ]
    server.act("say", chat=GROUP, user=ANN, photo=sizes)
    assert (await read.said()).files == (SentFile(name="photo", size=50),)


@in_rooms()
async def test_another_file_is_an_edit(server: TelegramServer, telegram: Telegram) -> None:
    """A message whose file is exchanged is a change, although its words are the same."""
    read = PlatformReader(telegram)
    document = {"name": "a.txt", "content": base64.b64encode(b"a").decode()}
    server.act("say", chat=GROUP, user=ANN, text="see", document=document)
    first = await read.said()
    (update,) = server.act("last")
    message = update["message"]
    message["document"] |= {"file_name": "b.txt"}
    for _ in range(2):
        server.act("raw", update={"edited_message": message | {"edit_date": 1}})
    server.act("say", chat=GROUP, user=ANN, text="end")
    second = await read.said()
    assert (second.replaces, second.files[0].name) == (first.id, "b.txt")
    assert (await read.said()).text == "end"


@in_rooms()
async def test_a_file_that_cannot_be_fetched(server: TelegramServer, telegram: Telegram) -> None:
    """The message comes without the content."""
    read = PlatformReader(telegram)
    server.act("put", name="fails", value={"getFile": 400})
    document = {"name": "a.txt", "content": base64.b64encode(b"a").decode()}
    server.act("say", chat=GROUP, user=ANN, document=document)
    assert (await read.said()).files == (SentFile(name="a.txt", size=1),)


@in_rooms()
async def test_buttons(server: TelegramServer, telegram: Telegram) -> None:
    """A press is the text of a button that the message has now; each press is answered."""
    choices = ("Yes", "No, 😀 " + "and a long reason " * 10)

    read = PlatformReader(telegram)
    message = await telegram.send(out("Go on?", kind="question", choices=choices))
    number = int(message.rpartition("/")[2])
    server.act("press", chat=GROUP, message=number, user=BEN, button=1)
    found = await read.next()
    assert isinstance(found, Chosen)
    assert (found.message, found.choice, found.sender, found.room, found.name) == (
        message,
        choices[1],
        "43",
        ROOM,
        "Ben",
    )
    rows = sent(server)[0]["reply_markup"]["inline_keyboard"]
    await telegram.change(ROOM, message, out("Go on?", choices=("Stop", "No")))
    old = server.act(
        "press", chat=GROUP, message=number, user=BEN, data=rows[0][0]["callback_data"]
    )
    forged = server.act("press", chat=GROUP, message=number, user=BEN, data="Yes")
    server.act("press", chat=GROUP, message=number, user=ANN, button=0)
    last = await read.next()
    assert isinstance(last, Chosen)
    assert (last.choice, last.sender) == ("Stop", "42")
    await looked_until(lambda: all(server.act("queries").values()))
    assert {old, forged} <= set(server.act("queries"))


@in_rooms()
async def test_reactions(server: TelegramServer, telegram: Telegram) -> None:
    """Each emoji that is added is chosen; one that is taken away is not."""
    read = PlatformReader(telegram)
    server.act("say", chat=GROUP, user=ANN, text="so that the updates are asked for")
    await read.next()
    message = await telegram.send(out("Done."))
    number = int(message.rpartition("/")[2])
    server.act("react", chat=GROUP, message=number, user=BEN, emoji=["👍"])
    server.act("react", chat=GROUP, message=number, user=BEN, emoji=["👍", "🔥"])
    server.act("react", chat=GROUP, message=number, user=BEN, emoji=[])
    server.act("react", chat=GROUP, message=number, user=0, actor_chat=GROUP, emoji=["👎"])
    found = [await read.next() for _ in range(3)]
    assert len({one.id for one in found if isinstance(one, Chosen)}) == 3
    assert [(one.choice, one.sender, one.message) for one in found if isinstance(one, Chosen)] == [
        ("👍", "43", message),
        ("🔥", "43", message),
        ("👎", f"chat:{GROUP}", message),
    ]


# That nothing is lost


def test_confirmed_when_taken(server: TelegramServer) -> None:
    """What was not taken comes again after a restart, with the same id; what was taken does not."""

    async def first(telegram: Telegram) -> None:
        for text in ("one", "two"):
            server.act("say", chat=GROUP, user=ANN, text=text)
        inbound = telegram.inbound(Words())
        found = await anext(inbound)
        assert isinstance(found, Said)
        assert found.text == "one"

    async def second(telegram: Telegram) -> None:
        read = PlatformReader(telegram)
        found = [await read.said(), await read.said()]
        assert [(one.id, one.text) for one in found] == [
            (f"{GROUP}/1", "one"),
            (f"{GROUP}/2", "two"),
        ]
        server.act("say", chat=GROUP, user=ANN, text="three")
        await read.said()
        await looked_until(lambda: not server.act("pending"))

    async def third(telegram: Telegram) -> None:
        server.act("say", chat=GROUP, user=ANN, text="four")
        assert (await PlatformReader(telegram).said()).text == "four"

    for body in (first, second, third):
        run(gateway(server), body)


@in_rooms()
async def test_the_server_is_killed(server: TelegramServer, telegram: Telegram) -> None:
    """What is said before and after comes once, and what is sent meanwhile waits."""
    read = PlatformReader(telegram)
    server.act("say", chat=GROUP, user=ANN, text="before")
    assert (await read.said()).text == "before"
    for turn in range(2):
        server.kill()
        sending = asyncio.create_task(telegram.send(out(f"meanwhile {turn}")))
        _, pending = await asyncio.wait({sending}, timeout=0.3)
        assert pending
        server.start()
        server.act("say", chat=GROUP, user=ANN, text=f"after {turn}")
        assert (await read.said()).text == f"after {turn}"
        assert await sending
    assert [message["text"] for message in sent(server)] == ["meanwhile 0", "meanwhile 1"]
    assert read.is_empty


@in_rooms()
async def test_an_unreachable_server_is_waited_for(
    server: TelegramServer, telegram: Telegram
) -> None:
    """The platform starts before its server."""
    server.act("say", chat=GROUP, user=ANN, text="early")
    server.kill()

    read = PlatformReader(telegram)
    _, pending = await asyncio.wait({read.task}, timeout=0.5)
    assert pending
    with pytest.raises(SteersmanError, match="cannot be reached"):
        await telegram.check()
    server.start()
    assert (await read.said()).text == "early"


@pytest.mark.nightly
@pytest.mark.parametrize("code", [400, 403, 418, 500])
@in_rooms()
async def test_a_server_that_fails_is_asked_again(
    server: TelegramServer, telegram: Telegram, code: int
) -> None:
    """Whatever it answers to the request for updates; what was said is not lost."""
    server.act("put", name="fails", value={"getUpdates": code})
    server.act("say", chat=GROUP, user=ANN, text="still there")

    read = PlatformReader(telegram)
    await looked_until(lambda: len(calls(server, "getUpdates")) > 1)
    server.act("put", name="fails", value={})
    assert (await read.said()).text == "still there"


def test_a_gap_after_a_day(server: TelegramServer) -> None:
    """The server keeps updates for a day: a longer absence is a gap in each room."""
    long_ago, lately = int(time.time() - KEPT - 60), int(time.time() - KEPT + 600)

    async def absent(telegram: Telegram) -> None:
        memory = Words(heard=str(long_ago))
        read = PlatformReader(telegram, memory)
        gaps = [await read.next(), await read.next()]
        assert gaps == [
            Gap(room=ROOM, since=float(long_ago)),
            Gap(room=str(PRIVATE), since=float(long_ago)),
        ]
        server.act("say", chat=GROUP, user=ANN, text="now")
        await read.said()
        await looked_until(
            lambda: int(memory.get("heard")) > long_ago and not server.act("pending")
        )

    async def present(telegram: Telegram) -> None:
        read = PlatformReader(telegram, Words(heard=str(lately)))
        server.act("say", chat=GROUP, user=ANN, text="later")
        assert (await read.said()).text == "later"

    run(gateway(server, GROUP, PRIVATE), absent)
    run(gateway(server, GROUP, PRIVATE), present)


@in_rooms()
async def test_updates_with_other_numbers(server: TelegramServer, telegram: Telegram) -> None:
    """After a week the server may number them anew; each still comes once."""
    read = PlatformReader(telegram)
    server.act("say", chat=GROUP, user=ANN, text="old")
    await read.said()
    server.act("forget")
    for text in ("new", "newer"):
        server.act("say", chat=GROUP, user=ANN, text=text)
    assert [(await read.said()).text for _ in range(2)] == ["new", "newer"]
    await looked_until(lambda: not server.act("pending"))
    assert read.is_empty


@in_rooms()
async def test_an_update_that_cannot_be_read(server: TelegramServer, telegram: Telegram) -> None:
    """It is passed over; those after it come."""
    read = PlatformReader(telegram)
    server.act("raw", update={"message": {"date": "never"}})
    server.act("raw", update={"message": 5})
    server.act("raw", update={"a_later_kind": {"x": 1}})
    server.act("say", chat=GROUP, user=ANN, text="after", a_later_field={"y": []})
    assert (await read.said()).text == "after"


@in_rooms()
async def test_another_reader(server: TelegramServer, telegram: Telegram) -> None:
    """Another program that reads once is borne; a webhook is an error that says what to do."""
    read = PlatformReader(telegram)
    await looked_until(lambda: bool(server.act("polling")))
    await asyncio.to_thread(_poll_once, server)
    server.act("say", chat=GROUP, user=ANN, text="still here")
    assert (await read.said()).text == "still here"
    server.act("put", name="webhook", value="https://example.org")
    server.act("say", chat=GROUP, user=ANN, text="ends the request that is under way")
    with pytest.raises(ConfigError, match="webhook"):
        await read.task


def _poll_once(server: TelegramServer) -> None:
    """Ask for updates over a socket of our own; the platform, which asks again, may end this."""
    line = f"GET /bot{TOKEN}/getUpdates?timeout=1 HTTP/1.1\r\nHost: x\r\n\r\n"
    address = ("127.0.0.1", server.port)
    with socket.create_connection(address, timeout=seconds(15)) as connection:
        connection.sendall(line.encode())
        assert connection.recv(64).startswith((b"HTTP/1.1 200", b"HTTP/1.1 409"))


def test_a_group_becomes_a_supergroup(server: TelegramServer) -> None:
    """The room keeps its name, also over a restart; ids in the new chat are other ids."""
    server.act("chat", id=-55, type="group", title="Small")
    memory = Words()

    async def heard(telegram: Telegram) -> None:
        read = PlatformReader(telegram, memory)
        server.act("say", chat=-55, user=ANN, text="small")
        server.act("say", chat=-55, user=ANN, text="small too")
        small = [await read.said(), await read.said()][1]
        server.act("migrate", old=-55, new=-10055)
        server.act("say", chat=-10055, user=ANN, text="skipped one number")
        server.act("say", chat=-10055, user=ANN, text="large")
        found = [await read.said(), await read.said()]
        assert {one.room for one in (small, *found)} == {"-55"}
        assert len({one.id for one in (small, *found)}) == 3
        assert await telegram.send(out("here", "-55", to=small.id)) == "-10055/4"
        assert "reply_to_message" not in sent(server, -10055)[-1]

        assert memory.get("moved -55") == "-10055"

    async def restarted(telegram: Telegram) -> None:
        read = PlatformReader(telegram, memory)
        server.act("say", chat=-10055, user=ANN, text="again")
        assert (await read.said()).room == "-55"

    async def by_sending(telegram: Telegram) -> None:
        assert (await telegram.send(out("found it", "-56"))).startswith("-10056/")

    run(gateway(server, -55), heard)
    run(gateway(server, -55), restarted)
    server.act("chat", id=-56, type="group", title="Other")
    server.act("migrate", old=-56, new=-10056, is_silent=True)
    run(gateway(server, -56), by_sending)


# What is sent


def entities(message: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the kind of each entity, and the text that it covers, by UTF-16 as Telegram counts."""
    text = message["text"].encode("utf-16-le")
    return [
        (
            entity["type"],
            text[entity["offset"] * 2 : (entity["offset"] + entity["length"]) * 2].decode(
                "utf-16-le"
            ),
        )
        for entity in message.get("entities", [])
    ]


@in_rooms()
async def test_an_answer_with_markdown(server: TelegramServer, telegram: Telegram) -> None:
    """Code and bold are entities in place of their marks; nothing else is markup or a mention."""
    text = (
        "😀 **Bold `code` @ann** and `x = 1`, <b>no</b> [link](tg://user?id=43) @everyone\n"
        "```python\nprint('@ben 😀')\n```\nan @`ann`, a_b*c 2 ** 3 ** 4 ann@example.org\n~~~\nopen"
    )

    await telegram.send(out(text, kind="answer"))
    message = sent(server)[0]
    assert message["text"] == (
        "😀 Bold code @ann and x = 1, <b>no</b> [link](tg://user?id=43) @everyone\n"
        "print('@ben 😀')\nan @ann, a_b*c 2 ** 3 ** 4 ann@example.org\nopen"
    )
    assert entities(message) == [
        ("bold", "Bold "),
        ("code", "code"),
        ("bold", " "),
        ("code", "@ann"),
        ("code", "x = 1"),
        ("code", "@everyone"),
        ("pre", "print('@ben 😀')"),
        ("code", "@ann"),
        ("pre", "open"),
    ]
    assert [
        entity.get("language") for entity in message["entities"] if entity["type"] == "pre"
    ] == [
        "python",
        None,
    ]
    assert message["link_preview_options"] == {"is_disabled": True}
    await telegram.send(out("**a** `b` @x\x00\x07\r\nc\u202e\ud800"))
    assert sent(server)[1]["text"] == "**a** `b` @x\nc"
    assert "parse_mode" not in calls(server, "sendMessage")[0]


@in_rooms(GROUP, PRIVATE)
async def test_no_name_is_a_mention(server: TelegramServer, telegram: Telegram) -> None:
    """Neither one nor more than there can be entities; only the person for whom the message is."""
    await telegram.send(out("@everyone " * 150))
    await telegram.send(out("@crew: look, @ann", mentions="43"))
    await telegram.send(out("who?", mentions="4711"))
    await telegram.send(out("who?", mentions=f"chat:{CHANNEL}"))
    server.act("person", id=89, first_name="@all @ann")
    await telegram.send(out("hi", mentions="89"))
    many, look, *others, named = sent(server)
    assert (named["text"], entities(named)) == ("all ann: hi", [("text_mention", "all ann")])
    assert {kind for kind, _ in entities(many)} == {"code"}
    assert entities(look) == [("text_mention", "Ben"), ("code", "@crew"), ("code", "@ann")]
    assert look["entities"][0]["user"]["id"] == BEN
    assert look["text"] == "Ben: @crew: look, @ann"
    assert [entities(other) for other in others] == [[], []]
    await telegram.send(out("only you", str(PRIVATE), mentions="42"))
    assert sent(server, PRIVATE)[0]["text"] == "only you"


@pytest.mark.nightly
@pytest.mark.parametrize("sign", ["a", "ж", "漢", "😀", "@ab ", "`x` ", "**b** "])
@in_rooms()
async def test_the_longest_message(server: TelegramServer, telegram: Telegram, sign: str) -> None:
    """What is within the limits is within Telegram's, in whichever script, with the longest name."""
    server.act("person", id=88, first_name="😀" * 64, last_name="😀" * 64)

    size = len(sign.encode())
    text = sign * (telegram.limits.bytes // size)
    assert await telegram.send(out(text, kind="answer", mentions="88"))


@in_rooms(FORUM)
async def test_where_it_stands(server: TelegramServer, telegram: Telegram) -> None:
    """A message answers another, in a topic; an answer to what is gone is sent all the same."""
    first = server.act("say", chat=FORUM, user=ANN, text="q", thread=7)
    to = f"{FORUM}/{first}"
    await telegram.send(out("a", str(FORUM), to=to, thread="7"))
    await telegram.send(out("b", str(FORUM), to=f"{FORUM}/999"))
    with pytest.raises(NotSent, match="thread not found") as refused:
        await telegram.send(out("c", str(FORUM), thread="8"))
    assert refused.value.seconds == 0
    answer, other = sent(server, FORUM)
    assert (answer["reply_to_message"]["message_id"], answer["message_thread_id"]) == (first, 7)
    assert "reply_to_message" not in other


@in_rooms()
async def test_a_change(server: TelegramServer, telegram: Telegram) -> None:
    """A message is changed; one that is the same already is no error; what is not ours is refused."""
    message = await telegram.send(out("working", choices=("Stop",)))
    for _ in range(2):
        await telegram.change(ROOM, message, out("`done`", kind="answer"))
    (found,) = sent(server)
    assert (found["text"], entities(found)) == ("done", [("code", "done")])
    assert "reply_markup" not in found
    theirs = server.act("say", chat=GROUP, user=ANN, text="mine")
    for wrong in (f"{GROUP}/{theirs}", f"{GROUP}/999", "nonsense"):
        with pytest.raises(NotSent) as refused:
            await telegram.change(ROOM, wrong, out("x"))
        assert refused.value.seconds == 0


@in_rooms()
async def test_too_many_messages(server: TelegramServer, telegram: Telegram) -> None:
    """The server's pause is that of the error; the message was not sent."""
    server.act("put", name="rate", value=[2, 7])

    for text in ("1", "2"):
        await telegram.send(out(text))
    with pytest.raises(NotSent) as refused:
        await telegram.send(out("3"))
    assert 1 <= refused.value.seconds <= 7
    assert [message["text"] for message in sent(server)] == ["1", "2"]


@pytest.mark.parametrize(
    "reason", ["bot was kicked from the supergroup chat", "\x1b[31m" + "x" * 900]
)
@in_rooms()
async def test_a_refused_message(server: TelegramServer, telegram: Telegram, reason: str) -> None:
    """It is never sent, and the server's words reach nobody's terminal as more than words."""
    server.act("remove", chat=GROUP, reason=reason)

    with pytest.raises(NotSent) as refused:
        await telegram.send(out("hello"))
    assert refused.value.seconds == 0
    assert refused.value.message.isprintable()
    assert len(refused.value.message) <= 300
    with pytest.raises(NotSent, match="without text"):
        await telegram.send(out(" \x00\n"))


@in_rooms()
async def test_an_unknown_outcome(server: TelegramServer, telegram: Telegram) -> None:
    """If the connection breaks after the message was taken, or the server fails, that is said."""
    server.act("put", name="breaks", value={"sendMessage": 1, "editMessageText": 1})

    with pytest.raises(OSError, match="unknown"):
        await telegram.send(out("once"))
    (found,) = sent(server)
    with pytest.raises(OSError, match="unknown"):
        await telegram.change(ROOM, f"{GROUP}/{found['message_id']}", out("changed"))
    assert sent(server)[0]["text"] == "changed"
    server.act("put", name="fails", value={"sendMessage": 502})
    with pytest.raises(OSError, match="502"):
        await telegram.send(out("perhaps"))


@in_rooms()
async def test_typing(server: TelegramServer, telegram: Telegram) -> None:
    """It is shown where the agent is at work; an error of it is nobody's."""
    await telegram.typing(ROOM, is_typing=False)
    await telegram.typing("-999", is_typing=True)
    await telegram.typing(ROOM, is_typing=True)
    await looked_until(lambda: len(calls(server, "sendChatAction")) == 2)
    shown = [call["chat_id"] for call in calls(server, "sendChatAction")]
    assert sorted(shown) == [ROOM, "-999"]


# What is checked, and how it ends


@in_rooms("@crew", -77, PRIVATE)
async def test_check(server: TelegramServer, telegram: Telegram) -> None:
    """The lines name the bot, each room, who manages it, and what the bot cannot read."""
    server.act("chat", id=-77, type="supergroup", title="Guests", status="member")

    lines = await telegram.check()
    assert lines == [
        f"server {server.url}",
        "bot 700001 @steersman_bot (Steersman)",
        "the connection is not encrypted: the token is readable on its way",
        f"room @crew: supergroup `Crew`, id {GROUP}",
        "  administrator 42 = Ann Lee @ann",
        "room -77: supergroup `Guests`, id -77",
        "  reactions are not received: the bot is no administrator there",
        "room 42: private `Ann`, id 42",
    ]


@in_rooms("@crew")
async def test_a_public_name(server: TelegramServer, telegram: Telegram) -> None:
    """A room may be a public name; its id is found."""
    read = PlatformReader(telegram)
    server.act("say", chat=GROUP, user=ANN, text="hi")
    assert (await read.said()).room == "@crew"
    assert (await telegram.send(out("ho", "@crew"))).startswith(f"{GROUP}/")


@pytest.mark.nightly
@pytest.mark.parametrize(
    ("token", "room", "words"),
    [
        ("700001:" + "w" * 35, ROOM, "refuses the token"),
        (TOKEN, "-4711", "Chat not found"),
        (TOKEN, "@nobody", "Chat not found"),
        (TOKEN, "-66", "kicked"),
    ],
)
def test_what_no_waiting_repairs(
    server: TelegramServer, monkeypatch: pytest.MonkeyPatch, token: str, room: str, words: str
) -> None:
    """A wrong token and a wrong room end the platform with an error that names them."""
    monkeypatch.setenv("STEERSMAN_TELEGRAM_TOKEN", token)
    server.act("chat", id=-66, type="group", title="Out", status="kicked")
    server.act("remove", chat=-66, reason="bot was kicked from the group chat")

    async def body(telegram: Telegram) -> None:
        with pytest.raises(ConfigError, match=words) as checked:
            await telegram.check()
        with pytest.raises(ConfigError, match=words) as read:
            await PlatformReader(telegram).next()
        assert all(error.value.hint and token not in str(error.value) for error in (checked, read))

    run(gateway(server, room), body)


@pytest.mark.parametrize("value", ["", "77777", "123:abc\n456:def", "bot123:abcdef"])
def test_a_token_that_is_none(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    """The error names the variable, never its value."""
    monkeypatch.setenv("OTHER_TOKEN", value)
    with pytest.raises(ConfigError, match="OTHER_TOKEN") as error:
        Telegram(TelegramSettings(token_env="OTHER_TOKEN"), ("-1",))
    assert not value or value not in str(error.value) + error.value.hint


@pytest.mark.parametrize(
    "server", ["", "api.telegram.org", "ftp://x", "https://x/{token}", "http://u@h"]
)
def test_a_wrong_server(server: str) -> None:
    """An address that is none, or has a login, is refused with the settings."""
    with pytest.raises(ValueError, match="an address like"):
        TelegramSettings(server=server)


@pytest.mark.parametrize("room", ["crew", "", "-1x", "@a b", "https://t.me/crew"])
def test_a_wrong_room_name(server: TelegramServer, room: str) -> None:
    """What can be no chat is refused at once."""
    with pytest.raises(ConfigError, match="no Telegram chat"):
        Telegram(TelegramSettings(server=server.url), (room,))


def test_the_token_is_nowhere(
    server: TelegramServer, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    """It is in no log at the finest level, and in no error with all its causes, whatever fails."""
    secret = TOKEN.split(":")[1]
    caplog.set_level(logging.DEBUG)
    shown: list[str] = []

    async def fail(work: Coroutine[Any, Any, Any]) -> None:
        with contextlib.suppress(SteersmanError, OSError):
            try:
                await work
            except (SteersmanError, OSError) as error:
                link: BaseException | None = error
                while link:
                    shown.append(f"{link!r} {link} {vars(link)}")
                    link = link.__cause__ or link.__context__
                raise

    async def body(telegram: Telegram) -> None:
        read = PlatformReader(telegram)
        document = {"name": "a.txt", "content": base64.b64encode(b"a").decode()}
        server.act("say", chat=GROUP, user=ANN, document=document)
        assert (await read.said()).files[0].text == "a"
        await telegram.send(out("fine"))
        server.act("put", name="breaks", value={"sendMessage": 1})
        await fail(telegram.send(out("breaks")))
        for code in (400, 401, 403, 404, 418, 500, 502):
            server.act(
                "put", name="fails", value={"sendMessage": code, "getMe": code, "getChat": code}
            )
            await fail(telegram.send(out("fails")))
            await fail(telegram.check())
        server.kill()
        await fail(telegram.check())
        shown.append(f"{telegram!r} {telegram.limits!r}")

    run(gateway(server), body)
    assert len(shown) >= 15
    logged = caplog.text + "".join(str(vars(record)) for record in caplog.records)
    assert "/bot(token)/" in logged  # the client does log addresses
    everything = "\n".join(shown) + logged + "".join(capfd.readouterr())
    assert secret not in everything


@in_rooms()
async def test_closing(server: TelegramServer, telegram: Telegram) -> None:
    """Closing ends the reading, what waits to be sent, and all that is open."""
    face: Platform = telegram
    read = PlatformReader(telegram)
    await looked_until(lambda: bool(server.act("polling")))
    server.kill()
    sending = asyncio.create_task(face.send(out("never")))
    await asyncio.wait({sending}, timeout=0.1)
    await face.aclose()
    async with asyncio.timeout(seconds(10)):
        with pytest.raises(OSError, match="closed"):
            await sending
        await read.task
    with pytest.raises(OSError, match="closed"):
        await face.send(out("never"))
    await face.typing(ROOM, is_typing=True)
