"""`!COMMAND`, which is `/shell`: a person's own command, what stops it, and what shares its output."""

from __future__ import annotations

from typing import Annotated

from ...machines.classification import Classification
from ...machines.conversation import Attachment
from ...machines.disposition import Intent
from ...machines.errors import UsageError
from ..client import SessionClient
from ..speaker import speaker
from ..wording.formats import size_text
from .command import Argument, Reply, Text, command


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
