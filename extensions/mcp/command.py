"""`steersman mcp`, which serves a client, and its commands about the servers that are used.

`list` tries those of this folder, `import` takes over those of other programs; `login` and `logout` are
about servers on the web.
"""

import asyncio
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from string import Template
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import tomli_w
import typer

from ...cli.options import Json, argument, flag, group, option
from ...cli.output import show, show_document, show_either, show_table, warn
from ...gateway.host.host import sandbox_policy
from ...gateway.wording.secret_kind import covered, is_field
from ...gateway.wording.terminal import exposed
from ...machines.errors import ConfigError, ToolError, UsageError
from ...ports.tools.environment import clean_environment
from ...ports.tools.sandbox import Sandbox
from ...ports.tools.text import counted
from ...workflows import foreign_servers as foreign
from ...workflows.config import load
from ...workflows.extras import how_to_install
from ...workflows.foreign_file import decoded, parse_toml, read_foreign
from ...workflows.home_folder import expanded
from ...workflows.home_place import storage_of
from ...workflows.own_config import prepare_servers
from ...workflows.paths import Paths
from ...workflows.problem import SECRET

_LARGEST = 64 << 20  # bytes of a file: programs keep histories beside their servers
_SCHEME = re.compile(r"(?i:bearer|basic|digest|token|bot)\s+")
_HEADER = re.compile(r"auth|cookie|key|pass|secret|token", re.IGNORECASE)
_BESIDE = (".cursor", ".vscode")
"""Folders of a project that have such files."""

mcp = group("mcp", "steersman mcp --cwd ~/project", is_command=True)


@mcp.callback(invoke_without_command=True)
def serve(
    context: typer.Context,
    cwd: Annotated[Path | None, option("DIR", "The folder in which workflows run.")] = None,
    answer: Annotated[
        bool, flag("--answer", "Let the client answer questions about permissions, too.")
    ] = False,
) -> int:
    """Serve a client, unless there is a command."""
    if context.invoked_subcommand is not None:
        return 0
    from .server import serve_mcp

    return serve_mcp(cwd, may_answer=answer)


@mcp.command("list")
def list_servers(as_json: Json = False) -> int:
    """Start each MCP server that is configured here, as a chat would, and say what it offers.

    Example: steersman mcp list
    """
    paths, folder = Paths.of(os.environ), Path.cwd()
    config = load(paths, folder, os.environ)
    for notice in config.notices:
        warn(notice)
    if not config.mcp:
        hint = "`[mcp.NAME]` in config.toml adds one, `steersman mcp import FILE` those of others"
        show_either({"servers": []}, f"No MCP server is configured here: {hint}.", as_json)
        return 0
    from .client import statuses
    from .session_servers import mcp_server

    storage = storage_of(paths, os.environ)
    if not as_json:
        warn(f"Starting {', '.join(config.mcp)}.")
    with TemporaryDirectory(prefix="steersman-") as place:
        policy = sandbox_policy(config, paths, storage.folder)
        found = asyncio.run(
            statuses(
                [mcp_server(name, of, os.environ) for name, of in config.mcp.items()],
                folder,
                clean_environment(os.environ, config.tools.environment),
                grace=config.tools.grace,
                sandbox=Sandbox(policy, folder, Path(place), os.environ),
            )
        )
    names = {one.name: [tool.name for tool in one.offer.tools] for one in found}
    states = {one.name: "failed" if one.fault else one.state for one in found}
    if as_json:
        rows = [
            {"name": name, "state": states[name], "tools": names[name], "fault": one.fault or None}
            for name, one in zip(names, found, strict=True)
        ]
        show_document({"servers": rows})
    else:
        lines = [
            (name, states[name], one.fault or counted(len(names[name]), "tool"))
            for name, one in zip(names, found, strict=True)
        ]
        show_table(("NAME", "STATE", "WHAT"), lines)
    return 1 if any(one.fault for one in found) else 0


@mcp.command("import")
def take_over(
    file: Annotated[Path, argument("FILE", "As .mcp.json, ~/.claude.json, .vscode/mcp.json.")],
    name: Annotated[list[str] | None, option("NAME", "Only this one; repeatable.")] = None,
    yes: Annotated[bool, flag("--yes", "Don't ask, write what is shown.")] = False,
    is_dry: Annotated[bool, flag("--dry-run", "Show what would be written.")] = False,
    as_json: Json = False,
) -> int:
    """Take over MCP servers of another program: show exactly what would run, ask, and write it.

    Example: steersman mcp import .mcp.json --name github
    """
    paths, place = Paths.of(os.environ), expanded(file).resolve()
    load(paths, Path.cwd(), os.environ)  # reports mistakes in the configuration at once
    try:
        text = decoded(read_foreign(place, _LARGEST))
        folder = place.parent.parent if place.parent.name in _BESIDE else place.parent
        found = foreign.servers_of(text, folder, os.environ)
    except (OSError, ValueError) as error:
        hint = 'give one with `"mcpServers": {…}` or `"servers": {…}`'
        raise ConfigError(f"it cannot be read: {error}", hint, file=str(place)) from error
    if unknown := set(name or ()) - {each.name for each in found}:
        known = ", ".join(each.name for each in found) or "none"
        raise UsageError(f"{place} has no server `{min(unknown)}`", f"there are: {known}")
    own = parse_toml(decoded(read_foreign(paths.config_file))) if paths.config_file.exists() else {}
    choice, target = _Choice(own.get("mcp", {}), name or ()), paths.config_file.resolve()
    rows = [choice.row(each) for each in found]
    for line in () if as_json else _drawn(rows):
        show(exposed(line))
    written = [] if is_dry else [*choice.new]
    if written:
        if not yes and (as_json or not sys.stdin.isatty()):
            raise UsageError("nobody can be asked here", "`--yes` writes what `--dry-run` shows")
        if not yes:
            print(f"Write this into {target}? [y/N] ", end="", flush=True)
            if sys.stdin.readline().strip().lower() not in ("y", "yes"):
                show("Nothing was written.")
                return 1
        prepare_servers(paths, choice.new)()
    if as_json:
        show_document({"servers": rows, "written": written, "config": str(target)})
    elif written:
        show(f"{target} has {', '.join(written)} now; new sessions start them.")
    elif not choice.new:
        warn(f"No server of {place} is to be taken over.")
    return 0 if any(row["table"] for row in rows) else 1


@mcp.command("login")
def login(
    name: Annotated[str, argument("NAME", "A server with a `url`.")],
    timeout: Annotated[
        float, typer.Option(help="Seconds that the login may take.", min=1.0)
    ] = 300.0,
    as_json: Json = False,
) -> None:
    """Log in to a server on the web, with a browser on any machine; it prints the address to open.

    Example: steersman mcp login tickets
    """
    config = load(Paths.of(os.environ), Path.cwd(), os.environ)
    if (settings := config.mcp.get(name)) is None or not settings.url:
        known = ", ".join(each for each, of in config.mcp.items() if of.url) or "none"
        raise UsageError(f"there is no MCP server `{name}` with a `url`", f"there are: {known}")
    from .session_servers import mcp_server

    server = mcp_server(name, settings, os.environ)
    if any(header.lower() == "authorization" for header in server.headers):
        raise UsageError(f"`{name}` has an `Authorization` in its `headers`, which is used instead")
    try:
        from .login import log_in, login_data
    except ImportError:
        raise ToolError("the package `mcp` is missing", how_to_install("mcp")) from None
    try:
        got = asyncio.run(log_in(server, warn if as_json else show, timeout))
    except OSError as error:
        raise ToolError(f"the login failed: {error}") from error
    until = f"until {datetime.fromtimestamp(got.expires):%Y-%m-%d %H:%M}" if got.expires else ""
    until = until or "for as long as the server says"
    until += ", then renewed automatically" if got.refresh_token else ""
    said = f"Logged in to `{name}`: {got.scope or 'no scopes are named'}, {until}."
    show_either(login_data(name, got), said, as_json)


@mcp.command("logout")
def logout(
    name: Annotated[str, argument("NAME", "A server that you are logged in to.")],
    as_json: Json = False,
) -> None:
    """Remove the tokens of a server, and have the server revoke them if it offers that.

    Example: steersman mcp logout tickets
    """
    from .session_servers import login_place

    if not (place := login_place(name, os.environ)).exists():
        raise ToolError(f"there is no login for `{name}`")
    from .login_file import LoginFile

    try:
        gone, revoked = LoginFile(place).remove()
    except OSError as error:
        raise ToolError(f"the login cannot be removed: {error}") from error
    data = {"server": name, "url": gone.url if gone else None, "revocation": revoked}
    show_either(data, f"Logged out of `{name}`: the tokens are removed here; {revoked}.", as_json)


class _Choice:
    """Which servers are written: `new`, by name; `own` are those that the person has already."""

    def __init__(self, own: Mapping[str, Any], names: Sequence[str]) -> None:
        self._own, self._names = own, names
        self.new: dict[str, dict[str, Any]] = {}
        self._values: dict[str, str] = {}

    def row(self, server: foreign.ForeignServer) -> dict[str, Any]:
        """Return what becomes of a server, for people and programs."""
        table, notes = dict(server.table), list(server.notes)
        words = _whole(table.get("command", []), server.folder)
        table |= {"command": words} if words else {}
        if covered(text := " ".join((*words, table.get("url", "")))) != text:
            notes.append("has what looks like a secret among what is shown, which is written, too")
        for key in table.keys() & {"env", "headers"}:
            pairs = table[key].items()
            table[key] = {of: self._named(server.name, key, of, text, notes) for of, text in pairs}
        state = "new"
        if self._names and server.name not in self._names:
            state = "not chosen"
        elif server.fault:
            state = "left out"
        elif server.is_disabled and not self._names:
            state, notes = "disabled", [f"`--name {server.name}` takes it over all the same"]
        elif server.name in self._own:
            state, notes = "there already", ["the one of your configuration stays as it is"]
        else:
            self.new[server.name] = table
        row = {"name": server.name, "key": server.key, "state": state, "table": table}
        return {**row, "fault": server.fault or None, "notes": notes}

    def _named(self, server: str, key: str, name: str, value: str, notes: list[str]) -> str:
        """Return a value for the configuration; one that looks like a secret becomes a variable."""
        if not _is_secret(key, name, value):
            return value
        scheme = _SCHEME.match(value) if key == "headers" else None
        begin = scheme[0] if scheme else ""
        secret = Template(value.removeprefix(begin)).safe_substitute()
        variable = foreign.variable_name(f"{server}_{name}")
        if key == "env" and self._values.get(name, secret) == secret and re.fullmatch(r"\w+", name):
            variable = name
        self._values[variable] = secret
        is_set = {None: "not set", secret: "set to it"}.get(
            os.environ.get(variable), "set to another value"
        )
        notes.append(
            f"`{key}.{name}` looks like a secret, and is not copied: it is taken from the environment, "
            f"as `{variable}`, which is {is_set}"
        )
        return f"{begin}${{{variable}}}"


def _is_secret(key: str, name: str, value: str) -> bool:
    """Whether a value looks like a secret, apart from variables of the environment in it."""
    bare = _SCHEME.sub("", foreign.VARIABLE.sub("", value), count=1).strip()
    is_telling = (
        is_field(name) or SECRET.search(name) or (key == "headers" and _HEADER.search(name))
    )
    if is_telling and bare.lower() not in ("", "true", "false", "0", "1"):
        return True
    return any(covered(text) != text for text in (value, f'{name}="{bare}"'))


def _whole(words: Sequence[str], folder: Path) -> list[str]:
    """Write the paths of files from the root: elsewhere, another folder's files would run."""
    found = list[str]()
    for number, word in enumerate(words):
        begin, sign, path = word.rpartition("=") if word[:1] == "-" else ("", "", word)
        is_path = "/" in word if number == 0 else path and os.path.isfile(folder / path)
        found.append(f"{begin}{sign}{folder / path}" if is_path else word)
    return found


def _drawn(rows: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Draw what would run, as it would stand in the configuration, and what becomes of the others."""
    for row in rows:
        if row["state"] == "not chosen":
            continue
        yield ": ".join(filter(None, (row["key"], row["state"], row["fault"])))
        if row["state"] == "new":
            text = tomli_w.dumps({"mcp": {row["name"]: row["table"]}})
            yield from (f"  {line}" for line in text.split("\n") if line)
        yield from (f"  - {note}" for note in row["notes"])
