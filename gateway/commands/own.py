"""`!COMMAND`, which is `/shell`: a person's own command in the session's folder, which no model sees.

Such commands run under the process supervisor like the tool `shell`, but with the person's whole
environment, outside the sandbox and without a question: the person typed them. They belong to no turn, so
that no stop, steer or interrupt of the session reaches them, and they delay nothing. `/kill` stops them,
and `/share` shows the model what one has printed.
"""

from __future__ import annotations

import asyncio
import codecs
import os
import shutil
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from msgspec import Struct

from ...machines.classification import Classification
from ...machines.conversation import Attachment
from ...machines.disposition import Intent
from ...machines.errors import ToolError, UsageError
from ...ports.process.process import Process, ProcessResult, ProcessSpec
from ...ports.tools.text import join_ends
from ..events.contract import OwnCommandEvent
from ..events.translation import EventPublisher
from ..speaker import speaker
from ..wording.formats import size_text
from ..wording.terminal import clean
from .command import Argument, Reply, Text, command

if TYPE_CHECKING:
    from ..client import SessionClient

MOST = 8
"""Commands of a person that run at the same time in a session."""
KEPT = 20
"""Commands that have ended, of which the newest can be shared."""
_LONGEST = 4_096  # characters of a line that are held back until it ends
_KEEP = 32 * 1024  # bytes of the beginning of an output, and as many of its end


class OwnCommand(Struct, kw_only=True, eq=False):
    """A command of a person; `output` is what is kept of it, without terminal escapes, once it ended.

    `state` is running, or how it ended: `exited`, `killed`, `failed` or `lost`.
    """

    id: str
    text: str
    state: str = "running"
    exit_code: int | None = None
    output: str = ""
    process: Process | None = None
    is_stopped: bool = False


class OwnCommands:
    """The commands of one session; calls come from clients' threads, results from the runtime's loop."""

    def __init__(self, client: SessionClient) -> None:
        self._client, self._runtime = client, client.host.runtime
        self._lock = threading.Lock()
        self._known: dict[str, OwnCommand] = {}
        self._made = 0

    @property
    def running(self) -> list[OwnCommand]:
        """The commands that run, the oldest first."""
        with self._lock:
            return [command for command in self._known.values() if command.state == "running"]

    @property
    def last_ended(self) -> OwnCommand | None:
        """The command that ended last and can be shared."""
        with self._lock:
            return next(
                (known for known in reversed(self._known.values()) if known.state != "running"),
                None,
            )

    def start(self, text: str, folder: Path) -> OwnCommand:
        """Begin a command in a folder; events tell the rest. Raises `UsageError` if too many run."""
        if len(self.running) >= MOST:
            raise UsageError(f"{MOST} commands of yours run already", "/kill stops one")
        with self._lock:
            self._made += 1
            command = OwnCommand(id=f"!{self._made}", text=text)
            self._known[command.id] = command
            over = [known.id for known in self._known.values() if known.state != "running"]
            for name in over[:-KEPT]:
                del self._known[name]
        work = self._run(command, folder, self._client.publisher)
        asyncio.run_coroutine_threadsafe(work, self._runtime.loop)
        return command

    def stop(self, name: str = "") -> list[OwnCommand]:
        """Stop the command of this id, or all; a second stop kills at once. Returns those it stopped."""
        found = [running for running in self.running if name in ("", running.id)]
        for running in found:
            self._runtime.loop.call_soon_threadsafe(_stop, running)
        return found

    async def _run(self, command: OwnCommand, folder: Path, publisher: EventPublisher) -> None:
        """Run a command to its end, and tell of its output."""
        decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
        unfinished = ""

        def tell(data: bytes) -> None:
            nonlocal unfinished
            whole, end, unfinished = (unfinished + decoder.decode(data)).rpartition("\n")
            if len(unfinished) > _LONGEST:
                whole, end, unfinished = f"{whole}{end}{unfinished}", "", ""
            if whole or end:
                _publish(publisher, command, output=whole + end)

        _publish(publisher, command)
        spec = ProcessSpec(
            argv=(shutil.which("bash") or "/bin/sh", "-c", command.text),
            cwd=folder,
            environment=dict(os.environ),
            grace=self._client.host.config.tools.grace,
            keep=_KEEP,
        )
        try:
            command.process = await self._runtime.shared.processes.spawn(spec, tell)
            if command.is_stopped:  # while it was being started
                command.process.stop()
            result = await command.process.wait()
        except ToolError as error:
            result = ProcessResult(
                status="failed", exit_code=None, head=b"", tail=b"", total=0, reason=str(error)
            )
        command.output = clean(join_ends(result.head, result.tail, result.total, ""))
        command.exit_code, command.process = result.exit_code, None
        command.state = result.status
        rest = unfinished + decoder.decode(b"", final=True)
        why = f"{result.reason}\n" if result.reason else ""
        _publish(publisher, command, f"{rest}\n{why}" if rest else why, result)


def _stop(command: OwnCommand) -> None:
    """Stop a command; on the runtime's loop."""
    if command.process is not None:
        command.process.stop(0.0 if command.is_stopped else None)
    command.is_stopped = True


def _publish(
    publisher: EventPublisher,
    command: OwnCommand,
    output: str = "",
    result: ProcessResult | None = None,
) -> None:
    publisher.publish(
        OwnCommandEvent(
            type="own_command",
            **publisher.stamp(),
            id=command.id,
            command=command.text,
            state=command.state,
            output=output,
            exit_code=command.exit_code,
            killed=list(result.killed) if result is not None else [],
            survivors=list(result.survivors) if result is not None else [],
        )
    )


@command(
    "shell",
    "files",
    "Run a command of your own, as `!COMMAND` does; the model does not see it.",
    is_urgent=True,
)
def shell(
    client: SessionClient, command: Annotated[str, Argument("COMMAND", is_rest=True)]
) -> Reply:
    """Start a person's own command in the session's folder; `own_command` events tell the rest."""
    if speaker().may is not None:
        return Reply(ok=False, text="Commands of one's own are for the person at the machine.")
    found = client.describe()
    if found.is_offline:
        return Reply(ok=False, text="No program has this session open, so nothing was run.")
    try:
        begun = client.own_commands.start(command, found.folder)
    except UsageError as error:
        return Reply(ok=False, text=f"{error.message}; {error.hint}.")
    return Reply(data={"id": begun.id, "command": begun.text})


@command("kill", "files", "Stop commands of your own that run: all, or one.", is_urgent=True)
def kill(client: SessionClient, name: Annotated[str, Argument("ID")] = "") -> Reply:
    """Stop a person's own commands with everything that they started; a second time at once."""
    stopped = client.own_commands.stop(name)
    if not stopped:
        return Reply(ok=False, data={"stopped": []}, text="No command of yours runs.")
    names = ", ".join(f"!{command.text}" for command in stopped)
    data = {"stopped": [command.id for command in stopped]}
    return Reply(data=data, text=f"Stopping {names}.")


@command("share", "files", "Send the agent the output of your last command, with a message.")
def share(client: SessionClient, text: Text = "") -> Reply:
    """Send what the last own command printed, attached to a message."""
    last = client.own_commands.last_ended
    if last is None:
        return Reply(ok=False, text="No command of yours has ended: `!COMMAND` runs one.")
    code = f"exit code {last.exit_code}" if last.exit_code is not None else last.state
    output = Attachment(
        path=f"the output of `{last.text}`, {code}",
        text=last.output or "(no output)",
        size=size_text(len(last.output.encode())),
    )
    message = text or "I ran a command; its output is below."
    found = None if text else Classification(intent=Intent.CONVERSE)
    client.send_message(message, prompt=output, found=found)
    data = {"command": last.text, "exit_code": last.exit_code, "bytes": len(last.output.encode())}
    return Reply(data=data, text=f"Sent with the output of !{last.text}.")
