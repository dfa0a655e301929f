"""`steersman gateway` and `plugins`: chat rooms, and whatever else installed packages bring."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import sys
import threading
from pathlib import Path
from typing import Annotated, Any

from ...gateway.library import Home
from ...gateway.plugins import PlugInState, plug_in_states
from ...gateway.wording.redaction import Redactor
from ...machines.errors import SteersmanError, UsageError
from ...workflows.config import Config, load
from ...workflows.paths import Paths
from ...workflows.plugins import GATEWAYS
from ...workflows.problem import did_you_mean
from ..options import Json, argument, flag, group
from ..output import show, show_document, show_table, warn
from ..signals import SignalExit, leave_through, until_signal

gateway = group("gateway", "steersman gateway list")


class _Told(logging.Handler):
    """Tells the person who runs a gateway what it logs: connections, and what goes wrong."""

    def __init__(self, redactor: Redactor) -> None:
        super().__init__(logging.INFO)
        self._redactor = redactor

    def emit(self, record: logging.LogRecord) -> None:
        """Print a line."""
        warn(self._redactor.line(record.getMessage()))


@gateway.command("list")
def gateway_list(as_json: Json = False) -> None:
    """List the gateways, and which of them are configured.

    Example: steersman gateway list
    """
    config = _config()
    views = [
        {
            "name": name,
            "distribution": plug_in.distribution,
            "version": plug_in.version,
            "is_configured": name in config.gateways,
        }
        for name, plug_in in sorted(GATEWAYS.by_name.items())
    ]
    redactor = Redactor(os.environ)
    if as_json:
        show_document({"gateways": [redactor.data(view) for view in views]})
    elif views:
        rows = [
            (
                redactor.line(str(view["name"])),
                redactor.line(f"{view['distribution']} {view['version']}"),
                "yes" if view["is_configured"] else "no",
            )
            for view in views
        ]
        show_table(("GATEWAY", "OF", "CONFIGURED"), rows)
    else:
        show("No installed package has a gateway.")


@gateway.command("check")
def gateway_check(
    name: Annotated[str, argument("NAME", "A gateway of `gateway list`.")],
    as_json: Json = False,
) -> None:
    """Connect once, and say what was found: the server, the account, each room.

    Example: steersman gateway check irc
    """
    config = _config()
    gateway, plug_in = _gateway(name), GATEWAYS.by_name[name]
    check = getattr(gateway, "check", None)
    if check is None:
        raise UsageError(
            f"gateway `{name}` has no check", f"`steersman gateway run {name}` tells the rest"
        )
    with plug_in.guarded(passes=SteersmanError, what="failed"):
        lines = asyncio.run(check(config.gateways.get(name, {})))
    redactor = Redactor(os.environ)
    found = [redactor.line(str(line)) for line in lines]
    if as_json:
        show_document({"gateway": name, "found": found})
    for line in found if not as_json else ():
        show(line)


@gateway.command("run")
def gateway_run(
    name: Annotated[str, argument("NAME", "A gateway of `gateway list`.")],
    ends_with_input: Annotated[
        bool, flag("--ends-with-input", "End when standard input ends, as for `steersman serve`.")
    ] = False,
) -> int:
    """Run a gateway until it ends, or until a signal.

    Example: steersman gateway run irc
    """
    config = _config()
    gateway = _gateway(name)
    for notice in config.notices:
        warn(notice)
    told = _Told(Redactor(os.environ))
    chat = logging.getLogger("steersman.chat")
    before = chat.level
    chat.setLevel(logging.INFO)
    chat.addHandler(told)
    if ends_with_input:
        threading.Thread(target=_end_with_input, daemon=True).start()
    try:
        settings = config.gateways.get(name, {})
        return until_signal(lambda: asyncio.run(_run(gateway, name, settings)))
    finally:
        chat.removeHandler(told)
        chat.setLevel(before)


def _end_with_input() -> None:
    sys.stdin.buffer.read()
    os.kill(os.getpid(), signal.SIGTERM)


def mistakes_of_gateways(config: Config) -> list[str]:
    """Say what is wrong in the tables of the gateways that are installed; nothing is connected to."""
    found: list[str] = []
    for name in sorted(set(config.gateways) & set(GATEWAYS.by_name)):
        try:
            validate = getattr(GATEWAYS.load(name), "validate", None)
            if validate is not None:
                asyncio.run(validate(config.gateways[name]))
        except SteersmanError as error:
            found += [error.message, *([f"  {error.hint}"] if error.hint else [])]
    return found


def _gateway(name: str) -> Any:
    """Import a gateway. Raises `UsageError` for a name that none has, and `PlugInError`."""
    if name not in GATEWAYS.by_name:
        installed = f"installed are: {', '.join(GATEWAYS.by_name) or 'none'}"
        hint = did_you_mean(name, GATEWAYS.by_name) or installed
        raise UsageError(f"there is no gateway `{name}`", hint)
    return GATEWAYS.load(name)


async def _run(gateway: Any, name: str, settings: dict[str, Any]) -> int:
    """Give a gateway the home; its task is cancelled by the first signal."""
    plug_in = GATEWAYS.by_name[name]
    task, loop = asyncio.current_task(), asyncio.get_running_loop()
    assert task is not None
    exits: list[SignalExit] = []

    def leave(signal_exit: SignalExit) -> bool:
        exits.append(signal_exit)
        loop.call_soon_threadsafe(task.cancel)
        return True

    with leave_through(leave):
        try:
            async with Home(None) as home:
                with plug_in.guarded(passes=SteersmanError, what="failed"):
                    await gateway(home, settings)
        except asyncio.CancelledError:
            if not exits:
                raise
    return exits[0].exit_code if exits else 0


def _config() -> Config:
    return load(Paths.of(os.environ), Path.cwd(), os.environ)


# Plug-ins -----------------------------------------------------------------------------------------


plugins = group("plugins", "steersman plugins list")


@plugins.command("list")
def plugins_list(as_json: Json = False) -> int:
    """Import everything that installed packages add, and list it; exits 1 if something is broken.

    Example: steersman plugins list
    """
    states = plug_in_states()
    redactor = Redactor(os.environ)
    if as_json:
        show_document({"plugins": [redactor.data(_view(state)) for state in states]})
    elif states:
        columns = ("kind", "name", "distribution", "version", "state")
        rows = [[redactor.line(_view(state)[name] or "-") for name in columns] for state in states]
        show_table([name.upper() for name in columns], rows)
        for state in states:
            if state.fault:
                error = state.plug_in.error(state.fault, state.hint)
                show(redactor.line(f"{error.message}; {error.hint}"))
    else:
        show("No installed package adds anything to steersman.")
    return 1 if any(state.fault for state in states) else 0


def _view(state: PlugInState) -> dict[str, Any]:
    return {
        "name": state.plug_in.name,
        "kind": state.kind,
        "distribution": state.plug_in.distribution,
        "version": state.plug_in.version,
        "place": state.plug_in.place,
        "state": "error" if state.fault else "ok",
        "error": state.fault or None,
        "hint": state.hint if state.fault else None,
    }
