"""`/mode`: shows and changes the permission mode of a session."""

from __future__ import annotations

from ...machines.messages import PolicyChange
from ...machines.permission_mode import MODES, Mode
from ..client import SessionClient
from .command import Reply, command

MEANS: dict[str, str] = {
    "ask": "the permission rules decide",
    "edits": "changes of files in the folder are allowed, too",
    "plan": "only tools that read and search run",
    "all": "everything runs that no rule denies",
}


@command("mode", "settings", "Show or set the permission mode.")
def mode(client: SessionClient, mode: Mode | None = None) -> Reply:
    """Show the permission mode, or change it from the next tool call on, for subagents, too."""
    if mode is None:
        now = client.describe().policy.mode
        lines = [f"{'*' if name == now else ' '} {name:<5}  {MEANS[name]}" for name in MODES]
        return Reply(ok=True, data={"ok": True, "mode": now}, text="\n".join(lines))
    answer = client.ask(PolicyChange(mode=mode))
    is_ok = bool(answer.get("ok", True))
    text = f"Mode {mode}: {MEANS[mode]}." if is_ok else str(answer.get("reason"))
    return Reply(ok=is_ok, data={**answer, "mode": mode}, text=text)
