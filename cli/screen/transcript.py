"""What of the events is printed above: the answer, tools folded to a row, and notices."""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from prompt_toolkit.utils import get_cwidth

from ...gateway.events.contract import Event, ToolCallView, ToolEndedEvent
from ...gateway.wording.formats import call_words, size_text, telling_line
from ...gateway.wording.terminal import audited, clean, exposed
from ...machines.protocol import exit_words
from ..plain import PlainInterface
from ..talk import StartedTurns, ends_answer
from ..wrapping import fitted, wrapped, wrapped_pieces
from .appearance import (
    ADDED,
    BAD,
    CODE,
    DIM,
    GOOD,
    HEAD,
    INDENT,
    REMOVED,
    Appearance,
    Blocks,
    Kind,
    Row,
    message_rows,
)
from .markdown import Stream
from .markdown_blocks import LOADER
from .status import duration

# Tool calls on the screen: one row each when they end, a diff below an edit, all of it on demand


_GAP = re.compile(r"\[… [\d,]+ (?:byte|character)s? left out")
"""The line that stands for what a tool, or its event, has left out: how many lines is not known."""

NARROW = 20
"""Columns for a call and its result up to which the call alone is shown."""
DIFF_ROWS = 12
"""Rows of a diff that are shown without being asked for."""
UNFOLDED_ROWS = 400
"""Rows of an output that are unfolded on the screen: its beginning and its end."""


def brief(arguments: Mapping[str, Any]) -> str:
    """Return what a call was given, on one line; the first words of each."""
    return "  ".join(fitted(exposed(text[:500]), 120, "...") for text in call_words(arguments))


def running_row(call: ToolCallView, seconds: float, width: int, look: Appearance) -> Row:
    """Return the row of a call that runs."""
    timed = f" {int(seconds)} s" if seconds < 60 else f" {duration(int(seconds))}"
    name = exposed(call["tool"])
    room = width - get_cwidth(f"  {name} {timed}")
    return [
        (DIM, f"{look.plain('…')} "),
        (HEAD, name),
        ("", f" {fitted(_subject(call), max(0, room), look.plain('…'))}"),
        (DIM, timed),
    ]


def ended_rows(
    call: ToolCallView, end: ToolEndedEvent, seconds: float | None, width: int, look: Appearance
) -> list[Row]:
    """Return the rows of a call that ended: what, its result, time and size; and the diff of an edit.

    `seconds` is none for a call that never started.
    """
    is_good = end["status"] == "ok" and not end["exit_code"]
    sign = look.plain("✓") if is_good else look.plain("✗")
    row: Row = [(GOOD if is_good else BAD, sign), ("", " "), (HEAD, exposed(call["tool"]))]
    took = f" · {duration(seconds)}" if seconds is not None else ""
    tail = look.plain(took + _size(end))
    result = _result(end, is_good)
    arrow = look.plain(" → ") if result else ""
    room = width - get_cwidth("".join(text for _, text in row) + tail + arrow) - 1
    if result and not is_good and room <= NARROW:  # why it failed matters more than how long
        room, tail = room + get_cwidth(tail), ""
    least = max(room // 2, room - get_cwidth(result)) if room > NARROW else room
    subject = fitted(_subject(call), max(4, least), look.plain("…"))
    row.append(("", f" {subject}" if subject else ""))
    if result and (left := room - get_cwidth(subject)) > 5:
        row.append((DIM if is_good else BAD, arrow + fitted(result, left, look.plain("…"))))
    rows = [[*row, (DIM, tail)]]
    return [*rows, *diff_rows(call, end["output"], width, look)] if is_good else rows


def diff_rows(
    call: ToolCallView, output: str, width: int, look: Appearance, most: int = DIFF_ROWS
) -> list[Row]:
    """Return what an edit or a write changes, coloured and cut; none for other tools."""
    lines = list(_changed(call, output))
    rows: list[Row] = []
    for line in lines[:most]:
        style = {"+": ADDED, "-": REMOVED, "@": CODE}.get(line[:1], DIM)
        rows.append([(style, fitted(f"  {exposed(line).expandtabs(4)}", width, look.plain("…")))])
    if more := len(lines) - len(rows):
        rows.append([(DIM, look.plain(f"  … {more} more lines"))])
    return rows


def unfolded_rows(
    call: ToolCallView, output: str, size: int, width: int, look: Appearance
) -> list[Row]:
    """Return a call with all that it was given and all that is known of its output of `size` bytes."""
    rows: list[Row] = [[(HEAD, f"{exposed(call['tool'])} "), (DIM, call["call"])]]
    for name, value in call["arguments"].items():
        if call["tool"] in ("edit", "write") and name in ("old", "new", "content"):
            continue
        for at, line in enumerate(exposed(str(value)).split("\n")):
            rows += wrapped_pieces([(DIM, f"{name}: " if at == 0 else "  "), ("", line)], width)
    rows += diff_rows(call, output, width, look, UNFOLDED_ROWS)
    if call["tool"] not in ("edit", "write"):
        lines = clean(output).expandtabs(4).rstrip("\n").split("\n")
        for line in _middle_out(lines, size, UNFOLDED_ROWS, look):
            rows += wrapped_pieces([(CODE, line)], width, by_word=False)
    return rows


def _middle_out(lines: list[str], size: int, most: int, look: Appearance) -> list[str]:
    """Return the first and the last lines; `size` is that of the whole output, in bytes."""
    if len(lines) <= most:
        return lines
    half = most // 2
    shown = [*lines[:half], *lines[-half:]]
    what = f"{len(lines) - len(shown)} lines"
    if any(map(_GAP.match, lines[half:-half])):
        what = size_text(size - sum(len(line.encode()) + 1 for line in shown))
    return [*shown[:half], look.plain(f"… {what} left out …"), *shown[half:]]


def _subject(call: ToolCallView) -> str:
    """Return what a call is about: the file, for tools that change one, and a command itself."""
    arguments = call["arguments"]
    if call["tool"] == "shell" and "command" in arguments:
        return brief({"command": arguments["command"]})
    if call["tool"] in ("edit", "write") and "path" in arguments:
        return exposed(" ".join(str(arguments["path"]).split()))
    return brief(arguments)


def _result(end: ToolEndedEvent, is_good: bool) -> str:
    """Return how a call ended, on one line."""
    if is_good and _is_unchanged(end["tool"], end["output"]):
        return "unchanged"
    if is_good:
        return telling_line(end) if end["tool"] == "shell" else ""
    code = exit_words(end["exit_code"]) if end["exit_code"] is not None else ""
    reason = audited(end.get("reason", "")) or telling_line(end)
    status = "" if end["status"] in ("ok", "failed") and (code or reason) else end["status"]
    return ": ".join(part for part in (status, code, reason) if part)


def _size(end: ToolEndedEvent) -> str:
    if end["tool"] in ("edit", "write"):
        return ""  # the diff says it
    lines = end["lines"] - (end["tool"] == "shell")
    is_whole = not any(map(_GAP.match, end["output"].split("\n")))
    if lines > 1 and end["status"] == "ok" and is_whole:
        return f" · {lines} lines"
    return f" · {size_text(end['bytes'])}" if end["bytes"] else ""


def _is_unchanged(tool: str, output: str) -> bool:
    """Whether a file had just the content that it was to get."""
    return tool == "write" and output.startswith("Unchanged")


def _changed(call: ToolCallView, output: str) -> Iterator[str]:
    """Yield the lines of a diff; of a file that is new, its lines as added."""
    arguments = call["arguments"]
    diff = output.split("\n")[1:] if output.startswith(("Edited ", "Replaced ")) else []
    if call["tool"] in ("edit", "write") and diff:
        yield from diff
    elif call["tool"] == "write" and not _is_unchanged("write", output):
        yield from (f"+{line}" for line in str(arguments.get("content", "")).splitlines())
    elif call["tool"] == "edit":
        yield from (f"-{line}" for line in str(arguments.get("old", "")).splitlines())
        yield from (f"+{line}" for line in str(arguments.get("new", "")).splitlines())


_READ = frozenset({"result", "reverted", "error", "recovered", "saved_queues", "side_talk_ended"})
"""Events whose text is there to be read; the other notices are dimmed."""

REMEMBERED = 100
"""Calls that can be unfolded by a key; `/show` knows all."""
NARROWED, LASTING = 40, 11
"""Rows that an unfinished answer may take in a window of so many columns: broken by one that becomes so
narrow, and low, more would scroll away, where nothing can erase them."""
MOST_RUNNING = 4
"""Rows for calls that run."""
MOST_PRINTED = 4
"""Rows for what a call that runs has printed last."""


class Transcript:
    """Turns events into printed rows, in order; calls come one at a time.

    `width` gives the terminal's columns, `emit` takes rows that are finished.
    """

    def __init__(
        self,
        look: Appearance,
        width: Callable[[], int],
        emit: Callable[[list[str]], None],
        *,
        shows_queued: bool = True,
    ) -> None:
        self._look = look
        self._width = width
        self._blocks = Blocks(emit)
        self._is_dim = False
        self._deferred: list[tuple[Kind, list[Row]]] = []
        self._stream = Stream(look)
        self._running: dict[str, tuple[ToolCallView, float]] = {}
        self._printed: dict[str, str] = {}
        self._stopped: dict[str, tuple[ToolCallView, float]] = {}
        self._ended: deque[tuple[ToolCallView, str, int]] = deque(maxlen=REMEMBERED)
        self._unfolded = 0
        self._begun = StartedTurns()
        self._thoughts: list[str] = []
        self._thinking_since = 0.0
        self.face = PlainInterface(
            self.write,
            self.write,
            can_utf8=look.can_utf8,
            has_bar=True,
            shows_queued=shows_queued,
            columns=self._room,
        )

    def hear(self, event: Event) -> None:
        """Take in an event of the session itself."""
        begun = self._begun.hear(event)
        if ends_answer(event):
            self.end_answer()
        elif event["type"] == "text":
            self._end_thinking()
        match event["type"]:
            case "thinking":
                if not self._thoughts:
                    self._thinking_since = time.monotonic()
                self._thoughts.append(clean(event["delta"]))
            case "text":
                self._feed(clean(event["delta"]))
            case "tool_started":
                since = time.monotonic() - event.get("elapsed", 0.0)
                self._running[event["call"]] = (event, since)
            case "output":
                self._printed[event["call"]] = event["text"]
            case "tool_ended":
                self._printed.pop(event["call"], None)
                self._end_call(event)
            case "turn_started" | "turn_ended":
                self._stopped, self._running = self._running, {}
                self._printed.clear()
                self.face.hear(event)
                if event["type"] == "turn_started":
                    LOADER.prepare()
                if begun:  # its message was sent long before, and is named above its answer
                    text, _, number = begun.rpartition("  ")
                    room = max(8, self._width() - 8 - len(number))
                    line = fitted(" ".join(audited(text).split()), room, "...")
                    rows = message_rows(line, self._width(), self._look, number.strip("()"))
                    self._rows("message", rows)
            case kind:
                self._is_dim = kind not in _READ
                self.face.hear(event)
                self._is_dim = False

    def write(self, text: str) -> None:
        """Print lines of plain text, broken between words, as a notice."""
        style = BAD if text.startswith("steersman: ") else DIM if self._is_dim else ""
        lines = wrapped(audited(text).removesuffix("\n").expandtabs(4), self._room())
        self._between("notice", [[("", INDENT), (style, line)] if line else [] for line in lines])

    def report(self, text: str) -> None:
        """Print a dim line among the tool calls, such as the answer to a question about one."""
        line = fitted(audited(text), self._room(), self._look.plain("…"))
        self._between("tool", [[(DIM, f"{INDENT}{line}")]])

    def _room(self) -> int:
        return max(1, self._width() - len(INDENT))

    def message(self, text: str) -> None:
        """Print a message of the person."""
        self._between("message", message_rows(text, self._width(), self._look))

    @property
    def is_unfinished(self) -> bool:
        """Whether a line of the answer, or of what was thought, is not printed yet."""
        return bool(self._thoughts) or self._stream.is_unfinished

    def end_answer(self) -> None:
        """Print what of the answer is unfinished, and fold what was thought."""
        self._end_thinking()
        self.end_line()

    def end_line(self) -> None:
        """Print the line that is unfinished: something else comes, and belongs below it."""
        self._rows("answer", self._stream.finish(self._width()))
        self._print_deferred()

    def live(self, width: int, most: int) -> list[Row]:
        """Return the rows that still change: the unfinished line, thinking, calls that run."""
        broken = -(-width // NARROWED)
        rows = self._stream.live(width)[-max(1, min(most, LASTING // broken)) :]
        kind: Kind = "answer" if rows else "tool"
        for deferred, below in self._deferred:
            rows += [[], *below] if deferred == "message" else below
        now = time.monotonic()
        if self._thoughts:
            seconds = duration(int(now - self._thinking_since))
            sign = self._look.plain("✻")
            rows.append([(DIM, f"{sign} Thinking {self._look.plain('…')} {seconds}")])
        calls = [entry for entry in self._running.values() if entry[0]["tool"] != "progress"]
        for call, since in calls[:MOST_RUNNING]:
            rows.append(running_row(call, int(now - since), width, self._look))
            printed = clean(self._printed.get(call["call"], "")).expandtabs(4).split("\n")
            rows += [
                [(DIM, fitted(f"  {line}", width, self._look.plain("…")))]
                for line in printed[-MOST_PRINTED:]
                if line.strip()
            ]
        if more := len(calls) - MOST_RUNNING:
            rows += [[(DIM, f"  and {more} more")]] if more > 0 else []
        empty: list[Row] = [[]]
        return [*empty * self._blocks.blanks_before(kind), *rows] if rows else []

    def unfold(self) -> bool:
        """Print a call whole: the last, and then each time the one before; False for none left."""
        if self._unfolded >= len(self._ended):
            return False
        self._unfolded += 1
        rows = unfolded_rows(*self._ended[-self._unfolded], self._width(), self._look)
        self._rows("tool", rows)
        return True

    def _feed(self, delta: str) -> None:
        """Take in a piece of the answer; what waits for the end of a line is printed at the first one."""
        if self._deferred and "\n" in delta:
            line, _, delta = delta.partition("\n")
            self._rows("answer", self._stream.feed(f"{line}\n", self._width()))
            self._print_deferred()
        self._rows("answer", self._stream.feed(delta, self._width()))

    def _between(self, kind: Kind, rows: list[Row]) -> None:
        """Print rows below the unfinished line of the answer: when it ends, until then they are live."""
        if self._stream.is_unfinished:
            self._deferred.append((kind, rows))
        else:
            self._rows(kind, rows)

    def _print_deferred(self) -> None:
        deferred, self._deferred = self._deferred, []
        for kind, rows in deferred:
            self._rows(kind, rows)

    def _end_thinking(self) -> None:
        """Fold what was thought into a row, and keep it to be unfolded."""
        if not self._thoughts:
            return
        seconds = duration(time.monotonic() - self._thinking_since)
        self._rows("tool", [[(DIM, f"{self._look.plain('✻')} Thought for {seconds}")]])
        thought, self._thoughts = "".join(self._thoughts), []
        call = ToolCallView(call="", tool="thinking", arguments={})
        self._remember(call, thought, len(thought.encode()))

    def _end_call(self, end: ToolEndedEvent) -> None:
        given = end.get("arguments", {})
        unstarted = ToolCallView(call=end["call"], tool=end["tool"], arguments=given)
        calls = self._running if end["call"] in self._running else self._stopped
        call, since = calls.pop(end["call"], (unstarted, None))
        if end["tool"] == "progress" and end["status"] in ("ok", "skipped"):
            return
        self._remember(call, end["output"], end["bytes"])
        seconds = time.monotonic() - since if since is not None else None
        self._rows("tool", ended_rows(call, end, seconds, self._width(), self._look))

    def _remember(self, call: ToolCallView, output: str, size: int) -> None:
        self._ended.append((call, output, size))
        self._unfolded = 0

    def _rows(self, kind: Kind, rows: list[Row]) -> None:
        self._blocks.put(kind, [self._look.printed(row) for row in rows])
