"""Looks at a session's folder around a step of a run, as the performer is asked to."""

from __future__ import annotations

from typing import Any

from pykka import ActorRef

from ...machines.results import ModelNoticed
from ...machines.workflow_order import LookAfter, LookBefore, Looked
from ...ports.workspace.workspace import Workspace
from ..mailbox import reply
from .start_task import StartTask

__all__ = ["look"]


def look(
    workspace: Workspace | None,
    effect: LookBefore | LookAfter,
    reply_to: ActorRef[Any] | None,
    start_task: StartTask,
) -> None:
    """Begin a look; the one before a step is answered, also if it could not be had."""
    call = f"{effect.turn}.{effect.step}"
    if isinstance(effect, LookAfter):
        if workspace is not None:
            workspace.end(call)
        return

    async def before() -> None:
        notices = await workspace.begin(effect.turn, call, "run", None) if workspace else []
        for text in notices:
            reply(reply_to, ModelNoticed(effect.turn, effect.epoch, text))
        reply(reply_to, Looked(effect.turn, effect.step))

    def fault(error: BaseException) -> None:
        text = f"What step `{effect.step}` changes cannot be reverted: {error}"
        reply(reply_to, ModelNoticed(effect.turn, effect.epoch, text))
        reply(reply_to, Looked(effect.turn, effect.step))

    start_task(before(), fault)
