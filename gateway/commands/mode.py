"""`/mode` and `/model`: show and change the permission mode of a session, and its model."""

from __future__ import annotations

from typing import Annotated

from ...machines import protocol as m
from ...machines.errors import SteersmanError
from ...machines.permission_mode import Mode
from ...ports.models.choice import known_names
from ...ports.models.provider import model_configs
from ..client import SessionClient
from ..host.fitted_profile import REFIT, refit
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
    return Reply(ok=is_ok, data={**answer, "mode": mode}, text=text, news=text)


@command(
    "model",
    "settings",
    "Show the model and why it was chosen, or change it from the next call on.",
)
def model(
    client: SessionClient,
    name: Annotated[str, Argument("NAME", of="model", help="If left out, show it.")] = "",
) -> Reply:
    """Show the model of a session, or change it for the rest of the session.

    Example: steersman sessions model last local
    """
    record = client.record()
    if record.run is not None:
        own = "A workflow's run has no model: each agent has its own, by its step and the configuration."
        return Reply(ok=False, text=own)
    if m.AGENT_TOOL in record.tools:
        return Reply(ok=False, text="This session belongs to an external agent with its own model.")
    if not name:
        why = "chosen with `/model`" if record.chosen_model else "chosen at the start"
        known = known_names(model_configs(client.host.config.models))
        data = {"model": record.model, "is_chosen": bool(record.chosen_model), "known": known}
        text = f"model {record.model}: {why}. There are: {', '.join(known)}."
        return Reply(data=data, text=text)
    try:
        profile, choice = client.host.opener.fitted(record, name)
    except SteersmanError as error:
        return Reply(ok=False, text=f"{error.message}; {error.hint}".removesuffix("; "))
    change = refit(profile, model=name) if profile.is_refit else m.PolicyChange(model=name)
    answer = client.ask(change)
    if not answer.get("ok", True):
        return Reply(ok=False, data=answer, text=str(answer.get("reason")))
    client.host.runtime.change_model(client.session, profile)
    line = choice.line.removesuffix(f": {choice.why}") if choice is not None else f"model {name}"
    told = f"\n{REFIT.format(name)}" if profile.is_refit else ""
    text = f"From the next call on: {line}.{told}"
    return Reply(data={"ok": True, "model": name}, text=text, news=text)
