"""`steersman chat`: chooses the interface, opens the session, and closes it in order."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path

from msgspec.structs import replace

from ..gateway.client import SessionClient
from ..gateway.home.home import named_session, refuse_run
from ..gateway.host.host import Host
from ..gateway.launch_options import LaunchOptions
from ..gateway.reach import server_of
from ..gateway.session_info import SessionChoice, choices_of, chosen, fits, numbered
from ..gateway.wording.redaction import redactor_of
from ..journal.store import RowFilter, Store
from ..machines.errors import SteersmanError, UsageError
from ..machines.permission_mode import mode_named
from ..workflows.config import load
from ..workflows.paths import Paths
from .chat_options import CHOOSE, ChatInterface, ChatOptions, work_folder
from .interfaces import interface_of
from .signals import SignalExit, until_signal
from .stored import stored


def chat(
    options: ChatOptions, environ: Mapping[str, str], given: ChatInterface | None = None
) -> int:
    """Run a chat and return its exit code; `given` replaces the interface that the options name."""
    if options.is_json and options.is_plain:
        raise UsageError("`--json` and `--plain` exclude each other", "use only one of them")
    if options.is_newest and options.resume:
        raise UsageError(
            "`--continue` and `--resume` exclude each other",
            "`--continue` resumes this folder's newest session, `--resume ID` a specific one",
        )
    return until_signal(lambda: _chat(options, environ, given))


def _chat(options: ChatOptions, environ: Mapping[str, str], given: ChatInterface | None) -> int:
    folder = work_folder(options.folder)
    paths = Paths.of(environ)
    if options.resume == CHOOSE:
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
    with closing(host):
        return (given or interface)(host, open_it, options)


def _named(store: Store, options: ChatOptions, folder: Path) -> str:
    """Return the id of the session that the options name; empty if they name none."""
    if options.resume:
        return named_session(store, options.resume).session
    if not options.is_newest:
        return ""
    ours = [
        row
        for row in store.sessions(RowFilter(folder=str(folder), is_top=True))
        if not row.workflow
        # One that crashed before its first entry is empty.
        if row.seq > 0 and row.state != "finalized"
    ]
    if found := next((row for row in ours if row.has_begun), next(iter(ours), None)):
        return found.session
    raise SteersmanError(
        f"no session of `{folder}` can be continued", "`steersman chat` starts one"
    )


# `--resume` without an id: the person chooses one of the sessions ---------------------------------
# In a terminal a menu is filtered by what is typed; one that can only print has a numbered list.


def pick_session(environ: Mapping[str, str], folder: Path, options: ChatOptions) -> str:
    """Return the id of the session that the person chooses; those of `folder` come first.

    Raises `UsageError`, with the list, where no person can choose, and `SignalExit` where one left.
    """
    with stored(environ) as store:
        rows = sorted(store.sessions(), key=lambda row: row.folder != str(folder))
        choices = choices_of(store, redactor_of(environ), rows)
    if not choices:
        raise SteersmanError("no session can be resumed", "`steersman chat` starts one")
    is_typed = sys.stdin.isatty() and sys.stdout.isatty()
    if options.is_json or options.is_plain or options.message or not is_typed:
        raise UsageError(
            "`--resume` needs the id of a session here", "\n  ".join(numbered(choices))
        )
    if environ.get("TERM", "").lower() in ("dumb", "unknown"):
        return _typed(choices)
    return _from_menu(choices)


def _typed(choices: Sequence[SessionChoice]) -> str:
    """Print the list, and read a number, an id or words of a title."""
    print(*numbered(choices), sep="\n")
    while True:
        print("Which one? ", end="", flush=True)
        line = sys.stdin.readline()
        if not line:
            raise SignalExit(2)
        try:
            if line.strip():
                return chosen(choices, line.strip())
        except UsageError as error:
            print(f"{error}: {error.hint}")


def _from_menu(choices: Sequence[SessionChoice]) -> str:
    """Let the person choose from a menu: arrow keys, or words of the title, and Enter."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.completion import CompleteEvent, Completer, Completion
    from prompt_toolkit.document import Document
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

    from .screen.completion import menu_entry
    from .screen.layout import STYLE
    from .screen.terminal import output_of

    class Fitting(Completer):
        """Offers the sessions that fit what is typed."""

        def get_completions(
            self, document: Document, complete_event: CompleteEvent
        ) -> Iterable[Completion]:
            """Yield an entry for each."""
            for choice in choices:
                if fits(choice, document.text):
                    yield menu_entry(choice, document.text)

    keys = KeyBindings()
    session: PromptSession[str] = PromptSession(
        "resume: ",
        completer=Fitting(),
        complete_while_typing=True,
        key_bindings=keys,
        style=STYLE,
        include_default_pygments_style=False,
        output=output_of(sys.stdout, os.environ.get("TERM")),
        erase_when_done=True,
    )

    @keys.add("enter")
    def _(event: KeyPressEvent) -> None:
        document = event.current_buffer.document
        known = {choice.session for choice in choices}
        found = [choice.session for choice in choices if fits(choice, document.text)]
        if document.text in known:
            event.app.exit(result=document.text)
        elif found:
            event.app.exit(result=found[0])

    @keys.add("escape", eager=True)
    def _(event: KeyPressEvent) -> None:
        event.app.exit(exception=EOFError)

    def open_menu() -> None:
        session.default_buffer.start_completion(select_first=False)

    try:
        return session.prompt(pre_run=open_menu)
    except (EOFError, KeyboardInterrupt):
        raise SignalExit(2) from None
