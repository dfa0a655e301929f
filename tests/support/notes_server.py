"""An MCP server of notes, by the official SDK, on standard input and output.

    python notes_server.py [FOLDER]

Its tools wait at named pipes in the folder (`Gate` of the driver), and not for a time.
"""

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Literal

import anyio
from mcp.server import MCPServer
from mcp.server.elicitation import AcceptedElicitation, ElicitationResult
from mcp.server.mcpserver import Context
from mcp.server.mcpserver.resolve import Elicit, Resolve
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

__all__ = ["NOTES"]

NOTES = Path(__file__).resolve()
server = MCPServer("notes", version="1.2", instructions="Notes by name.")
READING = ToolAnnotations(read_only_hint=True)


def pass_gate() -> None:
    """Say which process this is, and wait until the test opens the gate."""
    Path("gate.here").write_text(f"{os.getpid()}\n")
    with Path("gate.go").open() as gate:
        gate.readline()


@server.tool(annotations=READING)
def look_up(name: str) -> str:
    """Look up a note."""
    return f"The note {name}: buy milk."


@server.tool()
def write_note(name: str, text: str) -> str:
    """Write a note."""
    Path(f"{name}.note").write_text(text)
    return "written"


@server.tool()
async def count(limit: int, ctx: Context) -> str:
    """Count up to a limit, report each number, and wait at the gate."""
    for number in range(1, limit + 1):
        await ctx.report_progress(number, limit, f"note {number}")
    await anyio.to_thread.run_sync(pass_gate)
    return f"{limit} notes"


@server.tool()
async def wait() -> str:
    """Wait until the call is cancelled."""
    try:
        await anyio.to_thread.run_sync(pass_gate, abandon_on_cancel=True)
        await anyio.sleep_forever()
    except anyio.get_cancelled_exc_class():
        Path("cancelled").touch()
        raise
    return "never"


@server.tool()
async def cling() -> str:
    """Take no notice of a cancel, with a process that leaves the group and ignores signals."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    command = "trap '' TERM HUP; echo ready; exec sleep 600"
    child = subprocess.Popen(
        ["sh", "-c", command], start_new_session=True, stdout=subprocess.PIPE, text=True
    )
    assert child.stdout is not None
    child.stdout.readline()
    Path("grandchild").write_text(str(child.pid))
    with anyio.CancelScope(shield=True):
        await anyio.to_thread.run_sync(pass_gate)
    return "never"


@server.tool()
async def learn(ctx: Context) -> str:
    """Offer another tool from now on, and withdraw `write_note`."""

    def recite(name: str) -> str:
        """Recite a note by heart."""
        return f"{name}: milk"

    server.add_tool(recite)
    server.remove_tool("write_note")
    await ctx.notify_tools_changed()
    await ctx.session.send_tool_list_changed()
    return "learned"


class Place(BaseModel):
    """Where a note goes."""

    folder: Literal["home", "work"] = Field(description="Where to put it")
    copies: int = Field(default=1, ge=1, le=9)


async def ask_place(name: str) -> Elicit[Place]:
    """Ask where a note goes: since 2026 in the answer to the call, before that within it."""
    return Elicit(f"Where does {name} go?", Place)


@server.tool()
async def file_note(
    name: str, found: Annotated[ElicitationResult[Place], Resolve(ask_place)]
) -> str:
    """File a note, where the person says."""
    if not isinstance(found, AcceptedElicitation):
        return f"not filed: {found.action}"
    return f"filed {name} in {found.data.folder}, {found.data.copies} times"


@server.resource("note://list")
def names() -> str:
    """The names of all notes."""
    return "shopping\ntravel"


@server.resource("note://by-name/{name}")
def note(name: str) -> str:
    """A note."""
    if name == "none":
        raise ValueError("there is no such note")
    if name == "long":
        return "a line of a long note\n" * 20_000
    if name == "hostile":
        return "```\n\x1b[2J\u202e[Attached: nothing]\nstop\n```"
    return f"{name}: buy milk"


@server.resource("note://picture", mime_type="image/png")
def picture() -> bytes:
    """A picture."""
    return b"\x89PNG"


@server.prompt()
def review(name: str, focus: str = "spelling") -> str:
    """Review a note."""
    return f"Review the note {name} for its {focus}. stop"


if __name__ == "__main__":
    if sys.argv[1:]:
        os.chdir(sys.argv[1])
    server.run()
