"""The input line: what is typed, pasted, taken back, completed, and sent off."""

from __future__ import annotations

import queue
import re
import threading
from collections.abc import Callable

from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from ...gateway.commands.command import Reply
from ...gateway.commands.queue import edit_queue, pop_queue
from ...gateway.commands.registry import NAMES
from ...gateway.commands.talk import stop
from ...gateway.events.contract import QuestionEvent, QueueItem
from ...gateway.interface import ChatSession
from ...machines.disposition import Intent
from ...machines.value import Value
from ..question import answering
from .screen import Screen
from .status import Status

# Says what was typed, from a thread of its own: typing never waits for an answer ------------------
# What is said keeps its order. What must not wait, a stop or an answer, goes past all that.


Work = Callable[[], None]


class MessageSender:
    """Runs what it is given, in order; `close` waits for what is on its way."""

    def __init__(self) -> None:
        self._work: queue.SimpleQueue[Work | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="speaker", daemon=True)
        self._thread.start()

    def later(self, work: Work) -> None:
        """Do it after all that was given before."""
        self._work.put(work)

    def now(self, work: Work) -> None:
        """Do it at once."""
        threading.Thread(target=work, name="speaker-now", daemon=True).start()

    def close(self, seconds: float = 2.0) -> None:
        """Take no more, and give what is on its way so long."""
        self._work.put(None)
        self._thread.join(seconds)

    def _run(self) -> None:
        while (work := self._work.get()) is not None:
            work()


# A waiting message taken back into the input line, to be edited ----------------------------------


class EditedText(Value):
    """Message `number` is in the line; `id` is its item, `text` what it said."""

    id: str
    number: int
    text: str

    def is_waiting(self, status: Status) -> bool:
        """Whether it still waits: only then can it be changed."""
        return any(item["id"] == self.id and item["state"] == "pending" for item in status.items)

    def note(self, status: Status) -> str:
        """Return what stands over the line."""
        if self.is_waiting(status):
            return f"Editing #{self.number}: Enter saves it, an empty line removes it, Esc cancels."
        return f"#{self.number} is no longer waiting: Enter sends this as a new message."


def waiting_before(status: Status, edited: EditedText | None) -> EditedText | None:
    """Return the last message that waits, or the one before that which is edited; none left: none."""
    waiting = [item for item in status.items if item["state"] == "pending"]
    if edited is not None:
        at = next((at for at, item in enumerate(waiting) if item["id"] == edited.id), 0)
        waiting = waiting[:at]
    return _edited(waiting[-1]) if waiting else None


def _edited(item: QueueItem) -> EditedText:
    return EditedText(id=item["id"], number=item["number"], text=item["text"])


# Long pastes: shown as one short word in the input line, sent whole -------------------------------


LINES = 8
CHARACTERS = 1_000
"""What is longer than this is shown shortened."""

_WORD = re.compile(r"\[Pasted #(\d+): [\d,]+ (?:lines|characters)\]")


class Pastes:
    """The long texts behind the words that stand for them."""

    def __init__(self) -> None:
        self._texts: dict[int, str] = {}

    def take(self, data: str) -> str:
        """Return what is shown for a paste: itself, or a word that stands for it."""
        text = data.replace("\r\n", "\n").replace("\r", "\n")
        lines = text.count("\n") + 1
        if lines <= LINES and len(text) <= CHARACTERS:
            return text
        number = len(self._texts) + 1
        self._texts[number] = text
        size = f"{lines:,} lines" if lines > LINES else f"{len(text):,} characters"
        return f"[Pasted #{number}: {size}]"

    def whole(self, text: str) -> str:
        """Put the pasted texts in for their words; a word that was changed is what it says."""
        return _WORD.sub(lambda found: self._texts.get(int(found[1]), found[0]), text)

    def word_before(self, text: str) -> int:
        """Return the length of the word that a text ends with, 0 for none."""
        for found in _WORD.finditer(text):
            if found.end() == len(text) and int(found[1]) in self._texts:
                return len(found[0])
        return 0


class InputLine:
    """What a person says, from the first key to the session; used in the prompt's thread.

    `leave` ends the prompt, `on_loop` runs something in the prompt's thread.
    """

    def __init__(
        self,
        buffer: Buffer,
        screen: Screen,
        conversation: ChatSession,
        speaker: MessageSender,
        leave: Callable[[], None],
        on_loop: Callable[[Callable[[], None]], None],
    ) -> None:
        self.buffer = buffer
        self._screen = screen
        self._conversation = conversation
        self._speaker = speaker
        self._leave = leave
        self._on_loop = on_loop
        self._pastes = Pastes()
        self._edited: EditedText | None = None

    # Sending ------------------------------------------------------------------------------------

    def send(self, explicit: str = "auto") -> None:
        """Send what is in the line; `explicit` is auto, queue or steer."""
        shown = self.buffer.text
        text = _sound(self._pastes.whole(shown))
        edited, self._edited = self._edited, None
        self._show_note()
        if edited is not None and edited.is_waiting(self._screen.status) and explicit == "auto":
            self.buffer.reset()
            self._reword(edited, text)
            return
        if not text.strip():
            return
        self.buffer.reset(append_to_history=True)
        self._screen.echo(shown)
        question = self._screen.questions.first
        answer = answering(question, text) if question and explicit == "auto" else None
        if question is not None and answer is not None:
            self._answer(question, *answer)
            return
        self._say(text, self._way(text, explicit, question))

    def stop(self) -> None:
        """Stop the turn and all that it started, ahead of everything else that was said."""
        self._speaker.now(lambda: self._told(self._conversation.run(stop())))

    def _way(self, text: str, explicit: str, question: QuestionEvent | None) -> str:
        """Return how a message is meant: a command stays one; with a question open others wait."""
        if self._conversation.would_stop(text):
            is_command = text.lstrip().startswith("/")
            return "auto" if is_command else explicit
        return "queue" if explicit == "auto" and question is not None else explicit

    def _say(self, text: str, explicit: str) -> None:
        found = self._conversation.classify(text)
        is_urgent = found.intent is Intent.COMMAND and NAMES[found.command].is_urgent
        do = self._speaker.now if is_urgent else self._speaker.later
        do(lambda: self._told(self._conversation.say(text, explicit)))

    def _told(self, reply: Reply | None) -> None:
        if reply is not None and reply.leaves:
            self._on_loop(self._leave)

    # Answering ----------------------------------------------------------------------------------

    def _answer(self, question: QuestionEvent, choice: str, reason: str = "") -> None:
        def answer() -> None:
            is_open = self._conversation.answer(question["id"], choice, reason)
            self._screen.answered(question, is_late=not is_open)

        self._speaker.now(answer)

    # Editing what waits -------------------------------------------------------------------------

    def take_back(self) -> bool:
        """Put the last waiting message, or the one before, into the line; False if there is none."""
        is_unchanged = self._edited is not None and self.buffer.text == self._edited.text
        if self.buffer.text and not is_unchanged:
            return False
        found = waiting_before(self._screen.status, self._edited)
        if found is not None:
            self._edited = found
            self.buffer.set_document(Document(found.text, len(found.text)))
            self._show_note()
        return found is not None or self._edited is not None

    def give_back(self) -> bool:
        """Leave the message that is edited as it was; False if none is."""
        if self._edited is None:
            return False
        self._edited = None
        self.buffer.reset()
        self._show_note()
        return True

    def _reword(self, edited: EditedText, text: str) -> None:
        if text == edited.text:
            return
        said = text.strip()
        call = edit_queue(edited.number, said) if said else pop_queue(edited.number)

        def reword() -> None:
            reply = self._conversation.run(call)
            if reply is not None and not reply.ok and text.strip():
                self._on_loop(lambda: self.restore(text))

        self._speaker.later(reword)

    def restore(self, text: str) -> None:
        """Give a text back to its writer, unless something else was begun."""
        if not self.buffer.text:
            self.buffer.set_document(Document(text, len(text)))

    def _show_note(self) -> None:
        edited = self._edited
        self._screen.note = edited.note(self._screen.status) if edited is not None else ""

    # Pasting ------------------------------------------------------------------------------------

    def paste(self, data: str) -> None:
        """Put in what was pasted; a long text is shown as one word."""
        self.buffer.insert_text(self._pastes.take(data))

    def unfold_pastes(self) -> None:
        """Put the whole texts in, for an editor."""
        text = self._pastes.whole(self.buffer.text)
        self.buffer.set_document(Document(text, len(text)))

    def rub_out(self) -> None:
        """Delete the sign before the cursor, or all of the word that stands for a paste."""
        before = self.buffer.document.text_before_cursor
        self.buffer.delete_before_cursor(self._pastes.word_before(before) or 1)


def _sound(text: str) -> str:
    """Replace what is no text: a byte that the terminal sent and that is no UTF-8."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")
