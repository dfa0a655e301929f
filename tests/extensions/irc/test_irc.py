"""The adapter for IRC, against real servers and people with a plain socket."""

import asyncio
import re
import signal
from asyncio import to_thread
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from support.patience import seconds

pytest.importorskip("irctokens", reason="the extra `irc` is not installed")

from support.irc_server import IrcServer, RawClient, program
from support.platform_reader import PlatformReader, Words

from steersman.extensions.irc.connection import IrcSettings, washed
from steersman.extensions.irc.platform import Irc
from steersman.gateway.chat.platform import Gap, NotSent, Outgoing, Said
from steersman.machines.errors import ConfigError, SteersmanError

KINDS = ("ngircd", "ergo")
TAGS = "account-tag batch echo-message labeled-response message-tags server-time"
Serve = Callable[..., IrcServer]
Person = Callable[..., RawClient]


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start servers; they end with the test."""
    servers: list[IrcServer] = []

    def start(kind: str, **options: Any) -> IrcServer:
        if not program(kind):
            pytest.skip(f"the IRC server {kind} is not installed (for ergo: STEERSMAN_TEST_ERGO)")
        folder = tmp_path / f"server{len(servers)}"
        folder.mkdir()
        servers.append(IrcServer(kind, folder, **options))
        servers[-1].start()
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def person() -> Iterator[Person]:
    """Connect people; they leave with the test."""
    people: list[RawClient] = []

    def connect(
        server: IrcServer, nick: str = "ann", room: str = "#dev", **options: str
    ) -> RawClient:
        people.append(RawClient(server, nick, **options))
        if room:
            people[-1].join(room)
        return people[-1]

    yield connect
    for each in people:
        each.close()


@asynccontextmanager
async def listening(
    server: IrcServer, memory: Words | None = None, rooms: tuple[str, ...] = ("#dev",), **more: Any
) -> AsyncIterator[tuple[Irc, PlatformReader]]:
    """Connect an adapter that is in its rooms, and read it."""
    irc = Irc(IrcSettings(server=server.address, **more), rooms)
    listener = PlatformReader(irc, memory)
    try:
        async with asyncio.timeout(seconds(20)):
            await irc._link.live()
        yield irc, listener
    finally:
        await irc.aclose()
        async with asyncio.timeout(seconds(10)):
            await asyncio.gather(listener.task, return_exceptions=True)


def out(text: str, room: str = "#dev", **more: Any) -> Outgoing:
    """Return a message for a room."""
    return Outgoing(key=f"{room} {text}", room=room, text=text, **more)


@pytest.mark.parametrize("kind", KINDS)
async def test_people_are_read_and_answered(kind: str, serve: Serve, person: Person) -> None:
    """What people say comes with its room and sender; what is sent reaches them, and not ourselves."""
    server = serve(kind)
    ann = person(server)
    async with listening(server) as (irc, listener):
        await to_thread(ann.hears, "JOIN")
        ann.say(
            "PRIVMSG #dev :hello \x02bold\x02 \x0304,01red\x0f",
            "NOTICE #dev :no",
            "PRIVMSG #dev :\x01VERSION\x01",
            "PRIVMSG #dev :\x01ACTION waves\x01",
            "PRIVMSG steers :psst",
        )
        said = await listener.first(3)
        sender = "~ann" if kind == "ergo" else "ann"
        assert [
            (each.room, each.sender, each.name, each.text, each.is_private) for each in said
        ] == [
            ("#dev", sender, "ann", "hello bold red", False),
            ("#dev", sender, "ann", "* ann waves", False),
            ("ann", sender, "ann", "psst", True),
        ]
        assert len({each.id for each in said}) == 3
        sent = [await irc.send(out("pong", mentions=sender)), await irc.send(out("hi", "ann"))]
        assert len(set(sent)) == 2
        assert "PRIVMSG #dev :ann: pong" in await to_thread(ann.hears, "pong")
        await to_thread(ann.hears, "hi")
        ann.say("PRIVMSG #dev :last")
        assert (await listener.first(4))[3].text == "last"
        await irc.aclose()


@pytest.mark.parametrize("kind", KINDS)
async def test_one_line_stays_one_line(kind: str, serve: Serve, person: Person) -> None:
    """Line breaks and control characters cannot make a second command, and nor can a room's name."""
    server = serve(kind)
    ann = person(server)
    async with listening(server) as (irc, _):
        await irc.send(out("a\r\nQUIT :gone\n\x01VERSION\x01\x00 @everyone <b>\x1b[31m\u202eb\x02"))
        line = await to_thread(ann.hears, "a QUIT")
        assert line.endswith("a QUIT :gone VERSION @everyone <b>[31mb")
        for room in ("#dev\r\nQUIT", "#dev x", ":#dev", ""):
            with pytest.raises(NotSent):
                await irc.send(out("x", room))
        with pytest.raises(NotSent):
            await irc.send(out("\x02\x01"))
        await irc.send(out("still here"))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("letter", ["x", "é", "漢", "🐈"])
async def test_a_line_of_the_greatest_length_arrives_whole(
    kind: str, letter: str, serve: Serve, person: Person
) -> None:
    """As many bytes as `limits` says arrive, with a mention before them."""
    server = serve(kind)
    ann = person(server)
    async with listening(server) as (irc, _):
        text = letter * (irc.limits.bytes // len(letter.encode()))
        await irc.send(out(text, mentions="n" * 32))
        assert (await to_thread(ann.hears, "nnn")).endswith(f"{'n' * 32}: {text}")
        with pytest.raises(NotSent, match="longer"):
            await irc.send(out("x" * 500))


async def test_bytes_that_are_no_utf8_are_read(serve: Serve, person: Person) -> None:
    """A person with an old client is read, and does not end the connection."""
    server = serve("ngircd")
    ann = person(server)
    async with listening(server) as (_, listener):
        ann.say(b"PRIVMSG #dev :caf\xe9", b"PRIVMSG #dev :\xff\xfe\x81", "PRIVMSG #dev :é")
        said = await listener.first(3)
        assert said[0].text == "café"
        assert said[2].text == "é"


async def test_nobody_takes_the_name_of_an_account(serve: Serve, person: Person) -> None:
    """The account counts, whatever nick somebody has; a nick without one is never equal to it."""
    server = serve("ergo")
    ann = person(server, "ann", account="ann")
    eve = person(server, "eve")
    async with listening(server) as (_, listener):
        ann.say("PRIVMSG #dev :one", "NICK anna")
        await to_thread(ann.hears, "NICK anna")
        eve.say("NICK ann")
        await to_thread(eve.hears, "NICK ann")
        eve.say("PRIVMSG #dev :two")
        await to_thread(eve.barrier)
        ann.say("PRIVMSG #dev :three")
        said = await listener.first(3)
        assert [(each.sender, each.name) for each in said] == [
            ("ann", "ann"),
            ("~ann", "ann"),
            ("ann", "anna"),
        ]


@pytest.mark.parametrize("kind", KINDS)
async def test_a_killed_server_is_found_again(kind: str, serve: Serve, person: Person) -> None:
    """After kill -9 the rooms are joined again, and it is said that something may be missing."""
    server = serve(kind)
    ann = person(server)
    async with listening(server) as (irc, listener):
        ann.say("PRIVMSG #dev :before")
        await listener.first(1)
        server.kill()
        sending = asyncio.create_task(irc.send(out("later")))
        await to_thread(server.start)
        bob = await to_thread(person, server, "bob")
        gap = (await listener.first(2))[1]
        assert isinstance(gap, Gap)
        assert gap.room == "#dev"
        async with asyncio.timeout(seconds(20)):
            try:
                await sending
            except (OSError, NotSent):
                await irc.send(out("later"))
        bob.say("PRIVMSG #dev :after")
        await listener.first(3)
        assert [item.text for item in listener.items if isinstance(item, Said)] == [
            "before",
            "after",
        ]


async def test_history_is_fetched_and_nothing_is_said_twice(serve: Serve, person: Person) -> None:
    """What was said while nobody listened is yielded in order, over several pages, and once."""
    server = serve("ergo")
    ann, memory = person(server), Words()
    async with listening(server, memory) as (irc, listener):
        ann.say("PRIVMSG #dev :first")
        first = (await listener.first(1))[0]
        await irc.send(out("own"))
    texts = [f"missed {n}" for n in range(230)]
    ann.say(*(f"PRIVMSG #dev :{text}" for text in texts))
    await to_thread(ann.barrier)
    async with listening(server, memory) as (irc, listener):
        ann.say("PRIVMSG #dev :now")
        said = await listener.first(231)
        assert [each.text for each in said] == [*texts, "now"]
        assert first.id not in {each.id for each in said}


async def test_a_start_without_history_says_since_when(serve: Serve, person: Person) -> None:
    """A server without history: the time of the last line is remembered, and each room has a gap."""
    server, memory = serve("ngircd"), Words()
    async with listening(server, memory) as (_, listener):
        assert listener.items == []
    since = float(memory.words["seen"])
    async with listening(server, memory, ("#dev", "bob")) as (_, listener):
        gaps = await listener.first(2)
        assert sorted(gaps, key=lambda gap: gap.room) == [
            Gap(room="#dev", since=since),
            Gap(room="bob", since=since),
        ]


async def test_a_silent_server_is_noticed(serve: Serve, person: Person) -> None:
    """A server that hangs does not answer our PING: the connection is given up."""
    server = serve("ngircd")
    async with listening(server, ping_seconds=0.5) as (irc, listener):
        server.signal(signal.SIGSTOP)
        with pytest.raises(OSError, match="broke"):
            await irc.send(out("into the void"))
        server.signal(signal.SIGCONT)
        assert isinstance((await listener.first(1))[0], Gap)
        await irc.send(out("back"))


@pytest.mark.parametrize("kind", KINDS)
async def test_a_room_that_refuses_and_a_kick(kind: str, serve: Serve, person: Person) -> None:
    """A muted room refuses for good, an unknown nick too; after a kick the room is joined again."""
    server = serve(kind)
    ann = person(server)
    async with listening(server) as (irc, listener):
        ann.say("MODE #dev +m")
        await to_thread(ann.barrier)
        for room in ("#dev", "nobody"):
            with pytest.raises(NotSent) as refused:
                await irc.send(out("x", room))
            assert refused.value.seconds == 0
        ann.say("MODE #dev -m", "KICK #dev steers :out")
        await to_thread(ann.hears, "KICK")
        await to_thread(ann.hears, "JOIN")
        assert isinstance((await listener.first(1))[0], Gap)
        await irc.send(out("back"))
        await to_thread(ann.hears, "back")


@pytest.mark.parametrize("kind", KINDS)
async def test_the_nick_is_taken_back(kind: str, serve: Serve, person: Person) -> None:
    """A nick in use gets another one, until its owner leaves."""
    server = serve(kind)
    owner, ann = person(server, "steers"), person(server)
    async with listening(server) as (irc, _):
        await to_thread(ann.hears, "steers_")
        owner.say("QUIT")
        await to_thread(ann.hears, "NICK")
        await irc.send(out("mine"))
        assert ":steers!" in await to_thread(ann.hears, "mine")


async def test_lines_are_paced(serve: Serve, person: Person) -> None:
    """A flood is slowed down here, so that a server that limits it takes every line, in order."""
    server = serve("ergo", fakelag=True)
    ann = person(server)
    async with listening(server, burst=2, interval=0.1) as (irc, _):
        texts = [f"line {n}" for n in range(8)]
        began = asyncio.get_running_loop().time()
        await asyncio.gather(*(irc.send(out(text)) for text in texts))
        assert asyncio.get_running_loop().time() - began >= 0.5
        lines = [await to_thread(ann.hears, text) for text in texts]
        assert len(lines) == 8


async def test_a_reply_names_its_message(serve: Serve, person: Person) -> None:
    """A server with tags carries what a message answers, both ways."""
    server = serve("ergo")
    ann = person(server, caps=TAGS)
    async with listening(server) as (irc, listener):
        ann.say("@+draft/reply=abc PRIVMSG #dev :an answer")
        said = (await listener.first(1))[0]
        assert said.to == "abc"
        sent = await irc.send(out("mine", to=said.id))
        line = await to_thread(ann.hears, "mine")
        assert f"+draft/reply={said.id}" in line
        assert f"msgid={sent}" in line


@pytest.mark.parametrize("kind", KINDS)
async def test_check_says_what_is_there(kind: str, serve: Serve) -> None:
    """The check names the server, our nick, how people are known, and each room."""
    server = serve(kind)
    lines = await Irc(IrcSettings(server=server.address), ("#dev", "bob")).check()
    assert [line.split(":")[0] for line in lines] == [
        "server",
        "nick",
        "people",
        "history",
        "room #dev",
        "room bob",
    ]
    assert ("anybody can take" in lines[2]) == (kind == "ngircd")


@pytest.mark.parametrize("kind", KINDS)
async def test_a_wrong_password_is_no_matter_of_waiting(
    kind: str, serve: Serve, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong or missing password ends `check` and `inbound` with an error; the right one connects."""
    server = serve(kind, password="right")
    monkeypatch.setenv("IRC_WORD", "wrong")
    irc = Irc(IrcSettings(server=server.address, password_env="IRC_WORD"), ("#dev",))
    with pytest.raises(ConfigError, match="refuses"):
        await irc.check()
    with pytest.raises(ConfigError, match="refuses"):
        _ = [item async for item in irc.inbound(Words())]
    with pytest.raises(NotSent):
        await irc.send(out("x"))
    await irc.aclose()
    monkeypatch.setenv("IRC_WORD", "right")
    async with listening(server, password_env="IRC_WORD") as (irc, _):
        await irc.send(out("x"))


async def test_an_account_logs_in(
    serve: Serve, person: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SASL: the right password makes us the account, a wrong one is an error that names the setting."""
    server = serve("ergo")
    person(server, "robot", account="robot")
    ann = person(server, "ann", caps="account-tag message-tags")
    monkeypatch.setenv("IRC_WORD", "secret-word")
    options = {"sasl_account": "robot", "sasl_password_env": "IRC_WORD"}
    async with listening(server, **options) as (irc, _):
        await irc.send(out("signed"))
        assert "account=robot" in await to_thread(ann.hears, "signed")
    monkeypatch.setenv("IRC_WORD", "wrong")
    with pytest.raises(ConfigError, match="account `robot`"):
        await Irc(IrcSettings(server=server.address, **options), ("#dev",)).check()


def test_settings_that_cannot_be(monkeypatch: pytest.MonkeyPatch) -> None:
    """Missing secrets, passwords without TLS, and rooms that are none are errors at once."""
    monkeypatch.delenv("NO_SUCH_WORD", raising=False)
    with pytest.raises(ConfigError, match="NO_SUCH_WORD"):
        Irc(IrcSettings(server="127.0.0.1:6667", password_env="NO_SUCH_WORD"), ("#dev",))
    monkeypatch.setenv("IRC_WORD", "word")
    with pytest.raises(ConfigError, match="unencrypted"):
        Irc(IrcSettings(server="irc.test:6667", tls=False, password_env="IRC_WORD"), ("#dev",))
    for room in ("#a b", "#a,b", "", "#a\nQUIT"):
        with pytest.raises(ConfigError, match="not the name"):
            Irc(IrcSettings(server="127.0.0.1:6667"), (room,))
    for wrong in ({"server": "x"}, {"server": "h:1", "nick": "#a"}, {"server": "h:1", "word": "x"}):
        with pytest.raises(ValueError, match="validation error"):
            IrcSettings.model_validate(wrong)


@asynccontextmanager
async def scripted(answers: dict[str, bytes]) -> AsyncIterator[str]:
    """Serve a script: a line that contains a key is answered; gives the address."""

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            for key, answer in answers.items():
                if key.encode() in line:
                    writer.write(answer.replace(b"TOKEN", line.split()[-1].lstrip(b":")))
        writer.close()

    server = await asyncio.start_server(talk, "127.0.0.1", 0)
    try:
        host, port = server.sockets[0].getsockname()
        yield f"{host}:{port}"
    finally:
        server.close()
        await server.wait_closed()


WELCOME = (
    b":s 001 steers :hi\r\n:s 005 steers CASEMAPPING=odd CHANTYPES=# :are\r\n:s 422 steers :no\r\n"
)
NONSENSE = (
    b"\r\n:\r\n@\r\n@a=b\r\n:x!y@z\r\nJOIN\r\nKICK\r\nNICK\r\nBATCH\r\nPRIVMSG\r\nFAIL\r\n474\r\n"
)
JOINED = (
    b":steers!u@h JOIN #dev\r\n"
    + NONSENSE
    + b":\xff!u@h PRIVMSG #dev :x\r\n:bob!u@h PRIVMSG #dev :fine\r\n"
)


@pytest.mark.parametrize(
    ("answer", "after"),
    [
        (b":s 439 steers #dev :Target change too fast. Please wait 7 seconds\r\n", 8.0),
        (b":s 263 steers PRIVMSG :Server load is too high\r\n", 10.0),
        (b":s 404 steers #dev :Cannot send to channel\r\n", 0.0),
        (b":s 482 steers #dev :You are not an operator\r\n", 0.0),
    ],
)
async def test_a_server_that_talks_nonsense_and_refuses(answer: bytes, after: float) -> None:
    """Lines that are none are ignored; a refusal says whether, and when, to try again."""
    script = {
        "USER ": WELCOME,
        "JOIN #dev": JOINED,
        "PRIVMSG": answer,
        "PING": b":s PONG s TOKEN\r\n",
    }
    async with scripted(script) as address:
        irc = Irc(IrcSettings(server=address), ("#dev",))
        listener = PlatformReader(irc)
        assert [said.text for said in await listener.first(1)] == ["fine"]
        with pytest.raises(NotSent) as refused:
            await irc.send(out("x"))
        assert refused.value.seconds == after
        await irc.aclose()
        await listener.task


async def test_a_line_that_is_not_confirmed_is_in_doubt() -> None:
    """The connection ends after the line and before the server's word: nobody knows, hence `OSError`."""
    script = {"USER ": WELCOME, "JOIN #dev": JOINED, "PRIVMSG": b"ERROR :bye\r\n"}
    async with scripted(script) as address:
        irc = Irc(IrcSettings(server=address), ("#dev",))
        listener = PlatformReader(irc)
        with pytest.raises(OSError, match="broke"):
            await irc.send(out("x"))
        await irc.aclose()
        await listener.task


async def test_nobody_there() -> None:
    """The check of a server that does not run says so; `aclose` before a start is harmless, and twice."""
    irc = Irc(IrcSettings(server="127.0.0.1:1"), ("#dev",))
    with pytest.raises(SteersmanError, match="no connection"):
        await irc.check()
    await irc.aclose()
    await irc.aclose()


def test_washed() -> None:
    """What is left of a text has no formatting, no control character and no change of direction."""
    assert washed("\x02a\x0312,4b\x04ff0000c\x1b[0m\x7f\x9b\u202ed\te\r\nf") == "abc[0md e f"
    assert not re.search(r"[\x00-\x1f\x7f-\x9f]", washed("".join(map(chr, range(0x100)))))
