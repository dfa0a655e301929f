"""Looks at a session's folder around a step of a run, as the performer is asked to."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from pykka import ActorRef

from ..machines.results import ModelNoticed
from ..machines.workflow_order import LookAfter, LookBefore, Looked
from ..ports.workspace.workspace import Workspace
from .mailbox import tell

__all__ = ["look"]

Spawn = Callable[[Coroutine[Any, Any, None], Callable[[BaseException], None]], object]


def look(
    workspace: Workspace | None,
    effect: LookBefore | LookAfter,
    reply_to: ActorRef[Any] | None,
    spawn: Spawn,
) -> None:
    """Begin a look; the one before a step is answered, also if it could not be had."""
    call = f"{effect.turn}.{effect.step}"
    if isinstance(effect, LookAfter):
        if workspace is not None:
            workspace.end(call)
        return

    def say(message: object) -> None:
        if reply_to is not None:
            tell(reply_to, message)

    async def before() -> None:
        notices = await workspace.begin(effect.turn, call, "run", None) if workspace else []
        for text in notices:
            say(ModelNoticed(effect.turn, effect.epoch, text))
        say(Looked(effect.turn, effect.step))

    def fault(error: BaseException) -> None:
        text = f"What step `{effect.step}` changes cannot be reverted: {error}"
        say(ModelNoticed(effect.turn, effect.epoch, text))
        say(Looked(effect.turn, effect.step))

    spawn(before(), fault)
