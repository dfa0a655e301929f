"""The screen of a chat: from events to finished rows and to the content of the lower part."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth

from ...gateway.events.contract import Event, QuestionEvent, ToolCallView, is_aside
from ...gateway.terminal import audited, exposed
from ...machines.errors import ToolError
from ...ports.tools.file_tools import replaced
from ...ports.tools.place import find_place
from ..following import ends_answer
from ..question import AnswerKey, QuestionAnswer, Questions, answer_keys
from ..wrapping import wrapped, wrapped_pieces
from .appearance import ASKS, DIM, Appearance, Row, drawable
from .bar import bar
from .canvas import Canvas
from .status import Status
from .transcript import Transcript, diff_rows

GUARD = 0.5
"""Seconds for which a card must have been shown before a key answers it; a key typed ahead does not."""
MOST = 8
"""Maximum number of rows of a card; the card says how many are left out."""


def card_rows(
    question: QuestionEvent,
    count: int,
    who: str,
    width: int,
    appearance: Appearance,
    change: str = "",
    keys: Sequence[AnswerKey] = (),
    *,
    is_lit: bool = True,
) -> list[Row]:
    """Return the card of a question above the input line; `count` is the number of open questions.

    `change` is what a write would replace, in the words of the tool (`replacing`); `is_lit`: the keys
    act.
    """
    more = f"  1 of {count}" if count > 1 else ""
    asker = f"{exposed(who)} asks: may" if who else "May"
    head: Row = [(f"{ASKS} bold", f"{asker} `{exposed(question['tool'])}` run?"), (DIM, more)]
    bar = f"{appearance.sign('▌')} "
    room = max(1, width - len(bar))
    rows = [*wrapped_pieces(head, room), *_what(question, change, room - 2, appearance)]
    rows += _keys_rows(keys, "bold" if is_lit else DIM, room, appearance)
    return [[(ASKS, bar), *row] for row in rows]


def _keys_rows(
    keys: Sequence[AnswerKey], style: str, width: int, appearance: Appearance
) -> list[Row]:
    """Return the keys of a card, as many in a row as fit; a reason can only be typed."""
    rows: list[Row] = [[]]
    for key, words in (*((known.key, known.words) for known in keys), ("r", "no, with a reason")):
        used = sum(get_cwidth(text) for _, text in rows[-1])
        between = appearance.plain(" · ") if used else ""
        if used and used + len(between) + len(key) + 1 + get_cwidth(words) > width:
            rows.append([])
            between = ""
        rows[-1] += [(DIM, between), (style, key), (DIM, f" {words}")]
    return [row for line in rows for row in wrapped_pieces(line, width, "  ")]


def settled_line(question: QuestionEvent, what: str) -> str:
    """Return the line that explains why a card is gone."""
    return f"The question about `{exposed(question['tool'])}` {what}."


def replacing(question: QuestionEvent, folder: Path) -> str:
    """Return the result that the tool `write` would report for its change; empty for other tools."""
    match question:
        case {"tool": "write", "arguments": {"path": str(path), "content": str(content)}}:
            try:
                rows = replaced(find_place(path, folder), content.encode())
            except (ToolError, ValueError):
                rows = []
            return "\n".join(["Replaced ", *rows])
        case _:
            return ""


def _what(question: QuestionEvent, change: str, width: int, appearance: Appearance) -> list[Row]:
    arguments = dict(question["arguments"])
    call = ToolCallView(call="", tool=question["tool"], arguments=arguments)
    diff = diff_rows(call, change, width, appearance, MOST)
    shown = ("path",) if diff else tuple(arguments)
    texts = [str(arguments.get(name, "")) for name in shown]
    rows = list[Row]()
    for line in exposed("\n".join(texts)).expandtabs(4).split("\n"):
        rows += wrapped_pieces([("", line)], max(1, width))
    if len(rows) > MOST:
        left = appearance.plain(f"… {len(rows) - MOST + 1} more rows, /inspect shows all")
        rows = [*rows[: MOST - 1], [(DIM, left)]]
    return [[("", "  "), *row] for row in rows] + diff


STREAMED = ("text", "thinking", "output", "progress", "queue")
"""Events that say nothing of what becomes of a message."""


LONGEST_ECHO = 1.0
"""Seconds after which a sent message is shown, though it is not known what it does."""
BESIDES = 5
"""Rows of the lower part beside those above the input line: the line, its frame, the bar."""


class Screen:
    """One chat's terminal; `hear` is called in the runtime's thread, the rest in the prompt's."""

    def __init__(
        self, canvas: Canvas, appearance: Appearance, *, shows_queued: bool = True
    ) -> None:
        self.canvas = canvas
        self.appearance = appearance
        self.status = Status()
        self.questions = Questions()
        self.note: Callable[[], str] = str
        self._changes: dict[str, str] = {}
        self._shown = ("", 0.0)
        self._echoes: list[str] = []
        self._echoed = 0.0
        self._lock = threading.RLock()
        self._transcript = Transcript(
            appearance, self._width, canvas.print, shows_queued=shows_queued
        )

    def hear(self, event: Event) -> None:
        """Take in an event; the runtime's thread."""
        with self._lock:
            if self._echoes and not is_aside(event):
                self._settle_echo(event)
            self.questions.hear(event)
            self.status.hear(event, time.monotonic())
            if not is_aside(event):
                self._transcript.hear(event)
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
            self._echoes.append(text)
            self._echoed = time.monotonic()
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
        texts, self._echoes = self._echoes, []
        for text in texts:
            self._transcript.message(text)

    def unfold(self) -> bool:
        """Print the last tool call whole, or the one before; False for none left."""
        with self._lock:
            return self._transcript.unfold()

    def answered(
        self, question: QuestionEvent, answer: QuestionAnswer, *, is_late: bool = False
    ) -> None:
        """Remove a card: its question was answered now, or, `is_late`, before."""
        with self._lock:
            self.questions.drop(question)
            late = settled_line(question, "was not open any more")
            self._transcript.report(late if is_late else answer.report)
        self.canvas.changed()

    def above(self) -> StyleAndTextTuples:
        """Return the rows above the input line: live rows, the card, a note."""
        width = self._width()
        with self._lock:
            if self._echoes and time.monotonic() - self._echoed > LONGEST_ECHO:
                self._print_echoes()
            rows = self._transcript.live(width, max(1, self.canvas.lines // 3))
            card = self._card(width)
            rows += [[], *card] if card else []
            if note := self.note():
                rows += [[(DIM, line)] for line in wrapped(note, width)]
        pieces = StyleAndTextTuples()
        for row in rows[-max(1, self.canvas.lines - BESIDES) :]:
            pieces += [*((drawable(style), audited(text)) for style, text in row), ("", "\n")]
        return pieces[:-1]

    def below(self) -> StyleAndTextTuples:
        """Return the bar."""
        with self._lock:
            asks = len(self.questions.all)
            text = bar(self.status, time.monotonic(), self._width(), self.appearance, asks)
        return [(DIM, audited(text))]

    def question_ids(self) -> list[str]:
        """Return the ids of the open questions."""
        return [question["id"] for question in self.questions.all]

    def is_moving(self) -> bool:
        """Whether the display changes without an event, as elapsed time does."""
        return self.status.is_busy

    def _card(self, width: int) -> list[Row]:
        first = self.questions.first
        if first is None:
            return []
        who = self.status.names.get(first["session"], "") if "parent" in first else ""
        if first["id"] not in self._changes:
            self._changes = {first["id"]: replacing(first, self.status.folder)}
        if self._shown[0] != first["id"]:
            self._shown = first["id"], time.monotonic()
            self.canvas.changes_in(GUARD)
        return card_rows(
            first,
            len(self.questions.all),
            who,
            width,
            self.appearance,
            self._changes[first["id"]],
            answer_keys(first, self.status.folder),
            is_lit=self.answerable() is not None,
        )

    def answerable(self) -> QuestionEvent | None:
        """Return the question whose card has been shown long enough for a key to answer it."""
        first = self.questions.first
        shown, since = self._shown
        is_seen = first is not None and first["id"] == shown and time.monotonic() - since >= GUARD
        return first if is_seen else None

    def _width(self) -> int:
        return self.canvas.columns - 1
