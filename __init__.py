"""A runtime and a command line for AI agents, made of actors and state machines.

What stands here is the public interface of the library (docs/library.md); nothing else is public. It is
imported at its first use, because `steersman --version` has to answer at once.
"""

TYPE_CHECKING = False  # as type checkers take it; `typing` itself would take its time
if TYPE_CHECKING:
    from .gateway.event_feed import Event
    from .gateway.library import (
        Agent,
        Home,
        Receipt,
        Rejected,
        RunHandle,
        RunResult,
        SessionHandle,
        SessionInfo,
    )
    from .gateway.library import open_home as open
    from .gateway.outcome import Outcome
    from .machines.conversation import ChatMessage, ToolRequest, ToolSchema, Usage
    from .machines.errors import ConfigError, SteersmanError, ToolError, UsageError
    from .ports.models.model import AnswerListener, Model, ModelAnswer, ModelRequest
    from .ports.tools.function import Context, FunctionTool, tool

__all__ = [
    "Agent",
    "AnswerListener",
    "ChatMessage",
    "ConfigError",
    "Context",
    "Event",
    "FunctionTool",
    "Home",
    "Model",
    "ModelAnswer",
    "ModelRequest",
    "Outcome",
    "Receipt",
    "Rejected",
    "RunHandle",
    "RunResult",
    "SessionHandle",
    "SessionInfo",
    "SteersmanError",
    "ToolError",
    "ToolRequest",
    "ToolSchema",
    "Usage",
    "UsageError",
    "__version__",
    "open",
    "tool",
]

__version__ = "0.1.0"

_PLACES = {
    "gateway.event_feed": ("Event",),
    "gateway.library": (
        "Agent",
        "Home",
        "Receipt",
        "Rejected",
        "RunHandle",
        "RunResult",
        "SessionHandle",
        "SessionInfo",
        "open_home",
    ),
    "gateway.outcome": ("Outcome",),
    "machines.conversation": ("ChatMessage", "ToolRequest", "ToolSchema", "Usage"),
    "machines.errors": ("ConfigError", "SteersmanError", "ToolError", "UsageError"),
    "ports.models.model": ("AnswerListener", "Model", "ModelAnswer", "ModelRequest"),
    "ports.tools.function": ("Context", "FunctionTool", "tool"),
}


def __getattr__(name: str) -> object:
    from importlib import import_module

    wanted = "open_home" if name == "open" else name
    for place, names in _PLACES.items():
        if wanted in names:
            found: object = getattr(import_module(f"{__name__}.{place}"), wanted)
            globals()[name] = found
            return found
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
