"""The keys of the chat: one table, from which the bindings, `?` and the docs are made."""

from __future__ import annotations

import select
import time
from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from prompt_toolkit.application import get_app
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.filters import (
    Condition,
    emacs_mode,
    has_completions,
    is_searching,
    vi_navigation_mode,
)
from prompt_toolkit.input.ansi_escape_sequences import ANSI_SEQUENCES
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
from prompt_toolkit.keys import Keys

from ..wrapping import fitted
from .appearance import Appearance
from .completion import picked_kind
from .input_line import REASON, InputLine
from .screen import Screen
from .status import FOCUSED, UNFOCUSED


class Key(NamedTuple):
    """A key: its name, prompt_toolkit's names, its description, and the method that handles it.

    A blank is between keys that follow each other. A key without an action is the editor's own; it is
    listed for the help.
    """

    name: str
    bound: tuple[str, ...]
    what: str
    action: str = ""


KEYS = (
    Key("Enter", ("enter",), "send; during a turn, as `/busy` says", "send"),
    Key("Tab", ("tab",), "put it into the queue; with a menu open, take its entry", "queue"),
    Key("Alt-Enter", ("escape enter",), "steer the running turn", "steer"),
    Key(
        "Esc",
        ("escape",),
        "stop your own command, else the turn; first close a menu or cancel an edit",
        "escape",
    ),
    Key("Ctrl-C", ("c-c",), "clear the line; else stop the turn; else leave", "control_c"),
    Key("Ctrl-D", ("c-d",), "leave, on an empty line; everything is saved", "control_d"),
    Key("Up", ("up",), "edit the last queued message; else the input history", "up"),
    Key(
        "Alt-Up",
        ("escape up",),
        "edit the last message, also one that was answered, to be sent in its place",
        "edit_last",
    ),
    Key("Down", ("down",), "the next one again", "down"),
    Key("Ctrl-J", ("c-j",), "a new line; so does a backslash before Enter", "newline"),
    Key("Ctrl-R", (), "search the input history"),
    Key("Ctrl-X Ctrl-E", (), "write in your editor ($VISUAL, $EDITOR)"),
    Key("Shift-Tab", ("s-tab",), "the next permission mode: ask, edits, plan", "mode"),
    Key("Ctrl-O", ("c-o",), "unfold the last tool call; again, the one before", "unfold"),
    Key("Ctrl-L", ("c-l",), "clear the screen", "clear"),
    Key("Ctrl-Z", ("c-z",), "suspend; `fg` brings it back", "suspend"),
    Key("Right", ("right",), "with a menu open, take its entry", "right"),
    Key(
        "y, a, e, n, r",
        ("y", "a", "e", "n", REASON, *"123456789"),
        "on an empty line: answer the question that is open, one of a workflow by its number",
        "answer",
    ),
    Key("?", ("?",), "on an empty line: these keys", "help"),
)


SIGNS = ("/ commands", "! your own shell", "@ files, subagents", "# the queue")
"""What a line, or a word in it, can begin with."""


def keys_text(appearance: Appearance, width: int) -> str:
    """Return the table for a terminal."""
    broad = max(len(key.name) for key in KEYS)
    rows = [f"{key.name:<{broad}}  {key.what}" for key in KEYS]
    between = "   "
    if width < 60:
        rows = [f"{key.name}: {key.what}" for key in KEYS]
        between = "\n"
    return appearance.plain("\n".join([*rows, between.join(SIGNS)]))


FOCUS = Keys.WindowsMouseEvent
"""The key that stands for a change of the focus: elsewhere it has no use."""
ANSI_SEQUENCES.update({FOCUSED: FOCUS, UNFOCUSED: FOCUS})

ALONE = 0.15
"""Seconds after which a key answers a question, if no other key follows: the begin of a word does not."""
TOGETHER = 0.03
"""Seconds between two keys that no person types: a program does, or a terminal that pastes."""
SLOW = 4
"""Reads from which on keys come over a slow line: what a program writes at once comes in one or two."""
RETURN = 0.3
"""Seconds that the program runs after a suspend key until it is stopped; far more than it takes."""
AGAIN = 2.0
"""Seconds within which a second Ctrl-C leaves."""


class Bindings:
    """Handles the keys: those with an action by the method `_ACTION`, or as `_bind` says."""

    def __init__(
        self,
        line: InputLine,
        screen: Screen,
        leave: Callable[[], None],
        missing: Callable[[str], str],
    ) -> None:
        self._line, self._missing = line, missing
        self._screen = screen
        self._leave = leave
        self._stopped_at = -AGAIN
        self._keys, self._control_x_key = 0, -1
        self._burst = self._breaks = self._read = self._reads = 0
        self._free = 0.0
        self._held = ""
        self.bindings = KeyBindings()
        self._bind()

    def note_key(self, _: object = None) -> None:
        """Count keys, and recognize bursts that no person types; called before each key."""
        self._keys += 1
        if self._screen.attention is not None:
            self._screen.attention.note_key()
        if time.monotonic() - self._free > TOGETHER:
            self._burst = self._breaks = self._reads = 0
        self._burst += 1
        self._read += 1
        self._reads += self._read == 1
        if self._held:  # more follows: it was no key of a person
            self._break(self._held)
        self._note_time()
        loop = get_app().loop
        if loop is not None and self._read == 1:
            loop.call_soon(self._end_read)
            loop.call_soon(
                loop.call_soon, self._note_time
            )  # drawing takes time in which none is read

    def _end_read(self) -> None:
        self._read = 0

    def _note_time(self) -> None:
        self._free = time.monotonic()

    def _unless_pasted(self, event: KeyPressEvent, text: str, act: Callable[[], None]) -> None:
        """Let Enter or Tab act, unless it is part of a paste without brackets: then it is its `text`.

        Such keys come together, over a slow line in one read after the other: then Enter acts once no
        other key has followed. At the end of one line that came at once, as programs type it, it acts.
        """
        waiting = event.app.key_processor.input_queue
        is_enter = event.key_sequence[0].key == Keys.ControlM
        if is_enter and waiting and waiting[0].key == Keys.ControlJ:
            waiting.popleft()  # the end of a line has two signs
        is_followed = any(
            press.key in (Keys.ControlM, Keys.ControlJ) or not isinstance(press.key, Keys)
            for press in waiting
        )
        if is_followed or (self._breaks and self._burst > 1) or (not waiting and _has_more(event)):
            self._break(text)
            return
        if waiting or self._reads < SLOW or event.app.loop is None:
            act()
            return
        self._held, pressed = text, self._keys

        def settle() -> None:
            if self._keys == pressed:
                self._held = ""
                act()
                event.app.invalidate()

        event.app.loop.call_later(TOGETHER, settle)

    def _break(self, text: str) -> None:
        """Insert what a key of a paste stands for."""
        self._held = ""
        self._breaks += text == "\n"
        self._line.buffer.insert_text(text)

    def _bind(self) -> None:
        is_empty = Condition(lambda: not self._line.buffer.text)
        is_asked = Condition(lambda: self._screen.answerable() is not None)
        filters = {
            "help": is_empty,
            "edit_last": is_empty,
            "right": has_completions,
            "answer": is_empty & is_asked,
            "escape": emacs_mode | vi_navigation_mode,
        }
        line, screen = self._line, self._screen
        actions: dict[str, Callable[[KeyPressEvent], None]] = {
            "steer": lambda _: line.send("steer"),
            "mode": lambda _: line.change_mode(),
            "edit_last": lambda _: line.edit_last(),
            "down": self._down,
            "clear": lambda event: event.app.renderer.clear(),
            "paste": lambda event: line.paste(event.data),
            "rub_out": lambda _: line.rub_out(),
            "help": lambda _: screen.write(keys_text(screen.appearance, screen.canvas.columns)),
        }
        for key in KEYS:
            for bound in key.bound:
                when = ~is_searching & filters.get(key.action, Condition(lambda: True))
                act = actions.get(key.action) or getattr(self, f"_{key.action}")
                self.bindings.add(*bound.split(), filter=when)(act)
        self.bindings.add(Keys.BracketedPaste)(actions["paste"])
        self.bindings.add(FOCUS, eager=True)(self._focus)
        self.bindings.add("c-h", filter=~is_searching)(actions["rub_out"])
        self.bindings.add("c-x", eager=True, filter=~is_searching)(self._control_x)
        is_after_x = Condition(lambda: self._keys == self._control_x_key + 1)
        self.bindings.add("c-e", filter=is_after_x, eager=True)(self._editor)

    # Sending ------------------------------------------------------------------------------------

    def _send(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        is_broken = buffer.document.text_before_cursor.endswith("\\")
        if is_broken and not event.app.key_processor.input_queue:
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            self._unless_pasted(event, "\n", partial(self._send_line, event))

    def _send_line(self, event: KeyPressEvent) -> None:
        """Send the line; behind `/resume` or `/model` completed, but for a number and a whole name."""
        buffer = event.current_buffer
        kind, typed = picked_kind(buffer.text)
        if kind and buffer.complete_state is not None and not typed.isdecimal():
            self._take_entry(event)
        buffer.complete_state = None
        self._line.send()

    def _queue(self, event: KeyPressEvent) -> None:
        def queue_line() -> None:
            if self._take_entry(event):
                return
            if word := self._missing(event.current_buffer.document.text_before_cursor):
                self._screen.write(f"No file fits {fitted(word, 40)}; Enter sends it as it is.")
                return
            self._line.send("queue")

        self._unless_pasted(event, "\t", queue_line)

    def _newline(self, event: KeyPressEvent) -> None:
        """Insert a line break; at the end of a burst of keys, as programs type, it is Enter."""
        if self._read > 1 and event.current_buffer.text:
            self._send(event)
            return
        event.current_buffer.insert_text("\n")

    def _right(self, event: KeyPressEvent) -> None:
        if event.current_buffer.document.is_cursor_at_the_end:
            self._take_entry(event)
        else:
            event.current_buffer.cursor_right()

    def _take_entry(self, event: KeyPressEvent) -> bool:
        """Complete with the chosen entry of the menu, or the first; False if there is none."""
        buffer = event.current_buffer
        state = buffer.complete_state
        entry = state.current_completion if state is not None else None
        if entry is None:
            buffer.cancel_completion()
            asked = CompleteEvent(completion_requested=True)
            found = list(buffer.completer.get_completions(buffer.document, asked))
            before = buffer.document.text_before_cursor
            if not found or any(before.endswith(completion.text) for completion in found):
                return False  # no entry fits, or the line has one already
            entry = found[0]
        buffer.apply_completion(entry)
        if buffer.text.endswith((" ", "/")):
            buffer.start_completion(select_first=False)
        return True

    def _answer(self, event: KeyPressEvent) -> None:
        """Insert a letter that answers the open question unless another key follows at once."""
        key, question, pressed = event.data, self._screen.answerable(), self._keys
        event.current_buffer.insert_text(key)
        loop = event.app.loop
        if question is None or loop is None:
            return

        def answer() -> None:
            if self._keys == pressed:
                self._line.answer_by(key, question["id"])

        loop.call_later(ALONE, answer)

    # Stopping and leaving -----------------------------------------------------------------------

    def _escape(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None and buffer.complete_state.completions:
            buffer.cancel_completion()
        elif not self._line.give_back() and self._screen.status.can_stop:
            self._line.stop()

    def _control_c(self, event: KeyPressEvent) -> None:
        """Clear the line; with an empty one stop what works, and leave where that is being stopped."""
        if event.current_buffer.text:
            if not self._line.give_back():
                event.current_buffer.reset(append_to_history=True)
            return
        if self._screen.status.own_commands:
            self._line.stop()  # that command alone
            return
        now = time.monotonic()
        is_again = now - self._stopped_at < AGAIN
        if is_again or not self._screen.status.can_stop:
            self._leave()
            return
        self._stopped_at = now
        self._screen.write("Ctrl-C again leaves.", ends_answer=True)
        self._line.stop()

    def _control_d(self, event: KeyPressEvent) -> None:
        if event.current_buffer.text:
            event.current_buffer.delete()
        else:
            self._leave()

    def _suspend(self, event: KeyPressEvent) -> None:
        self._lend(True)
        event.app.suspend_to_background()
        if event.app.loop is not None:  # it stops in between
            event.app.loop.call_later(RETURN, self._lend, False)

    def _lend(self, is_away: bool) -> None:
        """Take this program's modes from the terminal while another one has it, or set them again."""
        if (attention := self._screen.attention) is not None:
            codes = attention.closing() if is_away else attention.opening()
            self._screen.canvas.write_codes(codes)

    def _focus(self, event: KeyPressEvent) -> None:
        if self._screen.attention is not None:
            self._screen.attention.note_focus(event.data)

    # Moving and editing -------------------------------------------------------------------------

    def _up(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        is_at_top = buffer.complete_state is None and buffer.document.cursor_position_row == 0
        if not (is_at_top and self._line.take_back()):
            buffer.auto_up(count=event.arg)

    def _down(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if buffer.complete_state is not None or not self._line.take_next():
            buffer.auto_down(count=event.arg)

    def _control_x(self, event: KeyPressEvent) -> None:
        self._control_x_key = self._keys

    def _editor(self, event: KeyPressEvent) -> None:
        self._line.unfold_pastes()
        self._screen.canvas.step_aside(True)
        self._lend(True)
        task = event.current_buffer.open_in_editor(validate_and_handle=False)

        def come_back(_: object) -> None:
            self._lend(False)
            self._screen.canvas.step_aside(False)

        task.add_done_callback(come_back)

    def _unfold(self, event: KeyPressEvent) -> None:
        if not self._screen.unfold():
            self._screen.write("Nothing more to unfold. /show ID shows any tool call.")


def _has_more(event: KeyPressEvent) -> bool:
    """Whether more keys are there to be read."""
    try:
        return bool(select.select([event.app.input.fileno()], [], [], 0)[0])
    except (NotImplementedError, OSError, ValueError):  # no terminal, or one that is gone
        return False
