"""The effect executor: asks models, runs tools, and sends what comes back to the actor that asked.

Lives on the asyncio loop, beside the actors, and is the only place where they meet the ports. A
result for an actor that is gone is dropped here; the journal already says how its turn ended.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Protocol

from msgspec import Struct
from msgspec.structs import replace
from pykka import ActorRef

from ...journal.turn_record import CallRecord
from ...machines import protocol as m
from ...machines.conversation import ToolRequest
from ...machines.errors import SteersmanError
from ...machines.form import FORM
from ...ports.external_agent import ExternalAgent
from ...ports.judging import JudgeSeat
from ...ports.models.model import Model
from ...ports.tools.tool import Tool, ToolContext, ToolRun, kept_ends
from ...ports.tools.toolbox import Toolbox
from ...ports.workspace import WatchedRun, WorkspacePort, written_path
from ...workspace.restore import RestoreFailed
from ..gate import never_started
from ..kernel.mailbox import reply
from .goal_work import GoalWork
from .model_work import ModelWork, TextBatcher
from .resources import SessionResources, fault_of

SHOWN_AFTER = 0.5
"""Seconds for which a command runs before its output is shown: of a short one the result is enough."""
INTERVAL = 0.25
"""Seconds between two updates of the output."""
ROOM = 8_192
"""Characters for which a tool may exceed its limit: how the call ended, the end of its errors."""
PATIENCE = 10.0
"""Seconds in which a tool may say what became of a call; a session that is taken up waits for it."""
LINES = 10
LONGEST = 2_000
"""Characters of output that are shown at most."""

# Reports of a tool that runs ----------------------------------------------------------------------


class OutputTail:
    """Keeps the end of a command's output, and sends its last lines at intervals."""

    def __init__(self, loop: asyncio.AbstractEventLoop, send: Callable[[str], None]) -> None:
        self._loop = loop
        self._send = send
        self._from = loop.time() + SHOWN_AFTER
        self._text = ""
        self._timer: asyncio.TimerHandle | None = None

    def add(self, text: str) -> None:
        """Take in what was printed next."""
        self._text = (self._text + text)[-LONGEST:]
        if self._timer is None:
            wait = max(INTERVAL, self._from - self._loop.time())
            self._timer = self._loop.call_later(wait, self._send_lines)

    def close(self) -> None:
        """Send no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _send_lines(self) -> None:
        self._timer = None
        lines = self._text.rstrip("\n").split("\n")[-LINES:]
        self._send("\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines))


class ToolReports:
    """Passes a tool's reports on, in order.

    Pieces of text are gathered to fewer and longer ones; of its progress the newest is sent at intervals.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, call: str, send: Callable[[m.Message], None]
    ) -> None:
        self._pieces = TextBatcher(loop, lambda text: send(m.AgentSaid(call=call, text=text)))
        self._send = send
        self._loop = loop
        self._progress: m.ToolProgressed | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._call = call
        self._forms: dict[str, asyncio.Future[dict[str, Any] | None]] = {}
        self._asked = 0

    async def ask(self, form: dict[str, Any]) -> dict[str, Any] | None:
        """Have a person fill in a form; return what was filled in, none if that was declined.

        `form` is {server, message, schema}. Raises `asyncio.CancelledError` if the call ends first.
        """
        self._asked += 1
        name = f"{self._call}.q{self._asked}"
        answer: asyncio.Future[dict[str, Any] | None]
        answer = self._forms[name] = asyncio.get_running_loop().create_future()
        request = ToolRequest(call=name, tool=FORM, arguments=form)
        self._send(m.AgentCalled(call=self._call, request=request, asks=True))
        content = await answer
        if content is not None:
            self._send(m.AgentCallEnded(call=self._call, inner=name, status="ok"))
        return content

    def answer(self, name: str, content: dict[str, Any] | None) -> None:
        """Take what was filled in; of a form that this call did not ask for, nothing happens."""
        form = self._forms.pop(name, None)
        if form is not None and not form.done():
            form.set_result(content)

    def tell(self, said: m.Message) -> None:
        """Pass a report on."""
        if isinstance(said, m.AgentSaid):
            self._pieces.add(said.text)
        elif isinstance(said, m.ToolProgressed):
            self._progress = said
            if self._timer is None:
                self._timer = self._loop.call_later(INTERVAL, self._send_progress)
        else:
            self._pieces.flush()
            self._send(said)

    def close(self) -> None:
        """Pass on what is left, and let go of what was asked."""
        self._pieces.close()
        for form in self._forms.values():
            form.cancel()
        if self._timer is not None:
            self._timer.cancel()
        self._send_progress()

    def _send_progress(self) -> None:
        self._timer = None
        if self._progress is not None:
            newest, self._progress = self._progress, None
            self._send(newest)


# Reverts ------------------------------------------------------------------------------------------


async def restore_files(
    workspace: WorkspacePort | None, effect: m.RestoreFiles, say: Callable[[Any], None]
) -> None:
    """Report how many files a revert is about, restore them, and report the outcome."""
    if workspace is None:
        say(m.RestoreEnded(id=effect.id, fault="nothing was kept of the files of this session"))
        return
    try:
        say(m.RestoreCounted(id=effect.id, files=await workspace.count(effect)))
        say(await workspace.revert(effect))
    except (RestoreFailed, OSError) as error:
        say(m.RestoreEnded(id=effect.id, fault=str(error)))


class ChildOpener(Protocol):
    """Opens and closes the sessions of children; `open_child` blocks, both may raise."""

    def open_child(
        self, above: str, order: m.OpenChild, supervisor: ActorRef[Any]
    ) -> m.ChildOpened:
        """Open the session of a child of `above`, new or known. Raises `SteersmanError`."""
        ...

    async def close_child(self, session: str) -> None:
        """Close a child's session."""
        ...


class _RunningCall(Struct, kw_only=True):
    """A tool call that runs, with its reports and output; `task` awaits its end.

    `is_stopping`: its run was told to stop. It is told once: a second time means without a grace period.
    """

    run: ToolRun
    reports: ToolReports
    latest: OutputTail
    is_stopping: bool = False
    task: asyncio.Task[None] | None = None


class EffectExecutor:
    """Performs the effects of one session; a call never blocks.

    `_locks`: a child's session is opened and closed one after another, in the order of the effects.
    `_looks` are the looks at the folder before the commands of a run's steps.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        resources: SessionResources,
        children: ChildOpener,
    ) -> None:
        self.resources = resources
        self._children = children
        self._timers = set[asyncio.TimerHandle]()
        self._loop = loop
        self._model_work = ModelWork(loop, resources, self._task)
        self._goal_work = GoalWork(loop, resources, self._task)
        self._calls: dict[str, _RunningCall] = {}
        self._looks: dict[str, asyncio.Task[None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    def change_model(
        self, model: Model, judge: Callable[[], JudgeSeat] | None, system: str = ""
    ) -> None:
        """Ask another model from the next call on, with other instructions if there are; on the loop."""
        system = system or self.resources.system
        self._change(replace(self.resources, model=model, judge=judge, system=system))

    def change_tools(self, toolbox: Toolbox, names: tuple[str, ...]) -> None:
        """Offer the model these tools from the next call on; on the loop."""
        tools = toolbox.listed(names)
        self._change(replace(self.resources, toolbox=toolbox, tools=tools))

    def _change(self, resources: SessionResources) -> None:
        self.resources = resources
        self._model_work.change_resources(resources)
        self._goal_work.resources = resources

    def __call__(self, effect: m.PortEffect, reply_to: ActorRef[Any] | None) -> None:
        """Begin an effect; its result goes to `reply_to`."""
        match effect:
            case m.CallModel() | m.CancelModel():
                self._model_work(effect, reply_to)
            case m.RunTool():
                self._run(effect, reply_to)
            case m.AnswerAgent(inner=inner, is_allowed=is_allowed):
                agent = self.resources.model
                if isinstance(agent, ExternalAgent):
                    agent.decide(inner, is_allowed)
                for call in self._calls.values():
                    call.reports.answer(inner, effect.content if is_allowed else None)
            case m.StopTool():
                self._stop(effect, reply_to)
            case m.OpenChild():
                self._open_child(effect, reply_to)
            case m.CloseChild(session=session):
                self._close_child(session)
            case m.SetTimer():
                self._set_timer(effect, reply_to)
            case m.RestoreFiles():
                self._restore(effect, reply_to)
            case m.LookAfter():
                self._look_after(effect)
            case _:
                self._goal_work(effect, reply_to)

    def soon(self, work: Callable[[], None]) -> None:
        """Do it once the effects that were performed before have begun."""
        self._loop.call_soon(work)

    @property
    def pids(self) -> dict[str, int]:
        """Process ids of the commands that run now, by tool call."""
        return {name: call.run.pid for name, call in tuple(self._calls.items()) if call.run.pid}

    async def aclose(self) -> None:
        """Stop everything that still runs, and wait for it."""
        self._model_work.close()
        for call in self._calls.values():
            call.run.stop()
        for timer in self._timers:
            timer.cancel()
        self._goal_work.close()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if isinstance(self.resources.model, ExternalAgent):  # it is this session's alone
            await self.resources.model.aclose()
        if self.resources.servers is not None:
            await self.resources.servers.aclose()
        if self.resources.workspace is not None:
            await self.resources.workspace.aclose()
        if self.resources.sandbox is not None:
            await asyncio.to_thread(self.resources.sandbox.clear)

    # Tools ----------------------------------------------------------------------------------------

    def _run(self, effect: m.RunTool, reply_to: ActorRef[Any] | None) -> None:
        tool = self.resources.toolbox.get(effect.tool)
        if tool is None:
            result = m.ToolResult(status="failed", text=f"[there is no tool `{effect.tool}`]")
            reply(reply_to, m.finished(effect, result))
            return
        reports = ToolReports(self._loop, effect.call, lambda said: reply(reply_to, said))
        latest = OutputTail(
            self._loop,
            lambda text: reply(
                reply_to, m.ToolPrinted(turn=effect.turn, call=effect.call, text=text)
            ),
        )
        context = replace(
            self._context(effect.call, effect.tool),
            on_output=latest.add,
            path=effect.path,
            is_again=effect.is_again,
            tell=reports.tell,
            ask=reports.ask,
        )
        run = self._start(tool, effect, context, reply_to)
        call = self._calls[effect.call] = _RunningCall(run=run, reports=reports, latest=latest)

        def fault(error: BaseException) -> None:
            text = f"[{fault_of(error)}]"
            reply(reply_to, m.finished(effect, m.ToolResult(status="failed", text=text)))

        is_bounded = bool(self.resources.tools) and not isinstance(tool, ExternalAgent)
        bounds = context if is_bounded else None  # a run reads its commands' outputs itself
        call.task = self._task(self._await_run(run, effect, bounds, reply_to), fault)

    def _context(self, call: str, tool: str) -> ToolContext:
        resources = self.resources
        return ToolContext(
            folder=resources.folder,
            call=call,
            spill_folder=resources.spill_folder,
            session=resources.session,
            environment=resources.environment,
            hidden=resources.hidden,
            wrap=resources.sandbox.wrap if resources.sandbox else tuple,
            limit=resources.limits.of(tool),
            alive=resources.workspace.alive if resources.workspace else None,
        )

    async def look_up(self, calls: Sequence[CallRecord]) -> dict[str, str]:
        """Ask the tools what became of calls whose end nobody saw; who cannot tell is left out."""
        runs = dict[str, ToolRun]()
        for call in calls:
            tool = self.resources.toolbox.get(call.tool)
            context = self._context(call.id, call.tool)
            run = tool.look_up(dict(call.arguments), context) if tool is not None else None
            if run is not None:
                runs[call.id] = run
        ended = asyncio.gather(*(run.wait() for run in runs.values()))
        await asyncio.wait((ended,), timeout=PATIENCE)
        if not ended.done():
            for run in runs.values():
                run.stop()
        told = zip(runs, await ended, strict=True)
        return {call: result.text for call, result in told if result.status == "ok"}

    def _start(
        self, tool: Tool, effect: m.RunTool, context: ToolContext, reply_to: ActorRef[Any] | None
    ) -> ToolRun:
        """Start a tool; with a look at the folder around it if it may change something."""
        workspace = self.resources.workspace

        def start() -> ToolRun:
            return tool.start(effect.arguments, context)

        if workspace is not None and effect.step:
            scan = self._look_before(workspace, effect, reply_to)
            if scan.done():
                return start()
            looked = asyncio.wait((scan,))  # a fault is told, and keeps no command from running
            return WatchedRun(looked, start, lambda: None)
        if workspace is None or not tool.is_mutating:
            return start()
        path = written_path(effect.tool, effect.arguments, self.resources.folder)
        begun = workspace.begin(effect.turn, effect.call, effect.tool, path)
        return WatchedRun(_scan(begun, effect, reply_to), start, lambda: workspace.end(effect.call))

    def _look_before(
        self, workspace: WorkspacePort, effect: m.RunTool, reply_to: ActorRef[Any] | None
    ) -> asyncio.Task[None]:
        """Look at the folder before the first command of a step; one look holds for all its items."""
        name = f"{effect.turn}.{effect.step}"

        def fault(error: BaseException) -> None:
            text = f"Changes by step `{effect.step}` cannot be reverted: {error}"
            _notice(effect, reply_to, text)

        if name not in self._looks:
            looks = workspace.begin(effect.turn, name, "run", None)
            self._looks[name] = self._task(_scan(looks, effect, reply_to), fault)
        return self._looks[name]

    def _look_after(self, effect: m.LookAfter) -> None:
        name, workspace = f"{effect.turn}.{effect.step}", self.resources.workspace
        look = self._looks.pop(name, None)
        if look is not None and workspace is not None:
            look.add_done_callback(lambda _: workspace.end(name))

    def _restore(self, effect: m.RestoreFiles, reply_to: ActorRef[Any] | None) -> None:
        def fault(error: BaseException) -> None:
            reason = fault_of(error)
            reply(reply_to, m.RestoreEnded(id=effect.id, fault=reason))

        async def work() -> None:
            if not effect.is_dry_run:  # a turn whose actor failed may have left some
                tasks = [call.task for call in self._calls.values() if call.task is not None]
                await asyncio.gather(*tasks, return_exceptions=True)
            await restore_files(
                self.resources.workspace, effect, lambda said: reply(reply_to, said)
            )

        self._task(work(), fault)

    async def _await_run(
        self,
        run: ToolRun,
        effect: m.RunTool,
        bounds: ToolContext | None,
        reply_to: ActorRef[Any] | None,
    ) -> None:
        """Send a call's result when it is there; with `bounds` no more than the model receives."""
        try:
            result = await run.wait()
            if self.resources.workspace is not None:
                self.resources.workspace.beat()
            if bounds is not None and len(result.text) > bounds.limit + ROOM:
                data = result.text.encode("utf-8", "replace")
                text, spilled = await asyncio.to_thread(kept_ends, data, bounds)
                result = replace(result, text=text, spilled=result.spilled or spilled)
        finally:
            call = self._calls.pop(effect.call)
            call.reports.close()
            call.latest.close()
        reply(reply_to, m.finished(effect, result))

    def _stop(self, effect: m.StopTool, reply_to: ActorRef[Any] | None) -> None:
        call = self._calls.get(effect.call)
        if call is None:
            reply(reply_to, never_started(effect))
        elif not call.is_stopping:
            call.is_stopping = True
            call.run.stop()

    # Children and time ----------------------------------------------------------------------------

    def _close_child(self, session: str) -> None:
        async def close_it() -> None:
            async with self._locks[session]:
                await self._children.close_child(session)

        self._task(close_it(), _ignore)

    def _open_child(self, effect: m.OpenChild, reply_to: ActorRef[Any] | None) -> None:
        if reply_to is None:
            return

        def lost(reason: str, hint: str) -> None:
            number, name = effect.number, effect.name
            reply(reply_to, m.ChildLost(number=number, name=name, reason=reason, hint=hint))

        async def open_it() -> None:
            try:
                async with self._locks[effect.session]:
                    opened = await asyncio.to_thread(
                        self._children.open_child, self.resources.session, effect, reply_to
                    )
            except SteersmanError as error:
                lost(error.message, error.hint)
            else:
                reply(reply_to, opened)

        def fault(error: BaseException) -> None:
            lost(fault_of(error), "please report it")

        self._task(open_it(), fault)

    def _set_timer(self, effect: m.SetTimer, reply_to: ActorRef[Any] | None) -> None:
        def fire() -> None:
            self._timers.discard(timer)
            reply(reply_to, m.TimerFired(timer=effect.timer, epoch=effect.epoch))

        timer = self._loop.call_later(effect.seconds, fire)
        self._timers.add(timer)

    # Tasks ----------------------------------------------------------------------------------------

    def _task(
        self, work: Coroutine[Any, Any, None], fault: Callable[[BaseException], None]
    ) -> asyncio.Task[None]:
        task = self._loop.create_task(work)
        self._tasks.add(task)

        def done(ended: asyncio.Task[None]) -> None:
            self._tasks.discard(ended)
            error = None if ended.cancelled() else ended.exception()
            if error is not None:
                fault(error)

        task.add_done_callback(done)
        return task


async def _scan(
    looks: Awaitable[list[str]], effect: m.RunTool, reply_to: ActorRef[Any] | None
) -> None:
    """Wait for a look at the folder, and pass on what a person should know of it."""
    for text in await looks:
        _notice(effect, reply_to, text)


def _notice(effect: m.RunTool, reply_to: ActorRef[Any] | None, text: str) -> None:
    reply(reply_to, m.ModelNoticed(turn=effect.turn, epoch=effect.epoch, text=text))


def _ignore(error: BaseException) -> None:
    """Ignore it: no actor waits, and the next claim of the session reports what is wrong."""
