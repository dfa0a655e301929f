"""The configuration in force, made of layers; later wins.

shipped `config.toml` < the user's `config.toml` < `steersman.toml` in the project folder < the choices
for that folder (`positions.folder_file`) < the file that `STEERSMAN_CONFIG` names < the workflow that
runs < flags of the command line.

Tables are merged key by key, everything else is replaced, with two exceptions: permission rules and
routes of a later layer are put before the earlier ones, since the first match wins; and hooks are
added. Each layer is checked separately on top of the shipped one, so that a problem is found even where
a later layer hides it, and one error reports all problems of all files.
"""

from collections.abc import Container, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from msgspec.structs import replace
from pydantic import Field, ValidationError

from .document import (
    Diagnostic,
    Document,
    config_error,
    diagnose,
    is_list,
    is_table,
    known_keys,
    parse_document,
    read_document,
)
from .paths import Paths
from .positions import folder_file
from .problem import Problem, Where, dotted, problems_of
from .settings import AgentSettings, Settings
from .suggestions import DEFAULT_TABLE, suggest
from .trust import PROJECT_FILE, is_trusted, withhold

SHIPPED = "shipped config.toml"
COMMAND_LINE = "command line"
IN_FRONT: tuple[Where, ...] = (("permissions", "rules"), ("route",))
"""Lists of which a later layer's items are put before an earlier one's: the first match wins."""
ROUTING: tuple[tuple[str], ...] = (("routing",), ("route",))
"""The tables of which the routes in force are made."""
_SHIPPED_FILE = Path(__file__).parents[1] / "config.toml"


class Config(Settings, frozen=True):
    """All settings, and where they come from.

    `data` is the merged document as people write it, `sources` names the layer that set each dotted
    key, `rule_sources` the one of each permission rule, `notices` are sentences for the user, such as
    what an untrusted folder could not set.
    """

    data: dict[str, Any] = Field(repr=False)
    sources: dict[str, str] = Field(repr=False)
    notices: tuple[str, ...]
    rule_sources: tuple[str, ...] = ()

    def agent(self, name: str) -> AgentSettings:
        """Settings of an agent, the general ones where it has none of its own. Raises KeyError."""
        agent = self.agents[name]
        modes = {
            "busy_input_mode": agent.busy_input_mode or self.busy_input_mode,
            "interrupt_strategy": agent.interrupt_strategy or self.interrupt_strategy,
            "interrupt_at": agent.interrupt_at or self.interrupt_at,
            "steer_while_streaming": agent.steer_while_streaming or self.steer_while_streaming,
        }
        return agent.model_copy(update=modes)


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
        files.append(Path(named).expanduser())
    layers, unreadable = _read_layers(files, workflow, overrides or {})
    invalid = [diagnostic for layer in layers for diagnostic in check_layer(layer)]
    if unreadable:  # what they define is not known
        return None, [*unreadable, *invalid]
    layers, notices = _without_untrusted(layers, paths, project)
    merged, setters = _merge_layers([_shipped_document(), *layers])
    unsound = {diagnostic.problem.where for diagnostic in invalid}
    if workflow and not invalid:
        _share_model(merged, workflow)
    diagnostics = [*invalid, *_check_names(merged, setters, unsound)]
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
    sources = [layer for layer in (*reversed(layers), _shipped_document()) for _ in _rules(layer)]
    return _config(settings, merged, setters, notices, sources), diagnostics


def check_project(file: Path) -> Document:
    """Read a project's file alone and check it. Raises one `ConfigError` for all its problems."""
    (document,), diagnostics = _read_layers([file], None, {})
    if diagnostics := [*diagnostics, *check_layer(document)]:
        raise config_error(diagnostics)
    return document


def _share_model(merged: dict[str, Any], workflow: Document) -> None:
    """Give the agents of a workflow the model of the default agent where they name none."""
    usual = merged["agents"].get(merged["default_agent"], {}).get("model", "")
    for name in workflow.data.get("agents", ()):
        merged["agents"][name].setdefault("model", usual)


@cache
def shipped() -> Config:
    """The configuration without any settings of the user."""
    merged, setters = _merge_layers([_shipped_document()])
    sources = [_shipped_document() for _ in _rules(_shipped_document())]
    return _config(_settings(merged), merged, setters, (), sources)


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

    def place(diagnostic: Diagnostic) -> tuple[int, int, int]:
        number = rank.get(diagnostic.document.file, len(rank))
        return number, diagnostic.line, diagnostic.column

    return sorted(diagnostics, key=place)


def _without_untrusted(
    layers: list[Document], paths: Paths, project: Path
) -> tuple[list[Document], tuple[str, ...]]:
    """Take what the project file may not set out of its layer; say so in a notice."""
    for index, layer in enumerate(layers):
        left, taken = withhold(layer.data)
        is_project = layer.file == str(project)
        if is_project and taken and not is_trusted(paths, project.parent, layer.content):
            names = ", ".join(f"`{name}`" for name in taken)
            notice = f"{project} is not trusted: {names} not applied; `steersman trust` applies it"
            layers = [*layers[:index], replace(layer, data=left), *layers[index + 1 :]]
            return layers, (notice,)
    return layers, ()


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
    try:
        Settings.model_validate(merged)
    except ValidationError as error:
        known = (*known, *known_keys(Settings))
        problems = [meant for problem in problems_of(error) for meant in suggest(problem, known)]
    else:
        problems = []
    diagnostics = diagnose(layer, problems)
    if "route" in layer.data and not any(problem.where[:1] == ("route",) for problem in problems):
        from .routing import check_words

        diagnostics += check_words(layer)
    return diagnostics


def _settings(merged: dict[str, Any]) -> Settings:
    try:
        return Settings.model_validate(merged)
    except ValidationError as error:
        raise config_error(diagnose(Document(file=SHIPPED), problems_of(error))) from error


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
        if is_table(value):
            below = into.get(name)
            into[name] = dict(below) if is_table(below) else {}
            _merge(into[name], value, place, layer, setters)
        elif place in IN_FRONT and is_list(value):
            into[name] = [*value, *_items(into.get(name))]
        elif place == ("hooks",) and is_list(value):
            into[name] = [*_items(into.get(name)), *value]
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
        known = agents if noun == "agent" else models
        used = _at(merged, where)
        if not used or used in known or where in unsound or (f"{noun}s",) in unsound:
            continue
        hint = f"known: {', '.join(known)}" if known else f"add a table `[{noun}s.{used}]`"
        message = f"`{dotted(where)}` names the {noun} `{used}`, which is not there"
        diagnostics += diagnose(setters[where], [Problem(where=where, message=message, hint=hint)])
    return diagnostics


def _table(value: object) -> dict[str, Any]:
    return value if is_table(value) else {}


def _at(data: dict[str, Any], where: Where) -> str:
    """Return the text at a place; empty if there is none."""
    value: object = data
    for name in where:
        value = _table(value).get(str(name))
    return value if isinstance(value, str) else ""


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


def _rules(layer: Document) -> list[Any]:
    """List a layer's own permission rules."""
    rules: list[Any] = layer.data.get("permissions", {}).get("rules", [])
    return rules


def _config(
    settings: Settings,
    merged: dict[str, Any],
    setters: dict[Where, Document],
    notices: tuple[str, ...],
    rule_layers: list[Document],
) -> Config:
    return Config.model_construct(
        **dict(settings),
        data=merged,
        sources={dotted(where): layer.file for where, layer in setters.items()},
        notices=notices,
        rule_sources=tuple(layer.file for layer in rule_layers),
    )
