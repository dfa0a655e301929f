"""What an external agent tells while it works on a prompt, and what it is told.

To the turn its work is one tool call, `agent`. What the agent does within it is reported as calls of
its own: journalled as those of any agent, but started by it and not by us. `call` is the turn's call.
"""

from .conversation import ToolRequest
from .messages import Message
from .value import Value

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
    status: str


class AnswerAgent(Value):
    """Tell the agent whether its call `inner` may run."""

    turn: str
    epoch: int
    inner: str
    is_allowed: bool
