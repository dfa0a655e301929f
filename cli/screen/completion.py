"""What can be completed in the input line: commands and their words, files, subagents, numbers."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from ...gateway.commands.registry import COMMANDS
from .status import Status

MOST_FILES = 40
_LAST = re.compile(r"(?:^|\s)(\S*)$")
_NUMBERED = re.compile(r"/queue\s+(?:edit|move|pop|steer|keep|resume)\s+(#?\d*)$")


def words_of(usage: str) -> list[str]:
    """Return the words that may follow a command, from its usage: `[list|add TEXT|on]`."""
    words: list[str] = []
    for part in re.sub(r"[\[\]]", " ", usage).split("|"):
        first = part.split()[0] if part.split() else ""
        if re.fullmatch(r"[a-z][a-z-]*", first):
            words.append(first)
    return words


class ChatCompleter(Completer):
    """Completes by what the word before the cursor begins with; `folder` is where files are."""

    def __init__(self, status: Status, folder: Path, questions: Callable[[], list[str]]) -> None:
        self._status = status
        self._folder = folder
        self._questions = questions

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Yield what fits; nothing for ordinary words."""
        before = document.text_before_cursor
        if "\n" in before:
            line = before.rpartition("\n")[2]
            yield from self._by_sign(line)
        elif before.startswith("/"):
            yield from self._command(before)
        else:
            yield from self._by_sign(before)

    def _command(self, before: str) -> Iterator[Completion]:
        name, blank, rest = before[1:].partition(" ")
        if not blank:
            for one in COMMANDS.values():
                if one.name.startswith(name.lower()):
                    more = " " if one.usage else ""
                    yield _completion(f"/{one.name}{more}", before, one.doc)
            return
        if found := _NUMBERED.match(before):
            yield from self._numbers(found[1], but="running")
            return
        command = COMMANDS.get(name.lower())
        word = rest.rpartition(" ")[2]
        if command is not None and " " not in rest:
            for known in words_of(command.usage):
                if known.startswith(word.lower()):
                    yield _completion(known, word)
        if name == "answer" and " " not in rest:
            yield from (_completion(one, word) for one in self._questions() if word in one)
        elif name == "answer":
            choices = ("allow", "always", "deny")
            yield from (_completion(one, word) for one in choices if one.startswith(word))
        elif name in ("agents", "diff") and rest.startswith(("stop ", "wrap-up ")):
            names = sorted(self._status.children)
            yield from (_completion(one, word) for one in names if one.startswith(word))
        else:
            yield from self._by_sign(before)

    def _by_sign(self, before: str) -> Iterator[Completion]:
        found = _LAST.search(before)
        word = found[1] if found else ""
        if word.startswith("#"):
            yield from self._numbers(word)
        elif word.startswith("@"):
            for name in sorted(self._status.children):
                if name.startswith(word[1:]):
                    yield _completion(f"@{name}", word, "subagent")
            yield from self._files(word)

    def _numbers(self, word: str, but: str = "") -> Iterator[Completion]:
        for item in self._status.items:
            if item["state"] == but:
                continue
            number = f"#{item['number']}"
            if number.startswith(word) or number[1:].startswith(word):
                text = " ".join(str(item["text"]).split())[:40]
                yield _completion(number, word, f"{item['state']}: {text}")

    def _files(self, word: str) -> Iterator[Completion]:
        """Complete `@path`, a folder at a time, without what begins with a dot unless it is asked for."""
        above, _, start = word[1:].rpartition("/")
        folder = self._folder / Path(above or ".").expanduser()
        try:
            found = sorted(folder.iterdir(), key=lambda one: (not one.is_dir(), one.name))
        except OSError:
            return
        shown = 0
        for one in found:
            is_hidden = one.name.startswith(".") and not start.startswith(".")
            if is_hidden or not one.name.lower().startswith(start.lower()) or " " in one.name:
                continue
            path = f"{above}/{one.name}" if above else one.name
            yield _completion(f"@{path}{'/' if one.is_dir() else ''}", word)
            shown += 1
            if shown == MOST_FILES:
                return


def _completion(text: str, word: str, about: str = "") -> Completion:
    return Completion(text, -len(word), display_meta=about)
