"""The gateway to Matrix, with a real server."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import ExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from support.coroutines import run
from support.matrix_server import MatrixServer, Person, Refused, python
from support.patience import seconds
from support.platform_reader import PlatformReader, Words
from support.ports import HeldPort
from support.until import looked_until

pytest.importorskip("nio", reason="the extra `matrix` is not installed")

from steersman.extensions.matrix.link import MatrixSettings
from steersman.extensions.matrix.platform import Matrix
from steersman.gateway.chat.platform import (
    Chosen,
    NotSent,
    Outgoing,
    Removed,
    Said,
    SentFile,
)
from steersman.machines.errors import ConfigError, SteersmanError

pytestmark = [
    pytest.mark.skipif(python() is None, reason="Synapse is not installed: `.ci/synapse` does"),
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Generator[MatrixServer]:
    """A server that limits nobody."""
    with MatrixServer(tmp_path_factory.mktemp("matrix")) as server:
        yield server


@pytest.fixture
def own_server(tmp_path: Path) -> Generator[Callable[..., MatrixServer]]:
    """Start servers for one test."""
    with ExitStack() as closing:
        yield lambda **options: closing.enter_context(MatrixServer(tmp_path, **options))


class Notebook(Words):
    """What the gateway remembers; `changed` when that is a place up to which it has read."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = asyncio.Event()

    async def put(self, name: str, word: str) -> None:
        """Keep a word."""
        await super().put(name, word)
        if name.startswith("place "):
            self.changed.set()


class Listener(PlatformReader):
    """Takes what the gateway yields."""

    def __init__(self, matrix: Matrix, memory: Notebook) -> None:
        super().__init__(matrix, memory)
        self.matrix, self.memory = matrix, memory

    async def until_remembered(self) -> None:
        """Wait until a place is kept that is further on than now."""
        self.memory.changed.clear()
        await asyncio.wait_for(self.memory.changed.wait(), seconds(20))


class Scene:
    """A room with a person, the gateway's account and perhaps others."""

    def __init__(
        self, server: MatrixServer, monkeypatch: pytest.MonkeyPatch, **options: Any
    ) -> None:
        self.server, self.monkeypatch = server, monkeypatch
        self.ann, self.bot = server.person("ann"), server.person("steers")
        self.room = self.ann.room(self.bot, **options)

    def matrix(self, *rooms: str, **options: Any) -> Matrix:
        """Make the gateway; it has joined nothing yet."""
        self.monkeypatch.setenv("TEST_TOKEN", self.bot.token)
        self.monkeypatch.setenv("TEST_PASSWORD", self.bot.password)
        usual = {"token_env": "TEST_TOKEN", "server": self.server.address, "account": self.bot.id}
        return Matrix(MatrixSettings(**{**usual, **options}), rooms or (self.room,))


@pytest.fixture
def scene(server: MatrixServer, monkeypatch: pytest.MonkeyPatch) -> Scene:
    """A scene on the server that limits nobody."""
    return Scene(server, monkeypatch)


@asynccontextmanager
async def listening(matrix: Matrix, memory: Notebook | None = None) -> AsyncIterator[Listener]:
    """Listen until the end of the block, from the moment on that all is set up."""
    memory = memory or Notebook()
    is_first = not any(name.startswith("place ") for name in memory.words)
    listener = Listener(matrix, memory)
    try:
        if is_first:
            waiting = asyncio.create_task(listener.until_remembered())
            await asyncio.wait((waiting, listener.task), return_when=asyncio.FIRST_COMPLETED)
            if listener.task.done():
                waiting.cancel()
                listener.task.result()
            await waiting
        yield listener
    finally:
        await matrix.aclose()
        listener.task.cancel()
        await asyncio.gather(listener.task, return_exceptions=True)


def out(scene: Scene, key: str, text: str, **options: Any) -> Outgoing:
    """Return a message for the scene's room."""
    return Outgoing(**{"key": key, "room": scene.room, "text": text} | options)


async def test_what_is_said_is_heard(server: MatrixServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Messages, replies, threads, edits and removals are yielded as what they are; older ones are not."""
    scene = Scene(server, monkeypatch, room_alias_name=f"dev{time.monotonic_ns()}")
    ann = scene.ann
    alias = ann.ask(f"rooms/{scene.room}/state/m.room.canonical_alias")["alias"]
    ann.send(scene.room, "before the gateway came")
    async with listening(scene.matrix(alias)) as listener:
        first = ann.send(scene.room, "hello")
        who = {"room": alias, "sender": ann.id, "name": "ann"}
        assert await listener.next() == Said(id=first, text="hello", **who)

        quote = f"> <{ann.id}> hello\n> again\n\nyes"
        relation: dict[str, Any] = {"m.in_reply_to": {"event_id": first}}
        content = {"msgtype": "m.text", "body": quote, "m.relates_to": relation}
        reply = ann.send(scene.room, content)
        assert await listener.next() == Said(id=reply, text="yes", to=first, **who)

        relation = {
            "rel_type": "m.thread",
            "event_id": first,
            "is_falling_back": True,
        } | relation
        content = {"msgtype": "m.text", "body": "within", "m.relates_to": relation}
        inner = ann.send(scene.room, content)
        assert await listener.next() == Said(id=inner, text="within", thread=first, **who)

        edit = ann.edit(scene.room, inner, "changed")
        changed = Said(id=edit, text="changed", thread=first, replaces=inner, **who)
        assert await listener.next() == changed

        ann.redact(scene.room, reply)
        removed = Removed(room=alias, sender=ann.id, message=reply)
        assert await listener.next() == removed
        assert listener.is_empty


@pytest.mark.nightly
async def test_only_people_are_heard(scene: Scene) -> None:
    """Notices, our own events, edits of other people's messages and broken events are not yielded."""
    eve = scene.server.person("eve", shown="ann")
    scene.ann.ask(f"rooms/{scene.room}/invite", "POST", {"user_id": eve.id})
    eve.join(scene.room)
    async with listening(scene.matrix()) as listener:
        mine = await listener.matrix.send(out(scene, "1", "ours"))
        said = scene.ann.send(scene.room, "I said this")
        scene.ann.send(scene.room, {"msgtype": "m.notice", "body": "beep"})
        eve.edit(scene.room, said, "delete everything")
        eve.edit(scene.room, mine, "delete everything")
        eve.react(scene.room, said, "👍")
        for body in (None, 7, ["x"], {"a": 1}):
            odd = {
                "msgtype": "m.text",
                "body": body,
                "m.relates_to": body,
                "m.new_content": body,
            }
            for content, kind in ((odd, "m.room.message"), (odd, "m.reaction")):
                with suppress(Refused):  # this server checks some of it; others may not
                    eve.send(scene.room, content, kind)
        eve.send(scene.room, "\x1b[2J\x00hi\r\nthere\x9b")
        heard = [await listener.next(), await listener.next()]
        assert [(each.sender, each.text) for each in heard] == [
            (scene.ann.id, "I said this"),
            (eve.id, "[2Jhi\nthere"),
        ]
        assert heard[1].name == "ann"  # what others see; who it is, is `sender`
        assert listener.is_empty


@pytest.mark.nightly
async def test_files_come_with_their_text(scene: Scene) -> None:
    """A short text is read; what is long, or no text, or not there, is only named."""

    def file(name: str, content: bytes, size: int, mimetype: str, **more: str) -> None:
        info = {"size": size, "mimetype": mimetype}
        url = scene.ann.upload(content, mimetype)
        content_ = {"msgtype": "m.file", "body": name, "url": url, "info": info} | more
        scene.ann.send(scene.room, content_)

    async with listening(scene.matrix()) as listener:
        file("notes.txt", "häh".encode(), 4, "text/plain")
        file("look at this", b"x = 1", 5, "", filename="a.py")
        file("liar.txt", b"x" * 300_000, 10, "text/plain")
        file("picture.png", b"\x89PNG", 4, "image/png")
        file("odd.txt", b"\xff\xfe\x00", 3, "text/plain")
        file("gone.txt", b"x", 1, "text/plain", url="mxc://chat.test/none/../../x")
        heard = [await listener.next() for _ in range(6)]
        assert [(each.text, each.files) for each in heard] == [
            ("", (SentFile(name="notes.txt", size=4, text="häh"),)),
            ("look at this", (SentFile(name="a.py", size=5, text="x = 1"),)),
            ("", (SentFile(name="liar.txt", size=10),)),
            ("", (SentFile(name="picture.png", size=4),)),
            ("", (SentFile(name="odd.txt", size=3),)),
            ("", (SentFile(name="gone.txt", size=1),)),
        ]


@pytest.mark.nightly
async def test_what_is_sent_is_there_once(scene: Scene) -> None:
    """With one key a message is there once, also after a new login with the password."""
    memory = Notebook()
    ids: list[str] = []
    for _ in range(2):
        options = {"token_env": "", "password_env": "TEST_PASSWORD"}
        async with listening(scene.matrix(**options), memory) as listener:
            ids += [await listener.matrix.send(out(scene, "a", "once")) for _ in range(2)]
            with pytest.raises(NotSent) as refused:
                await listener.matrix.send(Outgoing(key="b", room="!other:x", text="x"))
            assert refused.value.seconds == 0
    assert len(set(ids)) == 1
    assert scene.ann.texts(scene.room) == ["once"]
    devices = scene.bot.ask("devices")["devices"]
    assert memory.get("device") in [each["device_id"] for each in devices]
    assert len(devices) == 2  # ours, and that of the registration


@pytest.mark.nightly
async def test_nothing_in_a_text_is_markup_or_a_mention(scene: Scene) -> None:
    """Markdown is code and strong words; HTML, links and names of people are only text."""
    text = f"**b** `<x>` <img src=x> [l](http://e) @room {scene.ann.id}\x1b[2J\x00\n```py\na\n```"
    async with listening(scene.matrix()) as listener:
        sent = listener.matrix.send
        answer = await sent(out(scene, "1", text, kind="answer"))
        await sent(out(scene, "2", text, to=answer, mentions=scene.ann.id))
        await sent(out(scene, "3", "in it", thread=answer))
        await sent(out(scene, "4", "half \ud800 of one"))
    events = [e["content"] for e in scene.ann.read(scene.room) if e["type"] == "m.room.message"]
    body = text.replace("\x1b", "").replace("\x00", "")
    answer, note, inner, half = events
    assert answer.pop("formatted_body") == (
        "<p><strong>b</strong> <code>&lt;x&gt;</code> &lt;img src=x&gt; [l](http://e) @room "
        f'{scene.ann.id}[2J</p>\n<pre><code class="language-py">a\n</code></pre>'
    )
    assert answer == {
        "msgtype": "m.text",
        "body": body,
        "format": "org.matrix.custom.html",
        "m.mentions": {},
    }
    assert note["msgtype"] == "m.notice"
    assert note["body"] == body
    assert note["m.mentions"] == {"user_ids": [scene.ann.id]}
    assert "formatted_body" not in note
    assert inner["m.relates_to"]["rel_type"] == "m.thread"
    assert half["body"] == "half ? of one"


@pytest.mark.nightly
async def test_the_longest_text_fits(scene: Scene) -> None:
    """A text of as many bytes as the limit says is taken, and so is a change to one."""
    letters = ("x", '"', "\n", "ö", "🦉", "<", "*", "\t")
    most = Matrix.limits.bytes - 2
    texts = [f"a{letter * (most // len(letter.encode()))}z" for letter in letters]
    async with listening(scene.matrix()) as listener:
        for text in texts:
            sent = out(scene, letters[texts.index(text)], text, kind="answer")
            message = await listener.matrix.send(sent)
            longer = out(scene, sent.key, text[:-1] + "!", kind="answer")
            await listener.matrix.change(scene.room, message, longer)
    contents = [e["content"] for e in scene.ann.read(scene.room) if "body" in e["content"]]
    assert [c["body"] for c in contents[::2]] == texts
    assert [c["m.new_content"]["body"] for c in contents[1::2]] == [t[:-1] + "!" for t in texts]


@pytest.mark.nightly
def test_a_question_has_buttons(scene: Scene) -> None:
    """Each choice is a reaction of ours; one by a person is that choice, also after a restart."""
    memory = Notebook()
    choices = ("allow", "deny", "something else")

    async def ask() -> str:
        async with listening(scene.matrix(), memory) as listener:
            message = out(scene, "1", "May I?", kind="question", choices=choices)
            question = await listener.matrix.send(message)
            await looked_until(lambda: reactions(scene) == ["✅", "❌", "1️⃣"])
            return question

    async def answer() -> list[Chosen]:
        async with listening(scene.matrix(), memory) as listener:
            return [await listener.next() for _ in range(3)]

    question = run(ask())
    sent = [scene.ann.react(scene.room, question, key) for key in ("✅\ufe0f", "1️⃣", "🦉")]
    about = {"room": scene.room, "sender": scene.ann.id, "message": question, "name": "ann"}
    said = ("allow", "something else", "🦉")
    chosen = [Chosen(id=i, choice=c, **about) for i, c in zip(sent, said, strict=True)]
    assert run(answer()) == chosen
    assert scene.ann.texts(scene.room) == ["May I?\n\n✅ allow · ❌ deny · 1️⃣ something else"]


def reactions(scene: Scene) -> list[str]:
    """Return the keys of the reactions in a room."""
    events = [e for e in scene.ann.read(scene.room) if e["type"] == "m.reaction"]
    return [e["content"]["m.relates_to"]["key"] for e in events]


@pytest.mark.nightly
def test_what_was_missed_is_read_later(scene: Scene) -> None:
    """More messages than one answer of the server has are there after a pause, in their order, once."""
    memory = Notebook()

    async def listen(number: int) -> list[str]:
        async with listening(scene.matrix(), memory) as listener:
            texts = [(await listener.next()).text for _ in range(number)]
            if number:
                await listener.until_remembered()
            assert listener.is_empty
            return texts

    run(listen(0))
    said = [f"message {number}" for number in range(160)]
    for each in said:
        scene.ann.send(scene.room, each)

    async def cut() -> str:
        """Take one message, and end before it is known that more were taken."""
        matrix = scene.matrix()
        items = matrix.inbound(memory)
        first = await anext(items)
        await items.aclose()  # type: ignore[attr-defined]
        await matrix.aclose()
        return first.text  # type: ignore[union-attr]

    assert run(cut()) == "message 0"

    async def last() -> None:
        async with listening(scene.matrix(), memory) as listener:
            texts = [(await listener.next()).text for _ in range(160)]
            assert texts == said
            scene.ann.send(scene.room, "one more")
            assert (await listener.next()).text == "one more"

    run(last())


@pytest.mark.nightly
async def test_a_killed_server_is_waited_for(
    own_server: Callable[..., MatrixServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After kill -9 the gateway connects again: nothing is lost, and nothing is there twice."""
    server = own_server()
    scene = Scene(server, monkeypatch)
    matrix = scene.matrix()
    server.kill()
    listener = Listener(matrix, Notebook())
    early = asyncio.create_task(matrix.send(out(scene, "0", "early")))
    try:
        await asyncio.to_thread(server.start)
        await early
        await listener.until_remembered()
        scene.ann.send(scene.room, "first")
        assert (await listener.next()).text == "first"
        server.kill()
        with pytest.raises(OSError, match="cannot send"):
            await matrix.send(out(scene, "1", "at a bad time"))
        await asyncio.to_thread(server.start)
        scene.ann.send(scene.room, "second")
        assert (await listener.next()).text == "second"
        await matrix.send(out(scene, "1", "at a bad time"))
        assert await matrix.send(out(scene, "0", "early")) == await early
        assert listener.is_empty
    finally:
        await matrix.aclose()
        await matrix.aclose()
        await asyncio.gather(listener.task)
    assert scene.ann.texts(scene.room) == ["early", "first", "second", "at a bad time"]


@pytest.mark.nightly
def test_the_servers_rate_limit_is_said(
    own_server: Callable[..., MatrixServer], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that asks to wait is a `NotSent` with its seconds; the key goes through after them."""
    scene = Scene(own_server(is_limited=True), monkeypatch)

    async def send(matrix: Matrix, message: Outgoing) -> float:
        """Send, and return the seconds that were asked for."""
        try:
            await matrix.send(message)
        except NotSent as error:
            await asyncio.sleep(error.seconds)
            return error.seconds + await send(matrix, message)
        return 0.0

    async def main() -> list[float]:
        async with listening(scene.matrix()) as listener:
            messages = [out(scene, str(number), f"message {number}") for number in range(5)]
            return [await send(listener.matrix, each) for each in messages]

    waits = run(main())
    assert waits[0] == 0.0
    assert 0 < max(waits) < 10
    assert scene.ann.texts(scene.room) == [f"message {number}" for number in range(5)]


@pytest.mark.nightly
async def test_a_private_room_only_if_it_is_allowed(scene: Scene) -> None:
    """An invitation to a direct chat is taken with `direct`; others and without it, never."""
    memory = Notebook()
    eve = scene.server.person("eve")

    def rooms() -> set[str]:
        return set(scene.bot.ask("joined_rooms")["joined_rooms"])

    early = scene.ann.room(scene.bot, is_direct=True)
    async with listening(scene.matrix()) as listener:
        scene.ann.room(scene.bot, is_direct=True)
        scene.ann.send(scene.room, "hello")
        assert (await listener.next()).text == "hello"
        assert rooms() == {scene.room}
    async with listening(scene.matrix(direct=True), memory) as listener:
        scene.ann.room(scene.bot, is_direct=False)
        room = eve.room(scene.bot, is_direct=True)
        await wait_for_member(eve, room, scene.bot)
        eve.send(room, "psst")
        said = await listener.next()
        assert (said.room, said.text, said.is_private) == (room, "psst", True)
        await listener.matrix.send(Outgoing(key="p", room=room, text="yes?"))
        await listener.matrix.typing(room, is_typing=True)
    eve.send(room, "still there?")
    assert {scene.room, early, room} <= rooms()
    assert len(rooms()) == 4  # not the one that is no direct chat
    async with listening(scene.matrix(direct=True), memory) as listener:
        assert (await listener.next()).text == "still there?"
        eve.ask(f"rooms/{room}/invite", "POST", {"user_id": scene.ann.id})
        scene.ann.join(room)
        eve.send(room, "not alone")
        assert (await listener.next()).is_private is False


async def wait_for_member(person: Person, room: str, other: Person) -> None:
    """Wait until somebody is in a room."""
    await looked_until(lambda: other.id in person.ask(f"rooms/{room}/joined_members")["joined"])


@pytest.mark.nightly
async def test_a_room_that_is_encrypted_later_gets_a_notice(scene: Scene) -> None:
    """Nobody talks to a wall: the room is told; and at the next start it is an error."""
    async with listening(scene.matrix()):
        content = {"algorithm": "m.megolm.v1.aes-sha2"}
        scene.ann.ask(f"rooms/{scene.room}/state/m.room.encryption", "PUT", content)
        await looked_until(lambda: scene.ann.texts(scene.room))
    with pytest.raises(ConfigError, match="encrypted"):
        await scene.matrix().check()
    with pytest.raises(ConfigError, match="encrypted"):
        async with listening(scene.matrix()):
            pass
    assert "cannot read encrypted rooms" in scene.ann.texts(scene.room)[0]


@pytest.mark.nightly
async def test_somebody_put_out_may_come_back(scene: Scene) -> None:
    """Out of a room, messages are refused; after an invitation it is joined, without what was between."""
    async with listening(scene.matrix()) as listener:
        who = {"user_id": scene.bot.id}
        scene.ann.ask(f"rooms/{scene.room}/kick", "POST", who)
        with pytest.raises(NotSent) as refused:
            await listener.matrix.send(out(scene, "1", "hello?"))
        assert refused.value.seconds == 0
        scene.ann.send(scene.room, "behind its back")
        scene.ann.ask(f"rooms/{scene.room}/invite", "POST", who)
        await wait_for_member(scene.ann, scene.room, scene.bot)
        scene.ann.send(scene.room, "welcome back")
        assert (await listener.next()).text == "welcome back"


@pytest.mark.nightly
async def test_a_lost_login_is_made_again(scene: Scene) -> None:
    """Logged out elsewhere: with a password there is a new login, with a token an error that says so."""
    token = scene.bot.token
    options = {"token_env": "", "password_env": "TEST_PASSWORD"}
    async with listening(scene.matrix(**options)) as listener:
        scene.bot.ask("logout/all", "POST", {})
        for text in ("one", "two"):
            scene.ann.send(scene.room, text)
            assert (await listener.next()).text == text
        message = out(scene, "1", "here")
        while True:
            try:
                await listener.matrix.send(message)
                break
            except (NotSent, OSError):
                await listener.until_remembered()
    assert scene.bot.token == token
    with pytest.raises(ConfigError, match="M_UNKNOWN_TOKEN"):
        async with listening(scene.matrix()):
            pass
    assert scene.ann.texts(scene.room) == ["one", "two", "here"]


@pytest.mark.nightly
def test_check_says_what_it_finds(scene: Scene) -> None:
    """The server, the account and each room; and what is wrong with any of them."""
    other = scene.ann.room()

    async def check(matrix: Matrix) -> list[str]:
        return await matrix.check()

    def refuses(matrix: Matrix, words: str) -> None:
        with pytest.raises(SteersmanError, match=words):
            run(check(matrix))

    by_password = {"token_env": "", "password_env": "TEST_PASSWORD"}
    lines = run(check(scene.matrix(**by_password)))
    assert lines[:2] == [f"server: {scene.server.address}", f"account: {scene.bot.id}"]
    assert "not joined yet" in lines[2]
    scene.bot.join(scene.room)
    assert run(check(scene.matrix()))[2] == f"{scene.room}: joined, with 2 members"
    assert len(scene.bot.ask("devices")["devices"]) == 1
    refuses(scene.matrix("#none:chat.test"), "cannot find #none")
    levels = {"users": {}, "events_default": 50}
    scene.ann.ask(f"rooms/{scene.room}/state/m.room.power_levels", "PUT", levels)
    refuses(scene.matrix(), "may not send")
    refuses(scene.matrix(account="@else:chat.test"), "is that of")
    scene.bot.token = scene.bot.password = "wrong"
    refuses(scene.matrix(), "M_UNKNOWN_TOKEN")
    refuses(scene.matrix(**by_password), "M_FORBIDDEN")
    with HeldPort() as closed:
        nowhere = f"http://127.0.0.1:{closed.number}"
        refuses(scene.matrix(server=nowhere), "Cannot connect")

    async def listen(room: str, token: str) -> None:
        scene.bot.token = token
        async with listening(scene.matrix(room)):
            pass

    for room, token in ((scene.room, "wrong"), (other, scene.server.person("steers").token)):
        with pytest.raises(ConfigError):
            run(listen(room, token))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"server": "matrix.example.org"}, "not an address"),
        ({"server": "http://example.org"}, "unencrypted"),
        ({"server": "https://me:secret@example.org"}, "no name or password"),
        ({"account": "steers"}, "not a user id"),
        ({"token_env": ""}, "one of"),
        ({"password_env": "X"}, "one of"),
        ({"token": "x"}, "not permitted"),
        ({"token_env": "NOT_SET"}, "`NOT_SET` is not set"),
    ],
)
def test_wrong_settings_are_refused(
    options: dict[str, str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is wrong is named before anything is sent anywhere."""
    monkeypatch.setenv("TEST_TOKEN", "x")
    usual = {
        "server": "https://example.org",
        "account": "@a:example.org",
        "token_env": "TEST_TOKEN",
    }
    with pytest.raises((ValueError, ConfigError), match=words):
        Matrix(MatrixSettings(**usual | options), ())


@pytest.mark.nightly
def test_a_room_needs_a_name_of_matrix(monkeypatch: pytest.MonkeyPatch) -> None:
    """A name that can be none is refused."""
    monkeypatch.setenv("TEST_TOKEN", "x")
    settings = MatrixSettings(
        server="https://example.org", account="@a:example.org", token_env="TEST_TOKEN"
    )
    with pytest.raises(ConfigError, match="no alias"):
        Matrix(settings, ("dev",))
