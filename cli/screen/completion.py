"""Completion in the input line: commands and their arguments, files, subagents, numbers, sessions."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from ...gateway.commands.command import Command
from ...gateway.session_info import UNTITLED, SessionChoice, fits
from ...gateway.wording.terminal import audited
from ...machines import protocol as m
from ...machines.errors import ConfigError
from ...ports.attachment import AFTER
from ...ports.models.choice import known_names, model_named
from ...ports.models.provider import model_configs
from ...workflows.config import Config
from ...workflows.home_folder import expanded
from .file_index import FileIndex, ranked
from .status import Status

if TYPE_CHECKING:
    from ...ports.templates import Template
    from ...ports.tools.mcp_offer import McpOffer

MOST_FILES = 40
_ABOUT = 60  # characters of a description
_BLANKS = frozenset(" \t\n\"'`")
_LAST = re.compile(r"(?:^|\s)(@\"[^\"]*|\S*)$")


FRESH = 3.0
"""Seconds for which a list of sessions is not read again, while a person types."""
PICKED = {"/resume": "session", "/model": "model"}
"""The commands that open a menu when they are sent without an argument, and the menu's kind."""


class MenuChoices:
    """The sessions that can be resumed and the models that can be used; may block, for any thread.

    `current` returns the name of the model in use.
    """

    def __init__(
        self,
        resumable: Callable[[], Sequence[SessionChoice]],
        config: Config,
        cache: Path,
        current: Callable[[], str] = str,
    ) -> None:
        self._resumable = resumable
        self._current = current
        self._configs, self._cache = model_configs(config.models), cache
        self._sessions: Sequence[SessionChoice] = ()
        self._read = -FRESH

    def entries(self, kind: str, typed: str) -> Iterator[Completion]:
        """Yield the entries of a kind (`session`, `model`) that fit what is typed; it replaces that."""
        if kind == "session":
            if time.monotonic() - self._read > FRESH:
                self._sessions, self._read = self._resumable(), time.monotonic()
            fitting = [choice for choice in self._sessions if fits(choice, typed)]
            yield from (menu_entry(choice, typed) for choice in fitting)
        elif kind == "model":
            names = known_names(self._configs)
            fitting_models = [name for name in names if typed.casefold() in name.casefold()]
            yield from (
                self._model(name, typed) for name in fitting_models if not name.endswith(":MODEL")
            )

    def _model(self, name: str, typed: str) -> Completion:
        from ...ports.models.availability import availability  # when such a menu opens

        config = model_named(name, self._configs, self._cache)
        now = "in use now, " if name == self._current() else ""
        usual = f"{config.name}, " if config.name != name else ""
        about = audited(now + usual + availability(config, self._cache, os.environ).text)
        return Completion(name, -len(typed), display=audited(name), display_meta=about)

    def has_any(self, kind: str) -> bool:
        """Whether there is anything to choose, as it is now."""
        self._read = -FRESH
        return next(self.entries(kind, ""), None) is not None


def menu_entry(choice: SessionChoice, typed: str) -> Completion:
    """Return the entry of a session: its title, and beside it how old it is."""
    return Completion(
        choice.session,
        -len(typed),
        display=audited(choice.title or UNTITLED),
        display_meta=audited(f"{choice.session}, {choice.about}"),
    )


def picked_kind(line: str) -> tuple[str, str]:
    """Return the kind of menu for a line such as `/resume zod`, and what is typed; empty for others."""
    command, blank, typed = line.partition(" ")
    return (PICKED[command], typed) if blank and command in PICKED else ("", "")


class ChatCompleter(Completer):
    """Completes the word before the cursor by its first characters; files are those of `folder`.

    `offers` returns what the session's MCP servers offer, by their names.
    """

    def __init__(
        self,
        status: Status,
        folder: Path,
        questions: Callable[[], list[str]],
        offers: Callable[[], Mapping[str, McpOffer]] = dict,
        choices: MenuChoices | None = None,
        templates: Callable[[], Mapping[str, Template]] = dict,
    ) -> None:
        self._status = status
        self._folder = folder
        self._questions = questions
        self._offers = offers
        self._choices = choices
        self._templates = templates
        self._index = FileIndex(folder)

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Yield the completions; none for ordinary words."""
        before = document.text_before_cursor
        if before.startswith("/") and "\n" not in before:
            yield from self._command(before)
        else:
            yield from self._by_sign(before.rpartition("\n")[2])

    def missing(self, before: str) -> str:
        """Return the `@path` that a text ends with, if there is no such file; else nothing."""
        found = _LAST.search(before)
        word = found[1] if found else ""
        if not word.startswith("@") or ":" in word or word[1:] in self._status.children:
            return ""
        try:
            path = self._folder / expanded(word[1:].strip('"').rstrip(AFTER) or ".")
            return "" if path.exists() else word
        except (OSError, ValueError, ConfigError):
            return word

    def _command(self, before: str) -> Iterator[Completion]:
        from ...gateway.commands.registry import COMMANDS, NAMES  # all commands

        name, blank, rest = before[1:].partition(" ")
        if not blank:
            for candidate in COMMANDS.values():
                if candidate.name.startswith(name.lower()):
                    more = " " if candidate.usage else ""
                    yield _completion(f"/{candidate.name}{more}", before, candidate.doc)
            for template in self._templates().values():
                if template.name.startswith(name.lower()) and template.name not in NAMES:
                    yield _completion(f"/{template.name} ", before, template.description[:_ABOUT])
            yield from self._prompts(before)
            return
        command = NAMES.get(name.lower())
        verb, blank, after = rest.partition(" ")
        if command is not None and blank and (found := command.verbs.get(verb.lower())):
            command, rest = found, after
        elif command is not None and not blank:
            for name, subcommand in command.verbs.items():
                if name.startswith(verb.lower()):
                    yield _completion(name, verb, subcommand.doc)
        if command is not None:
            yield from self._argument(command, rest)
        if (word := before.rpartition(" ")[2]).startswith("@"):  # a message addresses no subagent
            for name in sorted(self._status.children):
                if name.startswith(word[1:]):
                    yield _completion(f"@{name} ", word, "subagent")
        yield from self._by_sign(before)

    def _argument(self, command: Command[...], typed: str) -> Iterator[Completion]:
        """Complete the last word as a value of its parameter."""
        if self._choices is not None and command.parameters:
            yield from self._choices.entries(command.parameters[0].of, typed)
        *before, word = typed.split(" ")
        options = [parameter for parameter in command.parameters if parameter.is_option]
        if word.startswith("--"):
            unused = [option.option for option in options if option.option not in before]
            yield from (_completion(option, word) for option in unused)
        positionals = [parameter for parameter in command.parameters if not parameter.is_option]
        position = sum(bool(argument) and not argument.startswith("--") for argument in before)
        if position >= len(positionals):
            return
        parameter = positionals[position]
        known = [*parameter.choices]
        if parameter.of == "choice":
            known += m.CHOICES
        elif parameter.of == "subagent" and not word.startswith("@"):
            known += sorted(self._status.children)
        yield from (_completion(name, word) for name in known if name.startswith(word))
        if parameter.of == "queue":
            yield from self._numbers(word, but="running")
        elif parameter.of == "question":
            yield from (_completion(name, word) for name in self._questions() if word in name)

    def _by_sign(self, before: str) -> Iterator[Completion]:
        found = _LAST.search(before)
        word = found[1] if found else ""
        if word.startswith("#"):
            yield from self._numbers(word)
        elif word.startswith("@"):
            yield from self._resources(word)
            yield from self._files(word)

    def _prompts(self, typed: str) -> Iterator[Completion]:
        """Complete `/server:prompt`."""
        for server, offer in self._offers().items():
            for prompt in offer.prompts:
                name = f"/{server}:{prompt.name}"
                if name.lower().startswith(typed.lower()) and not set(name) & _BLANKS:
                    more = " " if prompt.arguments else ""
                    yield _completion(f"{name}{more}", typed, _first_line(prompt.description))

    def _resources(self, word: str) -> Iterator[Completion]:
        """Complete `@server:uri`: the servers first, then the resources of one, as far as a pattern."""
        server, colon, _ = word[1:].partition(":")
        offers = {name: offer for name, offer in self._offers().items() if offer.resources}
        if not colon:
            names = [name for name in offers if name.startswith(server)]
            yield from (_completion(f"@{name}:", word, "MCP server") for name in names)
            return
        for resource in offers[server].resources if server in offers else ():
            uri = resource.uri.partition("{")[0] if resource.is_template else resource.uri
            name = f"@{server}:{uri}"
            if name.startswith(word) and not set(name) & _BLANKS:
                yield _completion(name, word, _first_line(resource.description or resource.name))

    def _numbers(self, word: str, but: str = "") -> Iterator[Completion]:
        for item in self._status.items:
            if item["state"] == but:
                continue
            number = f"#{item['number']}"
            if number.startswith(word) or number[1:].startswith(word):
                text = " ".join(str(item["text"]).split())[:40]
                yield _completion(number, word, f"{item['state']}: {text}")

    def _files(self, word: str) -> Iterator[Completion]:
        """Complete `@path`: by beginnings in the folder that is named, then by letters in the tree."""
        shown = set[str]()
        for completion in self._beginning(word):
            shown.add(completion.text)
            yield completion
        if len(word) < 2 or word.startswith(("@/", "@~", "@..")):
            return
        for path in ranked(self._index.paths(), word[1:].lstrip('"'), MOST_FILES):
            if (name := _named(path)) not in shown:
                yield _completion(name, word)

    def _beginning(self, word: str) -> Iterator[Completion]:
        """Complete a path in one folder; hidden files only after a dot."""
        above, _, start = word[1:].lstrip('"').rpartition("/")
        try:
            folder = self._folder / expanded(above or ".")
            found = sorted(folder.iterdir(), key=lambda entry: (not entry.is_dir(), entry.name))
        except (OSError, ConfigError):
            return
        shown = 0
        for entry in found:
            is_hidden = entry.name.startswith(".") and not start.startswith(".")
            if is_hidden or not entry.name.lower().startswith(start.lower()):
                continue
            path = f"{above}/{entry.name}" if above else entry.name
            yield _completion(_named(f"{path}{'/' if entry.is_dir() else ''}"), word)
            shown += 1
            if shown == MOST_FILES:
                return


def _named(path: str) -> str:
    """Write a path as a message names it: in quotes if it has a blank, open after a folder."""
    if not set(path) & _BLANKS:
        return f"@{path}"
    return f'@"{path}' if path.endswith("/") else f'@"{path}"'


def _first_line(text: str) -> str:
    return text.partition("\n")[0][:_ABOUT]


def _completion(text: str, word: str, about: str = "") -> Completion:
    return Completion(text, -len(word), display=audited(text), display_meta=audited(about))
