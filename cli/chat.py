"""`steersman chat`: chooses the interface, opens the session, and closes it in order."""

from __future__ import annotations

import gc
from collections.abc import Mapping
from pathlib import Path

from msgspec.structs import replace

from ..gateway.client import SessionClient
from ..gateway.home.home import find_session, named_session, refuse_run
from ..gateway.host.host import Host
from ..gateway.launch_options import LaunchOptions
from ..gateway.serving import server_of
from ..journal.store import Store
from ..machines.errors import SteersmanError, UsageError
from ..machines.permission_mode import mode_named
from ..workflows.config import load
from ..workflows.paths import Paths
from .chat_options import CHOOSE, ChatInterface, ChatOptions, work_folder
from .interfaces import interface_of
from .signals import SignalExit, leave_on_signals
from .stored import stored


def chat(
    options: ChatOptions, environ: Mapping[str, str], given: ChatInterface | None = None
) -> int:
    """Run a chat and return its exit code; `given` replaces the interface that the options name."""
    _require_sense(options)
    try:
        with leave_on_signals():
            return _chat(options, environ, given)
    except SignalExit as signal_exit:
        return signal_exit.exit_code


def _chat(options: ChatOptions, environ: Mapping[str, str], given: ChatInterface | None) -> int:
    folder = work_folder(options.folder)
    paths = Paths.of(environ)
    if options.resume == CHOOSE:
        from .session_picker import pick_session

        options = replace(options, resume=pick_session(environ, folder, options))
    if options.resume:  # its own folder's settings apply, wherever the session is resumed
        with stored(environ) as store:
            row = named_session(store, options.resume)
        refuse_run(row)
        folder = Path(row.folder)
    settings = load(paths, folder, environ)
    interface, can_ask = interface_of(options, environ)
    launch = LaunchOptions(
        agent=options.agent,
        model=options.model,
        is_yes=options.is_yes,
        mode=mode_named(options.mode) if options.mode else "",
        can_ask=can_ask,
        is_debug=options.is_debug,
        is_one_shot=bool(options.message),
    )
    if given is None and can_ask and not options.is_json:
        server = server_of(paths.state)
        if server is not None and settings.auto_queue.persistence.enabled:
            from .attach import chat_there

            with stored(environ) as store:
                resume = _named(store, options, folder)
            there = replace(options, folder=folder, resume=resume)
            return chat_there(paths, settings, server, there, environ)
    host = Host(paths, settings, environ, launch)

    def open_it() -> SessionClient:
        resume = _named(host.store, options, folder)
        conversation = host.resume(resume) if resume else host.begin(folder)
        if can_ask and not options.is_json:
            host.greet(conversation.session)
        return conversation

    gc.freeze()
    gc.enable()
    try:
        return (given or interface)(host, open_it, options)
    finally:
        host.close()


def _require_sense(options: ChatOptions) -> None:
    """Refuse options that exclude each other."""
    if options.is_json and options.is_plain:
        raise UsageError("`--json` and `--plain` exclude each other", "use only one of them")
    if options.is_newest and options.resume:
        raise UsageError(
            "`--continue` and `--resume` exclude each other",
            "`--continue` resumes this folder's newest session, `--resume ID` a specific one",
        )


def _named(store: Store, options: ChatOptions, folder: Path) -> str:
    """Return the id of the session that the options name; empty if they name none."""
    if options.resume:
        return find_session(store.sessions(), options.resume).session
    if not options.is_newest:
        return ""
    for row in store.sessions():
        is_ours = row.folder == str(folder) and not (row.parent or row.workflow)
        # One that crashed before its first entry is empty.
        if is_ours and row.seq > 0 and row.state != "finalized":
            return row.session
    raise SteersmanError(
        f"no session of `{folder}` can be continued", "`steersman chat` starts one"
    )
