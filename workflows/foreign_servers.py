"""MCP servers as other programs write them, in JSON; read as tables of `[mcp.NAME]`.

Known are `{"mcpServers": {…}}` of Claude Code (also in `projects` of its own file), Claude Desktop and
Cursor, and `{"servers": {…}}` of VS Code, with comments and commas at the end. They put variables into
texts: `${NAME}`, `${NAME:-default}`, `${env:NAME}`, `${input:ID}`, `${workspaceFolder}`. Sources:
https://code.claude.com/docs/en/mcp, https://code.visualstudio.com/docs/copilot/reference/mcp-configuration.

A server that would run otherwise than its file says, such as one with a `cwd`, is not used at all.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from msgspec import field

from ..machines.json_shape import parse_json
from ..machines.pattern import lazy_pattern
from ..machines.value import Value
from .document import Document, is_list, is_table
from .foreign_file import decoded, read_foreign
from .problem import SECRET, shown

VARIABLE = lazy_pattern(r"\$\{([^{}\n]{1,200})\}")
_COMMENT = lazy_pattern(r'"(?:[^"\\]|\\.)*+"?|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+(?:\*/)?', re.DOTALL)
_COMMA = lazy_pattern(r'"(?:[^"\\]|\\.)*+"?|,(?=\s*+[}\]])', re.DOTALL)
_NAMED = lazy_pattern(r"(?:env:)?([A-Za-z_][A-Za-z0-9_]*)(?::-(.*))?")
_HALF = lazy_pattern("[\ud800-\udfff]")  # halves of characters, which JSON can have
_NAMES = {
    "env": lazy_pattern(r"[^\x00-\x1f\x7f=]+"),
    "headers": lazy_pattern(r"[A-Za-z0-9!#%&'*+.^_|~-]+"),
}
_FOLDERS = ("workspaceFolder", "CLAUDE_PROJECT_DIR")
"""Variables that are the folder of the project."""
_TYPES = ("", "stdio", "http", "streamable-http", "streamablehttp")
_KNOWN = {
    *("command", "args", "env", "url", "headers", "type", "cwd", "disabled"),
    *("description", "name", "gallery", "version"),  # which change nothing of what runs
}


class ForeignServer(Value, kw_only=False):
    """A server of another program; `key` is its place in the file, `folder` that of its project.

    `table` is what `[mcp.NAME]` has; it is empty if the server cannot be used, and `fault` says why and
    what to do. `notes` say what else is not as in the file.
    """

    name: str
    key: str
    folder: Path
    table: dict[str, Any] = field(default_factory=dict[str, Any])
    fault: str = ""
    notes: tuple[str, ...] = ()
    is_disabled: bool = False


def servers_of(text: str, folder: Path, environ: Mapping[str, str]) -> list[ForeignServer]:
    """Return the servers of a file; of two with one name the first can be used.

    `folder` is the project's. Raises `ValueError` for a text that is no such file.
    """
    found, keys = list[ForeignServer](), dict[str, str]()
    for key, own, value, base in _entries(text, folder):
        name = re.sub(r"[^A-Za-z0-9_.-]+", "-", own).strip("-.")[:64] or "server"
        notes = [] if name == own else [f"is called `{name}` here"]
        table, fault = dict[str, Any](), ""
        try:
            if keys.setdefault(name, key) != key:
                raise ValueError(f"`{keys[name]}` has its name: rename one in the file")
            table = _Translation(value, base, environ, notes).table()
        except ValueError as error:
            fault = str(error)
        is_off = _table(value).get("disabled") is True
        found.append(ForeignServer(name, key, base, table, fault, tuple(notes), is_off))
    return found


def project_servers(file: Path, environ: Mapping[str, str]) -> Document:
    """Read a project's file as a layer of the configuration; its `warnings` say what is not used.

    One that cannot be read has no content.
    """
    try:
        content = read_foreign(file)
        servers = servers_of(decoded(content), file.parent, environ)
    except (OSError, ValueError) as error:
        return Document(file=str(file), warnings=(f"it is not read: {error}",))
    warnings, tables = list[str](), dict[str, Any]()
    for server in servers:
        if server.table and not server.is_disabled:
            tables[server.name] = server.table
        notes = (f"is left out: {server.fault}",) if server.fault else server.notes
        warnings += [f"`{server.key}` {note}" for note in notes if not server.is_disabled]
    data = {"mcp": tables} if tables else {}
    return Document(file=str(file), content=content, data=data, warnings=tuple(warnings))


def commands_of(text: str) -> Iterator[tuple[dict[str, Any], bool]]:
    """Yield of each server what it runs, without variables, and whether these may be anything else.

    Raises `ValueError`.
    """
    for _, _, value, _ in _entries(text, Path()):
        table = _table(value)
        args = table.get("args")
        words = [str(word) for word in (table.get("command"), *(args if is_list(args) else ()))]
        run = {"command": [_bare(word) for word in words], "cwd": table.get("cwd")}
        run["env"] = {name: _bare(str(value)) for name, value in _table(table.get("env")).items()}
        yield run, not {*VARIABLE.findall("\n".join(words))} <= {*_FOLDERS}


def _entries(text: str, folder: Path) -> Iterator[tuple[str, str, Any, Path]]:
    """Yield place, name, value and folder of each server of a file. Raises `ValueError`."""
    try:
        try:
            data = parse_json(text)
        except ValueError:
            data = parse_json(_COMMA.sub(_blank, _COMMENT.sub(_blank, text)))
    except ValueError as error:
        raise ValueError(f"it is not valid JSON: {error}") from None
    if not is_table(data):
        raise ValueError("it is not a JSON object")
    places = [("mcpServers", data, folder), ("servers", data, folder)]
    for name, project in _table(data.get("projects")).items():
        if is_table(project) and "\0" not in name:
            places.append((f"projects.{_quoted(name)}.mcpServers", project, Path(name)))
    for where, holder, base in places:
        servers = holder.get(where.rpartition(".")[2], {})
        if not is_table(servers):
            raise ValueError(f"`{where}` is not an object with servers by name")
        for name, value in servers.items():
            yield f"{where}.{_quoted(name)}", name, value, base


def _blank(found: re.Match[str]) -> str:
    """Blank out a comment or a comma, so that all else keeps its place; texts stay."""
    return found[0] if found[0][0] == '"' else re.sub(r"[^\n]", " ", found[0])


class _Translation:
    """What becomes of one server; `environ` has the values of variables in commands and addresses."""

    def __init__(
        self, entry: Any, folder: Path, environ: Mapping[str, str], notes: list[str]
    ) -> None:
        self._entry, self._folder, self._environ, self._notes = entry, folder, environ, notes

    def table(self) -> dict[str, Any]:
        """Return the table of `[mcp.NAME]`. Raises `ValueError`."""
        entry = self._entry
        if not is_table(entry):
            raise ValueError("it is not an object: give it a `command` or a `url`")
        _text(json.dumps(entry, ensure_ascii=False), "table")
        kind, url = entry.get("type") or "", entry.get("url")
        if kind == "sse":
            fault = "it speaks SSE, an older transport that is not spoken here"
            raise ValueError(f"{fault}: its makers may give an address of Streamable HTTP")
        if str(kind).lower() not in _TYPES:
            raise ValueError(f"its `type` {shown(kind)} is not known: there are `stdio` and `http`")
        if bool(entry.get("command")) == bool(url):
            raise ValueError("it has both a `command` and a `url`, or none: give it one of them")
        self._check_rest(entry)
        made: dict[str, Any] = {}
        if url:
            made["url"] = address = self._filled(_text(url, "url"))
            if not address.startswith(("http://", "https://")) or not address.isprintable():
                raise ValueError(
                    f"its `url` is {shown(address)}: begin it with http:// or https://"
                )
        else:
            args: object = entry.get("args") or []
            if not is_list(args):
                raise ValueError("its `args` are not a list: write them as a list of texts")
            words = [_text(word, "command") for word in (entry["command"], *args)]
            if words[0].startswith("~"):
                raise ValueError(f"its `command` is {shown(words[0])}: write the whole path")
            made["command"] = [self._filled(word) for word in words]
        key = "headers" if url else "env"
        if pairs := self._pairs(entry, key):
            made[key] = pairs
        return made

    def _check_rest(self, entry: dict[str, Any]) -> None:
        """Refuse what would make it another server, and note what else is not used."""
        folder, cwd = self._folder, _text(entry.get("cwd") or ".", "cwd")
        if os.path.normpath(folder / self._filled(cwd)) != os.path.normpath(folder):
            script = "name a script as its `command` that goes there and starts it"
            raise ValueError(
                f"its `cwd` is {shown(cwd)}, and servers start in the session's folder: {script}"
            )
        if "envFile" in entry:
            raise ValueError("its `envFile` is not read: write the variables into `env`")
        if rest := sorted(entry.keys() - _KNOWN):
            names = ", ".join(f"`{_quoted(key)}`" for key in rest)
            self._notes.append(f"is used without {names}: write what you need of it yourself")

    def _pairs(self, entry: dict[str, Any], key: str) -> dict[str, str]:
        """Return variables or headers, in which those of the environment stay."""
        pairs: object = entry.get(key) or {}
        if not is_table(pairs):
            raise ValueError(f"its `{key}` is not an object: write a text for each name")
        found = dict[str, str]()
        for name, value in pairs.items():
            where = f"{key}.{_quoted(name)}"
            if not _NAMES[key].fullmatch(name):
                raise ValueError(f"`{where}` has no valid name: correct it")
            if value is None or isinstance(value, int | float):  # also true and false
                value = "" if value is None else str(value).lower()
            text = _text(value, where)
            if key == "headers" and not text.isprintable():
                raise ValueError(f"`{where}` has control characters: remove them")
            found[name] = self._filled(text, keeps=True)
        return found

    def _filled(self, text: str, *, keeps: bool = False) -> str:
        """Return a text with the values of its variables; `keeps`: with those of the environment.

        In a text that keeps some, `$$` is a dollar sign. Raises `ValueError`.
        """
        parts = VARIABLE.split(text)  # each other one is a variable
        values = [self._value(name, keeps=keeps) for name in parts[1::2]]
        parts = [part.replace("$", "$$") for part in parts] if keeps else parts
        parts[1::2] = values
        return "".join(parts)

    def _value(self, inner: str, *, keeps: bool) -> str:
        fixed = {"userHome": self._environ.get("HOME"), "pathSeparator": os.sep, "/": os.sep}
        fixed |= dict.fromkeys(_FOLDERS, str(self._folder))
        named, is_asked = _NAMED.fullmatch(inner), inner.startswith("input:")
        if value := fixed.get(inner):
            return value.replace("$", "$$") if keeps else value
        if not (named or is_asked):
            raise ValueError(f"`${{{inner}}}` is known only there: write its value in its place")
        name = named[1] if named else variable_name(inner.removeprefix("input:"))
        default, known = named[2] if named else None, self._environ.get(name)
        if not keeps and (is_asked or SECRET.search(name)):
            fault = f"`${{{inner}}}` stands in its command or address, where others could read it"
            raise ValueError(f"{fault}: give it by `env` or `headers`, or write it there")
        if keeps and default is not None and not known:
            return default.replace("$", "$$")
        if keeps and not known:
            self._notes.append(f"needs `{name}` in the environment, where it is not set")
        if not keeps and not (known or default):
            raise ValueError(f"`{name}` is not set: set it, and try again")
        return f"${{{name}}}" if keeps else known or str(default)


def variable_name(text: str) -> str:
    """Return the name of a variable of the environment that is like a text."""
    name = re.sub(r"[^A-Z0-9]+", "_", text.upper()).strip("_")
    return name if name[:1].isalpha() else f"MCP_{name}"


def _quoted(name: str) -> str:
    return shown(_HALF.sub("?", name))[1:-1]


def _text(value: object, where: str) -> str:
    if not isinstance(value, str):
        raise ValueError(f"its `{where}` is not a text: write it in quotes")
    if "\0" in value or _HALF.search(value):
        raise ValueError(f"its `{where}` has characters that no program takes: remove them")
    return value


def _bare(text: str) -> str:
    """Return a text without its variables: those of the folder are `.`, others their default."""
    return VARIABLE.sub(
        lambda found: "." if found[1] in _FOLDERS else found[1].partition(":-")[2], text
    )


def _table(value: object) -> dict[str, Any]:
    return value if is_table(value) else {}
