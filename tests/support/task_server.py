"""An MCP server whose calls go on as tasks, by the official SDK; its tasks are files in a folder.

    python task_server.py FOLDER [FD]           on standard input and output, or at a socket that listens

A task has ended when the test has made the file `NAME.done` or `NAME.failed`; with `die` the server ends
at the next look at one.
"""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import uvicorn
from mcp.server import MCPServer
from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp.server.extension import Extension, MethodBinding
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS, CallToolRequestParams, RequestParams

__all__ = ["TASKS"]

TASKS = Path(__file__).resolve()
FORM = {"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]}
Context = ServerRequestContext[Any, Any]


class TaskParams(RequestParams):
    """Which task is meant."""

    task_id: str
    input_responses: dict[str, Any] | None = None


def state(task: str) -> dict[str, Any]:
    """Return what there is to say of a task. Raises `MCPError` for an unknown one."""
    if not Path(f"{task}.task").exists():
        raise MCPError(INVALID_PARAMS, f"there is no task {task}")
    if Path("die").exists():
        Path("die").unlink()
        os._exit(3)
    about: dict[str, Any] = json.loads(Path(f"{task}.task").read_text())
    now: dict[str, Any] = {"status": "working", "statusMessage": f"{task} at work"}
    if Path(f"{task}.cancelled").exists():
        now = {"status": "cancelled"}
    elif about["tool"] == "ask" and "where" not in about:
        asked = {"message": f"Where does {task} go?", "requestedSchema": FORM, "mode": "form"}
        request = {"method": "elicitation/create", "params": asked}
        now = {"status": "input_required", "inputRequests": {"place": request}}
    elif Path(f"{task}.failed").exists():
        now = {"status": "failed", "error": {"code": -32000, "message": "no room"}}
    elif Path(f"{task}.done").exists():
        said = f"built {task} {about.get('where', '')}".strip()
        result = {"content": [{"type": "text", "text": said}], "resultType": "complete"}
        now = {"status": "completed", "result": result}
    times = {"createdAt": "2026-01-01T00:00:00Z", "lastUpdatedAt": "2026-01-01T00:00:00Z"}
    return {"taskId": task, "ttlMs": None, "pollIntervalMs": 50, **times, **now}


class Tasks(Extension):
    """Has each call go on as a task."""

    identifier = "io.modelcontextprotocol/tasks"

    def methods(self) -> Sequence[MethodBinding]:
        """Return what is asked of tasks."""
        return (
            MethodBinding("tasks/get", TaskParams, self.get),
            MethodBinding("tasks/update", TaskParams, self.update),
            MethodBinding("tasks/cancel", TaskParams, self.cancel),
        )

    async def intercept_tool_call(
        self, params: CallToolRequestParams, ctx: Context, call_next: CallNext
    ) -> HandlerResult:
        """Begin a task, and note that it was begun."""
        name = str((params.arguments or {})["name"])
        with Path("begun").open("a") as file:
            file.write(f"{name}\n")
        Path(f"{name}.task").write_text(json.dumps({"tool": params.name}))
        return {**state(name), "resultType": "task"}

    async def get(self, ctx: Context, params: TaskParams) -> HandlerResult:
        """Say how a task is."""
        return {**state(params.task_id), "resultType": "complete"}

    async def update(self, ctx: Context, params: TaskParams) -> HandlerResult:
        """Take in what a task wanted to know."""
        file = Path(f"{params.task_id}.task")
        told = (params.input_responses or {})["place"]
        where = told["content"]["where"] if told["action"] == "accept" else "nowhere"
        file.write_text(json.dumps(json.loads(file.read_text()) | {"where": where}))
        return {"resultType": "complete"}

    async def cancel(self, ctx: Context, params: TaskParams) -> HandlerResult:
        """End a task."""
        Path(f"{params.task_id}.cancelled").touch()
        return {"resultType": "complete"}


server = MCPServer("tasks", extensions=[Tasks()])


@server.tool()
def build(name: str) -> str:
    """Build something."""
    return name


@server.tool()
def ask(name: str) -> str:
    """Build something where a person says."""
    return name


if __name__ == "__main__":
    os.chdir(sys.argv[1])
    if sys.argv[2:]:
        app = server.streamable_http_app(stateless_http=True)
        uvicorn.run(app, fd=int(sys.argv[2]), log_level="critical")
    else:
        server.run()
