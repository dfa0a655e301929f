"""Tools that run a process: the tool `shell`, tools that people declare, the commands of workflows."""

import asyncio
import codecs
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from ...machines import protocol as m
from ...machines.errors import ToolError
from ...machines.pattern import lazy_pattern
from ...workflows.settings import ToolDeclaration
from ...workflows.tools import OUTSIDE
from ..placement import PlacedResult, Placement, RemoteCommand, missing_of, start_here
from ..process.own_python import file_command, search_path
from ..process.process import Process, ProcessResult, ProcessSpec, Spawn
from . import calling
from .arguments import declare, given_of
from .text import join_ends, readable
from .thread_tool import failed
from .tool import TaskRun, Tool, ToolContext, ToolResources, ToolRun

STATUS: dict[str, m.ToolStatus] = {"killed": "killed", "timed_out": "timed_out"}
"""The status of a tool's result for that of a process, where it is not about the exit code."""
_ERRORS = 16_384
"""Bytes of the end of standard error that are kept of a workflow's command."""
_LAST_ERRORS = 4096  # bytes of it that the failure of a declared tool shows
_TIMEOUT = 120.0  # seconds, unless the model asks for another
_BOXED = lazy_pattern(
    r"(?i)read-only file system|device or resource busy|network is unreachable|connection refused"
    r"|could not resolve|name resolution|name or service not known|enotfound|eai_again"
)
"""What programs say that meet the sandbox's walls."""


class ProcessRun(TaskRun):
    """One supervised process as a `ToolRun`.

    `prepare` makes the command, in a thread, and `spawn` starts it; a `ToolError` of either becomes the
    result. `translate` makes the tool's result from the process's, and `on_output` receives the output
    while the command runs.
    """

    def __init__(
        self,
        spawn: Spawn,
        prepare: ProcessSpec | Callable[[], ProcessSpec],
        translate: Callable[[ProcessResult], m.ToolResult],
        on_output: Callable[[str], None] | None = None,
    ) -> None:
        self._process: Process | None = None
        self._is_stopped = False
        self._translate, self._on_output = translate, on_output
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        self._task = asyncio.create_task(self._run(spawn, prepare))

    @property
    def pid(self) -> int:
        """Process id of the command, once it runs."""
        return self._process.pid if self._process is not None else 0

    def stop(self) -> None:
        """Begin to stop the command; a second call kills it without a grace period."""
        if self._process is not None:
            self._process.stop(0.0 if self._is_stopped else None)
        self._is_stopped = True

    async def _run(
        self, spawn: Spawn, prepare: ProcessSpec | Callable[[], ProcessSpec]
    ) -> m.ToolResult:
        try:
            spec = prepare if isinstance(prepare, ProcessSpec) else await asyncio.to_thread(prepare)
            if self._is_stopped:
                return m.ToolResult(status="killed", text="Stopped before it started.")
            self._process = await spawn(spec, self._pass_on if self._on_output else None)
        except ToolError as error:
            return failed(error)
        if self._is_stopped:  # while it was being started
            self._process.stop()
        result = await self._process.wait()
        if result.status in ("failed", "lost", "unknown"):
            return _lost(result, is_stopped=self._is_stopped)
        return self._translate(result)

    def _pass_on(self, data: bytes) -> None:
        if self._on_output is not None:
            self._on_output(self._decoder.decode(data))


class CommandTool(Tool):
    """Runs a workflow's command, or its call of a function, as a supervised process; see `Tool`.

    No model has this tool. `env` is added to the environment; a function has the interpreter's own search
    path for modules, too. `output_limit` is in bytes. With `remote` among its arguments it runs where
    `placement` says. The tool counts as changing nothing, because the folder is scanned once for all
    commands of a step, not for each.
    """

    schema = declare("command", "Run a command of a workflow.", ("argv",), argv={"type": "string"})
    is_mutating = False
    is_idempotent = False

    def __init__(
        self, resources: ToolResources, output_limit: int, placement: Placement | None = None
    ) -> None:
        self._resources = resources
        self._limit = output_limit
        self._placement = placement

    def fault(self, arguments: dict[str, Any]) -> str:
        """Return nothing: a run made the arguments."""
        return ""

    def start(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun:
        """Start the command."""
        argv, data, environment = tuple(arguments.get("argv", ())), b"", context.environment
        if "call" in arguments:
            argv, data = file_command(calling.__file__), calling.call_input(arguments)
            environment = environment | search_path(os.environ)
        spec = ProcessSpec(
            argv=argv,
            cwd=Path(context.folder, arguments.get("cwd", "")),
            environment={**environment, **arguments.get("env", {})},
            stdin=data,
            timeout=arguments.get("timeout"),
            grace=self._resources.grace,
            keep=self._limit // 2,
            keep_errors=_ERRORS,
            alive=context.alive,
        )

        processes, placement = self._resources.processes, self._placement
        if "remote" not in arguments:
            return ProcessRun(processes.spawn, spec, _command_result)
        command = _remote_command(spec, arguments, context.folder)
        if placement is None:

            def ended(result: ProcessResult) -> m.ToolResult:
                missing = tuple(missing_of(command.outputs, command.folder))
                return replace(_command_result(result), missing=missing)

            return ProcessRun(lambda _, tell: start_here(command, processes), spec, ended)
        start, on_output = placement.start, context.on_output
        return ProcessRun(lambda _, tell: start(command, tell), spec, _command_result, on_output)


def _remote_command(spec: ProcessSpec, arguments: dict[str, Any], folder: Path) -> RemoteCommand:
    remote, call = arguments["remote"], None
    if "call" in arguments:
        beside = os.path.relpath(arguments["folder"], folder)
        is_inside = beside.split("/")[0] != ".."
        call = {name: arguments[name] for name in ("call", "with")}
        call["folder"] = beside if is_inside else "."
    return RemoteCommand(
        process=spec,
        added=arguments.get("env", {}),
        folder=folder,
        cwd=arguments.get("cwd", ""),
        call=call,
        cpus=remote["cpus"],
        gpus=remote["gpus"],
        memory=remote["memory"],
        inputs=tuple(remote["inputs"]),
        outputs=tuple(remote["outputs"]),
    )


def _lost(result: ProcessResult, *, is_stopped: bool) -> m.ToolResult:
    """Return the result of a command that never ran, or whose supervisor or machine was lost."""
    if result.status == "unknown":
        return m.ToolResult(status="unknown", text=result.reason)
    text = f"Error: {result.reason}"
    for what, pids in (("ended", result.killed), ("still running", result.survivors)):
        if pids:
            text += f"; {what}: {', '.join(map(str, pids))}"
    return m.ToolResult(
        status="killed" if is_stopped and result.status == "lost" else "failed",
        text=text,
        killed=result.killed,
        survivors=result.survivors,
    )


def finished(result: ProcessResult, text: str, status: m.ToolStatus | None = None) -> m.ToolResult:
    """Return the result of a tool whose process has ended; without `status` as the process says."""
    said = STATUS.get(result.status) or ("ok" if result.exit_code == 0 else "failed")
    return m.ToolResult(
        status=status or said,
        text=text,
        exit_code=result.exit_code,
        bytes=result.total,
        killed=result.killed,
        survivors=result.survivors,
        spilled=str(result.spilled or ""),
    )


def _command_result(result: ProcessResult) -> m.ToolResult:
    """Return a result with the output only."""
    return replace(
        finished(result, join_ends(result.head, result.tail, result.total, "")),
        errors=readable(result.errors),
        is_cut=result.total > len(result.head) + len(result.tail),
        missing=result.missing if isinstance(result, PlacedResult) else (),
    )


class ShellTool(Tool):
    """Runs `bash -c` (or `/bin/sh -c`) as a supervised process; see `Tool`.

    Where commands run in a sandbox, a call may ask for being run outside it: with `OUTSIDE`, about which
    the permission rules decide by itself.
    """

    is_mutating = True
    is_idempotent = False

    def __init__(self, resources: ToolResources) -> None:
        self._resources = resources
        self._shell = shutil.which("bash") or "/bin/sh"
        box = resources.sandbox
        outside = f"outside the sandbox, where commands {box}; asks the user"
        self.schema = declare(
            "shell",
            "Run a shell command in the folder. Nothing it starts outlives it; it reads no input.",
            ("command",),
            command={"type": "string", "minLength": 1},
            timeout={
                "type": "number",
                "minimum": 0.001,
                "description": "seconds; 120 if not given",
            },
            **({OUTSIDE: {"type": "boolean", "description": outside}} if box else {}),
        )

    def start(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun:
        """Start the command."""
        timeout: float = arguments.get("timeout") or _TIMEOUT
        box = ""

        def prepare() -> ProcessSpec:
            nonlocal box
            if fault := self.fault(arguments):
                raise ToolError(fault)
            plain = (self._shell, "-c", arguments["command"])
            may_leave = bool(self._resources.sandbox) and arguments.get(OUTSIDE)
            argv = plain if may_leave else context.wrap(plain)
            box = self._resources.sandbox if argv != plain else ""
            return _spec_of(argv, context, timeout, self._resources.grace)

        return ProcessRun(
            self._resources.processes.spawn,
            prepare,
            lambda result: _shell_result(result, timeout, box),
            context.on_output,
        )


def _shell_result(result: ProcessResult, timeout: float, box: str) -> m.ToolResult:
    """Return a result with the output and how the command ended, and whether a sandbox was in its way."""
    spilled = str(result.spilled or "")
    text = join_ends(result.head, result.tail, result.total, spilled).rstrip("\n") or "(no output)"
    parts = [text, ending(result, timeout)]
    if result.status == "exited" and result.killed:
        parts.append("[what it left running in the background was stopped]")
    if result.reason:
        parts.append(f"[{result.reason}]")
    if box and result.exit_code and _BOXED.search(text):
        parts.append(
            f"[it ran in a sandbox, in which commands {box}; `{OUTSIDE}` asks to leave it]"
        )
    return finished(result, "\n".join(parts))


class DeclaredTool(Tool):
    """Runs a command that a configuration declares as a supervised process; see `Tool`.

    It gets the arguments as JSON on standard input. What it prints is the result; an exit code other than
    0 is a failure, whose result also has the end of standard error.
    """

    is_idempotent = False

    def __init__(self, declaration: ToolDeclaration, resources: ToolResources) -> None:
        self.schema = declare(
            declaration.name, declaration.description, declaration.needed, **declaration.parameters
        )
        self.is_mutating = declaration.mutating
        self._declaration, self._resources = declaration, resources

    def start(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun:
        """Start the command."""
        return self._started(self._declaration.run, arguments, context)

    def look_up(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun | None:
        """Start the command that is asked, with the call's id as its last word."""
        outcome = self._declaration.outcome
        return self._started((*outcome, context.call), arguments, context) if outcome else None

    def _started(
        self, command: tuple[str, ...], arguments: dict[str, Any], context: ToolContext
    ) -> ToolRun:
        timeout = self._declaration.timeout

        def prepare() -> ProcessSpec:
            if fault := self.fault(arguments):
                raise ToolError(fault)
            schemas = self._declaration.parameters.items()
            defaults = {name: schema["default"] for name, schema in schemas if "default" in schema}
            given = {**defaults, **given_of(self.schema, arguments)}
            argv = context.wrap(command) if self._declaration.sandbox else command
            spec = _spec_of(argv, context, timeout, self._resources.grace)
            own = {"STEERSMAN_SESSION": context.session, "STEERSMAN_CALL": context.call}
            data = json.dumps(given, ensure_ascii=False).encode() + b"\n"
            environment = {**spec.environment, **own}
            return replace(spec, environment=environment, stdin=data, keep_errors=_LAST_ERRORS)

        return ProcessRun(
            self._resources.processes.spawn,
            prepare,
            lambda result: _declared_result(result, timeout, is_poll=self._declaration.polls),
            context.on_output,
        )


def _declared_result(result: ProcessResult, timeout: float, *, is_poll: bool) -> m.ToolResult:
    """Return a result with the output, and of a failure with its errors and how it ended."""
    is_ok = result.status == "exited" and result.exit_code == 0
    spilled = str(result.spilled or "")
    output = join_ends(result.head, result.tail, result.total, spilled).rstrip("\n")
    parts = [output, *([] if is_ok else [readable(result.errors).rstrip("\n")])]
    parts = [part for part in parts if part] or ["(no output)"]
    parts += [] if is_ok else [ending(result, timeout)]
    parts += [f"[{result.reason}]"] if result.reason else []
    return replace(finished(result, "\n".join(parts)), is_poll=is_poll)


def _spec_of(
    argv: tuple[str, ...], context: ToolContext, timeout: float, grace: float
) -> ProcessSpec:
    return ProcessSpec(
        argv=argv,
        cwd=context.folder,
        environment=context.environment,
        timeout=timeout,
        grace=grace,
        keep=context.limit // 2,
        spill=context.spill_file,
        alive=context.alive,
    )


def ending(result: ProcessResult, timeout: float) -> str:
    """Say to the model how a command ended; `timeout` in seconds."""
    match result.status:
        case "timed_out":
            return f"[timed out after {timeout:g} s and was stopped]"
        case "killed":
            return "[interrupted]"
        case _:
            code = result.exit_code
            signal = f": ended by signal {-code}" if code is not None and code < 0 else ""
            return f"[exit code {code}{signal}]"
