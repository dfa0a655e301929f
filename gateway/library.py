"""The runtime in one's own program: what `import steersman` offers.

A `Home` holds the sessions of one program. Its actors live on a loop in a thread of their own, so a
program may call everything here from its own asyncio loop: nothing blocks that, and a program that is
busy blocks no session. Everything goes through the session's client (`client.py`), which the command
line uses, too, and so gives the same guarantees: what was accepted is on disk before `say` returns.
"""

from __future__ import annotations

import asyncio
import os
import shlex
import tempfile
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeVar, cast, get_args
from uuid import uuid4

from msgspec.structs import replace
from pydantic import ValidationError

from ..actors.environment import Publication
from ..journal import entries as e
from ..journal.codec import decode_entry
from ..journal.record import SessionRecord, apply
from ..journal.recovery import load_record
from ..journal.store import Store
from ..machines.conversation import Usage
from ..machines.errors import SteersmanError, StoreError, UnknownSession, UsageError
from ..machines.messages import Answer
from ..machines.transient_events import Fact, StoreLost
from ..ports.models.model import Model
from ..ports.tools.function import bound, running_session
from ..ports.tools.permission import Rule
from ..ports.tools.tool import Tool
from ..workflows.config import load
from ..workflows.paths import Paths
from ..workflows.settings import AgentSettings, Verb
from ..workflows.tools import REMOTE, TOOLS
from .acknowledgement import REJECTIONS
from .commands.command import Reply
from .commands.registry import call
from .events.contract import Event as EventFields
from .events.contract import Stamp, is_receipt
from .events.translation import translate
from .formats import iso
from .home import find_session, refuse_run, store_at
from .host import Host
from .launch_options import LaunchOptions
from .profile_factory import PROGRAM, OwnAgent
from .running import RunPlan, start_run

if TYPE_CHECKING:
    from .conversation import Conversation

H = TypeVar("H", bound="SessionHandle")

How = Literal["queue", "steer", "interrupt"]
Status = Literal["done", "steered", "withdrawn", "interrupted", "failed"]

MEMORY = "memory:"
"""The home of a program that keeps nothing."""
UNREAD = 10_000
"""Events that wait for a program that does not read them; then they are read from the journal."""

_BECAME: dict[str, Status] = {
    "done": "done",
    "failed": "failed",
    "steered": "steered",
    "withdrawn": "withdrawn",
    "interrupted": "interrupted",
    "superseded": "interrupted",
}


class Rejected(SteersmanError):
    """A message was not accepted, and nothing of it is kept; `reason` says why in a word."""

    def __init__(self, reason: str, hint: str = "") -> None:
        why = REJECTIONS.get(reason, reason)
        super().__init__(f"the message was not accepted: {why}", hint)
        self.reason = reason


# What a program describes -------------------------------------------------------------------------


class Agent:
    """An agent of a program: who answers, by what instructions, with what tools.

    What is left out is taken from the configured agent of that name, or else from the defaults.
    `model` is a name of the configuration, `provider:model`, or an object with the protocol `Model`.
    `tools` are names of built-in or configured tools, and tools of the program's own. `permissions`
    says of a tool's name or pattern whether it is allowed, asked about or denied, before all configured
    rules; a tool of the program's own is allowed where no rule is about it.
    """

    def __init__(
        self,
        name: str = "assistant",
        *,
        model: str | Model | None = None,
        instructions: str | None = None,
        tools: Sequence[str | Tool] | None = None,
        permissions: Mapping[str, Verb] | None = None,
        max_steps: int | None = None,
    ) -> None:
        self.name = name
        self.model = model
        self.instructions = instructions
        self.tools = tools if tools is None else tuple(tools)
        self.permissions: dict[str, Verb] = dict(permissions or {})
        self.max_steps = max_steps
        for pattern, verb in self.permissions.items():
            if verb not in get_args(Verb):
                raise UsageError(
                    f"agent `{name}`: permissions of `{pattern}`: `{verb}` is none of "
                    f"{', '.join(get_args(Verb))}"
                )
        for tool in self.own_tools:
            if not hasattr(tool, "schema"):
                raise UsageError(
                    f"agent `{name}`: {tool!r} is no tool",
                    "decorate the function with @steersman.tool, or give the name of a tool",
                )
        own = [tool.schema.name for tool in self.own_tools]
        if twice := [name for name in own if own.count(name) > 1]:
            raise UsageError(
                f"agent `{self.name}`: two tools are called `{twice[0]}`",
                "give one of them another name: @steersman.tool(name=...)",
            )

    @property
    def own_tools(self) -> tuple[Tool, ...]:
        """The tools that are no names."""
        return tuple(tool for tool in self.tools or () if not isinstance(tool, str))

    def own(self, host: Host, loop: asyncio.AbstractEventLoop | None = None) -> OwnAgent:
        """Return the agent as profiles are made of it. Raises `UsageError`.

        `loop` is that of the program that brought it; an agent of a plug-in has none.
        """
        known = host.runtime.shared.toolbox.names
        named = tuple(tool for tool in self.tools or () if isinstance(tool, str))
        for name in named:
            if name not in known and not name.startswith(REMOTE) and name not in TOOLS:
                raise UsageError(
                    f"agent `{self.name}`: there is no tool `{name}`",
                    f"known are {', '.join(known)}; a function needs @steersman.tool",
                )
        for tool in self.own_tools:
            if tool.schema.name in known:
                raise UsageError(
                    f"agent `{self.name}`: `{tool.schema.name}` is the name of a built-in tool",
                    "give yours another one: @steersman.tool(name=...)",
                )
        usual = host.config.agents.get(self.name) or AgentSettings()
        given: dict[str, Any] = {
            "model": self.model if isinstance(self.model, str) else None,
            "system": self.instructions,
            "tools": None if self.tools is None else named,
            "max_steps": self.max_steps,
        }
        changes = {key: value for key, value in given.items() if value is not None}
        try:
            settings = AgentSettings.model_validate({**usual.model_dump(), **changes})
        except ValidationError as error:
            raise UsageError(f"agent `{self.name}`: {error.errors()[0]['msg']}") from error
        resources = host.runtime.shared.toolbox.resources
        return OwnAgent(
            settings=settings,
            model=None if isinstance(self.model, str) else self.model,
            tools=tuple(bound(tool, loop, resources) for tool in self.own_tools),
            rules=tuple(Rule(tool, "*", verb, PROGRAM) for tool, verb in self.permissions.items()),
            is_installed=loop is None,
        )


# What a program receives --------------------------------------------------------------------------


class Event:
    """An event of docs/events.md: its fields are attributes, and keys.

    `event.type`, `event.seq` (its number in the journal, none for one that is not journalled),
    `event.time` and `event.session` are always there. `data` has all fields as a dictionary; the field
    `as`, which is no name in Python, is the attribute `taken_as`.
    """

    __slots__ = ("data",)

    def __init__(self, data: Mapping[str, Any]) -> None:
        self.data = data

    @property
    def type(self) -> str:
        """The event's name."""
        return str(self.data["type"])

    @property
    def seq(self) -> int | None:
        """The number of its journal entry; none if it is not journalled."""
        return cast("int | None", self.data["seq"])

    def __getattr__(self, name: str) -> Any:
        try:
            return self.data["as" if name == "taken_as" else name]
        except KeyError:
            raise AttributeError(f"a `{self.type}` event has no field `{name}`") from None

    def __getitem__(self, name: str) -> Any:
        return self.data[name]

    def get(self, name: str, default: Any = None) -> Any:
        """Return a field, or `default` where the event has none of that name."""
        return self.data.get(name, default)

    def __repr__(self) -> str:
        return f"Event({self.data!r})"


class Outcome:
    """What became of a message.

    `status`: `done` or `failed`, its turn has ended; `steered`, it was taken into the running turn;
    `interrupted`, its turn was stopped, and `resume_queue` continues it; `withdrawn`, somebody took it
    back. `turn` is the turn's id, `text` the agent's last answer in it, `usage` its tokens and cost.
    """

    def __init__(
        self,
        status: Status,
        turn: str = "",
        text: str = "",
        usage: Usage | None = None,
        reason: str = "",
    ) -> None:
        self.status = status
        self.turn = turn
        self.text = text
        self.usage = usage or Usage()
        self.reason = reason

    def __repr__(self) -> str:
        return f"Outcome(status={self.status!r}, turn={self.turn!r}, text={self.text!r})"


class Receipt:
    """The receipt of an accepted message: it is on disk, and will not be lost.

    `number` is the message's number in the queue, none where it has none; `taken_as` is `turn`,
    `queue`, `steer`, `interrupt` or `side_talk`, by the routing row `rule`; `ack` is what a person is
    told of that.
    """

    def __init__(self, session: SessionHandle, event: Mapping[str, Any]) -> None:
        self.id = str(event["id"])
        self.number = cast("int | None", event["number"])
        self.taken_as = str(event["as"])
        self.rule = cast("str | None", event["rule"])
        self.ack = cast("str | None", event.get("ack_text"))
        self._session = session

    async def done(self) -> Outcome:
        """Wait until the message has become something. Raises `SteersmanError` if the session is left.

        A tool of the session cannot wait for it: its turn waits for the tool.
        """
        if running_session() == self._session.id:
            raise UsageError(
                "a tool cannot wait for its own session, whose turn waits for the tool",
                "send the message without waiting for its outcome",
            )
        return await self._session.outcomes.of(self.id)

    def __repr__(self) -> str:
        return f"Receipt(id={self.id!r}, number={self.number}, taken_as={self.taken_as!r})"


class SessionInfo:
    """A session in a list: `state` is `idle`, `running`, `suspended`, …; times are seconds since 1970."""

    def __init__(self, row: Any) -> None:
        self.id: str = row.session
        self.name: str = row.name
        self.folder: str = row.folder
        self.agent: str = row.agent
        self.state: str = row.state
        self.created: float = row.created
        self.updated: float = row.updated
        self.waiting: int = row.waiting
        self.workflow: str = row.workflow

    def __repr__(self) -> str:
        return f"SessionInfo(id={self.id!r}, state={self.state!r}, agent={self.agent!r})"


# The outcome of messages --------------------------------------------------------------------------


class Outcomes:
    """Observes one session, and wakes those who wait for the outcome of a message; see `Observer`."""

    def __init__(self) -> None:
        self._record = SessionRecord()
        self._waiting: dict[str, list[Callable[[], None]]] = {}
        self._fault: SteersmanError | None = None

    def observe_entry(
        self, entry: e.Entry, seq: int, time: float, record: SessionRecord
    ) -> Publication:
        """Look, when the entry is durable, whether a message that is waited for has become something."""
        return partial(self._learn, record, is_over=isinstance(entry, e.SessionSuspended))

    def observe_fact(self, fact: Fact) -> None:
        """Tell everybody when the journal cannot be written."""
        if isinstance(fact, StoreLost):
            self._fault = StoreError(fact.text, fact.hint)
            self._wake(tuple(self._waiting))

    def _learn(self, record: SessionRecord, *, is_over: bool) -> None:
        self._record, self._fault = record, None
        if is_over:
            self.close()
        elif self._waiting:
            self._wake(tuple(item for item in self._waiting if self._outcome(item) is not None))

    def close(self) -> None:
        """Tell everybody that the session was left."""
        self._fault = UnknownSession(
            "the session was left before the message had its turn",
            "it waits in the queue: resume the session, then resume_queue()",
        )
        self._wake(tuple(self._waiting))

    def _wake(self, items: tuple[str, ...]) -> None:
        for item in items:
            for wake in self._waiting.pop(item, ()):
                wake()

    async def of(self, item: str) -> Outcome:
        """Wait for the outcome of a message, or of an interrupt; from any loop."""
        while (outcome := self._outcome(item)) is None:
            if self._fault is not None:
                raise self._fault
            loop, woken = asyncio.get_running_loop(), asyncio.Event()
            self._waiting.setdefault(item, []).append(partial(_on, loop, woken.set))
            if self._outcome(item) is None and self._fault is None:
                await woken.wait()
        return outcome

    def _outcome(self, item: str) -> Outcome | None:
        record = self._record
        found = record.queue.items.get(item)
        if found is None:
            cancel = record.interrupts.get(item)
            is_over = cancel is not None and cancel.state != "stopping"
            return Outcome("done", cancel.turn) if is_over and cancel is not None else None
        if found.state not in _BECAME or (found.state == "steered" and not found.turn):
            return None
        turn = record.turns.get(found.turn)
        is_ended = found.state in ("done", "failed", "interrupted")
        return Outcome(
            _BECAME[found.state],
            found.turn,
            last_answer(record) if is_ended and record.turn == found.turn else "",
            turn.usage if turn is not None else None,
            found.why,
        )


def last_answer(record: SessionRecord) -> str:
    """Return the agent's last words since a message of a person; empty if there are none."""
    for message in reversed(record.conversation):
        if message.role == "user":
            break
        if message.role == "assistant" and message.text:
            return message.text
    return ""


def _on(loop: asyncio.AbstractEventLoop, do: Callable[[], object]) -> None:
    """Have something done on a program's loop, unless that is closed."""
    if not loop.is_closed():
        loop.call_soon_threadsafe(do)


# Sessions -----------------------------------------------------------------------------------------


class SessionHandle:
    """A session that this program runs."""

    def __init__(self, host: Host, conversation: Conversation, outcomes: Outcomes) -> None:
        self.id = conversation.session
        self.outcomes = outcomes
        self._host = host
        self._client = conversation
        self._receipts: dict[str, Callable[[EventFields], None]] = {}
        self._feeds: tuple[_Feed, ...] = ()

    def hear(self, event: EventFields) -> None:
        """Take in an event of the session; for the runtime's own thread."""
        for feed in self._feeds:
            feed.hear(event)
        key = event.get("client_id")
        if isinstance(key, str) and key in self._receipts and is_receipt(event, key):
            self._receipts.pop(key)(event)

    @property
    def is_open(self) -> bool:
        """Whether the session takes messages here."""
        return self._client.is_open

    async def say(
        self, text: str, how: How | None = None, user: str | None = None, *, key: str = ""
    ) -> Receipt:
        """Send a message; returns when it is durable. Raises `Rejected` if it is not accepted.

        `how` none goes by the session's busy mode and the words of the text, as in a chat: "stop" stops.
        `user` is who speaks. `key` is an idempotency key: a message with the key of an earlier one is
        that one. A slash at the beginning has no meaning.
        """
        if not text.strip():
            raise Rejected("empty", "there is nothing in the message")
        loop = asyncio.get_running_loop()
        key = key or f"k-{uuid4().hex}"
        answered: asyncio.Future[EventFields] = loop.create_future()

        def take(event: EventFields) -> None:
            if not answered.done():
                answered.set_result(event)

        self._receipts[key] = lambda event: _on(loop, partial(take, event))
        send = self._client.send_message
        await asyncio.to_thread(send, text, how or "auto", key, user or "")
        event = await answered
        if event["type"] == "rejected":
            raise Rejected(event["reason"], event.get("hint", ""))
        return Receipt(self, event)

    async def ask(self, text: str, user: str | None = None) -> Outcome:
        """Send a message and wait for its outcome: its turn comes after those that wait already."""
        return await (await self.say(text, "queue", user)).done()

    async def steer(self, text: str, user: str | None = None) -> Receipt:
        """Send a message into the running turn, which goes on with it."""
        return await self.say(text, "steer", user)

    async def stop(self) -> dict[str, Any]:
        """Stop the running turn and all that it started; nothing that waits is lost.

        Returns when everything was told; the event `stopped` says when every process is gone.
        """
        return await self._command("stop")

    async def revert(
        self, scope: Literal["turn", "last", "undo"] = "turn", *, force: bool = False
    ) -> dict[str, Any]:
        """Stop, and restore the files that the turn changed; changes by others stay.

        `last` means the newest turn that changed something, `undo` takes the last revert back. Returns
        the lists `restored` and `kept`. Raises `UsageError` if there is nothing to restore.
        """
        what = [] if scope == "turn" else [scope]
        return await self._command("revert", what=what, force=force)

    async def resume_queue(self, number: int | None = None) -> dict[str, Any]:
        """Run what waits or was interrupted; `number` names one message."""
        arguments = {} if number is None else {"which": str(number)}
        return await self._command("queue resume", **arguments)

    async def goal(
        self,
        text: str,
        *,
        gates: Sequence[Sequence[str]] = (),
        max_turns: int | None = None,
        max_tokens: int | None = None,
        max_minutes: float | None = None,
    ) -> dict[str, Any]:
        """Have the session work until a judge finds the goal met; `gates` are commands that must succeed.

        Returns the goal. Raises `UsageError` if it is refused.
        """
        budget = {"turns": max_turns, "tokens": max_tokens, "minutes": max_minutes}
        given = {name: most for name, most in budget.items() if most is not None}
        commands = [shlex.join(gate) for gate in gates]
        return await self._command("goal", text=text, gates=commands, **given)

    async def answer(
        self, question: str, choice: Literal["allow", "always", "deny"], reason: str = ""
    ) -> None:
        """Answer a question (event `question`). Raises `UsageError` when it is not open."""
        message = Answer(question=question, choice=choice, reason=reason)
        answer = await asyncio.to_thread(self._client.ask, message)
        if not answer.get("ok"):
            raise UsageError(str(answer.get("reason", f"no question `{question}` is open")))

    async def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Yield the session's events: those of the journal after entry `after`, then live ones.

        Ends when the session is left. Events that are not journalled (pieces of text, output) come
        only live.
        """
        feed = _Feed()
        self._feeds = (*self._feeds, feed)
        try:
            while True:
                feed.begin()
                pages = _Pages(self._client.store, self.id, after)
                while page := await asyncio.to_thread(pages.next):
                    for event in page:
                        yield event
                after = pages.after
                if not self.is_open and not feed.has_any:
                    return
                async for event in feed.live(after):
                    yield event
                    after = max(after, event.seq or 0)
                    if event.type in _LAST:
                        return
        finally:
            self._feeds = tuple(known for known in self._feeds if known is not feed)

    def queue(self) -> dict[str, Any]:
        """Return the queue: `state`, and `items` in their order, each a dictionary."""
        return self._client.queue()

    def inspect(self) -> dict[str, Any]:
        """Return the whole state of the session as plain data, without secrets."""
        return self._client.inspect()

    async def close(self) -> None:
        """Leave the session: what runs is stopped, all is kept, and `resume` takes it up again."""
        await asyncio.to_thread(self._client.leave)

    async def finalize(self) -> None:
        """End the session for good."""
        await asyncio.to_thread(self._client.finalize)

    async def _command(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Carry a command out. Raises `UsageError` if it is refused."""
        reply: Reply | None = await asyncio.to_thread(self._client.run, call(name, arguments))
        if reply is None or not reply.ok:
            raise UsageError(reply.text if reply is not None else f"{name} was refused")
        return dict(reply.data)


_LAST = ("session_suspended", "session_finalized")
_PAGE = 500  # entries that are read at once


class _Pages:
    """Reads a session's journal as events, page by page; `after` is the last entry that was read."""

    def __init__(self, store: Store, session: str, after: int) -> None:
        self.after = after
        self._store = store
        self._session = session
        self._record: SessionRecord | None = None

    def next(self) -> list[Event]:
        """Return the events of the next entries that have any; none at the end."""
        record = self._record
        if record is None:
            record = self._record = load_record(self._store, self._session, upto=self.after)
        found: list[Event] = []
        while not found:
            before = self.after
            for stored in self._store.entries(self._session, before, before + _PAGE):
                entry = decode_entry(stored.data)
                apply(record, entry, stored.seq, stored.time)
                at = Stamp(seq=stored.seq, time=iso(stored.time), session=self._session)
                found += map(Event, translate(entry, record, at))
                self.after = stored.seq
            if self.after == before:
                break
        return found


class _Feed:
    """The live events of one reader; one that does not read for long falls behind."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._woken = asyncio.Event()
        self._events: deque[EventFields] = deque()
        self._is_behind = False

    def begin(self) -> None:
        """Keep what comes from now on."""
        self._events.clear()
        self._is_behind = False

    @property
    def has_any(self) -> bool:
        """Whether an event waits to be read."""
        return bool(self._events)

    def hear(self, event: EventFields) -> None:
        """Keep an event; of an entry whose events do not all have room, none."""
        if self._is_behind:
            return
        if len(self._events) < UNREAD:
            self._events.append(event)
        else:
            self._is_behind = True
            while self._events and self._events[-1]["seq"] == event["seq"] is not None:
                self._events.pop()
        _on(self._loop, self._woken.set)

    async def live(self, after: int) -> AsyncIterator[Event]:
        """Yield events as they come, without those of the journal up to `after`, until it is behind."""
        while True:
            self._woken.clear()
            while self._events:
                event = self._events.popleft()
                if event["seq"] is None or event["seq"] > after:
                    yield Event(event)
            if self._is_behind:
                return
            await self._woken.wait()


class RunHandle(SessionHandle):
    """A run of a workflow: a session, in which the workflow takes the place of an agent."""

    def __init__(self, host: Host, conversation: Conversation, outcomes: Outcomes) -> None:
        super().__init__(host, conversation, outcomes)
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[RunResult] = self._loop.create_future()

    def hear(self, event: EventFields) -> None:
        """Take in an event; the end of the run is its result."""
        super().hear(event)
        if event["type"] == "run_ended":
            _on(self._loop, partial(self._end, RunResult(event)))

    def _end(self, result: RunResult) -> None:
        if not self._ended.done():
            self._ended.set_result(result)

    async def result(self) -> RunResult:
        """Wait for the end of the run, and leave it; the files that it made stay."""
        result = await asyncio.shield(self._ended)
        await asyncio.to_thread(self._host.close)
        return result


class RunResult:
    """How a run ended: `status` is `succeeded`, `failed` or `interrupted`; `output` is a text.

    `steps` are dictionaries with `step`, `state`, and what the step has to tell; `reason` says why it
    failed.
    """

    def __init__(self, event: Mapping[str, Any]) -> None:
        self.status = str(event["status"])
        self.output = str(event.get("output", ""))
        self.steps: list[dict[str, Any]] = list(event["steps"])
        self.reason = str(event.get("reason", ""))

    def __repr__(self) -> str:
        return f"RunResult(status={self.status!r}, output={self.output!r})"


# Homes --------------------------------------------------------------------------------------------


class Home:
    """The sessions of a program, in one place; `async with steersman.open(...) as runtime`."""

    def __init__(
        self, home: str | Path | None, *, unattended: bool = False, yes: bool = False
    ) -> None:
        self._where = home
        self._launch = LaunchOptions(can_ask=not unattended, is_yes=yes)
        self._open_host: Host | None = None
        self._runs: list[Host] = []
        self._handles: dict[str, SessionHandle] = {}
        self._outcomes: dict[str, Outcomes] = {}
        self._closing = ExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        """Open the home. Raises `SteersmanError`."""
        self._loop = asyncio.get_running_loop()
        self._open_host = await asyncio.to_thread(self._open)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Leave every session, end every process that they started, close the journal."""
        host, self._open_host = self._open_host, None
        for run in self._runs:
            await asyncio.to_thread(run.close)
        if host is not None:
            await asyncio.to_thread(host.close)
        for outcomes in self._outcomes.values():
            outcomes.close()
        await asyncio.to_thread(self._closing.close)

    def _open(self) -> Host:
        environ, overrides = dict(os.environ), dict[str, Any]()
        where = self._where
        paths, store = Paths.of(environ), self._store()
        if where == MEMORY:
            scratch = self._closing.enter_context(tempfile.TemporaryDirectory("-steersman"))
            paths = replace(paths, state=Path(scratch))
            overrides["auto_queue.persistence.enabled"] = False
        elif where is not None and store is None:
            environ["STEERSMAN_HOME"] = os.fspath(where)
            paths = Paths.of(environ)
        self._places = paths, environ
        return self._host(
            Host(paths, load(paths, Path.cwd(), environ, overrides), environ, self._launch, store)
        )

    def _store(self) -> Store | None:
        """Open the store of a home elsewhere, once for each host, which closes it."""
        is_url = isinstance(self._where, str) and "://" in self._where
        return store_at(str(self._where)) if is_url else None

    def _host(self, host: Host) -> Host:
        """Follow the sessions of a host."""
        host.watching = self._watch
        host.event_bus.subscribe(self._hear)
        return host

    def _watch(self, session: str) -> tuple[Outcomes, ...]:
        self._outcomes[session] = Outcomes()
        return (self._outcomes[session],)

    def _hear(self, event: EventFields) -> None:
        handle = self._handles.get(event["session"])
        if handle is not None:
            handle.hear(event)

    @property
    def host(self) -> Host:
        """What holds the sessions. Raises `UsageError` if the home is closed."""
        if self._open_host is None:
            raise UsageError("the home is not open", "`async with steersman.open(...) as runtime:`")
        return self._open_host

    # Sessions -------------------------------------------------------------------------------------

    async def start(
        self, agent: Agent | str | None = None, *, folder: str | Path = "."
    ) -> SessionHandle:
        """Begin a session of an agent, which works in `folder`. Raises `SteersmanError`.

        `agent` is one of the program's own, or the name of a configured one; none means the default.
        """
        host, place = self.host, Path(folder).expanduser().resolve()
        if not place.is_dir():
            raise UsageError(f"`{place}` is not a folder", "make it first, or give another one")
        name = agent if isinstance(agent, str) else ""
        if isinstance(agent, Agent):
            name = agent.name
            host.introduce(name, self._own(agent))
        conversation = await asyncio.to_thread(host.begin, place, None, name)
        return self._handle(SessionHandle, host, conversation)

    async def resume(self, session: str, *, agent: Agent | None = None) -> SessionHandle:
        """Take up a session, by its id or the beginning of it. Nothing runs until it is told to.

        `agent` brings the tools of the program's own that the session uses; the session keeps its
        instructions. Raises `UsageError` for an unknown session, one that lacks a tool, or a run.
        """
        host = self.host
        row = find_session(await asyncio.to_thread(host.store.sessions), session)
        refuse_run(row)
        known = self._handles.get(row.session)
        if known is not None and known.is_open:
            return known
        record = await asyncio.to_thread(load_record, host.store, row.session)
        if agent is not None:
            host.introduce(record.agent, self._own(agent))
        own = [tool.schema.name for tool in agent.own_tools] if agent is not None else []
        there = {*host.runtime.shared.toolbox.names, *own}
        missing = [
            name
            for name in record.tools
            if name not in there and not name.startswith(REMOTE) and name not in TOOLS
        ]
        if missing:
            raise UsageError(
                f"session `{row.session}` uses the tool `{missing[0]}`, which is not there",
                "give an agent that has it: resume(session, agent=...)",
            )
        conversation = await asyncio.to_thread(host.resume, row.session)
        return self._handle(SessionHandle, host, conversation)

    def sessions(self) -> list[SessionInfo]:
        """List the home's sessions, the newest first, without those of subagents."""
        return [SessionInfo(row) for row in self.host.store.sessions() if not row.parent]

    # Workflows ------------------------------------------------------------------------------------

    async def run(
        self,
        file: str | Path,
        *,
        variables: Mapping[str, Any] | None = None,
        folder: str | Path = ".",
    ) -> RunHandle:
        """Begin a run of a workflow: a file, or the name of one in the library.

        Raises `ConfigError` with every problem of the file, and `UsageError` for unknown variables.
        """
        place = Path(folder).expanduser().resolve()
        host, plan = await asyncio.to_thread(self._planned, str(file), variables or {}, place)
        conversation = await asyncio.to_thread(host.begin, place, plan)
        handle = self._handle(RunHandle, host, conversation)
        await asyncio.to_thread(start_run, conversation, plan.spec.name)
        return handle

    def _planned(
        self, file: str, variables: Mapping[str, Any], folder: Path
    ) -> tuple[Host, RunPlan]:
        from ..workflows.flow.check import Surroundings, checked_workflow
        from ..workflows.flow.variables import bind_values
        from ..workflows.flow.workflow_file import find_workflow

        self.host  # noqa: B018 - it is open
        paths, environ = self._places
        path = find_workflow(file, paths, folder)
        around = Surroundings(paths=paths, folder=folder, environ=environ)
        spec, config = checked_workflow(path, around)
        plan = RunPlan(spec=spec, variables=bind_values(spec, variables))
        host = self._host(Host(paths, config, environ, self._launch, self._store()))
        self._runs.append(host)
        return host, plan

    def _own(self, agent: Agent) -> OwnAgent:
        assert self._loop is not None
        return agent.own(self.host, self._loop)

    def _handle(self, kind: type[H], host: Host, conversation: Conversation) -> H:
        session = conversation.session
        handle = kind(host, conversation, self._outcomes[session])
        self._handles[session] = handle
        return handle


def open_home(
    home: str | Path | None = None, *, unattended: bool = False, yes: bool = False
) -> Home:
    """Open the sessions of a home: `async with steersman.open(home) as runtime`.

    `home` none is that of the command line, a path names a folder, `memory:` keeps nothing, and a URL is
    opened by a store that is a plug-in (docs/plugins.md).
    `unattended`: nobody answers questions, so what would be asked about is denied; `yes`: it is allowed.
    """
    return Home(home, unattended=unattended, yes=yes)
