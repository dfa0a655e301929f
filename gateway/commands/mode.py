"""`/mode`: shows and changes the permission mode of a session."""

from __future__ import annotations

from typing import Annotated

from ...machines import protocol as m
from ...machines.permission_mode import Mode
from ..client import SessionClient
from ..views.permission import MODES
from .command import Argument, Reply, command


@command("mode", "settings", "Show or set the permission mode.")
def mode(
    client: SessionClient,
    mode: Annotated[Mode | None, Argument("MODE", help="If left out, show it.")] = None,
) -> Reply:
    """Show the permission mode, or change it from the next tool call on, for subagents, too.

    Example: steersman sessions mode last plan
    """
    if mode is None:
        now = client.describe().policy.mode
        lines = [
            f"{'*' if name == now else ' '} {name:<5}  {means}" for name, means in MODES.items()
        ]
        return Reply(data={"ok": True, "mode": now}, text="\n".join(lines))
    answer = client.ask(m.PolicyChange(mode=mode))
    is_ok = bool(answer.get("ok", True))
    text = f"Mode {mode}: {MODES[mode]}." if is_ok else str(answer.get("reason"))
    return Reply(ok=is_ok, data={**answer, "mode": mode}, text=text)
