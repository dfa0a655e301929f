"""What a person chooses from in a menu: the other sessions, and the models."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence

from prompt_toolkit.completion import Completion

from ...gateway.session_choice import UNTITLED, SessionChoice, fits
from ...gateway.terminal import audited
from ...ports.models.choice import known_names
from ...ports.models.provider import ModelConfig, model_configs
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
        current: Callable[[], str] = str,
    ) -> None:
        self._resumable = resumable
        self._current = current
        configs = model_configs(config.models)
        self._models = {
            name: _about(configs.get(name))
            for name in known_names(configs)
            if not name.endswith(":MODEL")
        }
        self._sessions: Sequence[SessionChoice] = ()
        self._read = -FRESH

    def entries(self, kind: str, typed: str) -> Iterator[Completion]:
        """Yield the entries of a kind (`session`, `model`) that fit what is typed; it replaces that."""
        if kind == "session":
            fitting = [choice for choice in self._fresh() if fits(choice, typed)]
            yield from (menu_entry(choice, typed) for choice in fitting)
        elif kind == "model":
            fitting_models = [name for name in self._models if typed.casefold() in name.casefold()]
            yield from (self._model(name, typed) for name in fitting_models)

    def _model(self, name: str, typed: str) -> Completion:
        now = "in use now, " if name == self._current() else ""
        about = audited(now + self._models[name])
        return Completion(name, -len(typed), display=audited(name), display_meta=about)

    def has_any(self, kind: str) -> bool:
        """Whether there is anything to choose, as it is now."""
        self._read = -FRESH
        return next(self.entries(kind, ""), None) is not None

    def _fresh(self) -> Sequence[SessionChoice]:
        if time.monotonic() - self._read > FRESH:
            self._sessions, self._read = self._resumable(), time.monotonic()
        return self._sessions


def _about(config: ModelConfig | None) -> str:
    """Say where a model answers; `config` is none for one that no configuration names."""
    if config is None or not config.base_url:
        return "on this machine" if config is None else config.model or config.provider
    return f"{config.model} at {config.base_url}"


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
