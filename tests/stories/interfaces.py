"""Every interface in which a person or a program acts on a session: each says one act in its own way.

An act is a line as it would be typed, and how it is meant: `auto`, `queue`, `steer` or `interrupt`. What
takes data instead of lines is given the same act as data. `does` returns the answer of what answers at
once; of the others the journal tells.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import (
    AbstractAsyncContextManager,
    AbstractContextManager,
    closing,
    contextmanager,
    suppress,
)
from functools import partial
from typing import Any, NamedTuple, Protocol

from acp import text_block
from extensions.acp.editor import editing
from extensions.mcp.test_server import calling
from support.chat_platform import Server, ServerPlatform
from support.driver import Place
from support.patience import seconds
from support.served import Served

import steersman
from steersman.cli.commands.session_command import EXCEPTIONS
from steersman.gateway.chat.bridge import ChatGateway
from steersman.gateway.chat.gateway_store import GatewayStore
from steersman.gateway.commands.command import CommandCall
from steersman.gateway.commands.registry import parse
from steersman.gateway.home.home import open_store
from steersman.gateway.library import Rejected
from steersman.gateway.reach import SessionReach
from steersman.machines.errors import SteersmanError
from steersman.workflows.paths import Paths

from .faces import Attached, Face, Http, Lines, Plain, Screen
from .terminal import Terminal

__all__ = ["INTERFACES", "KEYED", "Interface", "Said", "mailbox"]


class Said(NamedTuple):
    """One act: the line, how it is meant, and the key of a message."""

    text: str
    by: str = "auto"
    key: str = ""

    @property
    def call(self) -> CommandCall | None:
        """The line as a command with its arguments; none for a message."""
        name, _, rest = self.text[1:].partition(" ")
        return parse(name, rest) if self.text.startswith("/") else None


class Interface(Protocol):
    """A way to one session."""

    def does(self, said: Said) -> str:
        """Say it; return the answer, empty where it comes as an event."""
        ...

    def shows(self, words: str) -> None:
        """Wait for words on the stream of an interface that answers there."""
        ...


class Streamed:
    """An interface that is typed into, and that shows what comes of it."""

    def __init__(self, face: Face) -> None:
        self._face = face

    def does(self, said: Said) -> str:
        """Type the line, or send it as one of JSON."""
        if isinstance(self._face, Lines | Attached | Http):
            line = {"text": said.text, "as": said.by} | (
                {"client_id": said.key} if said.key else {}
            )
            self._face.chat.send(line)
        else:
            self._face.types(said.text, said.by)
        if isinstance(self._face, Screen):
            self._face.terminal.has_line("")  # a line that follows at once would be pasted with it
        return ""

    def shows(self, words: str) -> None:
        """Look for them."""
        self._face.shows(words)


class Answering:
    """An interface whose answers come at once."""

    def __init__(self, does: Callable[[Said], str]) -> None:
        self.does = does

    def shows(self, words: str) -> None:
        """Nothing comes later."""
        raise AssertionError(f"`{words}` was not the answer")


# Streams --------------------------------------------------------------------------------------------


@contextmanager
def lines(place: Place, session: str, where: str) -> Generator[Interface]:
    """`chat --json`, or `attach --json` beside the program that has the session."""
    if where == "here":
        yield Streamed(Lines(place.chat("--resume", session)))
        return
    yield Streamed(Attached(place.chats[0], place.attach(session)))


@contextmanager
def plain(place: Place, session: str, where: str) -> Generator[Interface]:
    """`chat --plain`, or `attach --plain`, with pipes."""
    verb = ("chat", "--resume", session) if where == "here" else ("attach", session)
    program = place.start(*verb, "--plain", text=False)
    with program:
        yield Streamed(Plain(program))
        program.kill()


@contextmanager
def screen(place: Place, session: str, where: str) -> Generator[Interface]:
    """The chat in a terminal, or `attach` in one."""
    verb = ("chat", "--resume", session) if where == "here" else ("attach", session)
    utf8 = {"LANG": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}
    terminal = Terminal((*place.command, *verb), place.folder, place.environ | utf8)
    try:
        yield Streamed(Screen(terminal))
    finally:
        terminal.abandon()


# HTTP -----------------------------------------------------------------------------------------------


@contextmanager
def http(
    place: Place, session: str, where: str, *, has_buttons: bool = False
) -> Generator[Interface]:
    """A server, to which every line is a message, or what has a button a request of its own."""
    with closing(Served(place)) as web:
        web.pair("user")
        if where == "here":
            assert web.ask("POST", "sessions", {"resume": session}).status == 201

        def does(said: Said) -> str:
            ask = said.call and has_buttons and _button(said.call)
            body = {"text": said.text, "as": said.by}
            method, path, data = ask or ("POST", "messages", body)
            key = {"Idempotency-Key": said.key} if said.key else {}
            answer = web.ask(method, f"sessions/{session}/{path}", data, key).data
            return f"{answer.get('detail', answer.get('text', ''))} {answer.get('hint', '')}"

        yield Answering(does)


def _button(call: CommandCall) -> tuple[str, str, Any]:
    """Return the request that the page sends: method, path and body; commands are data."""
    given = dict(call.arguments)
    item = f"queue/{given.get('number')}"
    match call.command.name:
        case "stop":
            return "POST", "stop", None
        case "answer":
            return "POST", f"questions/{given.pop('question')}", given
        case "queue edit":
            return "PATCH", item, {"text": given["text"]}
        case "queue move":
            return "PATCH", item, {"position": given["position"]}
        case "queue pop" if given:
            return "DELETE", item, None
        case "queue steer":
            return "POST", f"{item}/steer", None
        case "queue resume" if not given:
            return "POST", "queue/resume", None
        case name:
            return "POST", "commands", {"name": name, "arguments": given}


# Requests -------------------------------------------------------------------------------------------


def receipt(event: Any) -> str:
    """Return what a receipt says in words."""
    said = dict(event)
    return " ".join(str(said.get(name) or "") for name in ("reason", "hint", "text"))


@contextmanager
def control(place: Place, session: str, where: str) -> Generator[Interface]:
    """The control socket of the program that has the session."""
    paths = Paths.of(place.environ)
    with closing(open_store(paths, read_only=True)) as store:
        owner = store.owner(session)
        assert owner is not None
        reach = SessionReach(paths, place.environ, store)
        with closing(reach.remote(session, owner)) as remote:
            yield Answering(lambda said: receipt(_called(remote.call, said)))


def _called(call: Callable[..., Any], said: Said) -> Any:
    """Call the methods of the control socket: commands as data."""
    command = said.call
    if command is None:
        key = {"client_id": said.key} if said.key else {}
        return call("say", **{"text": said.text, "as": said.by, **key})
    name, given = command.command.name, dict(command.arguments)
    if name == "stop":
        return call("stop")
    if name == "answer":
        return call("answer", id=given.pop("question"), **given)
    return call("command", name=name, arguments=given)


@contextmanager
def mailbox(place: Place, session: str, where: str) -> Generator[Interface]:
    """The mailbox, which reaches a session wherever it is, as `steersman send` does."""
    paths = Paths.of(place.environ)
    with closing(open_store(paths)) as store:
        client = SessionReach(paths, place.environ, store).remote(session)

        def does(said: Said) -> str:
            try:
                return receipt(client.say(said.text, said.by, key=said.key))
            except SteersmanError as error:
                return f"{error.message} {error.hint}"

        yield Answering(does)


@contextmanager
def send(
    place: Place, session: str, where: str, *, has_commands: bool = False
) -> Generator[Interface]:
    """`steersman send`, or for a slash command the command that is made from it."""

    def does(said: Said) -> str:
        call = said.call if has_commands else None
        line = ["send", session, said.text, "--as", said.by]
        ran = place.run(*(line if call is None else typed(call, session)))
        return str(ran.stdout + ran.stderr)

    yield Answering(does)


FAMILIES = ("queue", "goal", "permissions", "routes")
"""Commands whose session is named by an option."""


def typed(call: CommandCall, session: str) -> list[str]:
    """Return the words of the command of the command line that a slash command has."""
    name, given = call.command.name, list[str]()
    own = EXCEPTIONS.get(name, (name,))[0]
    if not own or str(call.arguments.get("text", "")).startswith("@"):  # which only it addresses
        return ["send", session, f"/{name} {' '.join(map(str, call.arguments.values()))}"]
    for parameter in call.command.parameters:
        value = call.arguments.get(parameter.name)
        if parameter.is_option:
            given += [parameter.option] if value else []
        elif value is not None:
            given += map(str, value if parameter.is_repeated else [value])
    given += {"goal next": ["--next"], "steer": ["--as", "steer"]}.get(name, [])
    family, *_ = own.split()
    if family in FAMILIES:
        return [*own.split(), *given, "--session", session]
    is_alone = own == family and family not in ("send", "stop")
    return [*(["sessions"] if is_alone else []), *own.split(), session, *given]


# Clients on a loop of their own ---------------------------------------------------------------------


class Loop:
    """An asyncio loop in a thread; what is open in it is entered and left by one task."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Have something done, within bounds."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(seconds(60))

    def begin(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Begin something that lasts."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    @contextmanager
    def held(self, manager: AbstractAsyncContextManager[Any]) -> Generator[Any]:
        """Hold something open."""
        is_open, is_over = threading.Event(), asyncio.Event()
        made: list[Any] = []

        async def hold() -> None:
            async with manager as it:
                made.append(it)
                is_open.set()
                await is_over.wait()

        holding = self.begin(hold())
        holding.add_done_callback(lambda _: is_open.set())
        is_open.wait(seconds(60))
        try:
            if not made:
                holding.result(0)
            yield made[0]
        finally:
            self._loop.call_soon_threadsafe(is_over.set)
            holding.result(seconds(60))
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join(seconds(30))
            self._loop.close()


@contextmanager
def library(place: Place, session: str, where: str) -> Generator[Interface]:
    """The library: a session of this program, or of another one."""
    loop = Loop()
    with loop.held(steersman.open(place.home)) as home:
        handle = loop.run(home.resume(session) if where == "here" else home.session(session))

        def does(said: Said) -> str:
            try:
                reply = loop.run(_by_library(handle, said))
            except (SteersmanError, Rejected) as error:
                return f"{error.message} {error.hint}"
            return str(getattr(reply, "text", ""))

        yield Answering(does)


def _by_library(handle: steersman.SessionHandle, said: Said) -> Coroutine[Any, Any, Any]:
    """Choose the method for an act; a command without one is entered."""
    call = said.call
    if call is None:
        how: Any = None if said.by == "auto" else said.by
        return handle.say(said.text, how, key=said.key)
    given = dict(call.arguments)
    match call.command.name:
        case "stop":
            return handle.stop()
        case "steer" if not given["text"].startswith("@"):
            return handle.steer(given["text"])
        case "smalltalk":
            return handle.side_talk(given["text"])
        case "answer":
            return handle.answer(given["question"], given["choice"], given.get("reason", ""))
        case "queue resume":
            return handle.resume_queue(int(given["which"]) if given else None)
        case "goal":
            return handle.goal(given["text"])
        case "revert" if "is_dry_run" not in given:
            return handle.revert(*given["what"])
        case "finalize":
            return handle.finalize()
        case _:
            return handle.enter(call)


@contextmanager
def editor(place: Place, session: str, where: str) -> Generator[Interface]:
    """An editor, by the Agent Client Protocol and its extensions."""
    loop = Loop()
    with loop.held(editing(place)) as client:
        chosen: list[str] = []
        loop.run(_choose(client))
        loop.run(client.agent.resume_session(cwd=str(place.folder), session_id=session))

        def does(said: Said) -> str:
            if said.by == "queue":
                said = Said(f"/queue add {said.text}")
            call, name = said.call, {"sessionId": session}
            extension = client.extension
            if call is None and said.by == "steer":
                loop.run(extension("session/steering", **name, prompt=[_block(said.text)]))
            elif call is None or call.command.says:
                asked = client.agent.prompt(session_id=session, prompt=[text_block(said.text)])
                loop.begin(asked)
            elif call.command.name == "stop":
                loop.run(client.agent.cancel(session_id=session))
            elif call.command.name == "answer" and not call.arguments.get("reason"):
                loop.run(client.until(lambda: len(client.asked) > len(chosen)))
                chosen.append(call.arguments["choice"])
                loop.run(_choose(client, chosen[-1]))
            elif call.command.name == "busy":
                mode = call.arguments["mode"]
                change = client.agent.set_config_option
                loop.run(change(config_id="busy", session_id=session, value=mode))
            elif call.command.name in ("goal", "goal pause", "goal resume", "goal clear"):
                action = call.command.name.partition(" ")[2] or "set"
                goal = {"action": action, "objective": call.arguments.get("text", "")}
                return str(loop.run(extension("session/goal", **name, **goal))["text"])
            else:
                done = loop.run(extension("steersman/command", **name, command=said.text))
                return str(done["text"])
            return ""

        yield Answering(does)


def _block(text: str) -> dict[str, str]:
    return {"type": "text", "text": text}


async def _choose(client: Any, choice: str = "") -> None:
    """Choose an option of the question that is asked, and let the next one wait."""
    asked, client.choice = client.choice, asyncio.get_running_loop().create_future()
    if choice:
        asked.set_result(choice)


@contextmanager
def mcp(place: Place, session: str, where: str) -> Generator[Interface]:
    """A client of `steersman mcp --answer`."""
    loop = Loop()
    with loop.held(calling(place, "--answer")) as client:

        def does(said: Said) -> str:
            call, tool = said.call, said.by if said.by != "auto" else "say"
            given: dict[str, Any] = {"text": said.text}
            if call is not None:
                tool, given = call.command.name.replace(" ", "_"), dict(call.arguments)
            result = loop.run(client.client.call_tool(tool, {"session": session, **given}))
            return str(result.content[0].text)

        yield Answering(does)


@contextmanager
def room(place: Place, session: str, where: str) -> Generator[Interface]:
    """A chat room whose session it is; a command begins with `!`."""
    loop, server = Loop(), Server()

    async def join() -> None:
        store = GatewayStore(place.home / "state" / "gateways" / "memory.sqlite")
        await store.open()
        await store.begin("#dev", session, 10_000)
        await store.aclose()

    loop.run(join())
    with loop.held(steersman.open(place.home)) as home:
        gateway = ChatGateway("memory", lambda own, names: ServerPlatform(server))
        going = loop.begin(gateway(home, {"rooms": {"#dev": {}}}))

        def does(said: Said) -> str:
            text = {"queue": "!queue add {}", "steer": "!steer {}"}.get(said.by, "{}")
            text = text.format(said.text)
            loop.run(server.say("@ann", f"!{text[1:]}" if text.startswith("/") else text))
            return ""

        class Room(Answering):
            def shows(self, words: str) -> None:
                loop.run(server.seen(words))

        yield Room(does)
        going.cancel()
        with suppress(BaseException):
            going.result(seconds(30))


INTERFACES: dict[str, Callable[[Place, str, str], AbstractContextManager[Interface]]] = {
    "lines": lines,
    "plain": plain,
    "screen": screen,
    "http": http,
    "page": partial(http, has_buttons=True),
    "control": control,
    "mailbox": mailbox,
    "send": send,
    "commands": partial(send, has_commands=True),
    "library": library,
    "editor": editor,
    "mcp": mcp,
    "room": room,
}
KEYED = ("lines", "http", "page", "control", "mailbox", "library")
"""Interfaces whose messages may have a key, with which one that is sent twice is taken once."""
