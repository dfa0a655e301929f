"""Installs and removes this program's hooks in the configuration of an external agent.

Before the first change a file is copied into the state folder. Unless it has been changed since,
uninstalling restores that copy, byte for byte; otherwise only this program's hooks are removed. A file is
replaced in one step and keeps its mode; a link to it stays a link. Each format of files has its module,
which `HOOK_FORMATS` names.
"""

from __future__ import annotations

import difflib
import hashlib
import json
from codecs import BOM_UTF8
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from msgspec.structs import asdict

from ...machines.errors import ConfigError, SteersmanError
from ...machines.value import Value
from ...workflows.agent_definition import HOOK_FORMATS, AgentDefinition
from ...workflows.durability import make_folders, replace_file
from ...workflows.foreign_file import editable, encoded_like, read_foreign
from ...workflows.paths import write_private
from .syntax import HookEntry, HookSyntax, NotUnderstood, wanted_entries

_LARGEST = 16 << 20  # bytes of the settings of an agent


class Change(Value):
    """A file before and after a change; `after` is none if the file is to be deleted."""

    path: Path
    before: bytes | None
    after: bytes | None

    def diff(self) -> str:
        """Return the change as a unified diff."""
        old, new = ((part or b"").decode(errors="replace") for part in (self.before, self.after))
        lines = difflib.unified_diff(
            old.splitlines(), new.splitlines(), str(self.path), str(self.path), lineterm=""
        )
        return "\n".join(lines)


class _Receipt(Value):
    """The record of an installation: the hash of the written file, and the name of the copy, if any."""

    path: str
    after: str
    copy: str = ""


class Installation:
    """The hooks of one agent; `program` is the command of this program, `state` has the copies."""

    def __init__(
        self,
        agent: AgentDefinition,
        program: Sequence[str],
        state: Path,
        environ: Mapping[str, str],
    ) -> None:
        self.agent = agent
        self.path = agent.hooks.path(environ)
        self._format = HOOK_FORMATS[agent.hooks.format]
        self._syntax: HookSyntax = HOOK_FORMATS.load(agent.hooks.format)
        self._wanted = wanted_entries(agent, program, environ)
        self._folder = state / "agents" / "copies"

    def status(self) -> str:
        """Return `installed`, `outdated` or `not installed`. Raises `ConfigError`."""
        parts = [(sorted(self._checked(path)), self._pairs(of)) for path, of in self._parts()]
        if not any(found for found, _ in parts):
            return "not installed"
        return "installed" if all(found == wanted for found, wanted in parts) else "outdated"

    def install(self) -> list[Change]:
        """Return the changes that install the hooks and leave everything else as it is.

        Raises `ConfigError` for a file that cannot be edited safely, or a missing folder.
        """
        parent = self.path if self._format.is_folder else self.path.parent
        if not parent.is_dir() and not self.agent.create_config_dir_if_missing:
            raise SteersmanError(
                f"{parent} is not there: {self.agent.name} was never started here",
                f"start `{self.agent.start[0]}` once, then install the hooks",
            )
        changes: list[Change] = []
        for path, entries in self._parts():
            content = _read(path)
            text = _decoded(path, content or b"")
            if content is not None and sorted(self._checked(path)) == self._pairs(entries):
                continue
            with _placed(path):
                self._syntax.check(text, self.agent)
                clean = self._syntax.removed(text, self.agent.name)
                after = self._syntax.added(clean, self.agent, entries)
            new = encoded_like(content or b"", after)
            changes.append(Change(path=path, before=content, after=new))
        return changes

    def uninstall(self) -> list[Change]:
        """Return the changes that remove the hooks."""
        changes: list[Change] = []
        for path, _ in self._parts():
            if (content := _read(path)) is None:
                continue
            text = _decoded(path, content)
            with _placed(path):
                if not self._syntax.found(text, self.agent.name):
                    continue
                receipt = self._receipt(path)
                if receipt is not None and receipt.after == _hash(content):
                    after = (self._folder / receipt.copy).read_bytes() if receipt.copy else None
                else:
                    left = self._syntax.removed(text, self.agent.name)
                    is_nothing = not left.strip() and self._format.is_own_file
                    after = None if is_nothing else encoded_like(content, left)
            changes.append(Change(path=path, before=content, after=after))
        return changes

    def apply(self, changes: Sequence[Change], *, is_install: bool) -> list[Path]:
        """Apply changes; returns the copies that were made. Raises `ConfigError`."""
        copies: list[Path] = []
        for change in changes:
            file = str(change.path)
            try:
                if _read(change.path) != change.before:
                    raise ConfigError("another program is changing it", "try again", file=file)
                if is_install:
                    copies += self._note(change)
                _replace(change, 0o755 if self._format.is_folder else 0o600)
            except OSError as error:
                message = f"it cannot be written: {error.strerror}"
                raise ConfigError(message, "nothing else was changed", file=file) from error
        return copies

    def _parts(self) -> list[tuple[Path, list[HookEntry]]]:
        """List the files with their entries; a folder of scripts has a file for each event."""
        if self._format.is_folder:
            return [(self.path / entry.name, [entry]) for entry in self._wanted]
        return [(self.path, list(self._wanted))]

    def _pairs(self, entries: Sequence[HookEntry]) -> list[HookEntry]:
        """Return entries in the form in which they are found; the event of a script is its name."""
        is_folder = self._format.is_folder
        return sorted(HookEntry("", of.command) if is_folder else of for of in entries)

    def _checked(self, path: Path) -> list[HookEntry]:
        """Find the hooks in a file that the agent itself can read. Raises `ConfigError`."""
        content = _read(path)
        if content is None:
            return []
        text = _decoded(path, content)
        with _placed(path):
            self._syntax.check(text, self.agent)
            return self._syntax.found(text, self.agent.name)

    def _note(self, change: Change) -> list[Path]:
        """Copy the file as it was before the hooks; an update keeps the first copy while it is valid."""
        assert change.after is not None
        receipt, copy = self._receipt(change.path), ""
        made: list[Path] = []
        if receipt and change.before is not None and receipt.after == _hash(change.before):
            copy = receipt.copy
        elif change.before is not None:
            with _placed(change.path):
                text = _decoded(change.path, change.before)
                base = encoded_like(change.before, self._syntax.removed(text, self.agent.name))
            copy = f"{self.agent.name}-{_hash(base)[:16]}-{change.path.name}"
            write_private(self._folder / copy, base)
            made.append(self._folder / copy)
        new = _Receipt(path=str(change.path), after=_hash(change.after), copy=copy)
        write_private(self._receipt_file(change.path), json.dumps(asdict(new)).encode())
        return made

    def _receipt(self, path: Path) -> _Receipt | None:
        try:
            return _Receipt(**json.loads(self._receipt_file(path).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def _receipt_file(self, path: Path) -> Path:
        return self._folder / f"{self.agent.name}-{_hash(str(path).encode())[:16]}.json"


@contextmanager
def _placed(path: Path) -> Generator[None]:
    """Add the name of the file to an error about its text."""
    try:
        yield
    except NotUnderstood as error:
        error.file = str(path)
        raise


def _read(path: Path) -> bytes | None:
    try:
        return read_foreign(path, _LARGEST)
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"it cannot be read: {error.strerror or error}"
        raise ConfigError(message, "check the file", file=str(path)) from error


def _decoded(path: Path, content: bytes) -> str:
    if path.suffix == ".json" and content.startswith(BOM_UTF8):
        with _placed(path):
            raise NotUnderstood("a byte order mark, which not every reader of JSON takes", "?")
    try:
        return editable(content)
    except UnicodeDecodeError as error:
        raise ConfigError("the text is not UTF-8", "nothing was changed", file=str(path)) from error


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _replace(change: Change, mode: int) -> None:
    """Replace the file's content in one step, or delete the file. Raises `OSError`."""
    path = change.path.resolve()
    if change.after is None:
        path.unlink(missing_ok=True)
        return
    make_folders(path.parent)
    if change.before is not None:
        mode = path.stat().st_mode & 0o7777
    replace_file(path, change.after, mode)
