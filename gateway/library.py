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
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, aclosing, closing
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, cast, get_args
from uuid import uuid4
from weakref import WeakSet, WeakValueDictionary

from msgspec.structs import replace

from ..journal.recovery import load_record
from ..journal.store import Store
from ..machines import protocol as m
from ..machines.conversation import Picture
from ..machines.errors import SteersmanError, UnknownSession, UsageError
from ..machines.people import DEFAULT_RIGHTS, Person
from ..machines.value import Value
from ..ports.models.model import Model
from ..ports.picture import PICTURES, picture
from ..ports.tools.function import running_session
from ..ports.tools.tool import Tool
from ..workflows.config import Config, load
from ..workflows.paths import Paths
from ..workflows.settings import AgentSettings, Verb
from ..workflows.stored_keys import add_stored_keys
from ..workflows.tools import REMOTE, TOOLS
from .commands.command import CommandCall, Reply
from .commands.registry import call
from .commands.talk import smalltalk
from .events.contract import Event as EventFields
from .events.contract import is_receipt
from .follow import LOOK, Event, Follower, OutcomesElsewhere
from .home.home import existing_folder, find_in, refuse_run, store_at
from .host.host import Host
from .launch_options import LaunchOptions
from .outcome import Outcome, Outcomes, later
from .own_agent import AGAIN, TypedOutput, agent_settings, own_agent
from .reach import SessionReach
from .running import RunPlan, read_run, start_run
from .session_info import SessionInfo, listed
from .speaker import spoken_by
from .wording.acknowledgement import not_accepted

if TYPE_CHECKING:
    from .client import SessionClient
    from .replay.replay import Replay

How = Literal["queue", "steer", "interrupt"]
Scope = Literal["turn", "last", "undo"]
Choice = Literal["allow", "always", "change", "answer", "deny"]

MEMORY = "memory:"
"""The home of a program that keeps nothing."""
_LEFT, _FINALIZED = "session_left", "session_finalized"
_ENDS = {"session_suspended": _LEFT, "session_finalized": _FINALIZED}
_LET_GO = "handle_closed"
_NEXT = {
    _LEFT: "`resume` of an open home takes it up again",
    _LET_GO: "`session` of an open home gives another handle",
    _FINALIZED: "`start` begins another one",
}


class Rejected(SteersmanError):
    """A message was not accepted, and nothing of it is kept; `reason` says why in a word."""

    def __init__(self, reason: str, hint: str = "") -> None:
        super().__init__(not_accepted(reason), hint)
        self.reason = reason


# What a program describes -------------------------------------------------------------------------


class Agent:
    """An agent of a program: who answers, by what instructions, with what tools.

    What is left out is taken from the configured agent of that name, or else from the defaults.
    `model` is a name of the configuration, `provider:model`, or an object with the protocol `Model`.
    `tools` are names of built-in or configured tools, and tools of the program's own. `permissions`
    says of a tool's name or pattern whether it is allowed, asked about or denied, before all configured
    rules; a tool of the program's own is allowed where no rule is about it. `limits` are of a session:
    `max_tokens`, `max_cost` and `max_minutes`. `output` is the type of its answers to `ask`: a
    pydantic model, a dataclass, a msgspec struct, or a plain type.
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
        limits: Mapping[str, float] | None = None,
        output: Any = None,
    ) -> None:
        if not name.strip():
            raise UsageError("an agent needs a name", 'for example Agent("assistant")')
        if isinstance(tools, str):
            raise UsageError(
                f"agent `{name}`: tools is a text, not a list", f'write tools=["{tools}"]'
            )
        if model is not None and not isinstance(model, str) and not hasattr(model, "answer"):
            raise UsageError(
                f"agent `{name}`: {model!r} is no model",
                "give a configured name, `provider:model`, or an object as steersman.Model describes",
            )
        self.name = name
        self.model = model
        self.instructions = instructions
        self.tools = tools if tools is None else tuple(tools)
        self.permissions: dict[str, Verb] = dict(permissions or {})
        self.max_steps = max_steps
        self.limits = limits
        self.output = TypedOutput(output) if output is not None else None
        agent_settings(self, AgentSettings())
        for pattern, verb in self.permissions.items():
            _one_of(verb, Verb, f"agent `{name}`: permissions of `{pattern}`")
        for tool in self.own_tools:
            if not hasattr(tool, "schema"):
                raise UsageError(
                    f"agent `{name}`: {tool!r} is no tool",
                    "decorate the function with @steersman.tool, or give the name of a tool",
                )
            if tool.schema.name.startswith(REMOTE):
                raise UsageError(
                    f"agent `{name}`: `{tool.schema.name}` is the name of a tool of an MCP server",
                    f"give yours one that does not begin with `{REMOTE}`",
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


def _one_of(value: object, known: Any, what: str) -> None:
    """Raise `UsageError` for a value that is none of a `Literal`."""
    if value not in get_args(known):
        raise UsageError(f"{what}: {value!r} is none of {', '.join(map(repr, get_args(known)))}")


def _pictures(given: Sequence[Picture | bytes | str | Path]) -> list[Picture]:
    """Read the pictures of a message. Raises `ToolError` and `UsageError`."""
    if isinstance(given, str | bytes):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError("images: it is one picture, not a list", "write images=[...]")
    if len(given) > PICTURES:
        raise UsageError(f"images: {len(given)} pictures; a message brings {PICTURES} at most")
    return [one if isinstance(one, Picture) else picture(one) for one in given]


# What a program receives --------------------------------------------------------------------------


class Receipt:
    """The receipt of an accepted message: it is on disk, and will not be lost.

    `number` is the message's number in the queue, none where it has none; `taken_as` is `turn`,
    `queue`, `steer`, `interrupt` or `side_talk`, by the routing row `rule`; `ack` is what a person is
    told of that.
    """

    def __init__(self, link: Link, event: Mapping[str, Any]) -> None:
        self.id = str(event["id"])
        self.number = cast("int | None", event["number"])
        self.taken_as = str(event["as"])
        self.rule = cast("str | None", event["rule"])
        self.ack = cast("str | None", event.get("ack_text"))
        self._link = link

    async def done(self) -> Outcome:
        """Wait until the message has become something. Raises `SteersmanError` if the session is left.

        A tool of the session cannot wait for it: its turn waits for the tool.
        """
        await self._link.refuse_own_tool()
        return await self._link.outcomes.of(self.id)

    def __repr__(self) -> str:
        return f"Receipt(id={self.id!r}, number={self.number}, taken_as={self.taken_as!r})"


# Sessions -----------------------------------------------------------------------------------------


class Link:
    """What the events of a session are for its handle: receipts, and its end.

    `over` says why the session takes no messages here any more; empty while it does. `is_home_closed`:
    its journal cannot be read here any more, either. `on_end` are called when it takes no more.
    """

    def __init__(
        self, session: str, outcomes: Outcomes | OutcomesElsewhere, reach: SessionReach
    ) -> None:
        self.session = session
        self.outcomes = outcomes
        self.reach = reach
        self.over = ""
        self.is_home_closed = False
        self.on_event: Callable[[EventFields | None], None] = lambda _: None
        self._receipts: dict[str, list[Callable[[Mapping[str, Any]], None]]] = {}

    def hear(self, event: EventFields) -> None:
        """Take in an event of the session; for the runtime's own thread."""
        if event["type"] in _ENDS:
            self.over = _ENDS[event["type"]]  # every feed has this event: followers are told first
        self.on_event(event)
        key = event.get("client_id")
        if isinstance(key, str) and key in self._receipts and is_receipt(event, key):
            self._answer(key, event)

    def close(self) -> None:
        """Tell everybody who still waits that the home is closed."""
        self.over = self.over or _LEFT
        self.is_home_closed = True
        if isinstance(self.outcomes, Outcomes):
            self.outcomes.close()
        self.on_event(None)
        for key in tuple(self._receipts):
            self._answer(key, {"type": "rejected", "reason": _LEFT})

    def await_receipt(self, key: str) -> asyncio.Future[Mapping[str, Any]]:
        """Return a future of the caller's loop: the event that answers the message with this key."""
        loop = asyncio.get_running_loop()
        answered: asyncio.Future[Mapping[str, Any]] = loop.create_future()

        def take(event: Mapping[str, Any]) -> None:
            if not answered.done():
                answered.set_result(event)

        waiting = self._receipts.setdefault(key, [])
        waiting.append(lambda event: later(loop, partial(take, event)))
        return answered

    def _answer(self, key: str, event: Mapping[str, Any]) -> None:
        for take in self._receipts.pop(key, ()):
            take(event)

    def check_open(self) -> None:
        """Raise `UsageError` if the session takes no messages here any more."""
        if self.over:
            what = {_LEFT: "was left", _LET_GO: "was closed here"}.get(self.over, "is finalized")
            raise UsageError(f"session `{self.session}` {what}", _NEXT[self.over])

    async def refuse_own_tool(self) -> None:
        """Raise `UsageError` in a tool for whose end the session waits, itself or in a subagent."""
        session = "" if self.over else running_session()  # what was left waits for nothing
        while session and session != self.session:
            try:
                session = (await asyncio.to_thread(self.reach.store.row, session)).parent
            except UnknownSession:  # of a tool in another home
                return
        if session:
            raise UsageError(
                "a tool cannot wait for its own session, whose turn waits for the tool",
                "send the message without waiting for its outcome",
            )


class _Said(Value):
    """What is sent to a session; in a text without `how`, a slash at the beginning has its meaning."""

    text: str | CommandCall
    how: str | None = None
    user: str | Person | None = None
    key: str = ""
    shown: tuple[Picture, ...] = ()


class SessionHandle:
    """A session that this program runs."""

    def __init__(
        self, conversation: SessionClient, link: Link, output: TypedOutput | None = None
    ) -> None:
        self.id = conversation.session
        self._output = output
        self._client = conversation
        self._link = link
        self._look: float | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}(id={self.id!r})"

    @property
    def is_open(self) -> bool:
        """Whether the session takes messages here."""
        return not self._link.over and self._client.is_open

    async def say(
        self,
        text: str,
        how: How | None = None,
        user: str | Person | None = None,
        *,
        key: str = "",
        images: Sequence[Picture | bytes | str | Path] = (),
    ) -> Receipt:
        """Send a message; returns when it is durable. Raises `Rejected` if it is not accepted.

        `how` none goes by the session's busy mode and the words of the text, as in a chat: "stop" stops.
        `user` is who speaks; a name alone may do everything, a `Person` what their rights say. `key` is
        an idempotency key: a message with the key of an earlier one is that one. A slash at the
        beginning has no meaning. `images` are pictures, their content or their files: at most 8 of
        2 MB, PNG, JPEG, GIF or WebP; to a model that takes none it is said that there are some.
        """
        if how is not None:
            _one_of(how, How, "how")
        shown = await asyncio.to_thread(_pictures, images)
        said = _Said(text=text, how=how or "auto", user=user, key=key, shown=tuple(shown))
        return cast("Receipt", await self._sent(said))

    async def enter(
        self, text: str | CommandCall, user: str | Person | None = None, *, key: str = ""
    ) -> Receipt | Reply:
        """Send what a person typed: a message as `say` does, or a slash command, which has a reply.

        Such a command may also be data. Raises `Rejected`. A command with the key of an earlier one is
        carried out again.
        """
        return await self._sent(_Said(text=text, user=user, key=key))

    async def side_talk(
        self, text: str, user: str | Person | None = None, *, key: str = ""
    ) -> Receipt:
        """Ask something beside the work; its answer is offered in the queue. Raises `Rejected`."""
        _check_text(text)
        return cast("Receipt", await self._sent(_Said(text=smalltalk(text), user=user, key=key)))

    async def _sent(self, said: _Said) -> Receipt | Reply:
        """Send something with a key, and wait for what becomes of it. Raises `Rejected`."""
        if not isinstance(said.text, CommandCall):
            _check_text(said.text)
        if self._link.over:
            raise Rejected(self._link.over, _NEXT[self._link.over])
        return await self._taken(said if said.key else replace(said, key=f"k-{uuid4().hex}"))

    async def _taken(self, said: _Said) -> Receipt | Reply:
        answered = self._link.await_receipt(said.key)

        def speak() -> Reply | None:
            with self._speaking(said.user):
                if isinstance(said.text, CommandCall):
                    return self._client.run(said.text, said.key)
                if said.how is None:
                    return self._client.say(said.text, "auto", said.key)
                self._client.send_message(said.text, said.how, said.key, pictures=said.shown)
                return None

        reply = await asyncio.to_thread(speak)
        return reply if reply is not None else self._receipt(await answered)

    def _receipt(self, event: Mapping[str, Any]) -> Receipt:
        """Return the receipt of an accepted message. Raises `Rejected`."""
        if event["type"] == "rejected":
            reason = str(event["reason"])
            raise Rejected(reason, _NEXT.get(reason) or str(event.get("hint", "")))
        return Receipt(self._link, event)

    def _speaking(self, user: str | Person | None) -> AbstractContextManager[None]:
        """Let what is done within be the word of this user."""
        if isinstance(user, Person):
            return spoken_by(user.name, user.may)
        return spoken_by(user or "")

    async def ask(self, text: str, user: str | Person | None = None) -> Outcome:
        """Send a message and wait for the outcome of its turn, which comes after what runs and waits.

        No word of it has a meaning for the runtime. What a stop held stays held, and does not hold it up.
        Where the agent's answers have a type, the outcome has a `value`; an answer that does not fit is
        asked for once more, and has failed if that does not fit either.
        """
        outcome = await self._outcome_of(text, user)
        if self._output is None or outcome.status != "done":
            return outcome
        outcome.value, fault = self._output.read(outcome.text)
        if fault:
            outcome = await self._outcome_of(AGAIN.format(fault=fault), user)
            if outcome.status == "done":
                outcome.value, fault = self._output.read(outcome.text)
                if fault:
                    outcome.status, outcome.reason = "failed", f"the answer does not fit: {fault}"
        return outcome

    async def _outcome_of(self, text: str, user: str | Person | None) -> Outcome:
        said = _Said(text=text, how="turn", user=user)
        return await cast("Receipt", await self._sent(said)).done()

    async def steer(self, text: str, user: str | Person | None = None) -> Receipt:
        """Send a message into the running turn, which goes on with it."""
        return await self.say(text, "steer", user)

    async def stop(self) -> dict[str, Any]:
        """Stop the running turn and all that it started; nothing that waits is lost.

        Returns when every actor has received the stop; the event `stopped` says when every process is
        gone.
        """
        return await self._command("stop")

    async def revert(self, scope: Scope = "turn", *, force: bool = False) -> dict[str, Any]:
        """Stop, and restore the files that the turn changed; changes by others stay.

        `turn` is the running or stopped turn, else the newest that changed something; `last` is only
        the last change of it, and `undo` takes the last revert back. Returns the lists `restored` and
        `kept`; `notes`, which name what else is not as it was; and `original`, true if a look at the
        whole folder found nothing of the kind. Raises `UsageError` if refused.
        """
        _one_of(scope, Scope, "scope")
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
        if not text.strip():
            raise UsageError("a goal needs a text")
        for gate in gates:
            if isinstance(gate, str):
                raise UsageError(
                    f"the gate {gate!r} is a text, not a list of words",
                    f"write gates=[{shlex.split(gate)!r}]",
                )
        budget = {"turns": max_turns, "tokens": max_tokens, "minutes": max_minutes}
        given = {name: most for name, most in budget.items() if most is not None}
        commands = [shlex.join(gate) for gate in gates]
        return await self._command("goal", text=text, gates=commands, **given)

    async def answer(
        self, question: str, choice: Choice, reason: str = "", user: str | Person | None = None
    ) -> None:
        """Answer a question (event `question`) with one of its options; `reason` as `/answer` takes it.

        Raises `UsageError` when it is not open, or `user` may not answer it.
        """
        _one_of(choice, Choice, "choice")
        self._link.check_open()
        message = m.Answer(question=question, choice=choice, reason=reason)

        def ask() -> dict[str, Any]:
            with self._speaking(user):
                return self._client.ask(message)

        answer = await asyncio.to_thread(ask)
        if not answer.get("ok"):
            raise UsageError(str(answer.get("reason", f"no question `{question}` is open")))

    async def outcome(self, message: str) -> Outcome:
        """Wait for what becomes of a message, by its id (`Receipt.id`). Raises `SteersmanError`."""
        await self._link.refuse_own_tool()
        return await self._link.outcomes.of(message)

    async def events(self, after: int = 0) -> AsyncIterator[Event]:
        """Yield the session's events: those of the journal after entry `after`, then live ones.

        Ends when the session is left. Events that are not journalled (pieces of text, output) come
        only live, and so do the questions of subagents, with `parent`; what was streamed of an answer
        before is one `text` with `so_far`. What happens after the first event was yielded is live.
        """
        link = self._link
        if link.is_home_closed:
            raise UsageError(
                f"session `{self.id}` was left, and its journal is closed", _NEXT[_LEFT]
            )
        follower = Follower(
            link.reach,
            self.id,
            after,
            below="questions",
            is_over=lambda: bool(link.over),
            look=self._look,
        )
        async with aclosing(follower.batches()) as batches:
            is_live = False
            async for _, events, is_joined in batches:
                is_live = is_live or is_joined
                for event in events:
                    yield Event(event)
                    if is_live and event["type"] in _ENDS and event["session"] == self.id:
                        return

    def queue(self) -> dict[str, Any]:
        """Return the queue: `state`, and `items` in their order, each a dictionary."""
        self._link.check_open()
        return self._client.queue()

    def inspect(self) -> dict[str, Any]:
        """Return the whole state of the session as plain data, without secrets."""
        self._link.check_open()
        return self._client.view.inspect()

    async def close(self) -> None:
        """Leave the session: what runs is stopped, all is kept, and `resume` takes it up again."""
        await asyncio.to_thread(self._client.leave)

    async def finalize(self) -> None:
        """Finalize the session."""
        await asyncio.to_thread(self._client.finalize)

    async def _command(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        """Carry a command out. Raises `UsageError` if it is refused."""
        self._link.check_open()
        try:
            command = call(name, arguments)
        except ValueError as error:
            raise UsageError(str(error)) from error
        reply = await asyncio.to_thread(self._client.run, command)
        await asyncio.to_thread(self._client.publish_all)  # so that what it changed is seen at once
        return _done(reply, name)


def _done(reply: Reply | Receipt | None, name: str) -> dict[str, Any]:
    """Return the data of a command that was carried out. Raises `UsageError` if it was refused."""
    if not isinstance(reply, Reply) or not reply.ok:
        raise UsageError(reply.text if isinstance(reply, Reply) else f"{name} was refused")
    return dict(reply.data)


class SessionElsewhere(SessionHandle):
    """A session that another program has open, with the methods of one that this program runs.

    What is said is durable in its mailbox before that program answers, so that it is not lost with it.
    """

    def __init__(self, reach: SessionReach, session: str) -> None:
        self.id = session
        self._output = None
        self._link = Link(session, OutcomesElsewhere(reach, session), reach)
        self._look = LOOK

    @property
    def is_open(self) -> bool:
        """Whether a program has the session open, and has not finalized it."""
        if self._link.over:
            return False
        reach = self._link.reach
        is_over = reach.store.row(self.id).state == "finalized"
        return not is_over and reach.owner(self.id) is not None

    async def _taken(self, said: _Said) -> Receipt | Reply:
        if said.shown:
            raise UsageError("pictures can be shown only to a session that is open here")
        if isinstance(said.text, CommandCall):
            named = {"name": said.text.command.name, "arguments": dict(said.text.arguments)}
            return await self._called("command", said.user, client_id=said.key, **named)
        way = {} if said.how is None else {"as": said.how, "plain": True}
        return await self._called("say", said.user, client_id=said.key, text=said.text, **way)

    async def _called(
        self, method: str, user: str | Person | None, **params: Any
    ) -> Receipt | Reply:
        """Have the session's program carry a method of the control socket out."""
        self._link.check_open()
        if isinstance(user, Person):
            raise UsageError(
                f"session `{self.id}` is open in another program, which knows no rights of `{user.name}`",
                "give the name alone, or `resume` the session here when that program has left it",
            )
        remote = self._link.reach.remote(self.id, user=user or "")
        event = await asyncio.to_thread(partial(remote.call, method, **params))
        if event["type"] == "result":
            return Reply(ok=event["ok"], data=event["data"], text=event["text"])
        return self._receipt(event)

    async def _command(self, name: str, /, **arguments: Any) -> dict[str, Any]:
        return _done(await self._called("command", None, name=name, arguments=arguments), name)

    async def answer(
        self, question: str, choice: Choice, reason: str = "", user: str | Person | None = None
    ) -> None:
        """Answer a question; see `SessionHandle.answer`."""
        _one_of(choice, Choice, "choice")
        given = {"id": question, "choice": choice, "reason": reason}
        _done(await self._called("answer", user, **given), "it")

    def queue(self) -> dict[str, Any]:
        """Return the queue; see `SessionHandle.queue`."""
        self._link.check_open()
        queue: dict[str, Any] = self._link.reach.remote(self.id).call("queue")
        return queue

    def inspect(self) -> dict[str, Any]:
        """Return the whole state of the session as that program has it, without secrets."""
        self._link.check_open()
        reach = self._link.reach
        owner = reach.owner(self.id)
        if owner is None:
            raise UsageError(f"no program has session `{self.id}` open", _NEXT[_LEFT])
        with closing(reach.remote(self.id, owner)) as remote:
            state: dict[str, Any] = remote.call("inspect")
            return state

    async def close(self) -> None:
        """Let go of the session, which goes on in its program: nothing more is said to it from here."""
        self._link.over = self._link.over or _LET_GO

    async def finalize(self) -> None:
        """Finalize the session."""
        await self._command("finalize")


def _check_text(text: str) -> None:
    """Raise for what is no message."""
    if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UsageError(f"a message is a text, not {text!r}")
    if not text.strip():
        raise Rejected("empty", "there is nothing in the message")


class RunHandle(SessionHandle):
    """A run of a workflow: a session, in which the workflow takes the place of an agent."""

    def __init__(
        self, conversation: SessionClient, link: Link, let_go: Callable[..., None]
    ) -> None:
        super().__init__(conversation, link)
        self._let_go = let_go
        self._loop = asyncio.get_running_loop()
        self._ended: asyncio.Future[RunResult | None] = self._loop.create_future()
        link.on_event = self._take

    def _take(self, event: EventFields | None) -> None:
        """Take in an event: the end of the run is its result; none where the run was left before."""
        is_end = event is not None and event["type"] == "run_ended"
        if is_end or event is None or event["type"] in _ENDS:
            later(self._loop, partial(self._settle, RunResult(event) if is_end and event else None))

    def _settle(self, result: RunResult | None) -> None:
        if not self._ended.done():
            self._ended.set_result(result)

    async def result(self) -> RunResult:
        """Wait for the end of the run, and leave it; the files that it made stay.

        A run that is left before its end is interrupted. Raises `UsageError` if its end is not known.
        """
        result = await asyncio.shield(self._ended)
        if result is None:
            raise UsageError(
                f"run `{self.id}` was left before it ended",
                f"`steersman run --resume {self.id}` continues it",
            )
        await asyncio.to_thread(self._let_go)
        return result

    async def close(self) -> None:
        """Interrupt the run and leave it: what it did is kept, and the command line can resume it."""
        await asyncio.to_thread(self._let_go)

    async def finalize(self) -> None:
        """Finalize the run."""
        await asyncio.to_thread(self._let_go, is_final=True)


class RunResult:
    """How a run ended: `status` is `succeeded`, `failed` or `interrupted`.

    `output` is the text that the workflow declares as its output, if any. `steps` are dictionaries with
    `step`, `state`, and what the step has to tell; `reason` says why it failed.
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
        self,
        home: str | Path | None,
        *,
        unattended: bool = False,
        yes: bool = False,
        is_hermetic: bool = False,
    ) -> None:
        if not (home is None or isinstance(home, str | Path)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(
                f"{home!r} is no home", "give the path of a folder, `memory:`, or nothing"
            )
        self._where = home
        self._launch = LaunchOptions(can_ask=not unattended, is_yes=yes)
        self._open_host: Host | None = None
        self._runs: dict[str, Callable[..., None]] = {}
        self._handles: dict[str, SessionHandle] = {}
        self._links: WeakValueDictionary[str, Link] = WeakValueDictionary()
        self._elsewhere: WeakSet[SessionElsewhere] = WeakSet()
        self._is_hermetic = is_hermetic
        self._introducing = threading.Lock()
        self._closing = ExitStack()
        self._loop: asyncio.AbstractEventLoop | None = None

    async def __aenter__(self) -> Self:
        """Open the home. Raises `SteersmanError`."""
        if self._loop is not None:
            raise UsageError("the home is open already", "open it once, and hand it on")
        self._loop = asyncio.get_running_loop()
        try:
            self._open_host = await asyncio.to_thread(self._open)
        finally:
            if self._open_host is None:
                self._loop = None
                self._closing.close()
        return self

    async def __aexit__(self, *_: object) -> None:
        """Leave every session, end every process that they started, close the journal."""
        host, self._open_host = self._open_host, None
        for let_go in (*self._runs.values(), *([host.close] if host is not None else [])):
            await asyncio.to_thread(let_go)
        for link in tuple(self._links.values()):
            link.close()
        for handle in tuple(self._elsewhere):
            await handle.close()  # else it would post what it says, and fail after that
        self._runs.clear()
        self._links.clear()
        self._handles.clear()
        await asyncio.to_thread(self._closing.close)
        self._loop = None

    def _open(self) -> Host:
        if not self._is_hermetic:
            add_stored_keys(os.environ)
        environ, overrides = dict(os.environ), dict[str, Any]()
        where = self._where
        paths, folder, store = Paths.of(environ), Path.cwd(), self._store()
        if where == MEMORY:
            scratch = Path(self._closing.enter_context(tempfile.TemporaryDirectory("-steersman")))
            paths = replace(paths, state=scratch)
            overrides["auto_queue.persistence.enabled"] = False
            if self._is_hermetic:
                paths, folder = replace(paths, config=scratch), scratch
                environ.pop("STEERSMAN_CONFIG", None)
        elif where is not None and store is None:
            environ["STEERSMAN_HOME"] = os.fspath(where)
            paths = Paths.of(environ)
        self._places = paths, environ
        config = load(paths, folder, environ, overrides)
        return self._hosted(paths, config, store)

    def _store(self) -> Store | None:
        """Open the store of a home elsewhere, once for each host, which closes it."""
        is_url = isinstance(self._where, str) and "://" in self._where
        return store_at(str(self._where)) if is_url else None

    def _hosted(self, paths: Paths, config: Config, store: Store | None) -> Host:
        """Make a host whose sessions are followed."""
        host = Host(paths, config, self._places[1], self._launch, store)
        host.event_bus.subscribe(self._hear)
        return host

    def _hear(self, event: EventFields) -> None:
        session = event["session"]
        link = self._links.get(session)
        if link is not None:
            link.hear(event)
        if event["type"] in _ENDS:
            self._handles.pop(session, None)  # a caller that has the handle keeps it

    @property
    def _host(self) -> Host:
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
        host, place = self._host, existing_folder(folder)
        if not (agent is None or isinstance(agent, str | Agent)):  # pyright: ignore[reportUnnecessaryIsInstance]
            raise UsageError(f"{agent!r} is no agent", "give a steersman.Agent, or the name of one")
        own = agent if isinstance(agent, Agent) else None
        name = agent.name if isinstance(agent, Agent) else agent or ""
        return await self._opened(name, own, partial(host.begin, place, None, name))

    async def resume(self, session: str, *, agent: Agent | None = None) -> SessionHandle:
        """Take up a session, by its id or the beginning of it. Nothing runs until a message asks for it.

        `agent` brings the tools of the program's own that the session uses; the session keeps its
        instructions. Raises `UsageError` for an unknown session, one that lacks a tool, or a run.
        """
        host = self._host
        row = await asyncio.to_thread(find_in, host.store, session)
        refuse_run(row)
        if row.state == "finalized":
            raise UsageError(f"session `{row.session}` is finalized", _NEXT[_FINALIZED])
        if (known := self._open_handle(row.session, agent)) is not None:
            return known
        record = await asyncio.to_thread(load_record, host.store, row.session)
        own = [tool.schema.name for tool in agent.own_tools] if agent is not None else []
        tools = {*host.runtime.shared.toolbox.names, *own}
        missing = [
            name
            for name in record.tools
            if name not in tools and not name.startswith(REMOTE) and name not in TOOLS
        ]
        if missing:
            raise UsageError(
                f"session `{row.session}` uses the tool `{missing[0]}`, which is not there",
                "give an agent that has it: resume(session, agent=...)",
            )
        return await self._opened(record.agent, agent, partial(host.resume, row.session))

    async def session(self, session: str) -> SessionHandle:
        """Return a session that is open, by its id or the beginning of it: here, or in another program.

        Raises `UsageError` for one that no program has open, which `resume` takes up.
        """
        host = self._host
        row = await asyncio.to_thread(find_in, host.store, session)
        if (here := self._open_handle(row.session)) is not None:
            return here
        elsewhere = SessionElsewhere(SessionReach(*self._places, host.store), row.session)
        if not await asyncio.to_thread(lambda: elsewhere.is_open):
            raise UsageError(f"no program has session `{row.session}` open", _NEXT[_LEFT])
        self._elsewhere.add(elsewhere)
        return elsewhere

    @property
    def state(self) -> Path:
        """The folder with what this home keeps, beside its journal."""
        return self._host.paths.state

    def people(self, platform: str) -> dict[str, Person]:
        """Return who talks here, by their names on a platform: the lines of `[people]` that have it."""
        found: dict[str, Person] = {}
        for name, line in self._host.config.people.items():
            known = line.get(platform, [])
            for alias in [known] if isinstance(known, str) else known:
                found[alias] = Person(name=name, may=tuple(line.get("may", DEFAULT_RIGHTS)))
        return found

    def sessions(self) -> list[SessionInfo]:
        """List the home's sessions, the newest first, without those of subagents."""
        host = self._host
        found = listed(host.store, lambda session: host.open_conversation(session) is not None)
        return [info for info in found if not info.parent]

    async def replay(
        self,
        session: str,
        *,
        since: str = "",
        model: str = "",
        agent: Agent | str = "",
        routes: str = "",
        answers: Mapping[str, str] | None = None,
        say: str = "",
    ) -> Replay:
        """Decide a recorded session again: models and tools answer from its journal, nothing is run.

        From the turn `since` on, or the beginning, `model`, `agent` and `routes` are used in place of the
        recorded ones, all of the configuration; only a model is asked. An `Agent` is the one that the
        session ran with. `answers` gives questions another answer, `{"q2": "deny"}`, and `say` is said at
        the end. What came is kept as a session below the recorded one.
        Raises `UsageError` for a session that cannot be replayed, and for what is not there.
        """
        from .replay.at_home import replayed_in
        from .replay.replay import ReplayOptions

        host = self._host
        row = await asyncio.to_thread(find_in, host.store, session)
        options = ReplayOptions(
            since=since,
            model=model,
            agent=agent if isinstance(agent, str) else "",
            routes=routes,
            answers=tuple((answers or {}).items()),
            said=say,
        )
        own = agent if isinstance(agent, Agent) else None
        return await asyncio.to_thread(replayed_in, host.store, row, *self._places, options, own)

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
        place, paths = existing_folder(folder), self._host.paths

        def opened() -> tuple[Host, RunPlan]:
            plan, config = read_run(str(file), variables or {}, place, *self._places)
            return self._hosted(paths, config, self._store()), plan

        host, plan = await asyncio.to_thread(opened)
        try:
            conversation = await asyncio.to_thread(host.begin, place, plan)
        except SteersmanError:
            await asyncio.to_thread(host.close)
            raise
        link = self._link(conversation, host)

        ending = threading.Lock()

        def let_go(*, is_final: bool = False) -> None:
            with ending:  # the result, a close and the end of the home may come together
                if is_final:
                    conversation.finalize()
                host.close()
                link.is_home_closed = True
            self._runs.pop(link.session, None)

        self._runs[link.session] = let_go
        handle = self._handles[link.session] = RunHandle(conversation, link, let_go)
        await asyncio.to_thread(start_run, conversation, plan.spec.name)
        return handle

    async def _opened(
        self, name: str, agent: Agent | None, begin: Callable[[], SessionClient]
    ) -> SessionHandle:
        """Begin a session while a name means this agent, if there is one, and no other of that name."""
        own = own_agent(agent, self._host, self._loop) if agent is not None else None

        def begun() -> SessionClient:
            if own is None:
                return begin()
            with self._introducing:
                self._host.opener.profiles.introduce(name, own)
                return begin()

        return self._handle(await asyncio.to_thread(begun), agent)

    def _open_handle(self, session: str, agent: Agent | None = None) -> SessionHandle | None:
        """Return the handle of a session that is open here; none if it is not."""
        known = self._handles.get(session)
        if known is not None and known.is_open:
            return known
        there = self._host.open_conversation(session)  # taken up by a command in place of another
        return self._handle(there, agent) if there is not None else None

    def _handle(self, conversation: SessionClient, agent: Agent | None = None) -> SessionHandle:
        output = agent.output if agent is not None else None
        handle = SessionHandle(conversation, self._link(conversation, self._host), output)
        self._handles[handle.id] = handle
        return handle

    def _link(self, conversation: SessionClient, host: Host) -> Link:
        session = conversation.session
        reach = SessionReach(*self._places, host.store, lambda _: host)
        link = self._links[session] = Link(session, host.observers.outcomes[session], reach)
        return link


def open_home(
    home: str | Path | None = None, *, unattended: bool = False, yes: bool = False
) -> Home:
    """Open the sessions of a home: `async with steersman.open(home) as runtime`.

    `home` none is that of the command line, a path names a folder, `memory:` keeps nothing, and a URL is
    opened by a store that is a plug-in (docs/plugins.md).
    `unattended`: no person answers questions, so what would be asked about is denied; `yes`: it is
    allowed.
    """
    return Home(home, unattended=unattended, yes=yes)
