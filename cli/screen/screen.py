"""The screen: hears events, prints what stays, and says what is drawn below."""

from __future__ import annotations

import threading
import time
from pathlib import Path

from prompt_toolkit.formatted_text import StyleAndTextTuples

from ...gateway.events.contract import Event, QuestionEvent, ToolCallView, is_aside
from ...gateway.terminal import clean
from ...machines.errors import ToolError
from ...ports.tools.file_tools import replaced
from ...ports.tools.place import find_place
from ..question import Questions
from ..wrapping import wrapped, wrapped_pieces
from .appearance import DIM, HEAD, Appearance, Row
from .bar import bar
from .canvas import Canvas
from .status import Status
from .transcript import Transcript, diff_rows

# A question of the agent as a card above the input line; it waits while everything else goes on


CHOICES_LINE = "[y]es  [a]lways  [n]o"
HINT = " + Enter · a: this very call · n REASON"
MOST = 8
"""Rows of what is asked; the rest is left out, and the card says so."""


def card_rows(
    question: QuestionEvent, count: int, who: str, width: int, look: Appearance, change: str = ""
) -> list[Row]:
    """Return the card: who asks for what, and the keys; `count` is how many questions are open.

    `change` is what a write would replace, as the tool will tell it (`replacing`).
    """
    more = f" (1 of {count})" if count > 1 else ""
    asker = f"{who} asks: " if who else ""
    head: Row = [
        ("ansiyellow bold", f"{asker}may `{question['tool']}` run?"),
        (DIM, f"{more}  {question['id']}"),
    ]
    rows = [*wrapped_pieces(head, width), *_what(question, change, width - 2, look)]
    keys: Row = [("bold", CHOICES_LINE), (DIM, look.plain(HINT))]
    return [*rows, *wrapped_pieces(keys, width)]


def settled_line(question: QuestionEvent, what: str) -> str:
    """Return the line that says why a card is gone, where nothing else says it."""
    return f"The question about `{question['tool']}` {what}."


def replacing(question: QuestionEvent, folder: Path) -> str:
    """Return what the tool `write` would say of the change that is asked about; else nothing."""
    match question:
        case {"tool": "write", "arguments": {"path": str(path), "content": str(content)}}:
            try:
                rows = replaced(find_place(path, folder), content.encode())
            except (ToolError, ValueError):
                rows = []
            return "\n".join(["Replaced ", *rows])
        case _:
            return ""


def _what(question: QuestionEvent, change: str, width: int, look: Appearance) -> list[Row]:
    arguments = dict(question["arguments"])
    call = ToolCallView(call="", tool=question["tool"], arguments=arguments)
    diff = diff_rows(call, change, width, look, MOST)
    shown = ("path",) if diff else tuple(arguments)
    texts = [str(arguments.get(name, "")) for name in shown]
    rows = list[Row]()
    for line in clean("\n".join(texts)).expandtabs(4).split("\n"):
        rows += wrapped_pieces([("", line)], max(1, width))
    if len(rows) > MOST:
        left = look.plain(f"… {len(rows) - MOST + 1} more rows, /inspect shows all")
        rows = [*rows[: MOST - 1], [(DIM, left)]]
    return [[("", "  "), *row] for row in rows] + diff


ECHOED = 12
"""Rows of a person's own message that are shown again; the rest was sent, too."""


class Screen:
    """One chat's terminal; `hear` is called in the runtime's thread, the rest in the prompt's."""

    def __init__(self, canvas: Canvas, look: Appearance, *, shows_queued: bool = True) -> None:
        self.canvas = canvas
        self.look = look
        self.status = Status()
        self.questions = Questions()
        self.note = ""
        self._changes: dict[str, str] = {}
        self._lock = threading.RLock()
        self._transcript = Transcript(look, self._width, canvas.print, shows_queued=shows_queued)

    def hear(self, event: Event) -> None:
        """Take in an event; the runtime's thread."""
        with self._lock:
            self.questions.hear(event)
            self.status.hear(event, time.monotonic())
            if not is_aside(event):
                self._transcript.hear(event)
        self.canvas.changed()

    def write(self, text: str, *, ends_answer: bool = False) -> None:
        """Print lines above; `ends_answer`: below what the model has said so far of its line."""
        with self._lock:
            if ends_answer:
                self._transcript.end_line()
            self._transcript.write(clean(text))

    def echo(self, text: str) -> None:
        """Print what a person said."""
        rows = wrapped(clean(text).expandtabs(4), self._width() - 2)
        left = len(rows) - ECHOED
        rows = [*rows[: ECHOED - 1], self.look.plain(f"… {left + 1} more")] if left > 0 else rows
        lines = [
            self.look.printed([(HEAD, "> " if at == 0 else "  "), ("", row)])
            for at, row in enumerate(rows)
        ]
        self.canvas.print(["", *lines])

    def unfold(self) -> bool:
        """Print the last tool call whole, or the one before; False for none left."""
        with self._lock:
            return self._transcript.unfold()

    def answered(self, question: QuestionEvent, *, is_late: bool = False) -> None:
        """Take a card away: its question has an answer, or, `is_late`, had one before."""
        with self._lock:
            self.questions.drop(question)
            if is_late:
                self._transcript.write(settled_line(question, "was not open any more"))
        self.canvas.changed()

    def above(self) -> StyleAndTextTuples:
        """Return what stands over the input line: what still changes, cards, a note."""
        width = self._width()
        with self._lock:
            rows = self._transcript.live(width, max(1, self.canvas.lines // 3))
            rows += self._card(width)
            if self.note:
                rows += [[(DIM, line)] for line in wrapped(self.note, width)]
        pieces = StyleAndTextTuples()
        for row in rows[-max(1, self.canvas.lines - 3) :]:
            pieces += [*row, ("", "\n")]
        return pieces[:-1]

    def below(self) -> StyleAndTextTuples:
        """Return the bar."""
        with self._lock:
            asks = len(self.questions.all)
            text = bar(self.status, time.monotonic(), self._width(), self.look, asks)
        return [(DIM, text)]

    def question_ids(self) -> list[str]:
        """Return the ids of the open questions."""
        return [question["id"] for question in self.questions.all]

    def is_moving(self) -> bool:
        """Whether what is shown changes without an event, as elapsed time does."""
        return self.status.is_busy

    def _card(self, width: int) -> list[Row]:
        first = self.questions.first
        if first is None:
            return []
        who = self.status.names.get(first["session"], "") if "parent" in first else ""
        if first["id"] not in self._changes:
            self._changes = {first["id"]: replacing(first, self.status.folder)}
        change = self._changes[first["id"]]
        return card_rows(first, len(self.questions.all), who, width, self.look, change)

    def _width(self) -> int:
        return self.canvas.columns - 1
