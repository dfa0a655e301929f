"""`steersman trust`: shows what a folder's file may do, trusts it, lists and forgets trusted folders."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

from ..gateway.redaction import redactor_of
from ..machines.errors import ConfigError, UsageError
from ..workflows.config import check_project
from ..workflows.paths import Paths
from ..workflows.trust import PROJECT_FILE, forget, guarded, is_trusted, trust, trusted
from .config import value_text
from .output import show, show_document


def trust_folder(environ: Mapping[str, str], folder: Path, *, is_yes: bool) -> int:
    """Show what a folder's file would be allowed, and allow it; a person at a terminal is asked first.

    Only the content that was shown is trusted, even if the file changes meanwhile. Raises `ConfigError`
    if there is no such file, or it has mistakes.
    """
    paths, file = Paths.of(environ), folder.expanduser().resolve() / PROJECT_FILE
    if not file.is_file():
        raise ConfigError("can't be trusted: there is no such file", _HINT, file=str(file))
    document = check_project(file)
    if is_trusted(paths, file.parent, document.content):
        show(f"{file} is trusted already, as it is now.")
        return 0
    redactor, wants = redactor_of(environ), guarded(document.data)
    show(f"{file} would be allowed:" if wants else f"{file} sets nothing that needs trust.")
    for name, value in wants:
        show(redactor.text(f"  {name} = {value_text(value)}"))
    if not is_yes and sys.stdin.isatty() and not _agrees():
        show("Not trusted.")
        return 1
    trust(paths, file.parent, document.content)
    show(f"{file} is trusted as it is now; after a change it has to be trusted again.")
    return 0


_HINT = f"`steersman trust DIR` trusts the {PROJECT_FILE} of a folder."


def _agrees() -> bool:
    try:
        return input("Trust it? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def forget_folder(environ: Mapping[str, str], folder: Path) -> int:
    """Withdraw the trust in a folder. Raises `UsageError` where it was not trusted."""
    folder = folder.expanduser().resolve()
    if not forget(Paths.of(environ), folder):
        hint = "`steersman trust --list` shows the trusted folders"
        raise UsageError(f"`{folder}` was not trusted", hint)
    show(f"{folder} is no longer trusted; running sessions keep their settings.")
    return 0


def list_trusted(environ: Mapping[str, str], *, as_json: bool) -> int:
    """Print the trusted folders, and whether their file has changed."""
    found = trusted(Paths.of(environ))
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
