"""The input line: what is typed, pasted, edited and sent.

Messages are sent from a thread of their own, so that typing never waits for an answer.
"""

from __future__ import annotations

import os
import queue
import re
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from urllib.parse import unquote

from prompt_toolkit.application import get_app
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode

from ...gateway.commands.command import Reply
from ...gateway.commands.conversation import copy
from ...gateway.commands.edit_last import AGAIN, edit_last
from ...gateway.commands.mode import mode
from ...gateway.commands.own import kill
from ...gateway.commands.queue import edit_queue, pop_queue, steer_from_queue
from ...gateway.commands.talk import stop
from ...gateway.events.contract import Event, QuestionEvent
from ...gateway.interface import ChatSession
from ...gateway.wording.formats import line_count
from ...machines.disposition import Intent
from ...machines.errors import UsageError
from ...machines.permission_mode import next_mode
from ...machines.value import Value
from ..question import QuestionAnswer, answer_keys, answering, changing, quoted, waits_for
from .completion import PICKED, MenuChoices
from .screen import Screen
from .status import Status
from .terminal import copy_text

BEGUN = (f"{AGAIN} ", "/answer ")
"""With what the lines begin that a key begins: Esc takes them away, and stops nothing."""

Work = Callable[[], None]


class MessageSender:
    """Sends messages in order; stops and answers overtake them."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="message-sender", daemon=True)
        self._thread.start()

    def later(self, work: Work) -> None:
        """Run a piece of work after all earlier ones."""
        self._work.put(work)

    def now(self, work: Work) -> None:
        """Run a piece of work at once."""
        threading.Thread(target=work, name="message-sender-now", daemon=True).start()

    def close(self, seconds: float = 2.0) -> None:
        """Take no more work, and wait for the rest for at most so many seconds."""
        self._work.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()


class EditedText(Value):
    """A queued message in the input line, to be edited; `id` is its item, `after` what ran then."""

    id: str
    number: int
    text: str
    after: int | None

    def is_waiting(self, status: Status) -> bool:
        """Whether the message is still queued: only then can it be changed."""
        return any(item["id"] == self.id and item["state"] == "pending" for item in status.items)

    def note(self, status: Status) -> str:
        """Return the note above the input line."""
        runs = status.running
        if self.is_waiting(status):
            instead = f", #{runs} runs first" if runs not in (None, self.after) else ""
            keys = "Enter saves it, an empty line removes it, Esc cancels."
            return f"Editing #{self.number}, which does not start meanwhile{instead}: {keys}"
        state = "has started" if runs == self.number else "is no longer waiting"
        return f"#{self.number} {state}: Enter sends this as a new message."


def waiting_beside(
    status: Status, edited: EditedText | None, *, is_later: bool = False
) -> EditedText | None:
    """Return the last queued message, or the one before `edited`, or after it; none if there is none.

    One that another terminal edits is not passed over, as its text would come from the history then. One
    that a subagent has already is.
    """
    waiting = [
        item
        for item in status.items
        if item["state"] == "pending" and not (item.get("goal") or item.get("children"))
    ]
    if edited is not None:
        at = next((at for at, item in enumerate(waiting) if item["id"] == edited.id), 0)
        waiting = waiting[at + 1 : at + 2] if is_later else waiting[:at]
    if not waiting:
        return None
    item = waiting[-1]
    return EditedText(
        id=item["id"],
        number=item["number"],
        text=item["text"],
        after=status.running,
    )


REASON = "r"
"""The key on a card that begins a reason for a no."""

REMEMBERED = 20
"""Sent texts that are put back into the line if they are rejected."""

LINES = 8
CHARACTERS = 1_000
"""A longer paste is shown as one word."""

_WORD = re.compile(r"\[Pasted #(\d+): [\d,]+ (?:lines|characters)\]")


class Pastes:
    """Long pastes: one short word in the input line stands for each, and the text is sent whole."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def take(self, data: str) -> str:
        """Return the text to show for a paste: the paste itself, or a word that stands for it."""
        text = data.replace("\r\n", "\n").replace("\r", "\n")
        lines = line_count(text)
        if lines <= LINES and len(text) <= CHARACTERS:
            return text
        number = len(self._texts) + 1
        self._texts[number] = text
        size = f"{lines:,} lines" if lines > LINES else f"{len(text):,} characters"
        return f"[Pasted #{number}: {size}]"

    def whole(self, text: str) -> str:
        """Replace the words by the pasted texts; a word that was edited stays as it is."""
        return _WORD.sub(lambda found: self._texts.get(int(found[1]), found[0]), text)

    def word_before(self, text: str) -> int:
        """Return the length of the word that a text ends with, 0 for none."""
        for found in _WORD.finditer(text):
            if found.end() == len(text) and int(found[1]) in self._texts:
                return len(found[0])
        return 0


class LineStart:
    """Under which question's card the line was begun: with Enter it can answer no other."""

    def __init__(self, buffer: Buffer, screen: Screen) -> None:
        self._screen = screen
        self._question: str | None = None
        buffer.on_text_changed += self._note

    def _note(self, buffer: Buffer) -> None:
        if not buffer.text:
            self._question = None
        elif self._question is None or len(buffer.text) == 1:
            question = self._screen.answerable()
            self._question = question["id"] if question is not None else ""

    def taken(self) -> str:
        """Return the id of the question, empty for none; the line is sent now."""
        question, self._question = self._question or "", None
        return question


_ANSWERS = ("y", "yes", "a", "always", "e", "n", "no")
"""First words of a line that was begun as an answer."""


class InputLine:
    """The input line of the prompt, and what is sent from it; used in the prompt's thread.

    `leave` ends the prompt, `on_loop` runs something in the prompt's thread.
    """

    def __init__(
        self,
        buffer: Buffer,
        screen: Screen,
        conversation: ChatSession,
        sender: MessageSender,
        leave: Callable[[], None],
        on_loop: Callable[[Callable[[], None]], None],
        choices: MenuChoices | None = None,
    ) -> None:
        self.buffer = buffer
        self._screen = screen
        self._conversation = conversation
        self._sender = sender
        self._leave = leave
        self._on_loop = on_loop
        self._choices = choices
        self._pastes = Pastes()
        self._edited: EditedText | None = None
        self._sent: deque[str] = deque(maxlen=REMEMBERED)
        self._start = LineStart(buffer, screen)
        screen.note = self._note

    # Sending ------------------------------------------------------------------------------------

    def send(self, explicit: str = "auto") -> None:
        """Send the text of the line; `explicit` is auto, queue or steer."""
        shown, begun_under = self.buffer.text, self._start.taken()
        text = self._pastes.whole(shown)
        text = text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")  # broken bytes
        edited, self._edited = self._edited, None
        if edited is not None and edited.is_waiting(self._screen.status):
            self.buffer.reset()
            self._reword(edited, text, is_steer=explicit == "steer")
            return
        if edited is not None:
            self._sender.later(self._let_go)
        if not text.strip():
            return
        question = self._screen.questions.first
        if question is not None and explicit == "auto" and begun_under == question["id"]:
            keys = answer_keys(question, self._screen.status.folder)
            answer = answering(self._conversation.texts, question, text, keys)
            if answer is not None:
                self.buffer.reset()
                self._answer(question, quoted(answer, text))
                return
        if begun_under and explicit == "auto" and text.split()[0].casefold() in _ANSWERS:
            if all(question["id"] != begun_under for question in self._screen.questions.all):
                self._screen.write("That question is closed. Enter again sends this as a message.")
                return
        if text in PICKED and self._choices is not None:
            self._offer(text, self._choices)
            return
        self._send(text, shown, explicit)

    def _offer(self, command: str, choices: MenuChoices) -> None:
        """Open a menu of what the command can name; without any, send the command as it is."""

        def open_menu(has_any: bool) -> None:
            if self.buffer.text != command:
                return
            if not has_any:
                self._send(command, command, "auto")
                return
            self.buffer.insert_text(" ")
            self.buffer.start_completion(select_first=False)

        def look() -> None:
            has_any = choices.has_any(PICKED[command])
            self._on_loop(lambda: open_menu(has_any))

        self._sender.later(look)

    def _send(self, text: str, shown: str, explicit: str) -> None:
        """Send a text; a command is carried out at once, and a message waits for an open question."""
        would_stop = self._conversation.texts.would_stop(text)
        if would_stop and text.lstrip().startswith("/"):
            explicit = "auto"
        elif explicit == "auto" and not would_stop and waits_for(self._screen.questions.first):
            explicit = "queue"
        self.buffer.reset(append_to_history=True)
        self._screen.echo(shown)
        self._say(text, explicit)

    def stop(self) -> None:
        """Stop the person's own commands; without any, the turn and all that it started.

        Both happen before any queued message is sent.
        """
        call = kill() if self._screen.status.own_commands else stop()
        self._sender.now(lambda: self._told(self._conversation.run(call)))

    def change_mode(self) -> None:
        """Go to the next permission mode; the bar and a line show it."""
        call = mode(next_mode(self._screen.status.mode))
        self._sender.now(lambda: self._told(self._conversation.run(call)))

    def hear(self, event: Event) -> None:
        """Put a text of this line that was rejected back; the runtime's thread."""
        if event["type"] == "rejected" and event["text"] in self._sent:
            text = event["text"]
            self._on_loop(lambda: self.restore(text))

    def _say(self, text: str, explicit: str) -> None:
        self._sent.append(text)
        found, do = self._conversation.texts.classify(text), self._sender.later
        if found.intent is Intent.COMMAND:
            from ...gateway.commands.registry import NAMES  # all commands: with the first one

            if found.command == "copy":
                do(lambda: self._copy(found.argument))
                return
            if text.split() in ([AGAIN], [AGAIN, "--revert"]):
                self.edit_last(found.argument.strip())
                return
            if NAMES[found.command].is_urgent:  # it overtakes what is still to be sent
                do = self._sender.now
        do(lambda: self._told(self._conversation.say(text, explicit)))

    def _copy(self, argument: str) -> None:
        """Have `/copy` find the text, and put that into the clipboard; the sender's thread."""
        try:
            reply = self._conversation.run(copy.parse(argument))
        except UsageError as mistake:
            self._screen.write(mistake.message)
            return
        if reply is not None and reply.ok:
            write = self._screen.canvas.write_codes
            how = copy_text(
                reply.data["text"], os.environ, lambda codes: self._on_loop(partial(write, codes))
            )
            self._screen.write(f"  {how}")

    def _told(self, reply: Reply | None) -> None:
        if reply is not None and reply.leaves:
            self._on_loop(self._leave)

    def edit_last(self, option: str = "") -> None:
        """Put the command that sends the last message again into the line, unless that has a text."""

        def show(line: str) -> None:
            if not self.buffer.text:
                self._show(line)

        def look() -> None:
            reply = self._conversation.run(edit_last.parse(option))
            if reply is not None and reply.ok:
                self._on_loop(partial(show, reply.data["line"]))

        self._sender.later(look)

    def _show(self, text: str) -> None:
        """Put a text into the line, with the cursor behind it."""
        self.buffer.set_document(Document(text, len(text)))

    # Answering ----------------------------------------------------------------------------------

    def answer_by(self, key: str, question: str) -> None:
        """Answer a question by a key that stands alone in the line; `r` begins a reason."""
        first = self._screen.questions.first
        if first is None or first["id"] != question or self.buffer.text != key:
            return
        if key == REASON and first["kind"] != "ask":
            self._show("n ")
        for known in answer_keys(first, self._screen.status.folder):
            if known.key == key and known.answer is None:
                self._show(changing(first))
            elif known.key == key and known.answer is not None:
                self.buffer.reset()
                self._answer(first, known.answer)

    def _answer(self, question: QuestionEvent, answer: QuestionAnswer) -> None:
        def send() -> None:
            self._screen.questions.give(question, answer)
            is_open = answer.send(self._conversation, question)
            self._screen.answered(question, is_late=not is_open)

        self._sender.now(send)

    # Editing queued messages --------------------------------------------------------------------

    def take_back(self) -> bool:
        """Put the last queued message, or the one before, into the line; False if there is none."""
        is_unchanged = self._edited is not None and self.buffer.text == self._edited.text
        if self.buffer.text and not is_unchanged:
            return False
        found = waiting_beside(self._screen.status, self._edited)
        if found is not None:
            self._edit(found)
        return found is not None or self._edited is not None

    def take_next(self) -> bool:
        """Put the queued message behind the one in the line into it; False if the line is no such one.

        Behind the last one there is none: it is let go.
        """
        if self._edited is None or self.buffer.text != self._edited.text:
            return False
        found = waiting_beside(self._screen.status, self._edited, is_later=True)
        if found is None:
            return self.give_back()
        self._edit(found)
        return True

    def _edit(self, found: EditedText) -> None:
        """Show a queued message and ask for it: whether another has it, only the answer says.

        The status may still name the edit that this line has just left.
        """
        self._edited = found
        self._sender.later(partial(self._begin_edit, found))
        self._show(found.text)

    def _begin_edit(self, found: EditedText) -> None:
        """Keep a message from starting; if another terminal was quicker, take it out of the line."""

        def taken() -> None:
            if self._edited is found and found.is_waiting(self._screen.status):
                self._edited = None
                self.buffer.reset()
                self._screen.write(f"#{found.number} is being edited already.")

        if not self._conversation.edit(found.number):
            self._on_loop(taken)

    def _let_go(self) -> None:
        self._conversation.edit(None)

    def give_back(self) -> bool:
        """Cancel the edit of a message, or of a line that a key has begun; False if there is none."""
        if self._edited is not None:
            self._edited = None
            self._sender.later(self._let_go)
        elif not (self.buffer.text.startswith(BEGUN) or self._is_reason):
            return False
        self.buffer.reset()
        return True

    def _reword(self, edited: EditedText, text: str, *, is_steer: bool) -> None:
        """Save an edited message, or remove it where nothing is left; then steer with it, if asked."""
        said = text.strip()
        call = edit_queue(edited.number, said) if said else pop_queue(edited.number)

        def reword() -> None:
            reply = self._conversation.run(call) if text != edited.text else None
            if reply is not None and not reply.ok and said:
                self._on_loop(lambda: self.restore(text))
            self._conversation.edit(None)
            if is_steer and said and (reply is None or reply.ok):
                self._conversation.run(steer_from_queue(edited.number))

        self._sender.later(reword)

    def restore(self, text: str) -> None:
        """Put a text back into the line, unless the line has a new one.

        A command is selected, so that what is typed next replaces it: behind it, it would be no command.
        """
        if self.buffer.text:
            return
        self.buffer.set_document(Document(text, 0))
        if text.startswith("/") and get_app().editing_mode is EditingMode.EMACS:
            self.buffer.start_selection()
            assert self.buffer.selection_state is not None
            self.buffer.selection_state.enter_shift_mode()
        self.buffer.cursor_position = len(text)

    def _note(self) -> str:
        if self._edited is not None:
            return self._edited.note(self._screen.status)
        if self.buffer.text.startswith(f"{AGAIN} "):
            return (
                "Enter sends this in place of your last message; --revert before it restores files."
            )
        return "Say why not, then Enter: the agent is told." if self._is_reason else ""

    @property
    def _is_reason(self) -> bool:
        """Whether the line says why a call is not to run."""
        return self.buffer.text.startswith("n ") and self._screen.questions.first is not None

    # Pasting ------------------------------------------------------------------------------------

    def paste(self, data: str) -> None:
        """Insert a paste; a long one is shown as one word, and the path of a picture names that."""
        self.buffer.insert_text(picture_named(data) or self._pastes.take(data))

    def unfold_pastes(self) -> None:
        """Replace the words by the pasted texts, for an editor."""
        self._show(self._pastes.whole(self.buffer.text))

    def rub_out(self) -> None:
        """Delete the character before the cursor, or the whole word that stands for a paste."""
        before = self.buffer.document.text_before_cursor
        self.buffer.delete_before_cursor(self._pastes.word_before(before) or 1)


PICTURES = (".png", ".jpg", ".jpeg", ".gif", ".webp")


def picture_named(pasted: str) -> str:
    """Return `@path` for a paste that is nothing but the path of a picture, as dropping a file makes."""
    path = pasted.strip()
    if "\n" in path or not path.lower().rstrip("'\"").endswith(PICTURES):
        return ""
    if path[0] == path[-1] and path[0] in "'\"":
        path = path[1:-1]
    path = unquote(path.removeprefix("file://")) if path.startswith("file://") else path
    path = path.replace("\\ ", " ")
    try:
        is_file = os.path.isabs(path) and os.path.isfile(path)
    except (OSError, ValueError):
        return ""
    if not is_file or '"' in path:
        return ""
    return f'@"{path}" ' if " " in path else f"@{path} "
