"""`steersman config`, `permissions` and `trust`: settings, rules, and which files may set them."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Any

from ...gateway.commands import permissions as verbs
from ...gateway.views.permission import (
    draw_rules,
    explained,
    holds_of,
    permit_of,
    rules_of,
    rules_view,
)
from ...gateway.wording.redaction import redactor_of
from ...gateway.wording.terminal import exposed
from ...machines.errors import ConfigError, UsageError
from ...ports.tools.permission import Permissions
from ...workflows.authority import split
from ...workflows.config import Config, check_project, load
from ...workflows.document import Document, is_list, is_table
from ...workflows.home_folder import expanded
from ...workflows.paths import Paths
from ...workflows.positions import folder_file
from ...workflows.problem import Where, dotted
from ...workflows.trust import (
    MCP_FILE,
    PROJECT_FILE,
    Contents,
    TrustedFile,
    contents_of,
    forget,
    is_trusted,
    trust,
    trust_error,
    trusted,
    trusted_contents,
)
from ...workflows.typed_table import Setter
from ..options import Json, argument, flag, group, option
from ..output import show, show_document, show_either, warn, without_nulls
from .gateways import mistakes_of_gateways
from .session_command import twin

_WIDTH = 80  # columns of a list that stays on one line

config = group("config", "steersman config show")


@config.command("show")
def config_show(as_json: Json = False) -> None:
    """Print the configuration in force, with the source of each key.

    Example: steersman config show
    """
    config = load(Paths.of(os.environ), Path.cwd(), os.environ)
    redactor = redactor_of(os.environ)
    data = redactor.data(config.data)
    text = "\n".join(_table(without_nulls(data), (), config)).lstrip("\n")
    show_either({"config": data, "sources": redactor.data(config.sources)}, text, as_json)
    for notice in config.notices:
        warn(notice)


@config.command("path")
def config_path(
    what: Annotated[str, argument("[WHAT]", "Print only this path, such as `state`.")] = "",
    as_json: Json = False,
) -> None:
    """Print the folders and files in use.

    Example: steersman config path state
    """
    paths, project = Paths.of(os.environ), Path.cwd() / PROJECT_FILE
    named = os.environ.get("STEERSMAN_CONFIG", "")
    chosen = folder_file(paths, Path.cwd())
    servers, trust_note = project.with_name(MCP_FILE), ""
    if project.exists() or servers.exists():
        trust_note = "trusted" if is_trusted(paths, project.parent) else "not trusted"
    lines = [
        ("user", paths.config_file, ""),
        ("project", project, trust_note if project.exists() else ""),
        *([("project", servers, trust_note)] if servers.exists() else []),
        *([("chosen", chosen, "for this folder")] if chosen.exists() else []),
        *([("named", expanded(named), "STEERSMAN_CONFIG")] if named else []),
        ("state", paths.state, ""),
        ("cache", paths.cache, ""),
    ]
    if what:
        known = {name: path for name, path, _ in reversed(lines)}  # of two the first
        if what not in known:
            raise UsageError(f"there is no path `{what}`", f"there are {', '.join(known)}")
        show_either({"what": what, "path": str(known[what])}, str(known[what]), as_json)
        return
    found, shown = list[dict[str, Any]](), list[str]()
    for name, path, note in lines:
        exists = path.exists()
        found.append({"what": name, "path": str(path), "exists": exists, "note": note or None})
        notes = ", ".join(filter(None, (note, "" if exists else "not there")))
        shown.append(f"{name:<8} {path}" + (f"  ({notes})" if notes else ""))
    show_either({"paths": found}, "\n".join(shown), as_json)


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


permissions = group("permissions", 'steersman permissions explain "git status"')


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
    text: Annotated[str, argument("TEXT", "A command line; with --tool, its argument.")] = "",
    tool: Annotated[str, option("NAME", "The tool, if it is not `shell`.")] = "shell",
    as_json: Json = False,
) -> None:
    """Show what would happen to a tool call, and by which rule. Runs nothing.

    Example: steersman permissions explain --tool write src/main.py
    """
    config = load(Paths.of(os.environ), Path.cwd(), os.environ)
    if tool not in config.tool_names:
        known = ", ".join(config.tool_names)
        raise UsageError(f"there is no tool `{tool}`", f"there are {known}")
    permissions = Permissions(rules_of(config), holds=holds_of(config))
    permit = permit_of(config, Path.cwd())
    data, said = explained(permissions, (), tool, text, Path.cwd(), permit)
    redactor = redactor_of(os.environ)
    show_either(redactor.data(data), redactor.text(said), as_json)
    for notice in config.notices:
        warn(notice)


permissions.command("allow")(twin(verbs.allow))
permissions.command("forget")(twin(verbs.forget))


# Trust --------------------------------------------------------------------------------------------


def trust_files(
    folder: Annotated[
        Path | None, argument("DIR", "The folder; if left out, the current one.")
    ] = None,
    is_list: Annotated[bool, flag("--list", "List the trusted folders.")] = False,
    is_forget: Annotated[bool, flag("--forget", "No longer trust the folder.")] = False,
    yes: Annotated[bool, flag("--yes", "Don't ask: trust what is shown.")] = False,
    as_json: Json = False,
) -> int:
    """Show what a folder's steersman.toml would be allowed, and trust its present content.

    Example: steersman trust .
    """
    if is_list:
        return _list(as_json=as_json)
    folder = expanded(folder or Path.cwd()).resolve()
    if is_forget:
        if not forget(Paths.of(os.environ), folder):
            hint = "`steersman trust --list` shows the trusted folders"
            raise UsageError(f"`{folder}` was not trusted", hint)
        show(f"{folder} is no longer trusted; running sessions keep their settings.")
        return 0
    # Every character is shown, and only the contents that were shown are trusted, even if a file
    # changes meanwhile.
    paths, file = Paths.of(os.environ), folder / PROJECT_FILE
    document = check_project(file) if file.exists() else Document(file=str(file))
    try:
        read = {PROJECT_FILE: document.content} if document.text else {}
        contents = contents_of(file.parent, read)
    except OSError as error:
        raise trust_error(file, error) from error
    what = file if PROJECT_FILE in contents else folder
    before = trusted_contents(paths, file.parent)
    if contents == before:
        show(f"{what} is trusted already, as it is now.")
        return 0
    lines = _differences(before, contents) if before else _wants(what, document, contents)
    for line in lines:
        show(exposed(line))
    if not yes:
        if not sys.stdin.isatty():
            hint = "`steersman trust --yes` trusts what is shown here"
            raise UsageError("there is no terminal, so nobody can be asked", hint)
        print("Trust it? [y/N] ", end="", flush=True)
        if sys.stdin.readline().strip().lower() not in ("y", "yes"):
            show("Not trusted.")
            return 1
    trust(paths, file.parent, contents)
    try:
        load(paths, folder, os.environ)
    except ConfigError as error:  # what it says contradicts other files: no chat would begin here
        if before:
            trust(paths, file.parent, before)
        else:
            forget(paths, folder)
        error.hint = "\n".join(
            filter(None, (error.hint, "nothing more was trusted: correct it first"))
        )
        raise
    show(f"{what} is trusted as it is now; after a change it has to be trusted again.")
    return 0


def _wants(what: Path, document: Document, contents: Contents) -> Iterator[str]:
    """Say what the files would be allowed: settings by name, everything else as it stands."""
    applied, personal = split(document.data, Setter.TRUSTED_PROJECT)
    _, wants = split(applied, Setter.ANY_PROJECT)
    others = {path: file for path, file in contents.items() if path != PROJECT_FILE}
    if not wants and not others:
        yield f"{what} sets nothing that needs trust."
    else:
        yield f"{what} would be allowed:"
    wanted = set(wants)
    for where, value in _leaves(applied, ()):
        if any(dotted(where[:depth]) in wanted for depth in range(1, len(where) + 1)):
            yield f"  {dotted(where)} = {value_text(value)}"
    for path, file in others.items():
        yield f"{path}:"
        yield from (f"  {line}" for line in _lines(file))
    if personal:
        yield f"Not even then: {', '.join(personal)}, which only your own files set."


def _differences(before: Contents, now: Contents) -> Iterator[str]:
    """Say what has changed since the folder was trusted."""
    yield "Since this folder was trusted:"
    nothing = TrustedFile(sha256="")
    for path in sorted(before.keys() | now.keys()):
        old, new = before.get(path, nothing), now.get(path, nothing)
        if old != new:
            yield from unified_diff(_lines(old), _lines(new), path, path, lineterm="")


def _lines(file: TrustedFile) -> list[str]:
    if not file.text and file.sha256:
        return [f"(empty, no text, or a large one; SHA-256 {file.sha256})"]
    return file.text.split("\n") if file.text else []


def _leaves(table: dict[str, Any], where: Where) -> Iterator[tuple[Where, Any]]:
    for name, value in table.items():
        if is_table(value) and value:
            yield from _leaves(value, (*where, name))
        else:
            yield (*where, name), value


def _list(*, as_json: bool) -> int:
    """Print the trusted folders, and whether their file has changed."""
    found = trusted(Paths.of(os.environ))
    notes = {"changed": "  (changed since: not in force)", "gone": "  (no file there any more)"}
    lines = [f"{entry.folder}{notes.get(entry.state, '')}" for entry in found]
    data = {"trusted": [{"folder": entry.folder, "state": entry.state} for entry in found]}
    show_either(data, "\n".join(lines) or "No folder is trusted.", as_json)
    return 0
