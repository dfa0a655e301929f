"""The prompt: type while the agent works.

Finished rows are printed above; the line that still streams, the open question, the input line and
the bar are drawn below, and redrawn at every change.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Callable, Generator, Iterable, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout, suppress
from io import TextIOBase
from pathlib import Path

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import ThreadedCompleter
from prompt_toolkit.history import History

from ..gateway.interface import ChatHost, ChatSession
from ..gateway.wording.first_run import opening_notices, ways_on
from ..gateway.wording.redaction import redactor_of
from ..workflows.home_folder import expanded
from ..workflows.paths import make_private, write_private
from .chat_options import ChatOptions
from .screen.appearance import Appearance
from .screen.bindings import Bindings
from .screen.completion import ChatCompleter, MenuChoices
from .screen.input_line import InputLine, MessageSender
from .screen.layout import make_app
from .screen.screen import Screen
from .screen.status import Attention
from .screen.terminal import Canvas, output_of, restored_terminal
from .signals import PromptExit, farewell, leave_through
from .streams import forget
from .talk import talking


class StdoutRedirect(TextIOBase):
    """Standard output and error while the screen is open: whole lines, printed above."""

    def __init__(self, write: Callable[[str], None]) -> None:
        self._write = write
        self._rest = ""

    def write(self, text: str) -> int:
        """Take a text; print the lines that it ends."""
        *whole, self._rest = (self._rest + text).split("\n")
        if whole:
            self._write("\n".join(whole))
        return len(text)


Guide = Callable[["Application[int]", Screen], None]
"""Gets the prompt before it opens, and may write into the screen and press keys; the prompt's thread."""


def talk_at_prompt(
    host: ChatHost,
    open_it: Callable[[], ChatSession],
    options: ChatOptions,
    guide: Guide | None = None,
) -> int:
    """Run a chat until the person leaves."""
    term, terminal = os.environ.get("TERM", ""), host.config.terminal
    with restored_terminal(host.paths.state / "terminals"):
        canvas = Canvas(output_of(sys.stdout, term), lambda: screen.status.is_busy)
        attention = Attention(terminal, canvas.signal, term)
        screen = Screen(
            canvas,
            Appearance.of(os.environ, terminal.theme),
            shows_queued=host.config.auto_queue.show_queue_on_input,
            attention=attention,
        )
        screen.status.folder = expanded(options.folder).resolve()
        with (
            redirect_stdout(StdoutRedirect(screen.write)),
            redirect_stderr(StdoutRedirect(screen.write)),
            _attentive(canvas, attention),
            talking(host, open_it, (screen.hear,)) as conversation,
        ):
            screen.keep_to(conversation.own_key)
            _greet(host, screen)
            sender = MessageSender()
            code = _converse(host, screen, conversation, sender, options, guide)
            sender.close()
            conversation.leave("signal" if code else "exit")
            canvas.drain()
            screen.write(farewell(conversation, host.paths, is_kept=host.is_kept))
            return code


@contextmanager
def _attentive(canvas: Canvas, attention: Attention) -> Generator[None]:
    """Set the terminal's modes and title, and give them back."""
    canvas.write_codes(attention.opening())
    try:
        yield
    finally:
        canvas.write_codes(attention.closing())


def _converse(
    host: ChatHost,
    screen: Screen,
    conversation: ChatSession,
    sender: MessageSender,
    options: ChatOptions,
    guide: Guide | None,
) -> int:
    """Open the prompt and return the exit code."""
    input_history = InputHistory(
        host.paths.state / "history.jsonl" if host.is_kept else None, os.environ
    )
    choices = MenuChoices(
        conversation.resumable, host.config, host.paths.cache, lambda: screen.status.model
    )
    completer = ChatCompleter(
        screen.status,
        options.folder.resolve(),
        lambda: [question["id"] for question in screen.questions.all],
        lambda: conversation.offers,
        choices,
        conversation.templates,
    )
    buffer = Buffer(
        multiline=True,
        history=input_history,
        completer=ThreadedCompleter(completer),
        complete_while_typing=True,
        tempfile_suffix=".md",
    )

    def on_loop(work: Callable[[], None]) -> None:
        if app.loop is not None:
            app.loop.call_soon_threadsafe(work)

    def leave() -> None:
        prompt_exit.shut()

    line = InputLine(buffer, screen, conversation, sender, leave, on_loop, choices)
    forget_line = host.event_bus.subscribe(line.hear)
    keys = Bindings(line, screen, leave, completer.missing)
    is_vi = host.config.terminal.keys == "vi"
    app = make_app(screen, buffer, keys.bindings, os.environ, is_vi=is_vi)
    app.key_processor.before_key_press += keys.note_key
    screen.canvas.app = app
    if guide is not None:
        guide(app, screen)
    prompt_exit = PromptExit(app, lambda: app.exit(result=0))
    with leave_through(prompt_exit.leave):
        try:
            app.run(prompt_exit.opened, handle_sigint=False, set_exception_handler=False)
            return prompt_exit.exit_code
        except (EOFError, OSError):  # the terminal is gone
            forget(1, 2)
            return 128 + signal.SIGHUP
        finally:
            forget_line()
            screen.canvas.app = None
            screen.canvas.drain()
            screen.finish()
            if buffer.text.strip():
                buffer.append_to_history()
                screen.write(f"Not sent (Up brings it back): {buffer.text}")


def _greet(host: ChatHost, screen: Screen) -> None:
    screen.status.agent = host.launch.agent or host.config.default_agent
    if screen.status.mode == "ask":
        screen.status.mode = host.config.permission_mode
    if host.choice is not None:
        screen.status.model = host.choice.name
    for notice in opening_notices(host):
        screen.write(f"{notice}\n")
    screen.write(f"{ways_on(host, ', ? the keys')}\n")


# The input history of all sessions, for Up and Ctrl-R, without secrets ---------------------------


KEPT = 2_000
"""Number of entries to which the file is cut when it has twice as many."""
LONGEST = 10_000
"""Maximum length of an entry in characters; a longer one was pasted."""


class InputHistory(History):
    """A history in a file of JSON strings, one a line, oldest first; mode 0600.

    An entry that begins with a blank is not kept, as in shells, nor a long paste. If the file
    cannot be written, the history lasts as long as the program.
    """

    def __init__(self, path: Path | None, environ: Mapping[str, str]) -> None:
        super().__init__()
        self._path = path
        self._redactor = redactor_of(environ)

    def load_history_strings(self) -> Iterable[str]:
        """Return the entries, newest first."""
        entries = _read(self._path) if self._path is not None else []
        if self._path is not None and len(entries) > 2 * KEPT:
            entries = entries[-KEPT:]
            text = "".join(json.dumps(entry) + "\n" for entry in entries)
            write_private(self._path, text.encode())
        return reversed(entries)

    def store_string(self, string: str) -> None:
        """Keep an entry."""
        is_kept = not string[:1].isspace() and len(string) <= LONGEST and "[Pasted #" not in string
        if self._path is None or not is_kept:
            return
        line = json.dumps(self._redactor.text(string)) + "\n"
        try:
            make_private(self._path.parent)
            flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
            with open(os.open(self._path, flags, 0o600), "wb") as file:
                file.write(line.encode())
        except OSError:
            self._path = None


def _read(path: Path) -> list[str]:
    try:
        lines = path.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []
    entries = list[str]()
    for line in lines:
        with suppress(ValueError):
            if isinstance(entry := json.loads(line), str):
                entries.append(entry)
    return entries
