"""Our hooks in one agent's own configuration: what is there, what should be, and the way between.

Before the first change a file is copied into the state folder. As long as nobody else changes it
afterwards, taking the hooks out gives that copy back, byte for byte; otherwise only ours are cut out.
A file is replaced in one step and keeps its mode; a link to it stays a link.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import re
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from ...machines.errors import ConfigError, SteersmanError
from ...workflows.agent_definition import AgentDefinition
from ...workflows.paths import write_private
from .entry import HookEntry, HookSyntax, NotUnderstood, wanted_entries
from .json_hooks import ANTIGRAVITY, CLAUDE, COPILOT
from .toml_hooks import TomlHooks, YamlHooks

# Hooks that are files of their own: a plugin that hears every event, or a script for each ---------
# Such a file is ours or it is not: one that somebody else wrote is never touched.


_MARK = "Written by `steersman hooks install"

_PLUGIN = """\
// {mark} {agent}`; `steersman hooks uninstall {agent}` takes it out.
import {{ spawn }} from "node:child_process"

const commands = {commands}

export const Steersman = async ({{ directory }}) => ({{
  event: async ({{ event }}) => {{
    const command = commands[event.type]
    const properties = event.properties ?? {{}}
    const info = properties.info ?? {{}}
    const session = properties.sessionID ?? info.id
    if (!command || !session || info.parentID) return
    const said = {{ session_id: session, cwd: info.directory ?? directory, pid: process.pid }}
    const child = spawn(command[0], command.slice(1), {{
      stdio: ["pipe", "ignore", "ignore"],
      timeout: {milliseconds},
    }})
    child.on("error", () => {{}})
    child.stdin.on("error", () => {{}})
    child.stdin.end(JSON.stringify(said))
  }},
}})
"""
_COMMAND = re.compile(r'^  ("[^"]+"): (\[.*\]),?$', re.MULTILINE)


class PluginHooks(HookSyntax):
    """A JavaScript plugin in the shape that opencode loads (https://opencode.ai/docs/plugins)."""

    def found(self, text: str, agent: str) -> list[tuple[str, str]]:
        """Read the commands back; a file of ours that was changed has something else to say."""
        if not text.strip():
            return []
        _require_ours(text)
        return [
            (json.loads(name), shlex.join(json.loads(words)))
            for name, words in _COMMAND.findall(text)
        ]

    def added(self, text: str, agent: AgentDefinition, entries: Sequence[HookEntry]) -> str:
        """Write the plugin."""
        if text.strip():
            _require_ours(text)
        rows = ",\n".join(
            f"  {json.dumps(one.name)}: {json.dumps(shlex.split(one.command))}" for one in entries
        )
        return _PLUGIN.format(
            mark=_MARK,
            agent=agent.name,
            commands=f"{{\n{rows},\n}}",
            milliseconds=agent.hooks.timeout * 1000,
        )

    def removed(self, text: str, agent: str) -> str:
        """Leave nothing."""
        if text.strip():
            _require_ours(text)
        return ""


class ScriptHooks(HookSyntax):
    """One shell script; the folder has one for each event (see `installation.py`)."""

    def found(self, text: str, agent: str) -> list[tuple[str, str]]:
        """Read the command back."""
        if not text.strip():
            return []
        _require_ours(text)
        last = text.rstrip("\n").rpartition("\n")[2]
        return [("", last.removeprefix("exec "))]

    def added(self, text: str, agent: AgentDefinition, entries: Sequence[HookEntry]) -> str:
        """Write the script of one event."""
        if text.strip():
            _require_ours(text)
        (entry,) = entries
        return f"#!/bin/sh\n# {_MARK} {agent.name}`.\nexec {entry.command}\n"

    def removed(self, text: str, agent: str) -> str:
        """Leave nothing."""
        if text.strip():
            _require_ours(text)
        return ""


def _require_ours(text: str) -> None:
    if _MARK not in text:
        raise NotUnderstood("somebody else wrote this file", text, 0)


_SCRIPTS = "scripts"
_SYNTAXES: Mapping[str, HookSyntax] = {
    "antigravity-json": ANTIGRAVITY,
    "claude-json": CLAUDE,
    "copilot-json": COPILOT,
    "hermes-yaml": YamlHooks(),
    "opencode-plugin": PluginHooks(),
    _SCRIPTS: ScriptHooks(),
    "toml-tables": TomlHooks(),
}


@dataclass(frozen=True, slots=True)
class Change:
    """A file as it is and as it should be; `after` none: it should not be there."""

    path: Path
    before: bytes | None
    after: bytes | None

    def diff(self) -> str:
        """Show the change as a unified diff."""
        old, new = ((part or b"").decode(errors="replace") for part in (self.before, self.after))
        lines = difflib.unified_diff(
            old.splitlines(), new.splitlines(), str(self.path), str(self.path), lineterm=""
        )
        return "\n".join(lines)


@dataclass(frozen=True, slots=True)
class _Receipt:
    """What a file was before us: the hash of what we wrote, and the copy's name if there was one."""

    path: str
    after: str
    copy: str = ""


class Installation:
    """One agent's; `program` is how our command is called, `state` where copies are kept."""

    def __init__(
        self,
        agent: AgentDefinition,
        program: Sequence[str],
        state: Path,
        environ: Mapping[str, str],
    ) -> None:
        self.agent = agent
        self.path = agent.hooks.path(environ)
        self._syntax = _SYNTAXES[agent.hooks.format]
        self._wanted = wanted_entries(agent, program, environ)
        self._folder = state / "agents" / "copies"

    def status(self) -> str:
        """Say `installed`, `outdated` or `not installed`. Raises `ConfigError`."""
        states: list[bool] = []
        is_there = False
        for path, entries in self._parts():
            found = self._found(path)
            is_there = is_there or bool(found)
            states.append(sorted(found) == self._pairs(entries))
        if not is_there:
            return "not installed"
        return "installed" if all(states) else "outdated"

    def install(self) -> list[Change]:
        """Say what has to change so that our hooks are there, and nothing else is touched.

        Raises `ConfigError` for a file that is not understood, or a missing folder.
        """
        parent = self.path if self._is_scripts else self.path.parent
        if not parent.is_dir() and not self.agent.create_config_dir_if_missing:
            raise SteersmanError(
                f"{parent} is not there: {self.agent.name} was never started here",
                f"start `{self.agent.start[0]}` once, then install the hooks",
            )
        changes: list[Change] = []
        for path, entries in self._parts():
            content = _read(path)
            text = _decoded(path, content or b"")
            if content is not None and sorted(self._found(path)) == self._pairs(entries):
                continue
            with _placed(path):
                clean = self._syntax.removed(text, self.agent.name)
                after = self._syntax.added(clean, self.agent, entries)
            changes.append(Change(path, content, after.encode()))
        return changes

    def uninstall(self) -> list[Change]:
        """Say what has to change so that nothing of ours is there."""
        changes: list[Change] = []
        for path, _ in self._parts():
            content = _read(path)
            if content is None or not self._found(path):
                continue
            receipt = self._receipt(path)
            if receipt is not None and receipt.after == _hash(content):
                copy = (self._folder / receipt.copy).read_bytes() if receipt.copy else None
                changes.append(Change(path, content, copy))
                continue
            with _placed(path):
                left = self._syntax.removed(_decoded(path, content), self.agent.name)
            is_nothing = not left.strip() and self._is_own_file
            changes.append(Change(path, content, None if is_nothing else left.encode()))
        return changes

    def apply(self, changes: Sequence[Change], *, is_install: bool) -> list[Path]:
        """Carry changes out; returns the copies that were made. Raises `ConfigError`."""
        copies: list[Path] = []
        for change in changes:
            try:
                if _read(change.path) != change.before:
                    raise ConfigError(
                        "somebody else changes it", "try again", file=str(change.path)
                    )
                if is_install:
                    copies += self._note(change)
                _replace(change, 0o755 if self._is_scripts else 0o600)
            except OSError as error:
                message = f"it cannot be written: {error.strerror}"
                raise ConfigError(
                    message, "nothing else was changed", file=str(change.path)
                ) from error
        return copies

    @property
    def _is_scripts(self) -> bool:
        return self.agent.hooks.format == _SCRIPTS

    @property
    def _is_own_file(self) -> bool:
        return isinstance(self._syntax, PluginHooks | ScriptHooks)

    def _parts(self) -> list[tuple[Path, list[HookEntry]]]:
        """List the files, and what each should hold; of a folder of scripts, one for each event."""
        if self._is_scripts:
            return [(self.path / one.name, [one]) for one in self._wanted]
        return [(self.path, list(self._wanted))]

    def _pairs(self, entries: Sequence[HookEntry]) -> list[tuple[str, str]]:
        """Write entries as they are found again; a script's event is its name."""
        return sorted(("" if self._is_scripts else one.name, one.command) for one in entries)

    def _found(self, path: Path) -> list[tuple[str, str]]:
        content = _read(path)
        if content is None:
            return []
        with _placed(path):
            return self._syntax.found(_decoded(path, content), self.agent.name)

    def _note(self, change: Change) -> list[Path]:
        """Keep what was there before us; a renewal keeps the first copy while it still holds."""
        assert change.after is not None
        receipt, copy = self._receipt(change.path), ""
        made: list[Path] = []
        if receipt and change.before is not None and receipt.after == _hash(change.before):
            copy = receipt.copy
        elif change.before is not None:
            with _placed(change.path):
                text = _decoded(change.path, change.before)
                base = self._syntax.removed(text, self.agent.name).encode()
            copy = f"{self.agent.name}-{_hash(base)[:16]}-{change.path.name}"
            write_private(self._folder / copy, base)
            made.append(self._folder / copy)
        new = _Receipt(str(change.path), _hash(change.after), copy)
        write_private(self._receipt_file(change.path), json.dumps(asdict(new)).encode())
        return made

    def _receipt(self, path: Path) -> _Receipt | None:
        try:
            return _Receipt(**json.loads(self._receipt_file(path).read_bytes()))
        except (OSError, ValueError, TypeError):
            return None

    def _receipt_file(self, path: Path) -> Path:
        return self._folder / f"{self.agent.name}-{_hash(str(path).encode())[:16]}.json"


class _placed:
    """Names the file in what is not understood about its text."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if isinstance(error, NotUnderstood):
            error.file = str(self._path)


def _read(path: Path) -> bytes | None:
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        message = f"it cannot be read: {error.strerror}"
        raise ConfigError(message, "look at it there", file=str(path)) from error


def _decoded(path: Path, content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise ConfigError("the text is not UTF-8", "nothing was changed", file=str(path)) from error


def _hash(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def _replace(change: Change, mode: int) -> None:
    """Put the new content in place in one step, or take the file away. Raises `OSError`."""
    path = change.path.resolve()
    if change.after is None:
        path.unlink(missing_ok=True)
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if change.before is not None:
        mode = path.stat().st_mode & 0o7777
    descriptor, temporary = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            os.fchmod(file.fileno(), mode)
            file.write(change.after)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise
