"""The settings of a session that an editor shows: each is a command, with the values to choose from."""

from __future__ import annotations

from typing import Literal

from acp.schema import (
    SessionConfigOptionSelect,
    SessionConfigSelectOption,
    SessionMode,
    SessionModeState,
)

from ...gateway.client import SessionClient
from ...gateway.commands.command import Command
from ...gateway.commands.mode import mode, model
from ...gateway.commands.talk import busy
from ...gateway.views.permission import MODES
from ...machines import protocol as m
from ...ports.models.choice import known_names
from ...ports.models.provider import model_configs

SETTINGS: dict[str, tuple[Command[...], str]] = {
    "busy": (busy, "mode"),
    "mode": (mode, "mode"),
    "model": (model, "name"),
}
"""The command that changes a setting, and its argument, by the setting's id."""
Category = Literal["mode", "model"]
BUSY_MODES = {
    "interrupt": "Stop, and do that instead",
    "steer": "Work it in at the next step",
    "queue": "Wait for the end of the turn",
}


def settings_of(client: SessionClient) -> list[SessionConfigOptionSelect]:
    """Return the settings of a session as they are now."""
    policy, record = client.describe().policy, client.record()
    found = [
        _select("mode", "Permissions", "What a tool call may do.", policy.mode, MODES, "mode"),
        _select(
            "busy",
            "A message during a turn",
            "The effect of a message during a turn.",
            policy.busy_mode,
            BUSY_MODES,
        ),
    ]
    if record.run is None and m.AGENT_TOOL not in record.tools:
        names = known_names(model_configs(client.host.config.models))
        now = record.wanted_model or record.model_name or record.model.partition(" ")[0]
        known = dict.fromkeys((now, *(name for name in names if ":" not in name)), "")
        about = "The model from the next call on."
        found.append(_select("model", "Model", about, now, known, "model"))
    return found


def modes(now: str) -> SessionModeState:
    """Return the permission modes as those of the protocol."""
    known = [
        SessionMode(id=name, name=name.capitalize(), description=means)
        for name, means in MODES.items()
    ]
    return SessionModeState(current_mode_id=now, available_modes=known)


def _select(
    name: str,
    title: str,
    about: str,
    now: str,
    values: dict[str, str],
    category: Category | None = None,
) -> SessionConfigOptionSelect:
    options = [
        SessionConfigSelectOption(
            value=value,
            name=value if category == "model" else value.capitalize(),
            description=means or None,
        )
        for value, means in values.items()
    ]
    return SessionConfigOptionSelect(
        type="select",
        id=name,
        name=title,
        description=about,
        category=category,
        current_value=now,
        options=options,
    )
