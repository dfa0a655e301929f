"""What a person chooses from in a menu: the other sessions, and the models."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from prompt_toolkit.completion import Completion

from ...gateway.session_choice import UNTITLED, SessionChoice, fits
from ...gateway.wording.terminal import audited
from ...ports.models.choice import known_names, model_named
from ...ports.models.provider import model_configs
from ...workflows.config import Config

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
            fitting = [choice for choice in self._fresh() if fits(choice, typed)]
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

    def _fresh(self) -> Sequence[SessionChoice]:
        if time.monotonic() - self._read > FRESH:
            self._sessions, self._read = self._resumable(), time.monotonic()
        return self._sessions


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
