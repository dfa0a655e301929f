"""The screen of a chat: from events to finished rows and to the content of the lower part."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from prompt_toolkit.formatted_text import StyleAndTextTuples

from ...gateway.events.contract import Event, QuestionEvent, is_aside
from ...gateway.terminal import audited
from ..following import ends_answer
from ..question import Questions
from ..wrapping import wrapped
from .appearance import DIM, Appearance, Row, drawable
from .attention import Attention
from .canvas import Canvas
from .card import GUARD, Card, settled_line
from .status import Status, bar, key_hints
from .transcript import Transcript

STREAMED = ("text", "thinking", "output", "progress", "queue")
"""Events that say nothing of what becomes of a message."""


LONGEST_ECHO = 1.0
"""Seconds after which a sent message is shown, though it is not known what it does."""
BESIDES = 6
"""Rows of the lower part beside those above the input line: the line, its frame, a menu, the bar."""


class Screen:
    """One chat's terminal; `hear` is called in the runtime's thread, the rest in the prompt's."""

    def __init__(
        self,
        canvas: Canvas,
        appearance: Appearance,
        *,
        shows_queued: bool = True,
        attention: Attention | None = None,
    ) -> None:
        self.canvas = canvas
        self.appearance = appearance
        self.status = Status()
        self.questions = Questions()
        self.note: Callable[[], str] = str
        self.attention = attention
        self._card = Card(appearance)
        self._echoes: list[tuple[float, str]] = []
        self._lock = threading.RLock()
        self._transcript = Transcript(
            appearance, self._width, canvas.print, shows_queued=shows_queued
        )

    def hear(self, event: Event) -> None:
        """Take in an event; the runtime's thread."""
        with self._lock:
            if self._echoes and not is_aside(event):
                self._settle_echo(event)
            report = self.questions.hear(event)
            self.status.hear(event, time.monotonic())
            if not is_aside(event):
                self._transcript.hear(event)
            if report:
                self._transcript.report(report)
            if self.attention is not None:
                self.attention.hear(event, self.status, len(self.questions.all))
        self.canvas.changed()

    def write(self, text: str, *, ends_answer: bool = False) -> None:
        """Print lines above; `ends_answer`: below the unfinished line of the answer."""
        with self._lock:
            if ends_answer:
                self._transcript.end_line()
            self._transcript.write(text)

    def echo(self, text: str) -> None:
        """Print a message that the person sent; within an answer, once it is known what it does.

        The answer that it cuts off is finished above it.
        """
        with self._lock:
            self._echoes.append((time.monotonic(), text))
            if not (self._transcript.is_unfinished or self.status.is_busy):
                self._print_echoes()

    def _settle_echo(self, event: Event) -> None:
        if ends_answer(event):
            self._transcript.end_answer()
        elif event["type"] in STREAMED or (
            event["type"] == "accepted" and event["as"] == "command"
        ):
            return
        self._print_echoes()

    def _print_echoes(self) -> None:
        echoes, self._echoes = self._echoes, []
        for _, text in echoes:
            self._transcript.message(text)

    def unfold(self) -> bool:
        """Print the last tool call whole, or the one before; False for none left."""
        with self._lock:
            return self._transcript.unfold()

    def answered(self, question: QuestionEvent, *, is_late: bool = False) -> None:
        """Remove a card: its question was answered now, or, `is_late`, before."""
        with self._lock:
            self.questions.drop(question)
            if is_late:
                self._transcript.report(settled_line(question, "was not open any more"))
        self.canvas.changed()

    def above(self) -> StyleAndTextTuples:
        """Return the rows above the input line: live rows, the card, a note."""
        width = self._width()
        with self._lock:
            if self._echoes and time.monotonic() - self._echoes[-1][0] > LONGEST_ECHO:
                self._print_echoes()
            rows = self._transcript.live(width, max(1, self.canvas.lines // 3))
            rows += self._card_rows(width)
            if note := self.note():
                rows += [[(DIM, line)] for line in wrapped(note, width)]
        pieces = StyleAndTextTuples()
        for row in rows[-max(1, self.canvas.lines - BESIDES) :]:
            pieces += [*((drawable(style), audited(text)) for style, text in row), ("", "\n")]
        return pieces[:-1]

    def below(
        self, *, is_empty: bool = True, has_menu: bool = False, stop: str = "Esc"
    ) -> StyleAndTextTuples:
        """Return the bar; `is_empty`, `stop`: see `key_hints`. A menu and a note show other keys."""
        with self._lock:
            asks = len(self.questions.all)
            hints = key_hints(self.status, asks, is_empty=is_empty, stop=stop)
            text = bar(
                self.status,
                time.monotonic(),
                self._width(),
                self.appearance,
                asks,
                [] if has_menu or self.note() else hints,
            )
        return [(DIM, audited(text))]

    def answerable(self) -> QuestionEvent | None:
        """Return the question whose card has been shown long enough for a key to answer it."""
        return self._card.answerable(self.questions)

    def _card_rows(self, width: int) -> list[Row]:
        first = self.questions.first
        if first is None:
            return []
        who = self.status.names.get(first["session"], "") if "parent" in first else ""
        rows = self._card.show(self.questions, who, self.status.folder, width)
        if self.answerable() is None:
            self.canvas.changes_in(GUARD)
        return [[], *rows]

    def _width(self) -> int:
        return self.canvas.columns - 1
