"""An agent that is another program, as a session knows agents: a model, and that model's one tool.

The model is a rule: what a person said becomes a call of the tool `agent`, and what that gave is the
answer. So everything that holds for tools holds for the agent's work: its intent is durable before it
begins, the folder is looked at before and after it, a stop is a proof that its processes are dead, and
after a crash its outcome is unknown and it is not run again by itself.

The process goes on between turns. A stop ends it; the next turn starts it anew and loads the session.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...machines.agent_call import (
    AGENT_TOOL,
    AgentBound,
    AgentCalled,
    AgentCallEnded,
    AgentSaid,
)
from ...machines.conversation import ChatMessage, ToolRequest, ToolSchema, Usage
from ...machines.errors import ModelError
from ...machines.messages import Message
from ..models.model import ModelAnswer, ModelRequest, unheard
from ..process.process import Processes
from ..tools.tool import ToolContext, ToolResult
from .reported_call import as_call, option

if TYPE_CHECKING:
    from .acp_connection import AcpConnection


MANNERS = 0.5
"""Seconds that an agent has to stop by itself before its processes are ended."""
FORGOTTEN = "it can't load its earlier session, so it remembers nothing of what was said before"

Params = dict[str, Any]


@dataclass(frozen=True, slots=True)
class AgentSpec:
    """How to start an agent; `name` is what people see. Its environment is the person's own."""

    agent: str
    start: tuple[str, ...]
    environ: Mapping[str, str] = field(default_factory=dict[str, str], repr=False)

    @property
    def name(self) -> str:
        """What stands where a model's name would."""
        return f"{self.agent} ({' '.join(self.start)})"

    async def aclose(self) -> None:
        """Do nothing: each session has a process of its own."""


class ExternalAgent:
    """One session's agent: a `Model` and a `Tool`. `session` is its own id of it, where known."""

    is_mutating = True
    is_idempotent = False

    def __init__(self, spec: AgentSpec, processes: Processes, folder: Path, session: str) -> None:
        self.name = spec.name
        self.spec, self.folder, self.session = spec, folder, session
        self.schema = ToolSchema(AGENT_TOOL, f"Hand it to {spec.agent}.", {"type": "object"})
        self._processes = processes
        self.connection: AcpConnection | None = None
        self._run: AgentRun | None = None

    # As a model -----------------------------------------------------------------------------------

    async def answer(
        self,
        request: ModelRequest,
        on_text: Callable[[str], None],
        on_notice: Callable[[str], None],
        on_thought: Callable[[str], None] = unheard,
    ) -> ModelAnswer:
        """Hand over what was said; or say what the agent answered, which was heard already."""
        last = request.messages[-1]
        if last.role == "tool" and self._run is not None:
            run, self._run = self._run, None
            if run.fault is not None:
                raise run.fault
            return ModelAnswer(run.text or "[It said nothing.]", usage=run.usage)
        call = f"{request.call_prefix}1"
        prompt = {"prompt": _said(request.messages)}
        return ModelAnswer("", (ToolRequest(call, AGENT_TOOL, prompt, call),), stop_reason="tools")

    async def window(self) -> int:
        """Nobody knows: it sees to its own memory."""
        return 0

    async def aclose(self) -> None:
        """End the agent's process. Idempotent."""
        connection, self.connection = self.connection, None
        if connection is not None and connection.pipe.is_alive:
            await connection.pipe.end()

    # As a tool ------------------------------------------------------------------------------------

    def fault(self, arguments: dict[str, Any]) -> str:
        """Nothing can be wrong with it."""
        return ""

    def start(self, arguments: dict[str, Any], context: ToolContext) -> AgentRun:
        """Hand a prompt to the agent."""
        self._run = AgentRun(self, str(arguments["prompt"]), context)
        return self._run

    def decide(self, inner: str, is_allowed: bool) -> None:
        """Answer a question of the agent; one that is open no longer is no matter."""
        if self._run is not None:
            self._run.decide(inner, is_allowed)

    async def connect(self) -> tuple[AcpConnection, str]:
        """Return the connection, begun where there is none; and a notice, mostly none.

        Raises `ModelError`.
        """
        if self.connection is not None and self.connection.pipe.is_alive:
            return self.connection, ""
        program = self.spec.start[0]
        if shutil.which(program, path=self.spec.environ.get("PATH")) is None:
            raise ModelError(f"there is no program `{program}`", f"install {self.spec.agent} first")
        connection = await self._begin()
        known, self.connection = self.session, connection
        is_loaded = await connection.open(self.folder, known)
        self.session = connection.session
        return connection, FORGOTTEN if known and not is_loaded else ""

    async def _begin(self) -> AcpConnection:
        try:
            kind = await asyncio.to_thread(_connection_type)
        except ImportError:
            raise ModelError(
                "the package `agent-client-protocol` is missing",
                "install it with `pip install 'steersman[acp]'`",
            ) from None
        from .pipe import PipeProcess

        pipe = PipeProcess()
        await pipe.start(self._processes, self.spec.start, self.folder, dict(self.spec.environ))
        return kind(pipe)

    def let_go(self) -> None:
        """Forget a process that has ended."""
        self.connection = None


class AgentRun:
    """One prompt that the agent works on: a `ToolRun`, and the listener of its connection."""

    def __init__(self, agent: ExternalAgent, prompt: str, context: ToolContext) -> None:
        self._agent, self._prompt, self._call = agent, prompt, context.call
        self._tell: Callable[[Message], None] = context.tell or _to_nobody
        self._said: list[str] = []
        self._calls: dict[str, Params] = {}
        self._names: dict[str, str] = {}
        self._numbers = count(1)
        self._open: dict[str, asyncio.Future[bool]] = {}
        self._stopping = asyncio.Event()
        self.fault: ModelError | None = None
        self.usage = Usage()
        self._task = asyncio.create_task(self._work())

    @property
    def pid(self) -> int:
        """Process id of the agent."""
        connection = self._agent.connection
        return connection.pipe.pid if connection is not None else 0

    @property
    def text(self) -> str:
        """What it said so far."""
        return "".join(self._said)

    async def wait(self) -> ToolResult:
        """Return what it answered; after a stop nothing of it is alive."""
        return await asyncio.shield(self._task)

    def stop(self) -> None:
        """Begin to stop it: it is asked to, and then its processes are ended."""
        self._stopping.set()

    def decide(self, inner: str, is_allowed: bool) -> None:
        """Answer a question of the agent."""
        asked = self._open.pop(inner, None)
        if asked is not None and not asked.done():
            asked.set_result(is_allowed)

    async def _work(self) -> ToolResult:
        work = asyncio.create_task(self._prompted())
        stopped = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if self._stopping.is_set():
            return await self._end(work)
        try:
            work.result()
        except ModelError as error:
            self.fault = error
            return ToolResult("failed", f"[{error.message}]")
        return ToolResult("ok", self.text)

    async def _prompted(self) -> None:
        connection, notice = await self._agent.connect()
        if notice:
            self._tell(AgentSaid(self._call, f"[{self._agent.spec.agent}: {notice}]\n\n"))
        self._tell(AgentBound(self._call, connection.session))
        connection.listener = self
        try:
            answer = await connection.prompt(self._prompt)
        finally:
            connection.listener = None
        self.usage = _usage(answer.get("usage"))
        if answer.get("stopReason") == "refusal":
            raise ModelError(f"{self._agent.spec.agent} refused to answer")

    async def _end(self, work: asyncio.Task[None]) -> ToolResult:
        """Ask it to stop, then end all its processes."""
        connection = self._agent.connection
        if connection is not None and connection.pipe.is_alive and connection.session:
            for asked in self._open.values():
                asked.cancel()
            await connection.cancel()
            await asyncio.wait((work,), timeout=MANNERS)
        work.cancel()
        await asyncio.wait((work,))
        self._agent.let_go()
        if connection is None:
            return ToolResult("killed", self.text or "Stopped before it started.")
        result = await connection.pipe.end()
        return ToolResult("killed", self.text, killed=result.killed, survivors=result.survivors)

    # What the agent does --------------------------------------------------------------------------

    def updated(self, update: Params) -> None:
        """Tell an update of the session, as far as it is about this prompt."""
        match update:
            case {"sessionUpdate": "agent_message_chunk", "content": {"text": str(text)}}:
                self._said.append(text)
                self._tell(AgentSaid(self._call, text))
            case {"sessionUpdate": "tool_call" | "tool_call_update", "toolCallId": str(theirs)}:
                self._called(theirs, update)
            case _:
                pass

    async def wanted(self, call: Params, options: list[Params]) -> str:
        """Ask the session whether a call may run; a stop dismisses the question."""
        theirs = str(call.get("toolCallId", ""))
        about = self._merged(theirs, call)
        inner = self._named(theirs, is_new=True)
        answer = self._open[inner] = asyncio.get_running_loop().create_future()
        self._tell(AgentCalled(self._call, ToolRequest(inner, *as_call(about)), asks=True))
        try:
            return option(options, await answer)
        except asyncio.CancelledError:
            return ""

    def _called(self, theirs: str, update: Params) -> None:
        about = self._merged(theirs, update)
        status = about.get("status")
        if status not in ("in_progress", "completed", "failed"):
            return
        if theirs not in self._names:
            request = ToolRequest(self._named(theirs), *as_call(about))
            self._tell(AgentCalled(self._call, request))
        if status != "in_progress":
            ended = "ok" if status == "completed" else "failed"
            self._tell(AgentCallEnded(self._call, self._names[theirs], ended))

    def _merged(self, theirs: str, update: Params) -> Params:
        """Add what an update says of a call to what is known of it."""
        known = self._calls.setdefault(theirs, {})
        known.update({name: value for name, value in update.items() if value not in (None, {})})
        return known

    def _named(self, theirs: str, is_new: bool = False) -> str:
        """Give a call an id of ours; a call that asks has one of its own."""
        if is_new or theirs not in self._names:
            self._names[theirs] = f"{self._call}.{next(self._numbers)}"
        return self._names[theirs]


def _connection_type() -> type[AcpConnection]:
    from .acp_connection import AcpConnection

    return AcpConnection


def _to_nobody(message: Message) -> None:
    """Nobody listens."""


def _said(messages: tuple[ChatMessage, ...]) -> str:
    """Return what people said since the agent had the last word."""
    said: list[str] = []
    for message in reversed(messages):
        if message.role != "user":
            break
        said.insert(0, message.text)
    return "\n\n".join(said)


def _usage(told: Any) -> Usage:
    """Read what an agent says that a turn took; nothing where it says nothing."""
    match told:
        case {"inputTokens": int(taken), "outputTokens": int(given)}:
            return Usage(taken, given, int(told.get("cachedReadTokens") or 0))
        case _:
            return Usage()
