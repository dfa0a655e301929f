"""A runtime and a command line for AI agents, made of actors and state machines.

What stands here is the public interface of the library (docs/library.md); nothing else is public. It is
imported at its first use, because `steersman --version` has to answer at once.
"""

TYPE_CHECKING = False  # as type checkers take it; `typing` itself would take its time
if TYPE_CHECKING:
    from .gateway.commands.command import Reply
    from .gateway.commands.installed import CommandContext
    from .gateway.follow import Event
    from .gateway.library import (
        Agent,
        Choice,
        Home,
        How,
        Receipt,
        Rejected,
        RunHandle,
        RunResult,
        Scope,
        SessionHandle,
    )
    from .gateway.library import open_home as open
    from .gateway.outcome import Outcome
    from .gateway.session_info import SessionInfo
    from .journal.lock import Owner
    from .journal.store import (
        Commit,
        Lease,
        Loaded,
        NodeRow,
        Nodes,
        Occurrence,
        Posted,
        RowFilter,
        SessionRow,
        Snapshot,
        Store,
        StoredEntry,
        Watch,
    )
    from .machines.conversation import ChatMessage, Picture, ToolRequest, ToolSchema, Usage
    from .machines.errors import (
        ConfigError,
        ModelError,
        PlugInError,
        SteersmanError,
        StoreBusy,
        StoreError,
        ToolError,
        UnknownSession,
        UsageError,
    )
    from .machines.people import Person
    from .ports.models.model import AnswerListener, Model, ModelAnswer, ModelRequest
    from .ports.models.provider import ModelConfig
    from .ports.picture import picture
    from .ports.tools.function import Context, FunctionTool, tool
    from .workflows.settings import Verb

__all__ = [
    "Agent",
    "AnswerListener",
    "ChatMessage",
    "Choice",
    "CommandContext",
    "Commit",
    "ConfigError",
    "Context",
    "Event",
    "FunctionTool",
    "Home",
    "How",
    "Lease",
    "Loaded",
    "Model",
    "ModelAnswer",
    "ModelConfig",
    "ModelError",
    "ModelRequest",
    "NodeRow",
    "Nodes",
    "Occurrence",
    "Outcome",
    "Owner",
    "Person",
    "Picture",
    "PlugInError",
    "Posted",
    "Receipt",
    "Rejected",
    "Reply",
    "RowFilter",
    "RunHandle",
    "RunResult",
    "Scope",
    "SessionHandle",
    "SessionInfo",
    "SessionRow",
    "Snapshot",
    "SteersmanError",
    "Store",
    "StoreBusy",
    "StoreError",
    "StoredEntry",
    "ToolError",
    "ToolRequest",
    "ToolSchema",
    "UnknownSession",
    "Usage",
    "UsageError",
    "Verb",
    "Watch",
    "__version__",
    "open",
    "picture",
    "tool",
]

__version__ = "0.1.0"

_PLACES = {
    "gateway.commands.command": ("Reply",),
    "gateway.commands.installed": ("CommandContext",),
    "gateway.follow": ("Event",),
    "gateway.library": (
        "Agent",
        "Choice",
        "Home",
        "How",
        "Receipt",
        "Rejected",
        "RunHandle",
        "RunResult",
        "Scope",
        "SessionHandle",
        "open_home",
    ),
    "gateway.outcome": ("Outcome",),
    "gateway.session_info": ("SessionInfo",),
    "journal.lock": ("Owner",),
    "journal.store": (
        "Commit",
        "Lease",
        "Loaded",
        "NodeRow",
        "Nodes",
        "Occurrence",
        "Posted",
        "RowFilter",
        "SessionRow",
        "Snapshot",
        "Store",
        "StoredEntry",
        "Watch",
    ),
    "machines.conversation": ("ChatMessage", "Picture", "ToolRequest", "ToolSchema", "Usage"),
    "machines.errors": (
        "ConfigError",
        "ModelError",
        "PlugInError",
        "SteersmanError",
        "StoreBusy",
        "StoreError",
        "ToolError",
        "UnknownSession",
        "UsageError",
    ),
    "machines.people": ("Person",),
    "ports.models.model": ("AnswerListener", "Model", "ModelAnswer", "ModelRequest"),
    "ports.models.provider": ("ModelConfig",),
    "ports.picture": ("picture",),
    "ports.tools.function": ("Context", "FunctionTool", "tool"),
    "workflows.settings": ("Verb",),
}


def __dir__() -> list[str]:
    return __all__


def __getattr__(name: str) -> object:
    from importlib import import_module

    wanted = "open_home" if name == "open" else name
    for place, names in _PLACES.items():
        if wanted in names:
            found: object = getattr(import_module(f"{__name__}.{place}"), wanted)
            globals()[name] = found
            return found
    from .machines.deprecation import newer_member

    if newer := newer_member(f"{__name__}.{name}"):
        return __getattr__(newer)
    raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
