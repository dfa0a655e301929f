"""An external agent in the roles that a session knows: a model, and that model's only tool.

The model is a rule: a user message becomes a call of the tool `agent`, and the result of that call is
the answer. So the guarantees of tools hold for the agent's work: its intent is durable before it begins,
the folder is scanned before and after it, a stop proves that its processes have exited, and after a crash
its outcome is unknown and it is not run again automatically.

The process continues between turns. A stop ends it; the next turn starts a new one and loads the session.
"""

from __future__ import annotations

import asyncio
import importlib
import shutil
from collections.abc import Callable, Mapping
from itertools import takewhile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...machines import protocol as m
from ...machines.conversation import ToolRequest, ToolSchema, Usage
from ...machines.errors import ModelError
from ...machines.json_shape import is_array
from ...ports.external_agent import AgentSpec, ExternalAgent
from ...ports.models.loose_json import count, table, tables
from ...ports.models.model import AnswerListener, ModelAnswer, ModelRequest
from ...ports.models.reply import ANSWER_LIMIT
from ...ports.process.process import Processes
from ...ports.tools.tool import TaskRun, ToolContext
from ...workflows.extras import how_to_install

if TYPE_CHECKING:
    from .connection import AcpConnection

GRACE = 0.5
"""Seconds that an agent has to stop before its processes are ended."""
FORGOTTEN = "it can't load its earlier session, so it does not remember the conversation"

Params = dict[str, Any]
_COMMANDS = ("command", "cmd", "script")
_PATHS = ("path", "file_path", "filePath", "filepath", "file")
_PATTERNS = ("pattern", "query", "regex")
_ADDRESSES = ("url", "uri")


class DrivenAgent(ExternalAgent):
    """One session's agent: a `Model` and a `Tool`. `session` is the agent's id of it, if known."""

    is_mutating = True
    is_idempotent = False

    def __init__(self, spec: AgentSpec, processes: Processes, folder: Path, session: str) -> None:
        self.name = spec.name
        self.spec, self.folder, self.session = spec, folder, session
        about = f"Hand it to {spec.agent}."
        self.schema = ToolSchema(
            name=m.AGENT_TOOL, description=about, parameters={"type": "object"}
        )
        self._processes = processes
        self.connection: AcpConnection | None = None
        self._run: AgentRun | None = None

    # As a model -----------------------------------------------------------------------------------

    async def answer(self, request: ModelRequest, listener: AnswerListener) -> ModelAnswer:
        """Request a call with the user messages; after the call, return the streamed answer."""
        last = request.messages[-1]
        if last.role == "tool" and self._run is not None:
            run, self._run = self._run, None
            if run.fault is not None:
                raise run.fault
            return ModelAnswer(text=run.text or "[No answer.]", usage=run.usage)
        said = takewhile(lambda message: message.role == "user", reversed(request.messages))
        texts = [message.text for message in said]
        call = ToolRequest(
            call=f"{request.call_prefix}1",
            tool=m.AGENT_TOOL,
            arguments={"prompt": "\n\n".join(reversed(texts))},
        )
        return ModelAnswer(text="", tool_calls=(call,), stop_reason="tools")

    async def aclose(self) -> None:
        """End the agent's process. Idempotent."""
        connection, self.connection = self.connection, None
        if connection is not None and connection.pipe.is_alive:
            await connection.pipe.end()

    # As a tool ------------------------------------------------------------------------------------

    def fault(self, arguments: dict[str, Any]) -> str:
        """Return nothing: `answer` made the arguments."""
        return ""

    def start(self, arguments: dict[str, Any], context: ToolContext) -> AgentRun:
        """Send a prompt to the agent."""
        self._run = AgentRun(self, str(arguments["prompt"]), context)
        return self._run

    def decide(self, inner: str, is_allowed: bool) -> None:
        """Answer a question of the agent; ignored when it is no longer open."""
        if self._run is not None:
            self._run.decide(inner, is_allowed)

    async def connect(self) -> tuple[AcpConnection, str]:
        """Return the connection, which is opened if necessary, and a notice or an empty text.

        Raises `ModelError`.
        """
        if self.connection is not None and self.connection.pipe.is_alive:
            return self.connection, ""
        program = self.spec.start[0]
        if shutil.which(program, path=self.spec.environ.get("PATH")) is None:
            raise ModelError(f"there is no program `{program}`", f"install {self.spec.agent} first")
        try:
            await asyncio.to_thread(importlib.import_module, "acp.connection")  # takes a while
        except ImportError:
            raise ModelError(
                "the package `agent-client-protocol` is missing", how_to_install("acp")
            ) from None
        from ...ports.process.pipe import PipeProcess
        from .connection import AcpConnection

        pipe = PipeProcess()
        await pipe.start(self._processes, self.spec.start, self.folder, dict(self.spec.environ))
        known, self.connection = self.session, AcpConnection(pipe)
        is_loaded = await self.connection.open(self.folder, known)
        self.session = self.connection.session
        return self.connection, FORGOTTEN if known and not is_loaded else ""


class AgentRun(TaskRun):
    """One prompt that the agent works on: a `ToolRun`, and the listener of its connection."""

    def __init__(self, agent: DrivenAgent, prompt: str, context: ToolContext) -> None:
        self._agent, self._call = agent, context.call
        self._tell: Callable[[m.Message], None] = context.tell or (lambda message: None)
        self._pieces: list[str] = []
        self._size = 0
        self._calls = ReportedCalls(context.call)
        self._open: dict[str, asyncio.Future[bool]] = {}
        self._stopping = asyncio.Event()
        self.fault: ModelError | None = None
        self.usage = Usage()
        self._task = asyncio.create_task(self._work(prompt))

    @property
    def pid(self) -> int:
        """Process id of the agent."""
        connection = self._agent.connection
        return connection.pipe.pid if connection is not None else 0

    @property
    def text(self) -> str:
        """The text of the agent so far."""
        return "".join(self._pieces)

    def stop(self) -> None:
        """Begin to stop the agent: cancel the prompt, then end the processes."""
        self._stopping.set()

    def decide(self, inner: str, is_allowed: bool) -> None:
        """Answer a question of the agent."""
        asked = self._open.pop(inner, None)
        if asked is not None and not asked.done():
            asked.set_result(is_allowed)

    async def _work(self, prompt: str) -> m.ToolResult:
        work = asyncio.create_task(self._prompted(prompt))
        stopped = asyncio.create_task(self._stopping.wait())
        await asyncio.wait((work, stopped), return_when=asyncio.FIRST_COMPLETED)
        stopped.cancel()
        if self._stopping.is_set():
            return await self._end(work)
        try:
            work.result()
        except ModelError as error:
            self.fault = error
            return m.ToolResult(status="failed", text=f"[{error.message}]")
        return m.ToolResult(status="ok", text=self.text)

    async def _prompted(self, prompt: str) -> None:
        connection, notice = await self._agent.connect()
        if notice:
            said = f"[{self._agent.spec.agent}: {notice}]\n\n"
            self._tell(m.AgentSaid(call=self._call, text=said))
        self._tell(m.AgentBound(call=self._call, session=connection.session))
        connection.listener = self
        try:
            answer = await connection.prompt(prompt)
        finally:
            connection.listener = None
        used = table(answer.get("usage"))  # zero without a report
        self.usage = Usage(
            input=count(used, "inputTokens"),
            output=count(used, "outputTokens"),
            cache_read=count(used, "cachedReadTokens"),
        )
        if answer.get("stopReason") == "refusal":
            raise ModelError(f"{self._agent.spec.agent} refused to answer")

    async def _end(self, work: asyncio.Task[None]) -> m.ToolResult:
        """Cancel the prompt, then end all processes of the agent."""
        connection = self._agent.connection
        if connection is not None and connection.pipe.is_alive and connection.session:
            for asked in self._open.values():
                asked.cancel()
            await connection.cancel()
            await asyncio.wait((work,), timeout=GRACE)
        work.cancel()
        await asyncio.wait((work,))
        self._agent.connection = None
        if connection is None:
            return m.ToolResult(status="killed", text=self.text or "Stopped before it started.")
        result = await connection.pipe.end()
        return m.ToolResult(
            status="killed", text=self.text, killed=result.killed, survivors=result.survivors
        )

    # Listener of the connection -------------------------------------------------------------------

    def updated(self, update: Params) -> None:
        """Report an update of the session, if it is about this prompt."""
        match update:
            case {"sessionUpdate": "agent_message_chunk", "content": {"text": str(text)}}:
                self._size += len(text.encode("utf-8", "replace"))
                if self._size > ANSWER_LIMIT:
                    self.fault = ModelError(
                        f"{self._agent.spec.agent} sent an answer of more than {ANSWER_LIMIT:,} bytes: "
                        "it was ended",
                        "ask for less at once",
                    )
                    self.stop()
                    return
                self._pieces.append(text)
                self._tell(m.AgentSaid(call=self._call, text=text))
            case {"sessionUpdate": "tool_call" | "tool_call_update", "toolCallId": str(theirs)}:
                self._called(theirs, update)
            case _:  # plans, modes and thoughts are not shown
                return

    async def wanted(self, call: Params, options: list[Params]) -> str:
        """Ask the session whether a call may run; a stop dismisses the question."""
        theirs = str(call.get("toolCallId", ""))
        self._calls.update(theirs, call)
        request = self._calls.request(theirs)  # a question has an id of its own
        answer = self._open[request.call] = asyncio.get_running_loop().create_future()
        self._tell(m.AgentCalled(call=self._call, request=request, asks=True))
        try:
            return option(options, await answer)
        except asyncio.CancelledError:
            return ""

    def _called(self, theirs: str, update: Params) -> None:
        status = self._calls.update(theirs, update)
        if status not in ("in_progress", "completed", "failed"):
            return
        if theirs not in self._calls.ids:
            self._tell(m.AgentCalled(call=self._call, request=self._calls.request(theirs)))
        if status != "in_progress":
            ended: m.ToolStatus = "ok" if status == "completed" else "failed"
            inner = self._calls.ids[theirs]
            self._tell(m.AgentCallEnded(call=self._call, inner=inner, status=ended))


class ReportedCalls:
    """The calls that an agent makes during one prompt; `call` is the id of the prompt's call.

    `ids` has the latest id that was assigned to each.
    """

    def __init__(self, call: str) -> None:
        self._call = call
        self._known: dict[str, dict[str, Any]] = {}
        self.ids: dict[str, str] = {}
        self._made = 0

    def update(self, theirs: str, update: Mapping[str, Any]) -> str:
        """Merge an update into the known data of a call; returns the status of the call."""
        known = self._known.setdefault(theirs, {})
        known.update({name: value for name, value in update.items() if value not in (None, {})})
        return str(known.get("status") or "")

    def request(self, theirs: str) -> ToolRequest:
        """Assign a new id to a call, and return the call as a request."""
        self._made += 1
        self.ids[theirs] = f"{self._call}.{self._made}"
        tool, arguments = as_call(self._known[theirs])
        return ToolRequest(call=self.ids[theirs], tool=tool, arguments=arguments)


def as_call(about: Mapping[str, Any]) -> tuple[str, dict[str, Any]]:
    """Translate a call of the protocol, by its kind, into a tool and arguments.

    A kind without a counterpart here becomes the tool's name, with the title as argument.
    """
    raw = table(about.get("rawInput"))
    title = str(about.get("title") or "")
    places = (str(place.get("path")) for place in tables(about.get("locations")))
    path = _first(raw, _PATHS) or next(places, "")
    match about.get("kind"):
        case "execute":
            return "shell", {"command": _first(raw, _COMMANDS) or title}
        case "read":
            return "read", {"path": path or title}
        case "edit" | "delete" | "move":
            return "edit", {"path": path or title}
        case "search":
            found = {"pattern": _first(raw, _PATTERNS) or title}
            return "search", found | ({"path": path} if path else {})
        case "fetch":
            return "fetch", {"url": _first(raw, _ADDRESSES) or title}
        case kind:
            return str(kind or "other"), {"title": title}


def option(options: list[dict[str, Any]], is_allowed: bool) -> str:
    """Return the id of the option to choose, preferably for this call only; empty if none fits."""
    kinds = ("allow_once", "allow_always") if is_allowed else ("reject_once", "reject_always")
    for kind in kinds:
        for choice in options:
            if choice.get("kind") == kind:
                return str(choice.get("optionId", ""))
    return ""


def _first(raw: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first of these values that is set, as one line of text."""
    for name in names:
        value = raw.get(name)
        if isinstance(value, str) and value:
            return value
        if is_array(value) and value:
            return " ".join(map(str, value))
    return ""
