"""Results of the ports as messages: of models, tools, restores and external agents.

An external agent's work is to the turn one tool call, `AGENT_TOOL`. The calls of the agent within it
are journalled as those of any agent, but started by it and not by us.
"""

import signal
from typing import Literal

from msgspec import field

from .conversation import Picture, Thought, ToolRequest, Usage
from .messages import Message
from .value import Value


class ModelText(Message):
    """A piece of streaming text. `is_due`: what has come until now is to be kept."""

    turn: str
    epoch: int
    step: int
    delta: str
    is_due: bool = False


class ModelThought(Message):
    """A piece of what the model thinks before it answers."""

    turn: str
    epoch: int
    step: int
    delta: str


class ToolPrinted(Message):
    """A command that runs has printed more: its last lines so far."""

    turn: str
    call: str
    text: str


class ModelNoticed(Message):
    """The model port waits for something, and says for what, and for how long if it knows."""

    turn: str
    epoch: int
    text: str
    seconds: float = 0.0


class ModelAnswered(Message):
    """A whole answer; `window` is how many tokens the model can look at, 0 where it is not known."""

    turn: str
    epoch: int
    step: int
    text: str
    tool_calls: tuple[ToolRequest, ...] = ()
    usage: Usage = field(default_factory=Usage)
    stop_reason: str = "stop"
    window: int = 0
    thoughts: tuple[Thought, ...] = ()


class ModelFailed(Message):
    """No answer: why, and the next step; `is_too_long`: the conversation is, for the window."""

    turn: str
    epoch: int
    step: int
    reason: str
    hint: str = ""
    is_too_long: bool = False
    window: int = 0


class Summarised(Message):
    """The model's summary of the older turns; without `text`, `reason` says why."""

    turn: str
    epoch: int
    step: int
    text: str = ""
    reason: str = ""
    usage: Usage = field(default_factory=Usage)


ToolStatus = Literal["ok", "failed", "timed_out", "killed", "unknown"]


class ChangedFile(Value):
    """A file that a call changed, and how many lines of it: `path` is relative to the folder."""

    path: str
    added: int = 0
    removed: int = 0
    is_new: bool = False


class CallEnd(Value):
    """How a call ended, beside what the model reads of it: what is journalled and shown.

    `unknown`: contact was lost to the machine on which it ran, and it may have had its effect. `bytes` is
    the size of all output before capping. `killed` and `survivors` are process ids. `changed` are the
    files that it is known to have changed; `is_poll`: it looked whether something outside has happened,
    so that to repeat it is right.
    """

    status: ToolStatus
    exit_code: int | None = None
    bytes: int = 0
    killed: tuple[int, ...] = ()
    survivors: tuple[int, ...] = ()
    changed: tuple[ChangedFile, ...] = ()
    is_poll: bool = False


class ToolResult(CallEnd):
    """The end of a call with what came of it.

    `text` is what the model gets (capped: head and tail of long output, and the file of the whole).
    `progress` is (done, total, unit, note) for the tool `progress`, else none. For a workflow's
    command `text` is its standard output alone; `errors` is its standard error, `is_cut` says that
    something is missing in the middle of `text`, and `missing` names declared files that it did not
    make. `pictures` go beside the text.
    """

    text: str
    spilled: str = ""
    progress: tuple[int, int, str, str] | None = None
    errors: str = ""
    is_cut: bool = False
    missing: tuple[str, ...] = ()
    pictures: tuple[Picture, ...] = ()

    @property
    def end(self) -> CallEnd:
        """What is journalled of it."""
        return CallEnd(**{name: getattr(self, name) for name in CallEnd.__struct_fields__})


class ToolProgressed(Message):
    """A tool that runs says how far it is."""

    call: str
    done: int
    total: int
    unit: str = ""
    note: str = ""


class ToolFinished(Message):
    """A tool call is over and everything it started is dead, or listed in `survivors`."""

    turn: str
    epoch: int
    call: str
    result: ToolResult


class RestoreCounted(Message):
    """A revert is about to restore so many files."""

    id: str
    files: int


class RestoreEnded(Message):
    """A revert is over; `fault` says why nothing was changed, and is empty if all went well.

    `kept` are pairs of a path and why it stays as it is. `shared` changed while a command of the turn
    ran, `yours` went back to a person's own version. `notes` name what is not as it was before, or was
    not looked at. `is_original`: a look at the whole folder found nothing of the kind.
    """

    id: str
    fault: str = ""
    restored: tuple[str, ...] = ()
    kept: tuple[tuple[str, str], ...] = ()
    shared: tuple[str, ...] = ()
    yours: tuple[str, ...] = ()
    turns: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    is_original: bool = False


# External agents ----------------------------------------------------------------------------------
# `call` is the turn's call of `AGENT_TOOL`, `inner` a call of the agent within it.


AGENT_TOOL = "agent"
"""The tool of a session whose agent is another program."""


class AgentBound(Message):
    """The agent's own id of the session, under which it can be loaded again."""

    call: str
    session: str


class AgentSaid(Message):
    """A piece of its answer."""

    call: str
    text: str


class AgentCalled(Message):
    """It runs a tool of its own, or with `asks` wants to and waits for an answer."""

    call: str
    request: ToolRequest
    asks: bool = False


class AgentCallEnded(Message):
    """A tool of its own has ended: `status` is ok or failed."""

    call: str
    inner: str
    status: ToolStatus


class AnswerAgent(Value):
    """Tell the agent whether its call `inner` may run."""

    turn: str
    epoch: int
    inner: str
    is_allowed: bool


def exit_words(code: int) -> str:
    """Say how a process ended: `exit 1`, or the signal's name in place of Python's negative number."""
    if code >= 0:
        return f"exit {code}"
    try:
        return signal.Signals(-code).name
    except ValueError:  # one of the real-time signals
        return f"signal {-code}"
