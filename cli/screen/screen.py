"""The screen of a chat: from events to finished rows and to the lower part, with the question's card."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.utils import get_cwidth

from ...gateway.events.contract import Event, QuestionEvent, ToolCallView, is_aside
from ...gateway.wording.formats import form_lines
from ...gateway.wording.terminal import audited, exposed
from ...machines.errors import ToolError
from ...ports.tools.file_tools import content_before, difference
from ...ports.tools.place import find_place
from ..question import AnswerKey, Questions, answer_keys, argument_lines, step_lines, why_asked
from ..talk import ends_answer
from ..wrapping import wrapped, wrapped_pieces
from .appearance import DIM, Appearance, Row, drawable
from .status import Attention, Status, bar, key_hints, waiting_rows
from .terminal import Canvas
from .transcript import Transcript, diff_rows

GUARD = 0.5
"""Seconds for which a card must have been shown before a key answers it; a key typed ahead does not."""
_SHORT = {"y": "once", "a": "always", "e": "edits", "n": "no"}
"""Words of the keys in a small window."""
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
    most: int = 100,
) -> list[Row]:
    """Return the card of a question above the input line; `count` is the number of open questions.

    `change` is what a write would replace, in the words of the tool (`replacing`); `is_lit`: the keys
    act. In fewer rows than `most` the keys are shorter, and less is shown of the call; none where not
    even a row of it has room.
    """
    more = f"  1 of {count}" if count > 1 else ""
    asker = f"{exposed(who)} asks: may" if who else "May"
    asks = appearance.theme.asks
    held = "Held: " if question["kind"] == "hold" else ""
    asker = f"{held}{asker.lower() if held and not who else asker}"
    head: Row = [(f"{asks} bold", f"{asker} `{exposed(question['tool'])}` run?"), (DIM, more)]
    form = _question_lines(question)
    if form:
        head = [(f"{asks} bold", form[0]), (DIM, more)]
    bar = f"{appearance.plain('▌')} "
    room = max(1, width - len(bar))
    rows = wrapped_pieces(head, room)
    for line in form[1:]:
        rows += [[("", "  "), *row] for row in wrapped_pieces([("", line)], room - 2)]
    heads = len(rows)
    rows += [] if form else _what(question, change, room - 2, appearance)
    rows += wrapped_pieces([(DIM, why)], room) if (why := why_asked(question)) else []
    style = "bold" if is_lit else DIM
    offered = _keys_rows(question, keys, style, room, appearance)
    if len(rows) + len(offered) > most:
        offered = _keys_rows(
            question,
            [key._replace(words=_SHORT.get(key.key, key.words)) for key in keys],
            style,
            room,
            appearance,
        )
    if (left := len(rows) + len(offered) - most) > 0:
        if len(rows) - left <= heads:
            return []
        rows = rows[:-left]
        style, text = rows[-1][-1]
        rows[-1] = [*rows[-1][:-1], (style, text[: max(0, len(text) - 2)]), (DIM, " …")]
    return [[(asks, bar), *row] for row in (*rows, *offered)]


def _question_lines(question: QuestionEvent) -> list[str]:
    """Return what is asked where that is no call: by an MCP server, or by a workflow's step."""
    if question["kind"] == "ask":  # its options are keys, but for more than nine
        first, *rest = step_lines(question)
        options = len(question["options"])
        return [first, *(rest if options > 9 else rest[options:])]
    return form_lines(question["arguments"]) if question["kind"] == "form" else []


def _keys_rows(
    question: QuestionEvent,
    keys: Sequence[AnswerKey],
    style: str,
    width: int,
    appearance: Appearance,
) -> list[Row]:
    """Return the keys of a card, as many in a row as fit; a reason can only be typed."""
    rows: list[Row] = [[]]
    reason = "reason" if any(known.words == _SHORT["y"] for known in keys) else "no, with a reason"
    more = ("Enter", "answers with what is typed") if question["kind"] == "ask" else ("r", reason)
    for key, words in (*((known.key, known.words) for known in keys), more):
        used = sum(get_cwidth(text) for _, text in rows[-1])
        between = appearance.plain(" · ") if used else ""
        if used and used + len(between) + len(key) + 1 + get_cwidth(words) > width:
            rows.append([])
            between = ""
        rows[-1] += [(DIM, between), (style, key), (DIM, f" {words}")]
    return [row for line in rows for row in wrapped_pieces(line, width, "  ")]


def replacing(question: QuestionEvent, folder: Path) -> str:
    """Return the result that the tool `write` would report for its change; empty for other tools."""
    match question:
        case {"tool": "write", "arguments": {"path": str(path), "content": str(content)}}:
            try:
                before = content_before(find_place(path, folder))
                rows = [] if before is None else difference(before, content.encode())
            except (ToolError, ValueError):
                rows = []
            return "\n".join(["Replaced ", *rows])
        case _:
            return ""


def _what(question: QuestionEvent, change: str, width: int, appearance: Appearance) -> list[Row]:
    arguments = dict(question["arguments"])
    call = ToolCallView(call="", tool=question["tool"], arguments=arguments)
    diff = diff_rows(call, change, width, appearance, MOST)
    shown = arguments if not diff else {name: arguments[name] for name in {"path"} & {*arguments}}
    texts = argument_lines(shown)
    rows = list[Row]()
    for line in exposed("\n".join(texts)).expandtabs(4).split("\n"):
        rows += wrapped_pieces([("", line)], max(1, width))
    if len(rows) > MOST:
        left = appearance.plain(f"… {len(rows) - MOST + 1} more rows, /inspect shows all")
        rows = [*rows[: MOST - 1], [(DIM, left)]]
    return [[("", "  "), *row] for row in rows] + diff


class Card:
    """The card of the first open question, and since when it has been shown."""

    def __init__(self, appearance: Appearance) -> None:
        self._appearance = appearance
        self._id = self._change = ""
        self._since = 0.0
        self._has_room = True

    def show(
        self, questions: Questions, who: str, folder: Path, width: int, most: int
    ) -> list[Row]:
        """Return at most so many rows of the first question; `who` is the subagent that asks.

        Where its call cannot be shown at all, no key answers it.
        """
        first, *others = questions.all
        if first["id"] != self._id:
            self._id, self._since = first["id"], time.monotonic()
            self._change = replacing(first, folder)
        is_lit = self.answerable(questions) is not None
        count, keys = 1 + len(others), answer_keys(first, folder)
        look, change = self._appearance, self._change
        rows = card_rows(*(first, count, who, width, look, change, keys), is_lit=is_lit, most=most)
        self._has_room = bool(rows)
        name = exposed(first["tool"])
        told = f"`{name}` asks; too small a window. /answer {first['id']} allow|deny"
        return rows or [[("", line)] for line in wrapped(told, width)]

    def answerable(self, questions: Questions) -> QuestionEvent | None:
        """Return the question whose card has been shown long enough for a key to answer it."""
        first = questions.first
        is_shown = self._has_room and first is not None and first["id"] == self._id
        return first if is_shown and time.monotonic() - self._since >= GUARD else None


STREAMED = ("text", "thinking", "output", "progress", "queue")
"""Events that say nothing of what becomes of a message."""


LONGEST_ECHO = 1.0
"""Seconds after which a sent message is shown, though it is not known what it does."""
FRAMED = 16
"""Rows of a terminal from which on the input line has a frame, and what waits is shown above it."""
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

    def keep_to(self, own_key: str) -> None:
        """Show only those results whose commands have a client id that begins so."""
        self._transcript.face.own_key = own_key

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

    def finish(self) -> None:
        """Print what is unfinished: the session goes on, and its person leaves."""
        with self._lock:
            self._transcript.end_answer()
            self._print_echoes()

    def _settle_echo(self, event: Event) -> None:
        is_command = self._echoes[-1][1].startswith("/")
        if ends_answer(event):
            self._transcript.end_answer()
        elif event["type"] == "queue" and is_command:  # it is what the command did
            pass
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
                name = exposed(question["tool"])
                self._transcript.report(f"The question about `{name}` was not open any more.")
        self.canvas.changed()

    def above(self) -> StyleAndTextTuples:
        """Return the rows above the input line: live rows, the card, what waits, a note."""
        width = self._width()
        with self._lock:
            if self._echoes and time.monotonic() - self._echoes[-1][0] > LONGEST_ECHO:
                self._print_echoes()
            rows = self._transcript.live(width, max(1, self.canvas.lines // 3))
            rows += self._card_rows(width)
            if self.canvas.lines >= FRAMED:
                rows += waiting_rows(self.status, width, self.appearance)
            if note := self.note():
                rows += [[(DIM, line)] for line in wrapped(note, width)]
        pieces = StyleAndTextTuples()
        for row in rows[-self._room :]:
            pieces += [*((drawable(style), audited(text)) for style, text in row), ("", "\n")]
        return pieces[:-1]

    @property
    def _room(self) -> int:
        """Rows that there are above the input line."""
        return max(1, self.canvas.lines - BESIDES)

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
        rows = self._card.show(self.questions, who, self.status.folder, width, self._room)
        if self.answerable() is None:
            self.canvas.changes_in(GUARD)
        return [[], *rows]

    def _width(self) -> int:
        return self.canvas.columns - 1
