"""Functions that run in a process of their own: another process finds them here by their names."""

import base64
import os
import signal
import subprocess
import sys
from pathlib import Path

import steersman

__all__ = ["TOOLS"]


@steersman.tool(isolated=True)
def speak(word: str) -> str:
    """Print, as a program that it starts does, and return something else."""
    print("spoken aloud")
    subprocess.run(["echo", "spoken by a child"], check=True)
    os.write(1, b"\x1e[1, 2]\n")
    return f"written {word}"


@steersman.tool(isolated=True)
def photograph(content: str) -> list[object]:
    """Take a picture, from its content in base64."""
    return ["here it is", steersman.picture(base64.b64decode(content))]


@steersman.tool(isolated=True)
async def tell(ctx: steersman.Context) -> dict[str, object]:
    """Tell of the call."""
    ctx.progress(1, 2, "files", "half")
    return {"call": ctx.call_id, "folder": str(ctx.folder), "is_other": os.getpid() != os.getppid()}


@steersman.tool(isolated=True)
def fail(how: str) -> object:
    """Fail in a way."""
    match how:
        case "ToolError":
            raise steersman.ToolError("no such city")
        case "ValueError":
            raise ValueError("no good")
        case "sys.exit":
            sys.exit(4)
        case "os._exit":
            os._exit(0)
        case "killed":
            os.kill(os.getpid(), signal.SIGKILL)
    return object()


@steersman.tool(isolated=True)
def block(ctx: steersman.Context) -> None:
    """Start a process, say that both are there, and ignore every wish to end."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    child = subprocess.Popen(["sleep", "1000"])
    Path(ctx.folder, "pids").write_text(f"{os.getpid()} {child.pid}")
    ctx.progress(1, 1)
    child.wait()


TOOLS = [speak, photograph, tell, fail, block]
