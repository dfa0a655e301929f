"""Definitions of external agents: one TOML file per agent, in a folder.

The built-in ones are in `agents/` beside this module, a person's own in `agents/` of the config folder;
one of the same name replaces a built-in one. No code knows any agent by its name.

To add an agent, say `acme`, add `workflows/agents/acme.toml`: how it is started and resumed, where its
hooks are configured and in which format (`HOOK_FORMATS`), and what its events are called. The tests of
agents run over every file; nothing else is needed. An agent whose configuration has a new format also
needs a row in `HOOK_FORMATS` and a module in `extensions/agent_hooks/` with a `HookSyntax`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from ..machines.errors import UsageError
from ..machines.pattern import lazy_pattern
from .document import Diagnostic, Document, config_error, diagnose, read_document
from .home_folder import home_folder
from .paths import Paths
from .problem import Problem, did_you_mean
from .registry import Part, Registry
from .settings import check_command
from .suggestions import OneOf, suggested
from .typed_table import Check, TypedTable, must, read_table

BUILT_IN = Path(__file__).parent / "agents"
_NAME = lazy_pattern(r"[a-z0-9][a-z0-9_-]{0,63}")
_VARIABLE = lazy_pattern(r"[A-Z][A-Z0-9_]*_(SESSION|THREAD)_ID")

EventName = Literal[
    "session-start",
    "prompt-submit",
    "agent-response",
    "session-end",
    "session-finalize",
    "notification",
]


class FormatPart(Part):
    """A format of hooks; the object is a `HookSyntax` (`extensions/agent_hooks/syntax.py`).

    `is_own_file`: we write the whole file. `is_folder`: it is a folder with a file for each event.
    """

    is_own_file: bool = False
    is_folder: bool = False


_HOOKS = "steersman.extensions.agent_hooks"

HOOK_FORMATS = Registry(
    "format of hooks",
    {
        "antigravity-json": FormatPart(place=f"{_HOOKS}.json_file:ANTIGRAVITY"),
        "claude-json": FormatPart(place=f"{_HOOKS}.json_file:CLAUDE"),
        "copilot-json": FormatPart(place=f"{_HOOKS}.json_file:COPILOT"),
        "hermes-yaml": FormatPart(place=f"{_HOOKS}.yaml_file:YAML"),
        "opencode-plugin": FormatPart(place=f"{_HOOKS}.own_file:PLUGIN", is_own_file=True),
        "scripts": FormatPart(place=f"{_HOOKS}.own_file:SCRIPT", is_own_file=True, is_folder=True),
        "toml-tables": FormatPart(place=f"{_HOOKS}.toml_file:TOML"),
    },
)


def _check_resume(words: tuple[str, ...]) -> tuple[str, ...]:
    check_command(words)
    if not any("{session_id}" in word for word in words):
        raise ValueError("must say where the session's id goes: `{session_id}`")
    return words


_NO_NAME = "is not a name: use a-z, 0-9, `_` and `-`, at most 64 characters"
_NO_VARIABLE = "must be a variable whose name ends in `_SESSION_ID` or `_THREAD_ID`"
_AgentName = Annotated[str, must(lambda name: _NAME.fullmatch(name), _NO_NAME)]
_Variable = Annotated[str, must(lambda name: _VARIABLE.fullmatch(name), _NO_VARIABLE)]


class AgentHooks(TypedTable):
    """Where an agent's hooks are configured: a file, or for `scripts` a folder with a file each.

    `home_env` names the variable that replaces `home` at the start of `config`. `timeout` is the time
    limit of a hook, in the agent's own unit. `note` is shown to the person after an installation.
    `json_dialect` is what the agent's own parser takes in a JSON file: `strict` nothing but JSON,
    `comments` those, too, `jsonc` comments and trailing commas.
    """

    config: Annotated[str, Meta(min_length=1)]
    format: Annotated[str, OneOf(HOOK_FORMATS)]
    home: str = ""
    home_env: str = ""
    timeout: Annotated[int, Meta(ge=1)] = 10
    note: str = ""
    json_dialect: Literal["strict", "comments", "jsonc"] = "strict"

    def path(self, environ: Mapping[str, str]) -> Path:
        """Return the file's path under an environment."""
        written = self.config
        inside = self.home and written.startswith(f"{self.home}/")
        if inside and (moved := environ.get(self.home_env, "").strip()):
            written = moved.rstrip("/") + written[len(self.home) :]
        home = environ.get("HOME") or str(home_folder())
        return Path(home + written[1:] if written.startswith("~/") else written)


class AgentPayload(TypedTable):
    """Names of fields in this agent's hooks, besides the usual ones."""

    session_id: tuple[str, ...] = ()


class AgentDefinition(TypedTable):
    """One external agent; `events` maps its names of hooks to ours.

    `session_end_is_turn_boundary`: its session-end comes after turns, and tears nothing down.
    `prompt_reopens`: a resumed session's first word is a prompt. `publishes_stop_notification`: it
    tells the person itself when a turn is over. `acp` starts it as an agent of the Agent Client
    Protocol, where it is one. `session_env` is the variable in which whatever it starts finds the id
    of its session.
    """

    name: _AgentName
    aliases: tuple[_AgentName, ...] = ()
    start: Annotated[tuple[str, ...], Check(check_command)]
    resume: Annotated[tuple[str, ...], Check(_check_resume)]
    acp: tuple[str, ...] = ()
    publishes_stop_notification: bool = True
    create_config_dir_if_missing: bool = False
    session_end_is_turn_boundary: bool = False
    prompt_reopens: bool = False
    session_env: _Variable | None = None
    hooks: AgentHooks
    payload: AgentPayload = AgentPayload()
    events: Annotated[dict[str, EventName], Meta(min_length=1)]

    @property
    def programs(self) -> frozenset[str]:
        """Names that its process may have."""
        return frozenset({Path(self.start[0]).name, Path(self.resume[0]).name})

    def resume_command(self, session: str) -> tuple[str, ...]:
        """Put a session's id into the command that resumes it."""
        return tuple(word.replace("{session_id}", session) for word in self.resume)


class _File(TypedTable):
    """A definition file."""

    agent: AgentDefinition


def load_agents(paths: Paths) -> dict[str, AgentDefinition]:
    """Read all definitions, by name. Raises one `ConfigError` with every problem of every file."""
    found: dict[str, AgentDefinition] = {}
    diagnostics: list[Diagnostic] = []
    for folder in (BUILT_IN, paths.config / "agents"):
        for path in sorted(folder.glob("*.toml")):
            agent, document, wrong = read_agent(path)
            diagnostics += wrong
            if agent is not None:
                diagnostics += _check_aliases(agent, document, found)
                found[agent.name] = agent
    if diagnostics:
        raise config_error(diagnostics)
    return dict(sorted(found.items()))


def read_agent(path: Path) -> tuple[AgentDefinition | None, Document, list[Diagnostic]]:
    """Read one definition file; `None`, with diagnostics, if it is invalid."""
    document, diagnostics = read_document(path)
    if diagnostics:
        return None, document, diagnostics
    file, problems = read_table(_File, document.data)
    if file is None:
        return None, document, diagnose(document, suggested(problems, _File))
    agent = file.agent
    if agent.name != path.stem:
        message = f"`agent.name` must be that of the file, `{path.stem}`, not `{agent.name}`"
        problem = Problem(("agent", "name"), message, f"rename the file to {agent.name}.toml")
        return None, document, diagnose(document, [problem])
    return agent, document, []


def _check_aliases(
    agent: AgentDefinition, document: Document, found: Mapping[str, AgentDefinition]
) -> list[Diagnostic]:
    """Find names that two agents would share; of two equal names the later file counts."""
    for other in found.values():
        if other.name == agent.name:
            continue
        shared = {agent.name, *agent.aliases} & {other.name, *other.aliases}
        if shared:
            name = min(shared)
            where = ("agent", "name") if name == agent.name else ("agent", "aliases")
            message = f"`{name}` is a name of `{other.name}` already"
            return diagnose(document, [Problem(where, message, "choose another one")])
    return []


def find_agent(agents: Mapping[str, AgentDefinition], name: str) -> AgentDefinition:
    """Find a definition by name or alias, case aside. Raises `UsageError` with the nearest one."""
    wanted = name.strip().lower()
    for agent in agents.values():
        if wanted in (agent.name, *agent.aliases):
            return agent
    names = [known for agent in agents.values() for known in (agent.name, *agent.aliases)]
    hint = did_you_mean(wanted, names, f"known: {', '.join(agents)}")
    raise UsageError(f"there is no agent `{name}`", hint)
