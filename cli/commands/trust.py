"""`steersman trust`: shows what a folder's files may do, trusts them; lists and forgets such folders."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from difflib import unified_diff
from pathlib import Path
from typing import Annotated, Any

import typer

from ...gateway.wording.terminal import exposed
from ...machines.errors import UsageError
from ...workflows.authority import split
from ...workflows.config import check_project
from ...workflows.document import Document, is_table
from ...workflows.home_folder import expanded
from ...workflows.paths import Paths
from ...workflows.problem import Where, dotted
from ...workflows.trust import (
    PROJECT_FILE,
    Contents,
    TrustedFile,
    contents_of,
    forget,
    trust,
    trust_error,
    trusted,
    trusted_contents,
)
from ...workflows.typed_table import Setter
from ..options import Json
from ..output import show, show_document
from .config import value_text


def trust_files(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="The folder; if left out, the current one."),
    ] = None,
    is_list: Annotated[bool, typer.Option("--list", help="List the trusted folders.")] = False,
    is_forget: Annotated[
        bool, typer.Option("--forget", help="No longer trust the folder.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask, only show.")] = False,
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
    return _trust(folder, is_yes=yes)


def _trust(folder: Path, *, is_yes: bool) -> int:
    """Show what a folder's files would be allowed, and allow it; a person at a terminal is asked first.

    Every character is shown, and only the contents that were shown are trusted, even if a file changes
    meanwhile. Raises `ConfigError` if there is no such file, or it has mistakes, and `UsageError` where
    nobody can be asked.
    """
    paths, file = Paths.of(os.environ), folder / PROJECT_FILE
    document = check_project(file) if file.exists() else Document(file=str(file))
    try:
        contents = contents_of(file.parent, document.content if document.text else None)
    except OSError as error:
        raise trust_error(file, error) from error
    before = trusted_contents(paths, file.parent)
    if contents == before:
        show(f"{file} is trusted already, as it is now.")
        return 0
    lines = _differences(before, contents) if before else _wants(document, contents)
    for line in lines:
        show(exposed(line))
    if not is_yes:
        if not sys.stdin.isatty():
            hint = "`steersman trust --yes` trusts what is shown here"
            raise UsageError("there is no terminal, so nobody can be asked", hint)
        if not _agrees():
            show("Not trusted.")
            return 1
    trust(paths, file.parent, contents)
    show(f"{file} is trusted as it is now; after a change it has to be trusted again.")
    return 0


def _wants(document: Document, contents: Contents) -> Iterator[str]:
    """Say what the files would be allowed: settings by name, everything else as it stands."""
    applied, personal = split(document.data, Setter.TRUSTED_PROJECT)
    _, wants = split(applied, Setter.ANY_PROJECT)
    others = {path: file for path, file in contents.items() if path != PROJECT_FILE}
    if not wants and not others:
        yield f"{document.file} sets nothing that needs trust."
    else:
        yield f"{document.file} would be allowed:"
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


def _agrees() -> bool:
    try:
        return input("Trust it? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _list(*, as_json: bool) -> int:
    """Print the trusted folders, and whether their file has changed."""
    found = trusted(Paths.of(os.environ))
    if as_json:
        show_document(
            {"trusted": [{"folder": entry.folder, "state": entry.state} for entry in found]}
        )
        return 0
    notes = {"changed": "  (changed since: not in force)", "gone": "  (no file there any more)"}
    for entry in found:
        show(f"{entry.folder}{notes.get(entry.state, '')}")
    if not found:
        show("No folder is trusted.")
    return 0
