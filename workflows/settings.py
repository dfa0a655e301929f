"""The settings as models; `config.toml` explains each key and holds the defaults.

Only tables that people name themselves (`[models.X]`, `[agents.X]`) have defaults here; for the
rest the shipped `config.toml`, which is always the first layer, is the only place.
"""

import operator
import re
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, TypeVar
from urllib.parse import urlsplit

from msgspec import Meta, field

from ..machines.classification import Keywords
from ..machines.people import Right
from ..machines.permission_mode import Mode
from ..machines.progress import LONGEST, ProgressPolicy
from .home_place import HomeSettings
from .problem import shown
from .providers import PROVIDERS
from .suggestions import DEFAULT_TABLE, AsSpelled, OneOf, UserName
from .tools import REMOTE, RESERVED, TOOLS, USUAL
from .typed_table import Check, SetBy, Setter, SettingsTable, must

BusyInputMode = Literal["interrupt", "steer", "queue"]
InterruptStrategy = Literal["keyword", "always", "never"]
InterruptAt = Literal["now", "boundary"]
SteerWhileStreaming = Literal["wait", "cut"]
AfterInterrupt = Literal["hold", "continue"]
WhenFull = Literal["wait", "refuse"]
OnParentInterrupt = Literal["cancel", "detach"]
Thinking = Literal["off", "low", "medium", "high"]
ToolDialect = Literal["native", "json"]
SandboxMode = Literal["off", "auto", "required"]
Verb = Literal["allow", "ask", "deny"]
MissedRule = Literal["skip", "once"]
HOOK_EVENTS = (
    "session_start",
    "session_resume",
    "turn_started",
    "agent_response",
    "turn_ended",
    "subagent_start",
    "subagent_end",
    "goal_achieved",
    "goal_stopped",
    "session_suspend",
    "session_finalize",
    "question",
    "schedule_failed",
)

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


class Size(int):
    """A number of bytes; in a file it may be written as `1 MiB`."""

    SCHEMA: ClassVar = {"type": ["string", "integer"]}

    @classmethod
    def read(cls, value: object) -> "Size":
        """Return what is written. Raises `ValueError`."""
        try:
            return cls(parse_size(value))
        except ValueError as error:
            expected = 'a size such as "1 MiB", "64 kB" or a number of bytes'
            raise ValueError(f"must be {expected}, not {shown(value)}") from error


def _check_tool_name(name: str) -> str:
    """Refuse what a model's API would, and names that are taken."""
    if not re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name):
        raise ValueError("must be 1 to 64 letters, digits, `_` and `-`")
    if name in TOOLS.built_in or name in RESERVED:
        raise ValueError(f"is taken: `{name}` is a built-in tool")
    if name.startswith(REMOTE):
        raise ValueError(f"is taken: names that begin with `{REMOTE}` are for MCP servers")
    return name


def check_command(words: tuple[str, ...]) -> tuple[str, ...]:
    """Return the words of a command. Raises `ValueError` if no program could be started by them."""
    if not words or not words[0].strip():
        raise ValueError("must begin with a program")
    if any("\0" in word for word in words):
        raise ValueError("contains a NUL character")
    return words


def _is_address(url: str) -> bool:
    """Whether requests can be sent to an address, or there is none."""
    try:
        parts = urlsplit(url.strip())
        return not url or (f"{parts.scheme}://" in WEB and bool(parts.hostname) and parts.port != 0)
    except ValueError:
        return False


def _check_if_given(words: tuple[str, ...]) -> tuple[str, ...]:
    return check_command(words) if words else words


AnyTool = Check(
    str, {"anyOf": [{"type": "string", "enum": list(TOOLS.built_in)}, {"type": "string"}]}
)
"""A tool's name: editors offer the built-in ones. `config.py` knows the others."""
_NEVER = (
    "can only be false: nothing runs automatically after a restart, so that work "
    "interrupted by a crash is never repeated unseen; `/queue resume` continues"
)
_NO_TURNS = "must be at least 1, not {}: a goal's own first message is turn 1"
_NO_TOKENS = "must be at least 1, not {}: leave it out for no limit"
_NO_MINUTES = "must be more than 0, not {}: leave it out for no limit"
_NO_ADDRESS = "must be an address such as `http://127.0.0.1:8080/v1`, not {}"
_NO_PURPOSE = "must not be empty: it tells the model what the tool is for"
_COUNT = {"type": "integer", "minimum": 1}
_Never = Annotated[bool, must(operator.not_, _NEVER, {"type": "boolean", "const": False})]
_Turns = Annotated[int, must(lambda turns: turns >= 1, _NO_TURNS, _COUNT)]
_Amount = Annotated[float, Meta(ge=0)]
_Tokens = Annotated[int, must(lambda tokens: tokens >= 1, _NO_TOKENS, _COUNT)]
_Minutes = Annotated[
    float, must(lambda minutes: minutes > 0, _NO_MINUTES, {"type": "number", "exclusiveMinimum": 0})
]
_Purpose = Annotated[str, must(str.strip, _NO_PURPOSE, {"type": "string", "minLength": 1})]


class Persistence(SettingsTable, set_by=Setter.PERSON):
    """The persistence of queues."""

    enabled: bool
    path: str
    auto_resume: _Never
    retention_hours: Annotated[float, Meta(ge=0)]


class AutoQueueSettings(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """The handling of messages that arrive during a turn."""

    enabled: bool
    max_queue_size: Annotated[int, Meta(ge=1), SetBy(Setter.ANY_PROJECT)]
    show_queue_on_input: Annotated[bool, SetBy(Setter.ANY_PROJECT)]
    interrupt_keywords: tuple[str, ...]
    steer_keywords: tuple[str, ...]
    filler_words: tuple[str, ...]
    negation_words: tuple[str, ...]
    acknowledgement_words: tuple[str, ...]
    after_interrupt: AfterInterrupt
    persistence: Persistence

    @property
    def keywords(self) -> Keywords:
        """The lists by which messages are classified."""
        return Keywords(
            interrupt=self.interrupt_keywords,
            steer=self.steer_keywords,
            filler=self.filler_words,
            negation=self.negation_words,
            acknowledgement=self.acknowledgement_words,
        )


class Goals(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """Budget and judge of standing goals."""

    max_turns: _Turns
    max_tokens: _Tokens | None = None
    max_minutes: _Minutes | None = None
    judge: str
    gates: tuple[Annotated[tuple[str, ...], Meta(min_length=1)], ...]
    max_judge_failures: Annotated[int, Meta(ge=0)]
    max_failed_turns: Annotated[int, Meta(ge=0)]
    judge_timeout: Annotated[float, Meta(gt=0)]
    gate_timeout: Annotated[float, Meta(gt=0)]
    backoff: Annotated[float, Meta(ge=0)]
    backoff_limit: Annotated[float, Meta(ge=0)]
    max_wait: Annotated[float, Meta(gt=0)]


class Delegation(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """Bounds of the tree of subagents."""

    max_depth: Annotated[int, Meta(ge=0)]
    max_children: Annotated[int, Meta(ge=1)]
    when_full: WhenFull
    steer_deadline: Annotated[float, Meta(ge=0)]
    wrap_up: Annotated[float, Meta(gt=0)]
    timeout: Annotated[float, Meta(ge=0)]


class Compaction(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """When older turns are summarised; `at` and `keep` are shares of the model's window."""

    auto: bool
    at: Annotated[float, Meta(gt=0, le=1)]
    keep: Annotated[float, Meta(ge=0, lt=1)]


class ProgressSettings(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """After how many repetitions a turn is told, asked about and ended; `period` in steps."""

    tell: Annotated[int, Meta(ge=2)]
    ask: Annotated[int, Meta(ge=2)]
    end: Annotated[int, Meta(ge=2)]
    period: Annotated[int, Meta(ge=1, le=LONGEST)]

    @property
    def policy(self) -> ProgressPolicy:
        """The same as the turns take it."""
        return ProgressPolicy(tell=self.tell, ask=self.ask, end=self.end, period=self.period)


class UsageLimits(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """Usage limits of a session; 0 is no limit."""

    max_tokens: Annotated[int, Meta(ge=0)] = 0
    max_cost: _Amount = 0.0
    max_minutes: _Amount = 0.0
    wait_minutes: _Amount = 0.0


class PermissionRule(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """One line of the permissions; `tool` and `match` are patterns."""

    tool: str
    match: str = "*"
    do: Verb


class HoldSettings(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """Calls of a tool that wait for a person, whether they are allowed or not; `match` is a pattern."""

    tool: str
    match: str = "*"


class PermissionSettings(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """Rules in order; the first that matches decides, and `ask` where none does."""

    rules: tuple[PermissionRule, ...]


class TerminalSettings(SettingsTable, set_by=Setter.PERSON):
    """The look and the keys of the chat in a terminal; `notify_after` is in seconds."""

    theme: Literal["auto", "dark", "light", "plain"]
    keys: Literal["emacs", "vi"]
    notify: Literal["bell", "desktop", "off"]
    notify_after: Annotated[float, Meta(ge=0)]
    title: bool


class ToolSettings(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """Bounds of every tool; `grace` in seconds, the limits in bytes.

    `model_limits` are those of single tools, by name or pattern. `network` and `writable` (folders) are
    about commands in the sandbox, `fetch_private` (hosts) and `fetch_robots` about the tool `fetch`,
    `listed` (tokens) about tools of MCP servers.
    """

    grace: Annotated[float, Meta(ge=0)]
    model_limit: Size
    model_limits: dict[str, Size]
    attachment_limit: Size
    output_limit: Size
    environment: tuple[str, ...]
    sandbox: SandboxMode
    network: bool
    writable: tuple[str, ...]
    fetch_private: tuple[str, ...]
    fetch_robots: bool
    listed: Annotated[int, Meta(ge=0)]

    @property
    def fetch_options(self) -> tuple[str, ...]:
        """The command line of what gets pages."""
        robots = ("--robots",) if self.fetch_robots else ()
        return (*robots, *(f"--private={host}" for host in self.fetch_private))


class ToolDeclaration(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """A tool without Python: a command that gets its arguments as JSON on standard input.

    `parameters` are the JSON Schemas of the arguments by name; all without a `default` must be given,
    unless `required` lists others. `mutating`: it may change files. `timeout` in seconds.
    """

    name: Annotated[
        str, Check(_check_tool_name, {"type": "string", "pattern": "^[A-Za-z0-9_-]{1,64}$"})
    ]
    """Its name for the model, for `tools` of agents and for permission rules."""
    description: _Purpose
    """What it is for; the model reads this."""
    run: Annotated[tuple[str, ...], Check(check_command)]
    """The command. It gets the arguments as a JSON object on standard input, and what it prints is the
    result. A program written with a `/` is relative to the file that declares the tool."""
    parameters: dict[str, dict[str, Any]] = field(default_factory=dict[str, dict[str, Any]])
    """The arguments by name; each is a JSON Schema, such as a `type`."""
    required: tuple[str, ...] | None = None
    """The arguments that must be given; if left out, all that have no `default`."""
    mutating: bool = False
    """Whether it may change files: then it runs alone, and is reverted."""
    outcome: Annotated[tuple[str, ...], Check(_check_if_given)] = ()
    """A command that is asked what became of a call, if the program died while it ran: with the call's
    id as its last word, and the arguments on standard input. What it prints is told to the model as the
    outcome; with another exit code than 0 it stays unknown."""
    polls: bool = False
    """Whether it looks whether something outside has happened: to call it again with the same result
    is then no want of progress."""
    sandbox: bool = False
    """Whether `tools.sandbox` holds for its command as for the tool `shell`."""
    timeout: Annotated[float, Meta(gt=0)] = 120.0
    """Time limit of a call in seconds."""

    @property
    def needed(self) -> tuple[str, ...]:
        """The arguments that must be given."""
        if self.required is not None:
            return self.required
        return tuple(name for name, schema in self.parameters.items() if "default" not in schema)


WEB = ("http://", "https://")


class McpSettings(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """A server of the Model Context Protocol: a command that speaks on its pipes, or the URL of one.

    `tools` are patterns of the server's own names; `env` is added to the environment of the command,
    `headers` to requests. `timeout`, `start_timeout` and `wait` are seconds: of a call, of the start, and
    of the start before a session begins.
    """

    command: tuple[str, ...] = ()
    """The command that starts the server. A program written with a `/` is relative to this file."""
    url: str = ""
    """The address of a server that runs already, in place of a command."""
    tools: tuple[str, ...] = ("*",)
    """Patterns of the server's tools; the others are left out."""
    env: dict[str, str] = field(default_factory=dict[str, str])
    """Variables of its environment; `$NAME` is a variable of yours."""
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """Headers of requests to `url`; `$NAME` is a variable of the environment."""
    client_id: str = ""
    """The client that you registered where a server registers none, for `steersman mcp login NAME`."""
    client_secret: str = ""
    """Its secret, if it has one; `$NAME` is a variable of the environment."""
    timeout: Annotated[float, Meta(gt=0)] = 120.0
    """Time limit of a call in seconds."""
    start_timeout: Annotated[float, Meta(gt=0)] = 30.0
    """Seconds until it has to have listed its tools."""
    wait: Annotated[float, Meta(ge=0)] = 3.0
    """Seconds that the start of a session waits for it. If it takes longer, its tools come when it is
    ready."""
    sandbox: bool = False
    """Whether `tools.sandbox` holds for its command as for the tool `shell`."""

    def check(self) -> None:
        """Refuse a server that is reached in two ways or in none."""
        if bool(self.command) == bool(self.url):
            raise ValueError("needs either a `command` or a `url`")
        if self.url and not self.url.startswith(WEB):
            raise ValueError("`url` must begin with http:// or https://")


def _check_person(value: dict[str, Any]) -> dict[str, Any]:
    """Check one line of `[people]`: names on platforms, and rights."""
    for key, given in value.items():
        words: list[Any] = list(given) if isinstance(given, list | tuple) else [given]  # pyright: ignore[reportUnknownArgumentType]
        if not words or not all(isinstance(word, str) and word.strip() for word in words):
            raise ValueError(f"has no name for `{key}`: give a text, or a list of texts")
        if key != "may":
            continue
        if not isinstance(given, list):
            raise ValueError(f'needs a list: may = ["{given}"]')
        unknown = [word for word in words if word not in tuple(Right)]
        if unknown:
            known = ", ".join(Right)
            raise ValueError(f"has an unknown right `{unknown[0]}`: there are {known}")
    return value


class HookSettings(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """A command that runs on an event of a session; `timeout` in seconds."""

    on: Annotated[str, AsSpelled(HOOK_EVENTS)]
    run: Annotated[tuple[str, ...], Meta(min_length=1)]
    timeout: Annotated[float, Meta(gt=0, le=3600)] = 10.0


class RestoreSettings(SettingsTable, set_by=Setter.PERSON):
    """How long sessions of external agents are kept."""

    retention_hours: Annotated[float, Meta(ge=0)]


class CheckpointSettings(SettingsTable, set_by=Setter.PERSON):
    """The copies of files for `/revert`."""

    budget: Size


class NodeSettings(SettingsTable, set_by=Setter.PERSON):
    """What `steersman node` takes."""

    capacity: Annotated[int, Meta(ge=1, le=100000)]
    place: str


class ServeSettings(SettingsTable, set_by=Setter.PERSON):
    """Where `steersman serve` is reached."""

    port: Annotated[int, Meta(ge=0, le=65535)]
    names: tuple[str, ...]
    certificate: str
    key: str
    push_services: tuple[str, ...]

    def check(self) -> None:
        """Refuse a certificate without its key."""
        if bool(self.certificate) != bool(self.key):
            raise ValueError("needs both `certificate` and `key`, or neither")


class RaySettings(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """How long (seconds) a command waits for a node of a Ray cluster that can hold it.

    `fence` is for how long a worker waits for a sign of life of the program that owns the run.
    """

    patience: Annotated[float, Meta(ge=0)]
    fence: Annotated[float, Meta(ge=1)]


class TelemetrySettings(SettingsTable, set_by=Setter.PERSON):
    """Where traces and metrics are sent; nowhere without an endpoint. `headers` are of each request."""

    endpoint: Annotated[
        str, must(lambda url: not url or url.startswith(WEB), "must begin with http:// or https://")
    ]
    content: bool
    headers: dict[str, str]


class ScheduleSettings(SettingsTable, set_by=Setter.PERSON):
    """What `steersman serve` does at planned times; `schedules.py` checks what belongs together."""

    name: str = ""
    """Its name; if left out, that of the workflow or the session. What it did is remembered by it."""
    cron: str = ""
    """When: minute, hour, day, month, weekday, in local time."""
    at: str = ""
    """Or once, at a date with a time: "2026-12-01T07:00"."""
    run: str = ""
    """The workflow that it runs: a name, or a file seen from `folder`."""
    variables: dict[str, Any] = field(default_factory=dict[str, Any])
    """The workflow's variables that are not as usual."""
    say: str = ""
    """Or the message that it sends."""
    session: str = ""
    """The session that gets it; if left out, a new one each time."""
    agent: str = ""
    """The agent of a new session; if left out, the usual one."""
    folder: str = ""
    """The folder of a run or a new session; if left out, `~`."""
    missed: MissedRule = "skip"
    """What becomes of times at which nothing was served: they are passed over ("skip"), or it happens
    once in their place ("once")."""


class ModelPrice(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """The price of a million tokens of a model."""

    input: _Amount
    output: _Amount
    cached: _Amount | None = None
    cache_write: _Amount | None = None


class ModelSettings(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """A model that agents can use by name."""

    provider: Annotated[str, OneOf(PROVIDERS)]
    base_url: Annotated[str, must(_is_address, _NO_ADDRESS)] = ""
    api_key_env: str = ""
    model: str = ""
    tool_dialect: ToolDialect = "native"
    script: str = ""
    context_window: Annotated[int, Meta(ge=1)] | None = None
    temperature: Annotated[float, Meta(ge=0)] | None = None
    max_tokens: Annotated[int, Meta(ge=1)] | None = None
    thinking: Thinking | None = None
    timeout: Annotated[float, Meta(gt=0)] | None = None
    images: bool | None = None
    price: ModelPrice | None = None


class AgentSettings(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """An agent by name; without a `model` the automatic choice, without a mode the general one."""

    model: str = ""
    system: str = ""
    tools: tuple[Annotated[str, AnyTool], ...] = (*USUAL, f"{REMOTE}*")
    profile: Literal["auto", "small", "full"] = "auto"
    max_steps: Annotated[int, Meta(ge=1)] = 500
    model_limit: Size | None = None
    busy_input_mode: BusyInputMode | None = None
    interrupt_strategy: InterruptStrategy | None = None
    interrupt_at: InterruptAt | None = None
    steer_while_streaming: SteerWhileStreaming | None = None
    on_parent_interrupt: OnParentInterrupt = "cancel"
    protocol: Literal["own", "acp"] = "own"
    start: tuple[str, ...] = ()
    limits: UsageLimits | None = None


def _check_table(name: str) -> str:
    if name != DEFAULT_TABLE:
        from .suggestions import table_names

        OneOf(table_names()).check(name)
    return name


TableName = Annotated[str, Check(_check_table)]


class Routing(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """Which routing tables are in force; `unsafe`: also if they break a safety rule."""

    table: TableName
    unsafe: Annotated[bool, SetBy(Setter.PERSON)]


T = TypeVar("T", bool, int, float, str)
_SHIPPED = Path(__file__).parents[1] / "config.toml"


class CommandSettings(SettingsTable, set_by=Setter.PERSON):
    """The settings of single slash commands: `[commands]` of the shipped `config.toml` declares them.

    A key's type is that of its default, so that a command and its setting need no other declaration.
    """

    def of(self, name: str, kind: type[T]) -> T:
        """Return a setting, which is of that type."""
        value = getattr(self, name)
        assert isinstance(value, kind), f"commands.{name} is no {kind.__name__}"
        return value


def _command_settings() -> type[CommandSettings]:
    """Make the class of the keys that are shipped; only their table is read, for speed."""
    text = _SHIPPED.read_text(encoding="utf-8").partition("\n[commands]\n")[2]
    shipped = tomllib.loads(re.split(r"^\[", text, maxsplit=1, flags=re.MULTILINE)[0])
    types: dict[str, Any] = {name: type(value) for name, value in shipped.items()}
    named: dict[str, Any] = {
        "__annotations__": types,
        "__module__": __name__,
        "__doc__": CommandSettings.__doc__,
    }
    metaclass: Any = type(CommandSettings)
    made: type[CommandSettings] = metaclass(
        "CommandSettings", (CommandSettings,), named, set_by=Setter.PERSON
    )
    return made


if TYPE_CHECKING:
    ShippedCommandSettings = CommandSettings
else:
    ShippedCommandSettings = _command_settings()


class Settings(SettingsTable, set_by=Setter.TRUSTED_PROJECT):
    """Everything that can be set; what stands in a `[[route]]` is checked by `routing.py`."""

    busy_input_mode: BusyInputMode
    interrupt_strategy: InterruptStrategy
    interrupt_at: InterruptAt
    steer_while_streaming: SteerWhileStreaming
    permission_mode: Annotated[Mode, SetBy(Setter.PERSON)]
    default_agent: str
    auto_queue: AutoQueueSettings
    goals: Goals
    delegation: Delegation
    compaction: Compaction
    progress: ProgressSettings
    limits: UsageLimits
    permissions: PermissionSettings
    hold: tuple[HoldSettings, ...]
    terminal: TerminalSettings
    tools: ToolSettings
    restore: RestoreSettings
    checkpoints: CheckpointSettings
    home: HomeSettings
    node: NodeSettings
    serve: ServeSettings
    ray: RaySettings
    telemetry: TelemetrySettings
    hooks: tuple[HookSettings, ...]
    tool: tuple[ToolDeclaration, ...]
    schedule: tuple[ScheduleSettings, ...]
    mcp: dict[UserName, McpSettings] = field(default_factory=dict[str, McpSettings])
    gateways: Annotated[dict[UserName, dict[str, Any]], SetBy(Setter.PERSON)] = field(
        default_factory=dict[str, dict[str, Any]]
    )
    people: Annotated[
        dict[UserName, Annotated[dict[str, Any], Check(_check_person)]], SetBy(Setter.PERSON)
    ] = field(default_factory=dict[str, dict[str, Any]])
    routing: Routing
    models: dict[UserName, ModelSettings] = field(default_factory=dict[str, ModelSettings])
    agents: dict[UserName, AgentSettings]
    commands: ShippedCommandSettings
    route: tuple[dict[str, Any], ...] = ()

    def check(self) -> None:
        """Refuse two people who are the same one on a platform."""
        seen = dict[tuple[str, str], str]()
        for person, line in self.people.items():
            for platform, names in line.items():
                for name in (
                    [] if platform == "may" else [names] if isinstance(names, str) else names
                ):
                    other = seen.setdefault((platform, name), person)
                    if other != person:
                        raise ValueError(
                            f"`{other}` and `{person}` are both `{name}` of {platform}"
                        )
