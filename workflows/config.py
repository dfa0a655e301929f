"""The configuration in force, made of layers; later wins.

shipped `config.toml` < the user's `config.toml` < `.mcp.json`, `steersman.toml` in the project folder <
the choices for that folder (`positions.folder_file`) < the file that `STEERSMAN_CONFIG` names < the
workflow that runs < flags of the command line.

Tables are merged key by key, everything else is replaced, with three exceptions: permission rules and
routes of a later layer are put before the earlier ones, since the first match wins; hooks are added;
and so are tools, where one of a later layer replaces that of the same name. Each layer is checked
separately on top of the shipped one, so that a problem is found even where a later layer hides it, and
one error reports all problems of all files.
"""

import os
import re
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

from msgspec.structs import asdict, replace

from ..machines.json_shape import schema_mismatch
from .document import (
    Diagnostic,
    Document,
    config_error,
    diagnose,
    is_list,
    is_table,
    parse_document,
    read_document,
)
from .home_folder import expanded
from .json_schema import schema_problems
from .paths import Paths
from .plugins import AGENTS
from .positions import folder_file
from .problem import SECRET, Problem, Where, dotted, must_be_one_of
from .settings import AgentSettings, Settings
from .suggestions import DEFAULT_TABLE, suggested
from .tools import AGENT_CALLS, REMOTE, TOOLS, is_of_server, is_rule_tool
from .trust import MCP_FILE, PROJECT_FILE, is_trusted, state_of, unused_beside
from .typed_table import Setter, read_table

SHIPPED = "shipped config.toml"
COMMAND_LINE = "command line"
IN_FRONT: tuple[Where, ...] = (("permissions", "rules"), ("route",), ("hold",))
"""Lists of which a later layer's items are put before an earlier one's: the first match wins."""
ROUTING: tuple[tuple[str], ...] = (("routing",), ("route",))
"""The tables of which the routes in force are made."""
_NAMED = 8  # keys in one notice
_SHIPPED_FILE = Path(__file__).parents[1] / "config.toml"


class Config(Settings, set_by=Setter.TRUSTED_PROJECT):
    """All settings, and where they come from.

    `data` is the merged document as people write it, `sources` names the layer that set each dotted
    key, `rule_sources` the one of each permission rule, `notices` are sentences for the user, such as
    what an untrusted folder could not set.
    """

    data: dict[str, Any]
    sources: dict[str, str]
    notices: tuple[str, ...]
    rule_sources: tuple[str, ...] = ()

    @property
    def tool_names(self) -> tuple[str, ...]:
        """The names of all tools that an agent may have."""
        return tuple(dict.fromkeys((*TOOLS, *(tool.name for tool in self.tool))))

    @property
    def key_variables(self) -> tuple[str, ...]:
        """The names of the environment variables with keys: of models, and in headers."""
        keys = [model.api_key_env for model in self.models.values() if model.api_key_env]
        tables = [self.telemetry.headers, *(server.headers for server in self.mcp.values())]
        headers = [value for table in tables for value in table.values()]
        variables = [pair for server in self.mcp.values() for pair in server.env.items()]
        headers += [value for pair in variables for value in pair[1:] if SECRET.search(str(pair))]
        return (*keys, *(name for value in headers for name in Template(value).get_identifiers()))

    @property
    def detached(self) -> tuple[str, ...]:
        """The agents that go on, as children, without the turn that waits for them."""
        agents = self.agents.items()
        return tuple(sorted(one for one, agent in agents if agent.on_parent_interrupt == "detach"))

    def agent(self, name: str) -> AgentSettings:
        """Settings of an agent, the general ones where it has none of its own.

        An agent that is a plug-in has the general ones. Raises `KeyError` for an unknown name.
        """
        agent = self.agents.get(name)
        if agent is None:
            AGENTS.by_name[name]
            agent = AgentSettings()
        modes = {
            "busy_input_mode": agent.busy_input_mode or self.busy_input_mode,
            "interrupt_strategy": agent.interrupt_strategy or self.interrupt_strategy,
            "interrupt_at": agent.interrupt_at or self.interrupt_at,
            "steer_while_streaming": agent.steer_while_streaming or self.steer_while_streaming,
        }
        return replace(agent, **modes)


def load(
    paths: Paths,
    folder: Path,
    environ: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
    workflow: Document | None = None,
) -> Config:
    """Read all layers for a session in `folder`; `overrides` are flags, by dotted key.

    `workflow` is what a workflow's file says for the configuration while it runs. Raises one
    `ConfigError` that reports every problem of every file.
    """
    config, diagnostics = try_load(paths, folder, environ, overrides, workflow)
    if config is None or diagnostics:
        raise config_error(diagnostics)
    return config


def try_load(
    paths: Paths,
    folder: Path,
    environ: Mapping[str, str],
    overrides: Mapping[str, Any] | None = None,
    workflow: Document | None = None,
) -> tuple[Config | None, list[Diagnostic]]:
    """Read all layers as `load` does, and return them as far as possible, with every problem."""
    project = folder / PROJECT_FILE
    chosen = folder_file(paths, folder)
    files = [path for path in (paths.config_file, project, chosen) if path.exists()]
    if named := environ.get("STEERSMAN_CONFIG"):
        files.append(expanded(named))
    layers, unreadable = _read_layers(files, workflow, overrides or {})
    if (servers := folder / MCP_FILE).exists():
        from .foreign_servers import project_servers

        found = project_servers(servers, environ)
        is_used = not found.content or is_trusted(paths, folder, {MCP_FILE: found.content})
        found = found if is_used else replace(found, warnings=())
        layers.insert(int(paths.config_file in files), found)
    invalid = [diagnostic for layer in layers for diagnostic in check_layer(layer)]
    if unreadable:  # what they define is not known
        return None, [*unreadable, *invalid]
    unknown_tools = _check_tool_names(layers)
    notices = [f"{layer.file}: {said}" for layer in layers for said in layer.warnings]
    layers = [_allowed(layer, paths, project, workflow, notices) for layer in layers]
    notices += filter(None, (unused_beside(paths, folder),))
    merged, setters = _merge_layers([_shipped_document(), *layers])
    unsound = {diagnostic.problem.where for diagnostic in invalid}
    if workflow and not invalid:  # its agents have the default agent's model where they name none
        usual = merged["agents"].get(merged["default_agent"], {}).get("model", "")
        for name in workflow.data.get("agents", ()):
            merged["agents"][name].setdefault("model", usual)
    diagnostics = [*invalid, *_check_names(merged, setters, unsound), *unknown_tools]
    if not invalid:
        settings = _settings(merged)
    elif any(where[:1] in ROUTING for where in unsound):
        return None, _in_order(layers, diagnostics)
    else:
        routing = {key: merged[key] for (key,) in ROUTING if key in merged}
        settings = _settings(_shipped_document().data | routing)
    diagnostics = _in_order(layers, [*diagnostics, *_check_routes(settings, layers, setters)])
    if invalid:
        return None, diagnostics
    return _config(settings, merged, setters, layers, notices), diagnostics


def check_project(file: Path) -> Document:
    """Read a project's file alone and check it. Raises one `ConfigError` for all its problems."""
    (document,), diagnostics = _read_layers([file], None, {})
    if diagnostics := [*diagnostics, *check_layer(document)]:
        raise config_error(diagnostics)
    return document


@cache
def shipped() -> Config:
    """The configuration without any settings of the user."""
    merged, setters = _merge_layers([_shipped_document()])
    return _config(_settings(merged), merged, setters, [], [])


def shipped_text() -> str:
    """The text of the shipped `config.toml`."""
    return _SHIPPED_FILE.read_text(encoding="utf-8")


@cache
def _shipped_document() -> Document:
    document, diagnostics = parse_document(SHIPPED, shipped_text().encode())
    if diagnostics:
        raise config_error(diagnostics)
    return document


def _read_layers(
    files: list[Path], workflow: Document | None, overrides: Mapping[str, Any]
) -> tuple[list[Document], list[Diagnostic]]:
    layers: list[Document] = []
    diagnostics: list[Diagnostic] = []
    for path in files:
        document, unreadable = read_document(path)
        layers.append(document)
        diagnostics += unreadable
    if workflow:
        layers.append(workflow)
    if overrides:
        layers.append(Document(file=COMMAND_LINE, data=_nest(overrides)))
    return layers, diagnostics


def _in_order(layers: list[Document], diagnostics: list[Diagnostic]) -> list[Diagnostic]:
    """Sort by file, then by position."""
    rank = {layer.file: number for number, layer in enumerate(layers)}
    return sorted(
        diagnostics,
        key=lambda found: (rank.get(found.document.file, len(rank)), found.line, found.column),
    )


def _allowed(
    layer: Document, paths: Paths, project: Path, workflow: Document | None, notices: list[str]
) -> Document:
    """Take out of a layer what it may not set; add a notice about it, and about a project's settings."""
    is_project = layer.file in (str(project), str(project.with_name(MCP_FILE)))
    if not is_project and layer is not workflow:
        return layer
    from .authority import keys_of, split

    left, personal = split(layer.data, Setter.TRUSTED_PROJECT)
    told: list[str] = []
    if is_project:
        harmless, withheld = split(left, Setter.ANY_PROJECT)
        read = {Path(layer.file).name: layer.content}
        if withheld and not is_trusted(paths, project.parent, read):
            state = state_of(paths, project.parent, Path(layer.file).name)
            told.append(f"{state}: {_named(withheld)} not applied, `steersman trust` applies it")
            left = harmless
        if names := keys_of(left):
            told.append(f"sets {_named(names)}")
    if personal:
        told.append(f"cannot set {_named(personal)}: only your own files do")
    if told:
        notices.append(f"{layer.file} {'; '.join(told)}")
    return replace(layer, data=left)


def _named(keys: Iterable[str]) -> str:
    """Name keys for a notice of one line."""
    names = [f"`{key}`" for key in keys]
    return ", ".join(names[:_NAMED]) + (
        f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    )


def _nest(overrides: Mapping[str, Any]) -> dict[str, Any]:
    data: dict[str, Any] = {}
    for key, value in overrides.items():
        *parents, name = key.split(".")
        table = data
        for parent in parents:
            table = table.setdefault(parent, {})
        table[name] = value
    return data


def check_layer(layer: Document, known: Sequence[Where] = ()) -> list[Diagnostic]:
    """Check one layer on top of the shipped one; `known` are keys that others check."""
    merged, _ = _merge_layers([_shipped_document(), layer])
    problems = suggested(read_table(Settings, merged)[1], Settings, known)
    if "schedule" in layer.data:
        from .schedules import schedule_problems

        problems += schedule_problems(layer.data)
    diagnostics = diagnose(layer, [*problems, *_tool_problems(layer)])
    if "route" in layer.data and not any(problem.where[:1] == ("route",) for problem in problems):
        from .routing import check_words

        diagnostics += check_words(layer)
    return diagnostics


def _settings(merged: dict[str, Any]) -> Settings:
    settings, problems = read_table(Settings, merged)
    if settings is None:
        raise config_error(diagnose(Document(file=SHIPPED), suggested(problems, Settings)))
    return settings


def _merge_layers(layers: list[Document]) -> tuple[dict[str, Any], dict[Where, Document]]:
    merged: dict[str, Any] = {}
    setters: dict[Where, Document] = {}
    for layer in layers:
        _merge(merged, layer.data, (), layer, setters)
    return merged, setters


def _merge(
    into: dict[str, Any],
    data: dict[str, Any],
    where: Where,
    layer: Document,
    setters: dict[Where, Document],
) -> None:
    for name, value in data.items():
        place = (*where, name)
        if place[:1] == ("mcp",) and is_table(value) and len(place) == 2:
            into[name] = _at_its_file(value, "command", layer)
        elif is_table(value):
            below = into.get(name)
            into[name] = dict(below) if is_table(below) else {}
            _merge(into[name], value, place, layer, setters)
        elif place in IN_FRONT and is_list(value):
            into[name] = [*value, *_items(into.get(name))]
        elif place == ("hooks",) and is_list(value):
            into[name] = [*_items(into.get(name)), *value]
        elif place == ("tool",) and is_list(value):
            own = [_tool_at_its_file(tool, layer) for tool in value]
            into[name] = [*_unlike(into.get(name), own), *own]
        else:
            into[name] = value
        setters[place] = layer


def _items(value: object) -> list[Any]:
    return value if is_list(value) else []


def _check_names(
    merged: dict[str, Any], setters: dict[Where, Document], unsound: Container[Where]
) -> list[Diagnostic]:
    """Find unknown names of agents and models in the merged layers, also where other keys are wrong.

    `unsound` are the places of other faults: in place of a table, they hide what it defined.
    """
    agents, models = _table(merged.get("agents")), _table(merged.get("models"))
    uses: list[tuple[Where, str]] = [(("default_agent",), "agent"), (("goals", "judge"), "agent")]
    uses += [(("agents", name, "model"), "model") for name in agents]
    diagnostics: list[Diagnostic] = []
    for where, noun in uses:
        known = tuple(agents if noun == "agent" else models)
        used: Any = merged
        for name in where:
            used = _table(used).get(str(name))
        if not used or not isinstance(used, str) or where in unsound or (f"{noun}s",) in unsound:
            continue
        if where == ("default_agent",):
            known = (*known, *AGENTS.by_name)
        if used in known:
            continue
        hint = f"known: {', '.join(known)}" if known else f"add a table `[{noun}s.{used}]`"
        message = f"`{dotted(where)}` names the {noun} `{used}`, which is not there"
        diagnostics += diagnose(setters[where], [Problem(where, message, hint)])
    return diagnostics


# Tools: those that a file declares, and the names of tools in all of them --------------------------


def with_tools_of(document: Document, nearer: object) -> list[Any]:
    """Add a document's tools to those that are nearer, which win."""
    own = [_tool_at_its_file(tool, document) for tool in _items(document.data.get("tool"))]
    return [*_items(nearer), *_unlike(own, nearer)]


def _unlike(tools: object, others: object) -> list[Any]:
    """Return the tools whose name none of the others has."""
    names = [_table(other).get("name") for other in _items(others)]
    return [tool for tool in _items(tools) if _table(tool).get("name") not in names]


def _at_its_file(table: Any, key: str, layer: Document) -> Any:
    """Write the program of a command as a path from the root, if it is one from a layer's file.

    Relative to the folder of a session it could be a program that another user put there.
    """
    words = _items(_table(table).get(key))
    if not words or not isinstance(words[0], str) or "/" not in words[0]:
        return table
    program = Path(layer.file).absolute().parent / expanded(words[0])
    return {**table, key: [os.path.normpath(program), *words[1:]]}


def _tool_at_its_file(tool: Any, layer: Document) -> Any:
    return _at_its_file(_at_its_file(tool, "run", layer), "outcome", layer)


def _tool_problems(layer: Document) -> Iterator[Problem]:
    """Find names that a layer gives to two tools, and mistakes in the schemas of arguments."""
    seen: set[str] = set()
    for number, tool in enumerate(_items(layer.data.get("tool"))):
        where: Where = ("tool", number)
        name = _table(tool).get("name")
        if isinstance(name, str) and name in seen:
            message = f"`{dotted((*where, 'name'))}`: there are two tools `{name}` in this file"
            yield Problem((*where, "name"), message, "rename one of them")
        seen |= {name} if isinstance(name, str) else set()
        parameters = _table(_table(tool).get("parameters"))
        for argument, schema in parameters.items():
            inside = (*where, "parameters", argument)
            if not re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", argument):
                message = f"`{argument}` is no name of an argument"
                hint = "use 1 to 64 letters, digits, `_`, `-` and `.`"
                yield Problem(inside, message, hint, at_value=False)
            elif is_table(schema):
                faults = [*schema_problems(schema, inside, is_strict=False)]
                yield from faults
                default = (*inside, "default")
                fault = (
                    "default" in schema
                    and not faults
                    and schema_mismatch(schema["default"], schema, f"`{dotted(default)}`")
                )
                if fault:  # it would fail each call that relies on it
                    yield Problem(default, fault)
        for place, argument in enumerate(_items(_table(tool).get("required"))):
            if isinstance(argument, str) and argument not in parameters:
                yield must_be_one_of(tuple(parameters), argument, (*where, "required", place))


def _check_tool_names(layers: list[Document]) -> list[Diagnostic]:
    """Find unknown tools of agents and of permission rules.

    A tool of any layer is known, also if that layer is not trusted yet or is replaced by another.
    """
    declared = [
        str(_table(tool).get("name")) for layer in layers for tool in _items(layer.data.get("tool"))
    ]
    known = tuple(dict.fromkeys((*TOOLS.built_in, *declared)))
    servers = {name for layer in layers for name in _table(layer.data.get("mcp"))}
    return [
        diagnostic
        for layer in layers
        for diagnostic in diagnose(layer, _unknown_tools(layer.data, known, servers))
    ]


def _unknown_tools(
    data: dict[str, Any], known: tuple[str, ...], servers: Collection[str]
) -> Iterator[Problem]:
    for agent, settings in _table(data.get("agents")).items():
        for number, tool in enumerate(_items(_table(settings).get("tools"))):
            where: Where = ("agents", agent, "tools", number)
            if not isinstance(tool, str) or tool in known:
                continue
            if not tool.startswith(REMOTE):
                if tool not in TOOLS:
                    yield must_be_one_of(_all_tools(known), tool, where)
            elif not any(is_of_server(tool, server) for server in servers) and tool != f"{REMOTE}*":
                hint = f"there are: {', '.join(sorted(servers))}" if servers else "add `[mcp.NAME]`"
                message = f"`{dotted(where)}`: `{tool}` fits no MCP server that is configured"
                yield Problem(where, message, hint)
    listed: tuple[tuple[Where, object], ...] = (
        (("permissions", "rules"), _table(data.get("permissions")).get("rules")),
        (("hold",), data.get("hold")),
    )
    for where, rows in listed:
        for number, row in enumerate(_items(rows)):
            pattern = _table(row).get("tool")
            if isinstance(pattern, str) and not is_rule_tool(pattern, known):
                rules = (*_all_tools(known), *AGENT_CALLS)
                yield must_be_one_of(rules, pattern, (*where, number, "tool"))


def _all_tools(known: tuple[str, ...]) -> tuple[str, ...]:
    """Return the names of all tools, with those of plug-ins."""
    return tuple(dict.fromkeys((*known, *TOOLS)))


def _table(value: object) -> dict[str, Any]:
    return value if is_table(value) else {}


def _check_routes(
    settings: Settings, layers: list[Document], setters: dict[Where, Document]
) -> list[Diagnostic]:
    """Prove the routing tables in force, unless they are the shipped ones."""
    routing = settings.routing
    if routing.table == DEFAULT_TABLE and not settings.route:
        return []
    from .routing import compose, refusals

    if not routing.unsafe and (problems := refusals(routing.table)):
        return diagnose(setters["routing", "table"], problems)
    origins = [
        (layer, number)
        for layer in reversed(layers)
        for number in range(len(layer.data.get("route", ())))
    ]
    _, diagnostics = compose(routing.table, settings.route, origins, is_unsafe=routing.unsafe)
    return diagnostics


def _config(
    settings: Settings,
    merged: dict[str, Any],
    setters: dict[Where, Document],
    layers: list[Document],
    notices: list[str],
) -> Config:
    in_front = (*reversed(layers), _shipped_document())
    return Config(
        **asdict(settings),
        data=merged,
        sources={dotted(where): layer.file for where, layer in setters.items()},
        notices=tuple(notices),
        rule_sources=tuple(
            layer.file
            for layer in in_front
            for _ in layer.data.get("permissions", {}).get("rules", ())
        ),
    )
