"""`/model`: which model answers in this session, and the change to another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...actors.agent_profile import AgentProfile
from ...actors.changing_model import change_model
from ...journal.record import SessionRecord
from ...machines.errors import SteersmanError
from ...machines.messages import PolicyChange
from ...ports.agents.external import AgentSpec
from ...ports.models.choice import Choice
from .reply import Reply

if TYPE_CHECKING:
    from ..conversation import Conversation


@dataclass(frozen=True, slots=True)
class Models:
    """What a session may be answered by: the names in the configuration, and how one is taken.

    `profile_with` returns what a session's agent is with another model; it raises `SteersmanError`.
    """

    known: tuple[str, ...]
    profile_with: Callable[[SessionRecord, str], tuple[AgentProfile, Choice | None]]


def model_command(conversation: Conversation, argument: str) -> Reply:
    """Say which model answers, or change it; it stays so for this session."""
    name, live = argument.strip(), conversation.runtime.sessions.get(conversation.session)
    if live is None or conversation.models is None:
        return Reply(False, text="Models are not known here.")
    record = conversation.record()
    if record.run is not None or isinstance(live.profile.model, AgentSpec):
        return Reply(False, text="This session is not answered by a model of ours.")
    if not name:
        return _current(record, conversation.models)
    try:
        profile, choice = conversation.models.profile_with(record, name)
    except SteersmanError as error:
        return Reply(False, text=f"{error.message}: {error.hint}" if error.hint else error.message)
    answer = conversation.ask(PolicyChange(model=name))
    if not answer.get("ok", True):
        return Reply(False, answer, str(answer.get("reason")))
    conversation.runtime.run(change_model(live, profile))
    line = choice.line if choice is not None else f"model {name}"
    return Reply(True, {"ok": True, "model": name}, f"From the next call on: {line}.")


def _current(record: SessionRecord, models: Models) -> Reply:
    why = "chosen with `/model`" if record.chosen_model else "chosen at the start"
    data = {"model": record.model, "is_chosen": bool(record.chosen_model), "known": models.known}
    known = f" There are: {', '.join(models.known)}." if models.known else ""
    return Reply(True, data, f"model {record.model}: {why}.{known}")
