"""What a change has left undone in other files: names, versions, and files that were asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import MappingProxyType

from ..tools.survey import DATA
from .renames import after_move, with_name
from .said_files import is_test
from .spoken_request import CHANGED, TAKEN, is_version, words_in
from .turn_view import TurnView, is_named

FILES = 8
"""Files of a turn, of those that a change has left something over in; the model sees one at a time."""


class LeftOver:
    """What is left to do in the files of a turn, after what was changed in others."""

    def __init__(self, view: TurnView) -> None:
        self.view = view

    @property
    def is_wide(self) -> bool:
        """Whether the request may be about files that it does not name."""
        request = self.view.request
        named = any(is_named(path, request.text) for path in self.view.written)
        is_named_alone = named or not request.replaces
        has_more = self.view.names is not None or bool(self.due) or request.is_everywhere
        return has_more or not is_named_alone

    @property
    def due(self) -> list[str]:
        """The files that are as they were, though the request says what to change in them."""
        view, found = self.view, list[str]()
        if view.request.is_question or not view.rounds:
            return found
        for path, text in view.files.items():
            name = path.rpartition("/")[2]
            word = "readme" if name.lower().startswith("readme") else re.escape(name)
            place = (
                rf"(?i)\b(in|to|into|{CHANGED}|({TAKEN}) .{{0,80}}(from|of))( the)? [`'\"]?{word}\b"
            )
            is_same = text and view.before.get(path) == text and path not in view.written
            is_asked = any(re.search(place, clause) for clause in view.request.changes)
            if is_asked and is_same and not (is_test(path) or path.endswith(DATA)):
                found.append(path)
        return found

    def renamed(self) -> dict[str, str]:
        """Return the files in which nothing but a name is to change, without those that were written."""
        view, found = self.view, dict[str, str]()
        for path, text in view.files.items():
            if text and path not in view.written and view.names:
                found[path] = with_name(path, text, view.names)
            elif text and path not in view.written and view.move:
                found[path] = after_move(path, text, *view.move)
        return {path: text for path, text in found.items() if text != view.files[path]}

    def next(self, writes: Mapping[str, str] = MappingProxyType({})) -> tuple[str, str, str] | None:
        """Return the next file in which a change has left something over, what, and what that is now.

        The last is empty if it may be different things. With `writes`, after these. A file that was
        written has been looked at.
        """
        view = self.view
        if not self.is_wide or (view.since and not writes):
            return None
        now = {**view.files, **writes}
        done = view.written | writes.keys()
        if not (done or now.keys() != view.before.keys()) or len(done) > FILES:
            return None
        names = [(*view.names, "")] if view.names else []
        for old, new, beside in (*names, *self._moved(now), *self._bumped(), *self._fewer(now)):
            for path, text in now.items():
                lines = (text or "").splitlines() if path not in done else []
                if any(beside in line.lower() and is_named(old, line) for line in lines):
                    return path, old, new
        return next(((path, "", "") for path in self.due if path not in done), None)

    def _moved(self, now: Iterable[str]) -> Iterator[tuple[str, str, str]]:
        """Yield the name that a file had, the one that it has now, if any, and nothing beside it."""
        gone = [path for path in self.view.before if path not in now]
        new = [path for path in now if path not in self.view.before]
        if len(gone) == 1 and len(new) <= 1:
            old, name = (path.rpartition("/")[2] for path in (*gone, *(new or [""])))
            yield old, name, ""

    def _bumped(self) -> Iterator[tuple[str, str, str]]:
        """Yield the version that a new one takes the place of, in lines that speak of the version."""
        news = list(filter(is_version, words_in(self.view.request.text)))
        lines = [line for text in self.view.before.values() for line in (text or "").splitlines()]
        about = [line for line in lines if "version" in line.lower()]
        olds = {word for line in about for word in words_in(line) if is_version(word)}
        if len(news) == len(olds) == 1 and news[0] not in olds:
            yield olds.pop(), news[0], "version"

    def _fewer(self, now: Mapping[str, str | None]) -> Iterator[tuple[str, str, str]]:
        """Yield words of the request that a change has made fewer, and the one that is there instead."""
        fewer, more = set[str](), set[str]()
        for path, text in now.items():
            if (before := self.view.before.get(path)) and text != before:
                old, new = Counter(words_in(before)), Counter(words_in(text or ""))
                fewer |= {word for word in old if new[word] < old[word]}
                more |= new.keys() - old.keys()
        asked = {*words_in(self.view.request.text)}
        known = {word for text in self.view.before.values() for word in words_in(text or "")}
        old_text, new_text = (
            "\n".join(filter(None, of.values())) for of in (self.view.before, now)
        )
        gone = self._phrases(fewer & asked, old_text)
        came = self._phrases((more & asked) - known, new_text)
        instead = came[0] if len(gone) == len(came) == 1 else ""
        for phrase in sorted(gone):
            yield phrase, instead, ""

    def _phrases(self, words: Collection[str], text: str) -> list[str]:
        """Join words that stand side by side in the request and a text, as a street and its number do.

        One other word may stand between two of them.
        """
        found = list[str]()
        for run in re.findall(r"[\w.-]+(?: [\w.-]+)*", self.view.request.text):
            parts = run.split()
            ours = [at for at, part in enumerate(parts) if part.rstrip(".") in words]
            while ours:
                first = end = ours.pop(0)
                while ours and ours[0] - end <= 2 and " ".join(parts[first : ours[0]]) in text:
                    end = ours.pop(0)
                found.append(" ".join(parts[first : end + 1]).rstrip("."))
        return list(dict.fromkeys(found))
