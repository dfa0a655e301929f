"""`steersman config` and `permissions`: the settings, with the file that set each, and the rules."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Any

import typer

from ...gateway.commands import permissions as verbs
from ...gateway.views.permission import draw_rules, explained, rules_of, rules_view
from ...gateway.wording.redaction import redactor_of
from ...machines.errors import ConfigError, UsageError
from ...ports.tools.permission import Permissions
from ...workflows.config import Config, load
from ...workflows.document import is_list, is_table
from ...workflows.home_folder import expanded
from ...workflows.paths import Paths
from ...workflows.positions import folder_file
from ...workflows.problem import dotted
from ...workflows.trust import PROJECT_FILE, is_trusted
from ..options import Json, group
from ..output import show, show_document, show_either, warn, without_nulls
from .gateways import mistakes_of_gateways
from .session_command import twin

_WIDTH = 80  # columns of a list that stays on one line

config = group("Show and check the configuration.", "steersman config show")


@config.command("show")
def config_show(as_json: Json = False) -> None:
    """Print the configuration in force, with the source of each key.

    Example: steersman config show
    """
    config = load(Paths.of(os.environ), Path.cwd(), os.environ)
    redactor = redactor_of(os.environ)
    data = redactor.data(config.data)
    if as_json:
        show_document({"config": data, "sources": redactor.data(config.sources)})
    else:
        show("\n".join(_table(without_nulls(data), (), config)).lstrip("\n"))
    for notice in config.notices:
        warn(notice)


@config.command("path")
def config_path(as_json: Json = False) -> None:
    """Print the folders and files in use.

    Example: steersman config path
    """
    paths, project = Paths.of(os.environ), Path.cwd() / PROJECT_FILE
    named = os.environ.get("STEERSMAN_CONFIG", "")
    chosen = folder_file(paths, Path.cwd())
    trust = ""
    if project.exists():
        trust = "trusted" if is_trusted(paths, project.parent) else "not trusted"
    lines = [
        ("user", paths.config_file, ""),
        ("project", project, trust),
        *([("chosen", chosen, "for this folder")] if chosen.exists() else []),
        *([("named", expanded(named), "STEERSMAN_CONFIG")] if named else []),
        ("state", paths.state, ""),
        ("cache", paths.cache, ""),
    ]
    if as_json:
        found = [
            {"what": what, "path": str(path), "exists": path.exists(), "note": note or None}
            for what, path, note in lines
        ]
        show_document({"paths": found})
        return
    for what, path, note in lines:
        notes = ", ".join(filter(None, (note, "" if path.exists() else "not there")))
        show(f"{what:<8} {path}" + (f"  ({notes})" if notes else ""))


@config.command("check")
def config_check(as_json: Json = False) -> int:
    """Check every configuration file that applies here.

    Example: steersman config check
    """
    notices: tuple[str, ...] = ()
    try:
        config = load(Paths.of(os.environ), Path.cwd(), os.environ)
    except ConfigError as error:
        wrong = [*str(error).splitlines(), *([f"  {error.hint}"] if error.hint else [])]
    else:
        notices, wrong = tuple(config.notices), mistakes_of_gateways(config)
    if as_json:
        problems = [line.strip() for line in wrong]
        show_document({"ok": not wrong, "problems": problems, "notices": list(notices)})
    else:
        for line in (*notices, *wrong):
            warn(line)
        if not wrong:
            show("ok")
    return ConfigError.exit_code if wrong else 0


@config.command("schema")
def config_schema() -> None:
    """Print the JSON Schema of the configuration, for editors.

    Example: steersman config schema > steersman.schema.json
    """
    from ...workflows.schema import schema

    show_document(schema())


def _table(data: dict[str, Any], where: tuple[str, ...], config: Config) -> list[str]:
    """Write a table's own keys, then the tables in it, as TOML requires."""
    lines: list[str] = []
    tables: list[str] = []
    for name, value in data.items():
        key = (*where, name)
        if is_table(value):
            tables += _table(value, key, config)
        else:
            source = config.sources.get(dotted(key), "")
            lines.append(f"{dotted((name,))} = {value_text(value)}  # {source}".rstrip(" #"))
    head = ["", f"[{dotted(where)}]"] if where and (lines or not tables) else []
    return head + lines + tables


def value_text(value: Any) -> str:
    """Write a value; a list that holds tables gets one line for each."""
    import tomli_w

    if is_list(value) and any(is_table(item) for item in value):
        return "\n".join(["[", *(f"    {value_text(item)}," for item in value), "]"])
    if is_table(value):
        inner = ", ".join(f"{dotted((name,))} = {value_text(item)}" for name, item in value.items())
        return f"{{ {inner} }}"
    if is_list(value):
        line = f"[{', '.join(value_text(item) for item in value)}]"
        if len(line) <= _WIDTH:
            return line
    return tomli_w.dumps({"x": value}, multiline_strings=True).removeprefix("x = ").rstrip("\n")


# Permissions --------------------------------------------------------------------------------------


permissions = group(
    "Show what tools may do here without asking, and try a call.",
    'steersman permissions explain "git status"',
)


@permissions.command("list")
def permissions_list(as_json: Json = False) -> None:
    """List the rules in force in this folder, in order.

    Example: steersman permissions list
    """
    config = load(Paths.of(os.environ), Path.cwd(), os.environ)
    rules = rules_of(config)
    redactor, text = redactor_of(os.environ), draw_rules((), rules, config.permission_mode)
    show_either(redactor.data({"rules": rules_view(rules)}), redactor.text(text), as_json)
    for notice in config.notices:
        warn(notice)


@permissions.command("explain")
def permissions_explain(
    text: Annotated[
        str, typer.Argument(metavar="TEXT", help="A command line; with --tool, its argument.")
    ] = "",
    tool: Annotated[
        str, typer.Option("--tool", metavar="NAME", help="The tool, if it is not `shell`.")
    ] = "shell",
    as_json: Json = False,
) -> None:
    """Show what would happen to a tool call, and by which rule. Runs nothing.

    Example: steersman permissions explain --tool write src/main.py
    """
    config = load(Paths.of(os.environ), Path.cwd(), os.environ)
    if tool not in config.tool_names:
        known = ", ".join(config.tool_names)
        raise UsageError(f"there is no tool `{tool}`", f"there are {known}")
    data, said = explained(Permissions(rules_of(config)), (), tool, text, Path.cwd())
    redactor = redactor_of(os.environ)
    show_either(redactor.data(data), redactor.text(said), as_json)
    for notice in config.notices:
        warn(notice)


permissions.command("allow")(twin(verbs.allow))
permissions.command("forget")(twin(verbs.forget))
