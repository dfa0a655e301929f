"""The tools of `steersman mcp`: what an MCP client may do with the sessions of a home.

They are a client of the home, as `steersman send` and `stop` are: a session that some program has open is
reached through its mailbox, of any other only the queue is changed. What a client says is said
under a name of its own, `mcp:NAME`, is text alone (no slash command is carried out), and is routed like
any message of a person. A run of a workflow is owned by this program, and ends with it.

Every method blocks, for a thread of its own.
"""

from __future__ import annotations

import asyncio
import secrets
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import ExitStack, aclosing
from contextvars import ContextVar
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from ...cli.commands.inspect import dump_now, printed
from ...cli.stored import stored
from ...gateway.client import SessionClient
from ...gateway.commands.command import CommandCall
from ...gateway.commands.talk import answer, stop
from ...gateway.events.contract import Event, ReceiptEvent
from ...gateway.follow import Batch, Follower
from ...gateway.home.home import named_session
from ...gateway.host.host import Host
from ...gateway.launch_options import LaunchOptions
from ...gateway.outcome import StoredOutcome, later
from ...gateway.reach import SessionReach
from ...gateway.remote_session import RemoteSession
from ...gateway.running import read_run, start_run
from ...gateway.session_info import listed
from ...gateway.views.saved_queues import stored_queue
from ...gateway.views.story import story_of
from ...gateway.wording.formats import iso
from ...gateway.wording.redaction import Redactor
from ...journal.store import SessionRow, Store
from ...machines.errors import SteersmanError, UsageError
from ...ports.tools.function import FunctionTool, tool
from ...workflows.paths import Paths

MOST_RUNS = 8
"""Runs that a client may have open at a time."""
MOST_SESSIONS = 100
"""Sessions that are listed."""
SHOWN = (
    *("id", "name", "title", "folder", "agent", "workflow"),
    *("state", "needs", "result", "waiting", "asking", "interrupted"),
)
"""What is said of a session in a list."""

Json = dict[str, Any]
How = Literal["auto", "queue", "steer", "interrupt"]
Wait = Annotated[float, Field(ge=0, le=3600)]
_PARAMETERS = {
    "session": "an id, its beginning, a name, or `last`: the newest of this folder",
    "wait": "seconds to wait for the outcome; 0 returns the receipt at once",
    "text": "the message",
    "question": "the id of the question, as `inspect` has it",
    "message": "its number or id",
    "workflow": "a name, or a file in this server's folder",
    "variables": "values of the workflow's variables",
}


class Caller:
    """Who makes a call: the sender's name, and what takes reports of progress, from any thread."""

    def __init__(
        self,
        user: str = "mcp",
        report: Callable[[float, float, str], None] = lambda _done, _total, _note: None,
    ) -> None:
        self.user, self.report = user, report
        self._waits: list[Callable[[], None]] = []
        self._is_gone = False

    def on_leave(self, wake: Callable[[], None]) -> None:
        """Have something called when the caller no longer waits for the call."""
        self._waits.append(wake)
        if self._is_gone:
            wake()

    def leave(self) -> None:
        """Wake what waits for the caller: the call was cancelled, or the client is gone."""
        self._is_gone = True
        for wake in self._waits:
            wake()


_calling: ContextVar[Caller] = ContextVar("caller")


def call(function: FunctionTool[..., Any], arguments: Mapping[str, Any], caller: Caller) -> Any:
    """Carry out a call of a tool, in a thread of its own. Raises `SteersmanError`."""
    _calling.set(caller)
    return function(**arguments)


class HomeTools:
    """A home as an MCP client has it; `folder` is where runs work, and where `last` looks first.

    `may_answer`: the tool `answer` exists, with which a client decides about calls that need permission.
    """

    def __init__(self, environ: Mapping[str, str], folder: Path, *, may_answer: bool) -> None:
        self._environ, self._folder = environ, folder
        self._paths = Paths.of(environ)
        self._redactor = Redactor(environ)
        self._runs: dict[str, _Run] = {}
        self._lock = threading.Lock()
        functions: list[Callable[..., Any]] = [
            self.list_sessions,
            self.say,
            self.queue,
            self.steer,
            self.stop,
            self.list_queue,
            self.inspect,
            self.why,
            self.run,
            *([self.answer] if may_answer else []),
        ]
        made = [tool(function) for function in functions]
        self.tools: dict[str, FunctionTool[..., Any]] = {each.name: each for each in made}
        for each in made:
            for name, schema in each.schema.parameters["properties"].items():
                if name in _PARAMETERS:
                    schema["description"] = _PARAMETERS[name]

    def close(self) -> None:
        """Interrupt the runs, with all their processes, and close them; they can be resumed."""
        for run in list(self._runs.values()):
            run.close()

    # The tools ------------------------------------------------------------------------------------

    def list_sessions(self) -> Json:
        """List the sessions of this home, those that need a person first, then the newest."""
        with stored(self._environ) as store:
            found = [info for info in listed(store) if not info.parent and info.seq]
        shown = [
            {**{name: getattr(info, name) for name in SHOWN}, "updated": iso(info.updated)}
            for info in found[:MOST_SESSIONS]
        ]
        return {"sessions": shown, "more": max(0, len(found) - MOST_SESSIONS)}

    def say(self, text: str, session: str = "last", wait: Wait = 0) -> Json:
        """Say something to a session, as a person does: its busy mode decides what a message does.

        A message that says "stop" stops the running turn.
        """
        return self._say(session, text, "auto", wait)

    def queue(self, text: str, session: str = "last", wait: Wait = 0) -> Json:
        """Queue a message: it has a turn of its own when its turn comes."""
        return self._say(session, text, "queue", wait)

    def steer(self, text: str, session: str = "last", wait: Wait = 0) -> Json:
        """Hand a message to the running turn, which goes on with it."""
        return self._say(session, text, "steer", wait)

    def stop(self, session: str = "last") -> Json:
        """Stop the running turn of a session and all that it started; nothing that waits is lost."""
        return self._command(session, stop())

    def answer(
        self,
        question: str,
        choice: str,
        session: str = "last",
        reason: str = "",
    ) -> Json:
        """Answer the question of a tool call (allow, always, deny) or of a workflow's step."""
        call = answer.call({"question": question, "choice": choice, "reason": reason})
        return self._command(session, call)

    def list_queue(self, session: str = "last") -> Json:
        """List the running and waiting messages of a session."""
        with stored(self._environ) as store:
            return self._shown(stored_queue(store, named_session(store, session, self._folder)))

    def inspect(self, session: str = "last", form: Literal["tree", "json"] = "tree") -> Any:
        """Show the state of a session: its turn, calls, open questions, queue, subagents and goal."""
        with stored(self._environ) as store:
            row = named_session(store, session, self._folder)
            data = self._shown(dump_now(self._environ, store, row))
        return data if form == "json" else printed(data, form, {"NO_COLOR": "1"})

    def why(self, message: str, session: str = "last") -> Json:
        """Tell the history of one message, by its number or id, and why it waits."""
        with stored(self._environ) as store:
            row = named_session(store, session, self._folder)
            is_owned = store.is_owned(row.session)
            story, _ = story_of(store, row, message, self._redactor, is_owned=is_owned)
        return self._shown(story)

    def run(
        self,
        workflow: str,
        variables: dict[str, str] | None = None,
        wait: Wait = 0,
    ) -> Json:
        """Run a workflow in this server's folder. The run is a session: `inspect` and `stop` reach it.

        It ends with this server, and `steersman run --resume last` continues it.
        """
        with self._lock:
            if sum(run.is_open for run in self._runs.values()) >= MOST_RUNS:
                raise UsageError(f"{MOST_RUNS} runs are open already", "wait for one, or stop it")
            run = _Run(self._environ, self._paths, self._folder, workflow, variables or {})
            self._runs[run.session] = run
        run.report = _calling.get().report
        run.begin()
        woken = threading.Event()
        run.on_end(woken.set)
        _calling.get().on_leave(woken.set)
        woken.wait(wait)
        return self._shown({"session": run.session, **run.result})

    # How they do it -------------------------------------------------------------------------------

    def _say(self, session: str, text: str, how: How, wait: float) -> Json:
        if not text.strip():
            raise UsageError("there is no message to send")
        key = f"k-{secrets.token_hex(8)}"
        with stored(self._environ) as store:
            row = named_session(store, session, self._folder)

            def say() -> ReceiptEvent:
                receipt = self._remote(store, row).say(text, how, is_plain=True, key=key)
                if receipt["type"] != "accepted":
                    why = dict(receipt)
                    raise SteersmanError(
                        f"not accepted: {why.get('reason')}", str(why.get("hint", ""))
                    )
                return receipt

            outcome: Json | None = None
            if wait and store.is_owned(row.session):
                reach = SessionReach(self._paths, self._environ, store)
                awaited = _Awaited(reach, row.session)
                receipt, outcome = asyncio.run(awaited.said(say, wait, _calling.get()))
            else:
                receipt = say()
            result: Json = {"session": row.session, "receipt": dict(receipt)}
            if not store.is_owned(row.session):
                result["note"] = "it waits until a program opens the session, and resumes its queue"
            elif outcome is not None:
                result["outcome"] = outcome
        return self._shown(result)

    def _command(self, session: str, call: CommandCall) -> Json:
        with stored(self._environ) as store:
            row = named_session(store, session, self._folder)
            result = self._remote(store, row).run(call)
        if result["type"] != "result":
            raise SteersmanError("the session did not answer")
        if not result["ok"]:
            raise SteersmanError(result["text"])
        return self._shown({"session": row.session, "text": result["text"], **result["data"]})

    def _remote(self, store: Store, row: SessionRow) -> RemoteSession:
        reach = SessionReach(self._paths, self._environ, store)
        return reach.remote(row.session, user=_calling.get().user)

    def _shown(self, data: Any) -> Json:
        """Take secrets and terminal escapes out of data."""
        shown: Json = self._redactor.data(data)
        return shown


class _Awaited:
    """One message of a client, whose end is waited for: that of its turn, or a question to a person."""

    def __init__(self, reach: SessionReach, session: str) -> None:
        self._follower = Follower(reach, session, None, below="questions", is_tied=True)
        self._store, self._session = reach.store, session
        self._text = self._turn = ""

    async def said(
        self, say: Callable[[], ReceiptEvent], seconds: float, caller: Caller
    ) -> tuple[ReceiptEvent, Json]:
        """Send it, and wait for at most so long; return its receipt, and what became of it."""
        async with aclosing(self._follower.batches()) as batches:
            async for batch in batches:
                if batch.is_joined:
                    break
            receipt = await asyncio.to_thread(say)
            item = str(dict(receipt)["id"])
            loop = asyncio.get_running_loop()
            waiting = asyncio.ensure_future(self._end(batches, item))
            caller.on_leave(partial(later, loop, waiting.cancel))
            await asyncio.wait((waiting,), timeout=seconds)
            if waiting.done() and not waiting.cancelled():
                return receipt, waiting.result()
            waiting.cancel()
            await asyncio.wait((waiting,))
        return receipt, {"status": "waiting", "turn": self._turn, "text": self._text}

    async def _end(self, batches: AsyncGenerator[Batch], item: str) -> Json:
        stored = StoredOutcome(self._store, self._session, item, with_turn=True)
        outcome = await asyncio.to_thread(stored.look)
        while outcome is None:
            batch = await anext(batches, None)
            if batch is None:
                return {"status": "left", "turn": self._turn, "text": self._text}
            for event in batch.events:
                if event["type"] == "question":
                    return {"status": "asking", "question": dict(event)}
                if event["session"] == self._session:
                    self._hear(event, item)
            if any(event["seq"] for event in batch.events):
                outcome = await asyncio.to_thread(stored.look)
        if outcome.status == "withdrawn":
            return {"status": "withdrawn"}
        status = {"done": "completed", "steered": "completed"}.get(outcome.status, outcome.status)
        about = {"status": status, "turn": outcome.turn, "text": outcome.text}
        return {**about, "reason": outcome.reason} if outcome.status == "failed" else about

    def _hear(self, event: Event, item: str) -> None:
        """Keep what the agent says meanwhile."""
        match event["type"]:
            case "turn_started":
                self._turn = event["turn"] if event["item"] == item else self._turn
                self._text = ""
            case "text":
                self._text += event["delta"]
            case "answer":
                self._text = event["text"]
            case "tool_started":
                self._text = ""
            case _:
                return


class _Run:
    """One run of a workflow, in a host of its own, which is closed at its end.

    `result` is how it ended, or that it runs.
    """

    def __init__(
        self,
        environ: Mapping[str, str],
        paths: Paths,
        folder: Path,
        workflow: str,
        variables: Mapping[str, str],
    ) -> None:
        from ...workflows.flow.workflow_file import SHIPPED_WORKFLOWS, find_workflow

        path = find_workflow(workflow, paths, folder).resolve()
        places = (folder, paths.config / "workflows", SHIPPED_WORKFLOWS)
        if not any(path.is_relative_to(place.resolve()) for place in places):
            raise UsageError(f"`{path}` is outside of the folder `{folder}`")
        texts = tuple(f"{name}={value}" for name, value in variables.items())
        plan, config = read_run(str(path), texts, folder, paths, environ)
        self.report: Callable[[float, float, str], None] = lambda _done, _total, _note: None
        self._on_end: list[Callable[[], None]] = []
        self.result: Json = {"status": "running", "steps": []}
        self._total = len(plan.spec.steps)
        self._done: set[str] = set()
        self._name = plan.spec.name
        self._closing = threading.Lock()
        self.is_open = True
        self._host = Host(paths, config, environ, LaunchOptions(can_ask=True))
        with ExitStack() as undoing:
            undoing.callback(self._host.close)
            self._host.event_bus.subscribe(self._hear)
            self._conversation: SessionClient = self._host.begin(folder, plan)
            undoing.pop_all()
        self.session = self._conversation.session

    def begin(self) -> None:
        """Start the run."""
        start_run(self._conversation, self._name)

    def on_end(self, wake: Callable[[], None]) -> None:
        """Have something called when the run has ended."""
        self._on_end.append(wake)
        if not self.is_open:
            wake()

    def close(self) -> None:
        """Leave the run; one that is not over is interrupted first. Idempotent."""
        with self._closing:
            if self.is_open:
                self.is_open = False
                self._host.close()

    def _hear(self, event: Event) -> None:
        """Take in an event; the runtime's thread."""
        if event["type"] == "step" and "parent" not in event and "index" not in event:
            if event["state"] not in ("pending", "running"):
                self._done.add(event["step"])
            self.report(len(self._done), self._total, f"{event['step']}: {event['state']}")
        elif event["type"] == "run_ended" and "parent" not in event:
            self.result = {
                "status": event["status"],
                "reason": event.get("reason", ""),
                "output": event.get("output", ""),
                "steps": list(event["steps"]),
            }
            threading.Thread(target=self._leave, name="mcp-run", daemon=True).start()

    def _leave(self) -> None:
        self.close()
        for wake in self._on_end:
            wake()
