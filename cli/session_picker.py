"""`steersman chat --resume` without an id: the person chooses one of the sessions.

In a terminal a menu is filtered by what is typed; one that can only print has a numbered list.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from ..gateway.session_choice import UNTITLED, SessionChoice, choices_of, chosen, fits
from ..gateway.wording.redaction import redactor_of
from ..machines.errors import SteersmanError, UsageError
from .chat_options import ChatOptions
from .signals import SignalExit
from .stored import stored


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


def numbered(choices: Sequence[SessionChoice]) -> Iterable[str]:
    """Yield a line for each session, numbered from 1."""
    for number, choice in enumerate(choices, 1):
        yield f"{number:>2}. {choice.session}  {choice.title or UNTITLED}  ({choice.about})"


def _typed(choices: Sequence[SessionChoice]) -> str:
    """Print the list, and read a number, an id or words of a title."""
    print(*numbered(choices), sep="\n")
    while True:
        sys.stdout.write("Which one? ")
        sys.stdout.flush()
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
