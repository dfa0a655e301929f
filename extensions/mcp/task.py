"""Calls that go on at the server: the protocol's extension `io.modelcontextprotocol/tasks`, of 2026.

A server may answer a call with a task, which is looked at again and again until it has ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Literal

import mcp_types as types
from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from pydantic import Field, JsonValue

from ...machines.errors import ToolError
from ...ports.tools.text import visible

AskFor = Callable[[types.ElicitRequestParams], Awaitable[types.ElicitResult | types.ErrorData]]
"""Has a person fill in a form of a server."""
_SHORTEST, _USUAL, _LONGEST = 0.05, 1.0, 60.0
"""Seconds between two looks at a task: at least, where the server does not say, and at most."""
_REASON = 300  # characters of what a server says of a task


# The protocol -------------------------------------------------------------------------------------


class _Task(types.Result):
    """What the server says of a task; times in milliseconds."""

    task_id: str = Field(max_length=1_000)
    status: Literal["working", "input_required", "completed", "failed", "cancelled"]
    status_message: str | None = None
    poll_interval_ms: int | None = None

    @property
    def pause(self) -> float:
        """Seconds until it should be looked at again."""
        if self.poll_interval_ms is None:
            return _USUAL
        return min(max(self.poll_interval_ms / 1000, _SHORTEST), _LONGEST)


class TaskBegun(_Task):
    """The answer to a call that goes on as a task."""

    result_type: Literal["task"]


class TaskState(_Task):
    """A task as it is now; `result` of one that is completed, `error` of one that failed."""

    input_requests: types.InputRequests | None = None
    result: types.CallToolResult | None = None
    error: dict[str, JsonValue] | None = None


class TaskParams(types.RequestParams):
    """Which task is meant."""

    task_id: str


class AnswerParams(TaskParams):
    """Which task is meant, and what it wanted to know."""

    input_responses: types.InputResponses


class GetTask(types.Request[TaskParams, Literal["tasks/get"]]):
    """Asks how a task is."""

    name_param = "taskId"
    method: Literal["tasks/get"] = "tasks/get"
    params: TaskParams


class AnswerTask(types.Request[AnswerParams, Literal["tasks/update"]]):
    """Tells a task what it wanted to know."""

    name_param = "taskId"
    method: Literal["tasks/update"] = "tasks/update"
    params: AnswerParams


class CancelTask(types.Request[TaskParams, Literal["tasks/cancel"]]):
    """Asks the server to end a task."""

    name_param = "taskId"
    method: Literal["tasks/cancel"] = "tasks/cancel"
    params: TaskParams


class Tasks(ClientExtension):
    """Says to servers that we know tasks, and to the SDK what the answer looks like."""

    identifier = "io.modelcontextprotocol/tasks"

    def claims(self) -> Sequence[ResultClaim[Any]]:
        """Return the form of a task that has begun."""
        return (ResultClaim(result_type="task", model=TaskBegun, resolve=_unresolved),)


async def _unresolved(begun: TaskBegun, context: ClaimContext) -> types.CallToolResult:
    """Stand where the SDK would end a task itself: only its own `call_tool` does, which is not used."""
    raise NotImplementedError(begun.task_id)


# Following a task ---------------------------------------------------------------------------------


class FollowedTask:
    """A task that is looked at until it has ended.

    `send` sends a request and returns its result, `ask` has a person fill in a form, `report` shows what
    the server says of the task.
    """

    def __init__(
        self,
        task: str,
        send: Callable[[types.Request[Any, Any], type[Any]], Awaitable[Any]],
        ask: AskFor,
        report: Callable[[str], None] = lambda said: None,
    ) -> None:
        self.task = task
        self._send, self._ask, self._report = send, ask, report
        self._wanted: types.InputRequests = {}
        self._asked = set[str]()
        self._said: str | None = None
        self._pause = 0.0
        self._is_cancelled = asyncio.Event()

    async def result(self) -> types.CallToolResult:
        """Look until it has ended. Raises `ToolError`, also for one that failed."""
        while (result := await self.look()) is None:
            await self._tell()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._pause):
                    await self._is_cancelled.wait()
            if self._is_cancelled.is_set():
                await asyncio.sleep(_SHORTEST)
        return result

    async def look(self) -> types.CallToolResult | None:
        """Return the result; none while there is none. Raises `ToolError`."""
        asked = GetTask(params=TaskParams(task_id=self.task))
        state: TaskState = await self._send(asked, TaskState)
        self._pause = state.pause
        if state.status_message and state.status_message != self._said:
            self._said = state.status_message
            self._report(state.status_message)
        match state.status:
            case "completed" if state.result is not None:
                return state.result
            case "completed" | "failed":
                why = str((state.error or {}).get("message") or state.status_message or "no reason")
                raise ToolError(f"the task of the server failed: {visible(why, _REASON)}")
            case "cancelled":
                raise ToolError("the server has cancelled the task")
            case "working" | "input_required":
                self._wanted = state.input_requests or {}
                return None

    async def cancel(self) -> None:
        """Ask the server to end it. Raises `ToolError`."""
        await self._send(CancelTask(params=TaskParams(task_id=self.task)), types.Result)
        self._is_cancelled.set()

    async def _tell(self) -> None:
        """Tell it what it wants to know, each thing once."""
        for name, request in self._wanted.items():
            if name in self._asked:
                continue
            self._asked.add(name)
            told = None
            if isinstance(request, types.ElicitRequest):
                told = await self._ask(request.params)
            if told is None or isinstance(told, types.ErrorData):
                await self.cancel()
                raise ToolError("the task of the server asks for input, which it does not get")
            params = AnswerParams(task_id=self.task, input_responses={name: told})
            await self._send(AnswerTask(params=params), types.Result)
