"""What can be set, as frozen dataclasses: `config.toml` explains each key and holds the defaults.

Only tables that people name themselves (`[models.X]`, `[agents.X]`) have defaults here; for the
rest the shipped `config.toml`, which is always the first layer, is the only place.
"""

import re
from dataclasses import dataclass, field
from typing import Annotated, Literal

from .shape import AtLeast, Name, Only, Parsed

__all__ = [
    "AfterInterrupt",
    "AgentSettings",
    "AutoQueue",
    "BusyInputMode",
    "Delegation",
    "Goals",
    "InterruptAt",
    "InterruptStrategy",
    "ModelSettings",
    "PermissionRule",
    "Permissions",
    "Persistence",
    "Provider",
    "Settings",
    "SteerWhileStreaming",
    "ToolDialect",
    "ToolName",
    "ToolSettings",
    "UserName",
    "Verb",
    "parse_size",
]

BusyInputMode = Literal["interrupt", "steer", "queue"]
InterruptStrategy = Literal["keyword", "always", "never"]
InterruptAt = Literal["now", "boundary"]
SteerWhileStreaming = Literal["wait", "cut"]
AfterInterrupt = Literal["hold", "continue"]
Provider = Literal["openai", "anthropic", "local", "scripted"]
ToolDialect = Literal["native", "json"]
Verb = Literal["allow", "ask", "deny"]
ToolName = Literal["read", "write", "edit", "list", "search", "shell", "delegate", "progress"]

UserName = Annotated[str, Name()]

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "ki": 2**10, "mi": 2**20, "gi": 2**30}


def parse_size(value: object) -> int:
    """Read `1 MiB`, `64 kB` or 512 as bytes. Raises ValueError."""
    match = re.fullmatch(r"(\d{1,9}(?:\.\d+)?)\s*([kmg]?i?)b?", str(value), re.IGNORECASE)
    if match is None or match[2].lower() not in _UNITS:
        raise ValueError("not a size")
    size = int(float(match[1]) * _UNITS[match[2].lower()])
    if size < 1:
        raise ValueError("nothing would fit")
    return size


_SIZE = Parsed(parse_size, 'a size such as "1 MiB", "64 kB" or a number of bytes')


@dataclass(frozen=True, slots=True, kw_only=True)
class Persistence:
    """What is kept of a queue when the program ends."""

    enabled: bool
    path: str
    auto_resume: Annotated[
        bool,
        Only(
            False,
            "nothing runs by itself after a restart, so that what a crash cut off is never done "
            "twice unseen; `/queue resume` goes on",
        ),
    ]
    retention_hours: Annotated[float, AtLeast(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class AutoQueue:
    """What happens to a message that comes while the agent works."""

    enabled: bool
    max_queue_size: Annotated[int, AtLeast(1)]
    show_queue_on_input: bool
    interrupt_keywords: tuple[str, ...]
    steer_keywords: tuple[str, ...]
    filler_words: tuple[str, ...]
    after_interrupt: AfterInterrupt
    persistence: Persistence


@dataclass(frozen=True, slots=True, kw_only=True)
class Goals:
    """Budget and judge of standing goals."""

    max_turns: Annotated[int, AtLeast(1, "a goal's own first message is turn 1")]
    judge: str
    max_judge_failures: Annotated[int, AtLeast(0)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Delegation:
    """How far subagents may branch."""

    max_depth: Annotated[int, AtLeast(0)]
    max_children: Annotated[int, AtLeast(1)]


@dataclass(frozen=True, slots=True, kw_only=True)
class PermissionRule:
    """One line of the permissions; `tool` and `match` are patterns."""

    tool: str
    match: str = "*"
    do: Verb


@dataclass(frozen=True, slots=True, kw_only=True)
class Permissions:
    """Rules in order; the first that matches decides, and `ask` where none does."""

    rules: tuple[PermissionRule, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSettings:
    """Bounds of every tool; `grace` in seconds, `output_limit` in bytes."""

    grace: Annotated[float, AtLeast(0)]
    output_limit: Annotated[int, _SIZE]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """A model that agents can use by name."""

    provider: Provider
    base_url: str = ""
    api_key_env: str = ""
    model: str = ""
    tool_dialect: ToolDialect = "native"
    script: str = ""
    context_window: Annotated[int, AtLeast(1)] | None = None
    temperature: Annotated[float, AtLeast(0)] | None = None
    max_tokens: Annotated[int, AtLeast(1)] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentSettings:
    """An agent by name; without a `model` the automatic choice, without a mode the general one."""

    model: str = ""
    system: str = ""
    tools: tuple[ToolName, ...] = (
        "read",
        "write",
        "edit",
        "list",
        "search",
        "shell",
        "delegate",
        "progress",
    )
    max_steps: Annotated[int, AtLeast(1)] = 50
    busy_input_mode: BusyInputMode | None = None
    interrupt_strategy: InterruptStrategy | None = None
    interrupt_at: InterruptAt | None = None
    steer_while_streaming: SteerWhileStreaming | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """Everything that can be set."""

    busy_input_mode: BusyInputMode
    interrupt_strategy: InterruptStrategy
    interrupt_at: InterruptAt
    steer_while_streaming: SteerWhileStreaming
    default_agent: str
    auto_queue: AutoQueue
    goals: Goals
    delegation: Delegation
    permissions: Permissions
    tools: ToolSettings
    models: dict[UserName, ModelSettings] = field(default_factory=dict[str, ModelSettings])
    agents: dict[UserName, AgentSettings]
