"""The tool `search`: lines that match a regular expression; `search_program` does the work."""

import json
import re
from pathlib import Path
from typing import Any

from ...machines import protocol as m
from ...machines.errors import ToolError
from ..process.own_python import bare_command
from ..process.process import ProcessResult, ProcessSpec
from .arguments import declare, fault_of
from .place import find_place, resolve
from .shell import ProcessRun
from .text import join_ends, shown
from .tool import Tool, ToolContext, ToolResources, ToolRun

_PROGRAM = Path(__file__).with_name("search_program.py")
_TIMEOUT = 20.0  # seconds
_ENDS: dict[str, tuple[m.ToolStatus, str]] = {
    "exited": ("ok", ""),
    "killed": ("killed", "[interrupted]"),
    "timed_out": ("timed_out", f"[gave up after {_TIMEOUT:g} s; narrow the pattern or the path]"),
}


class SearchTool(Tool):
    """Searches text files in a separate process; see `Tool`."""

    schema = declare(
        "search",
        "Search text files for a Python regular expression.",
        ("pattern",),
        pattern={"type": "string", "minLength": 1},
        path={"type": "string", "description": "folder or file"},
        glob={"type": "string", "description": "such as `*.py`"},
    )
    is_mutating = False
    is_idempotent = True

    def __init__(self, resources: ToolResources) -> None:
        self._resources = resources

    def fault(self, arguments: dict[str, Any]) -> str:
        """Return the fault of the arguments; empty if there is none."""
        if fault := fault_of(self.schema, arguments):
            return fault
        try:
            re.compile(arguments["pattern"])
        except (re.error, OverflowError, RecursionError) as error:
            return f"`pattern` is not a regular expression: {error}"
        return ""

    def start(self, arguments: dict[str, Any], context: ToolContext) -> ToolRun:
        """Start the search."""

        def prepare() -> ProcessSpec:
            if fault := self.fault(arguments):
                raise ToolError(fault)
            return ProcessSpec(
                argv=bare_command(_PROGRAM),
                cwd=Path("/"),
                timeout=_TIMEOUT,
                grace=0.0,
                keep=context.limit // 2,
                stdin=_request(arguments, context),
            )

        return ProcessRun(
            self._resources.processes.spawn, prepare, _search_result, context.on_output
        )


def _request(arguments: dict[str, Any], context: ToolContext) -> bytes:
    place = resolve(arguments.get("path") or ".", context)
    if not place.path.exists():
        raise ToolError(f"`{shown(place.relative)}` does not exist")
    request = {
        "pattern": arguments["pattern"],
        "root": str(place.path),
        "folder": "/" if place.is_outside else str(find_place(".", context.folder).path),
        "glob": arguments.get("glob") or "",
        "hidden": context.hidden,
    }
    return json.dumps(request).encode()


def _search_result(result: ProcessResult) -> m.ToolResult:
    status, end = _ENDS[result.status]
    text = join_ends(result.head, result.tail, result.total, "").rstrip("\n")
    if result.status == "exited" and result.exit_code != 0:
        status, end = "failed", f"[the search failed with exit code {result.exit_code}]"
    return m.ToolResult(
        status=status,
        text="\n".join(filter(None, (text, end))),
        bytes=result.total,
        killed=result.killed,
        survivors=result.survivors,
    )
