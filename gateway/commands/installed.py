"""Slash commands of installed packages: entry points of the group `steersman.commands`.

Such a command is a function of a `CommandContext` and of the text after its name. It is imported when it
is first run, so that listing the commands imports nothing.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import re
from collections.abc import Iterator, Mapping
from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from ...machines.errors import SteersmanError
from ...workflows.document import is_table
from ...workflows.plugins import PREFIX, EntryPoints, PlugIn
from ..speaker import speaker
from .command import DECLARED, Command, Reply, Text

if TYPE_CHECKING:
    from ..client import SessionClient


class CommandContext:
    """What a slash command of an installed package may know of its session, and do in it."""

    def __init__(self, client: SessionClient) -> None:
        self._client = client

    @property
    def session_id(self) -> str:
        """The session's id."""
        return self._client.session

    @property
    def folder(self) -> Path:
        """The folder in which the session works."""
        return self._client.describe().folder

    @property
    def user(self) -> str:
        """Who typed the command; empty for the person at this terminal."""
        return speaker().user

    def say(self, text: str, how: Literal["auto", "queue", "steer", "interrupt"] = "queue") -> None:
        """Send a message to the session, as if it was typed; events tell what becomes of it."""
        self._client.send_message(text, how)

    def queue(self) -> dict[str, Any]:
        """Return the queue: `state`, and `items` in their order, each a dictionary."""
        return self._client.queue()

    def inspect(self) -> dict[str, Any]:
        """Return the whole state of the session as plain data, without secrets."""
        return self._client.view.inspect()


def _name_fault(name: str) -> str:
    """Say why no plug-in may have a name."""
    aliases = [alias for declared in DECLARED.values() for alias in declared.aliases]
    if name in DECLARED or name in aliases:
        return "the name is that of a built-in command"
    is_name = re.fullmatch(r"[a-z][a-z-]*", name)
    return "" if is_name else "a command's name has the letters a-z and `-` only"


INSTALLED = EntryPoints(
    f"{PREFIX}commands", "command", called_with=("context", "text"), check_name=_name_fault
)


@cache
def installed_commands() -> Mapping[str, Command[...]]:
    """Return the commands of installed packages by name; all built-in ones have been declared."""
    return {
        name: Command(name, "session", f"A command of {plug_in.origin}.", partial(_run, plug_in))
        for name, plug_in in INSTALLED.by_name.items()
    }


def _run(plug_in: PlugIn, client: SessionClient, text: Text = "") -> Reply:
    """Import a command, call it, and return what it returned or how it failed."""
    try:
        function = INSTALLED.checked(plug_in)
        with plug_in.guarded(passes=SteersmanError, what="failed"):
            result = function(CommandContext(client), text)
            if inspect.iscoroutine(result):
                result = asyncio.run(result)
            return _reply(result)
    except SteersmanError as error:
        text = f"{error.message}; {error.hint}" if error.hint else error.message
        return Reply(ok=False, text=text)


def _reply(result: Any) -> Reply:
    """Return what a command returned: a text, data for programs, or nothing."""
    if result is None or isinstance(result, str):
        return Reply(text=result or "Done.")
    if not is_table(result):
        raise TypeError(f"it returned a `{type(result).__name__}`, and no text, dictionary or None")
    text = json.dumps(result, ensure_ascii=False, indent=2, allow_nan=False)
    return Reply(data=json.loads(text), text=text)


class Commands(Mapping[str, Command[...]]):
    """Commands by name: the built-in ones, and those of installed packages where none has the name."""

    def __init__(self, built_in: Mapping[str, Command[...]]) -> None:
        self.built_in = built_in

    def __getitem__(self, name: str) -> Command[...]:
        return self.built_in[name] if name in self.built_in else installed_commands()[name]

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        yield from installed_commands()

    def __len__(self) -> int:
        return len(self.built_in) + len(installed_commands())
