"""Whether a model can be used on this machine now: the one answer for lists, menus and checks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Literal

from ...machines.value import Value
from ...workflows.extras import how_to_install
from ...workflows.providers import EMBEDDED
from .provider import ModelConfig
from .weights import CatalogueEntry, entry_named, has_engine, usual_here, weights_of

State = Literal["ready", "to fetch", "no weights", "no engine", "no key"]


class Availability(Value):
    """Whether a model can be used: `state` in a word, `text` for a list, `hint` the next step.

    `entry` is what is to be fetched.
    """

    state: State
    text: str
    hint: str = ""
    entry: CatalogueEntry | None = None


def availability(config: ModelConfig, cache: Path, environ: Mapping[str, str]) -> Availability:
    """Say whether a model can be used; no server is asked. `cache` is the cache folder."""
    if config.provider != EMBEDDED:
        where = f"{config.model} at {config.base_url}" if config.base_url else config.model
        where = where or config.provider
        if config.api_key_env and not environ.get(config.api_key_env):
            why = f"{config.api_key_env} is not set"
            hint = f"{why}: no key is sent"
            return Availability(state="no key", text=f"{where}, {why}", hint=hint)
        return Availability(state="ready", text=where)
    name = config.model or usual_here(cache).entry.name
    entry, weights = entry_named(name), weights_of(name, cache)
    to_fetch = f"to fetch: {entry.size / 1e9:.1f} GB" if entry is not None else "to fetch: "
    is_here = weights is not None and weights.is_file()
    if not has_engine():
        text = "its engine is not installed" + ("" if is_here else f"; {to_fetch}")
        return Availability(state="no engine", text=text, hint=how_to_install("local"))
    if is_here:
        return Availability(state="ready", text="on this machine")
    if entry is None:
        return Availability(state="no weights", text=f"there is no file {weights}")
    hint = f"`steersman models fetch {name}`; `steersman setup` chooses another model"
    return Availability(state="to fetch", text=to_fetch, hint=hint, entry=entry)
