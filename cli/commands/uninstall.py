"""`steersman uninstall`: what of this program is on the machine, and its removal, one by one."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import redirect_stdout
from pathlib import Path
from typing import Annotated

from msgspec.structs import asdict, replace

from ...gateway.home.retention import queues_folder
from ...gateway.reach import server_of
from ...gateway.wording.formats import size_text
from ...machines.errors import SteersmanError, UsageError
from ...machines.value import Value
from ...ports.process.own_python import INTERPRETER
from ...workflows.config import load
from ...workflows.durability import replace_file
from ...workflows.foreign_file import read_foreign
from ...workflows.home_folder import home_folder
from ...workflows.home_place import home_place, storage_of, without_password
from ...workflows.paths import Paths
from ...workflows.registry import EXTENSIONS
from ...workflows.trust import WRITTEN
from ...workspace.prune import size_of
from ..options import Json, flag
from ..output import show, show_document, show_table, warn
from ..stored import stored
from .serve import login_service

_COMPLETIONS = (
    *(".bash_completions/steersman.sh", ".zfunc/_steersman"),
    ".config/fish/completions/steersman.fish",
)
"""Where `--install-completion` writes, below the home folder."""


class Item(Value):
    """Something of this program; `command` removes it, and `is_ours`: so may this program."""

    what: str
    where: str
    command: str
    is_ours: bool = True
    bytes: int = 0


def items() -> Iterator[Item]:
    """Yield what is there, in the order of removal: what needs others before these."""
    paths = Paths.of(os.environ)
    if (service := login_service().path).exists():
        command = "steersman serve uninstall"
        yield Item(what="service that starts at login", where=str(service), command=command)
    for agent, file in EXTENSIONS.load("installed hooks")().items():
        command = f"steersman hooks uninstall {agent}"
        yield Item(what=f"hooks in {agent}", where=str(file), command=command)
    for file in (home_folder() / name for name in _COMPLETIONS):
        if file.exists():
            item = _files("completion", file)
            forget = f"sed -i '\\#{file.name}#d' ~/.bashrc"  # which reads it
            command = f"{item.command}; {forget}" if file.suffix == ".sh" else item.command
            yield replace(item, command=command)
    yield from _elsewhere(paths)
    is_home = bool(os.environ.get("STEERSMAN_HOME"))  # beside its settings may be what is not ours
    worked_in = _worked_in()
    for what, place in (
        ("weights of models", paths.cache / "models"),
        ("cache", paths.cache),
        ("state: sessions, queues, keys, trust", paths.state),
        ("settings", paths.config_file if is_home else paths.config),
        *((f"your {name}", paths.config / name) for name in WRITTEN if is_home),
    ):
        if place.exists():
            inside = next((at for at in worked_in if at.is_relative_to(place)), None)
            note = f", and {inside}, where a session worked" if inside else ""
            yield _files(what + note, place, is_ours=not inside)
    yield Item(what="program", where=sys.prefix, command=_program(), is_ours=False)


def _worked_in() -> list[Path]:
    try:
        with stored(os.environ) as store:
            return [Path(row.folder) for row in store.sessions()]
    except SteersmanError:
        return []  # nor is the state removed then


def _files(what: str, place: Path, *, is_ours: bool = True) -> Item:
    size = size_of(place) if place.is_dir() else place.stat().st_size
    command = shlex.join(["rm", "-r", str(place)])
    return Item(what=what, where=str(place), command=command, is_ours=is_ours, bytes=size)


def _elsewhere(paths: Paths) -> Iterator[Item]:
    """Yield what the settings put outside of the three folders: other homes may use it, too."""
    try:
        url, storage = home_place(paths, os.environ).url, storage_of(paths, os.environ)
        queues = queues_folder(paths, load(paths, paths.config, os.environ))
    except SteersmanError as error:
        warn(f"steersman: {error}: what the settings put elsewhere is not listed")
        return
    if url:
        shown = without_password(url)
        command = "drop the database, if no other machine uses it"
        yield Item(what="sessions", where=shown, command=command, is_ours=False)
    for what, place in (
        ("outputs of tools", storage.outputs),
        ("copies of files", storage.copies),
        ("saved queues", queues),
    ):
        if place.exists() and not place.is_relative_to(paths.state):
            yield _files(what, place, is_ours=False)


def _program() -> str:
    package, parts = Path(__file__).parents[2], Path(sys.prefix).parts
    if (package / "pyproject.toml").exists():
        return f"delete the checkout: {shlex.join(['rm', '-r', str(package)])}"
    if "pipx" in parts:
        return "pipx uninstall steersman"
    if {"uv", "tools"} <= set(parts):
        return "uv tool uninstall steersman"
    return f"{shlex.quote(INTERPRETER)} -m pip uninstall steersman"


def uninstall(
    dry_run: Annotated[bool, flag("--dry-run", "Only list what is there.")] = False,
    yes: Annotated[bool, flag("--yes", "Remove all of it without asking.")] = False,
    as_json: Json = False,
) -> int:
    """Show what of steersman is on this machine, and remove what you confirm.

    Folders of projects, databases and the program itself are never touched: only named.

    Example: steersman uninstall --dry-run
    """
    found = list(items())
    if dry_run:
        _list(found, as_json=as_json)
        return 0
    if not yes and (as_json or not sys.stdin.isatty()):
        hint = "`--dry-run` lists what is there; `--yes` removes it without asking"
        raise UsageError("nothing was removed", hint)
    removed, failed = list[Item](), list[Item]()
    for item in found:
        if item.is_ours and (yes or _is_wanted(item)):
            (removed if _remove(item) else failed).append(item)
    left = [
        item
        for item in found
        if item not in removed and (not item.is_ours or os.path.lexists(item.where))
    ]
    if as_json:
        show_document({"removed": [*map(asdict, removed)], "left": [*map(asdict, left)]})
        return int(bool(failed))
    for item in removed:
        show(f"removed: {item.what}, {item.where}")
    for item in left:
        show(f"left: {item.what}, {item.where}: {item.command}")
    return int(bool(failed))


def _list(found: list[Item], *, as_json: bool) -> None:
    if as_json:
        show_document({"items": [asdict(item) for item in found]})
        return
    rows = [
        (item.what, size_text(item.bytes) if item.bytes else "-", item.where, item.command)
        for item in found
    ]
    show_table(("WHAT", "SIZE", "WHERE", "TO REMOVE IT"), rows)
    show(
        "Nothing was removed. Folders of projects have nothing of it but what you put there, and, where "
        "commands ran in the sandbox, empty files in `.git` that mean nothing to git."
    )


def _is_wanted(item: Item) -> bool:
    if not os.path.lexists(item.where):  # it was in a folder that has gone
        return False
    size = f", {size_text(item.bytes)}" if item.bytes else ""
    warn(f"Remove the {item.what} ({item.where}{size})? [y/N]")
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _remove(item: Item) -> bool:
    """Carry out the command of an item; False, with the reason on standard error, if it failed."""
    program, *words = shlex.split(item.command)
    if program == "steersman":  # it undoes more than a file
        from ..program import run

        with redirect_stdout(sys.stderr):  # it says what it did; what is printed here is the result
            return run(words) == 0 or not os.path.lexists(item.where)
    place = Path(item.where)
    try:
        if place == Paths.of(os.environ).state:
            _check_unused(place)
        if place.is_dir() and not place.is_symlink():
            shutil.rmtree(place)
        else:
            place.unlink(missing_ok=True)
        if place.suffix == ".sh":
            _forget_source(place)
    except (OSError, SteersmanError) as error:
        warn(f"steersman: {item.what}: {error}")
        return False
    return True


def _check_unused(state: Path) -> None:
    """Raise `UsageError` if a program has the home open."""
    owner = server_of(state)
    with stored(os.environ) as store:
        owners = [*store.owners().values(), *([owner] if owner else [])]
    if owners:
        named = ", ".join(sorted({owner.process for owner in owners}))
        raise UsageError(f"{named} has sessions open: end it first")


def _forget_source(script: Path) -> None:
    """Take the line out of ~/.bashrc that reads the completion."""
    file = (home_folder() / ".bashrc").resolve()
    lines = read_foreign(file).splitlines(keepends=True) if file.exists() else []
    kept = [line for line in lines if line.strip() != f"source '{script}'".encode()]
    if kept != lines:
        replace_file(file, b"".join(kept), file.stat().st_mode & 0o7777)
