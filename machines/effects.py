"""Effects: what actors ask of the outside world, as values.

An actor never performs them. The session hands them to the effect executor after the entries that ask for
them are durable, and only if `epoch` is still the turn's; results come back as messages.
"""

from collections.abc import Sequence
from typing import Any, Literal

from .conversation import ChatMessage
from .delegation_messages import (
    CloseChild,
    Delegate,
    Dismiss,
    OpenChild,
    PassSteer,
    SetTimer,
    StopChild,
)
from .goal_messages import GoalEffect
from .port_results import AnswerAgent
from .value import Value
from .workflow_messages import LookAfter, LookBefore


class CallModel(Value):
    """Ask the turn's model; `messages` is the whole conversation, oldest first.

    `max_tokens` is how long the answer may get; none leaves it to the model. For a summary `messages` is
    what is summed up, and the last one asks for it.
    """

    turn: str
    epoch: int
    step: int
    messages: Sequence[ChatMessage]
    max_tokens: int | None = None
    is_summary: bool = False


class RunTool(Value):
    """Start a tool call whose intent is durable.

    `path` is the resolved path that the call was allowed for. `is_again`: an earlier call of the turn
    with this tool and path failed.
    """

    turn: str
    epoch: int
    call: str
    tool: str
    arguments: dict[str, Any]
    path: str = ""
    is_again: bool = False


class CancelModel(Value):
    """Close the model call of this turn at once. Harmless when none is open."""

    turn: str


class StopTool(Value):
    """Stop a tool call and everything it started; its result still comes."""

    turn: str
    epoch: int
    call: str


class RestoreFiles(Value):
    """Restore files; an order with the same `id` is carried out once.

    `scope`: `turn` restores what `turns` changed, `since` what one turn and all after it did, and with
    neither what the newest turn did that changed anything; `last` restores its last change only;
    `undo` takes back the last revert, of `paths` if any are named. `resumed` are pairs of a turn and
    the one that it goes on from: together they are one.
    """

    id: str
    scope: Literal["turn", "last", "undo"]
    turns: tuple[str, ...] = ()
    since: str = ""
    paths: tuple[str, ...] = ()
    resumed: tuple[tuple[str, str], ...] = ()
    force: bool = False
    is_dry_run: bool = False


PortEffect = (
    CallModel
    | RunTool
    | CancelModel
    | StopTool
    | AnswerAgent
    | OpenChild
    | CloseChild
    | SetTimer
    | RestoreFiles
    | GoalEffect
    | LookBefore
    | LookAfter
)
"""The effects of the ports."""

Effect = PortEffect | Delegate | Dismiss | StopChild | PassSteer
"""All effects, performed once they are durable; the last four by the child supervisor."""
