"""The layout of the lower part of the screen: live rows, cards, the input line, the menu, the bar."""

from __future__ import annotations

import time
from bisect import bisect_right
from collections.abc import Callable, Mapping
from itertools import accumulate

from prompt_toolkit.application import Application
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import Condition, has_completions, vi_navigation_mode
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindingsBase
from prompt_toolkit.layout import (
    BufferControl,
    ConditionalContainer,
    Dimension,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.menus import CompletionsMenu
from prompt_toolkit.layout.processors import Processor, Transformation, TransformationInput
from prompt_toolkit.layout.screen import Screen as Drawing
from prompt_toolkit.layout.utils import explode_text_fragments
from prompt_toolkit.output import ColorDepth
from prompt_toolkit.styles import Style
from prompt_toolkit.widgets import SearchToolbar

from ...gateway.wording.terminal import audited
from .screen import FRAMED, Screen

# Most terminals break rows that are too wide for a narrower window into several. The next drawing then
# starts further up, by as many rows as were added; xterm cuts rows instead. A terminal cannot be asked
# which of both it does, but most report their name.
_BREAKING = (
    "TMUX",
    "VTE_VERSION",
    "KITTY_WINDOW_ID",
    "WT_SESSION",
    "KONSOLE_VERSION",
    "TERM_PROGRAM",
)
_BREAKING_TERMS = (
    *("foot", "alacritty", "xterm-kitty", "xterm-ghostty", "wezterm"),
    *("tmux", "screen"),  # tmux has the name of GNU screen where nobody chose another
)


SETTLED = 0.008
"""Seconds after which a program knows that its window has another size."""


class ChatApplication(Application[int]):
    """An application that erases all that it drew, also when a narrower window broke its rows.

    What was drawn just before the program knew of that was drawn into the narrower window, unbroken: to
    count rows then would erase what is above.
    """

    breaks_rows = False
    drawn_ago: Callable[[], float] = staticmethod(lambda: SETTLED)

    def erase_drawn(self) -> None:
        """Erase what was drawn last, in a terminal that may be narrower than it was then."""
        drawn = self.renderer.last_rendered_screen
        if self.breaks_rows and drawn is not None and self.drawn_ago() >= SETTLED:
            cursor = drawn.get_cursor_position(self.layout.current_window)
            columns = max(1, self.output.get_size().columns)
            self.output.cursor_up(rows_added(drawn, cursor.y, cursor.x, columns))
        self.renderer.erase()

    def _on_resize(self) -> None:
        self.erase_drawn()
        super()._on_resize()


def breaks_rows(environ: Mapping[str, str]) -> bool:
    """Whether the terminal is known to break rows when it becomes narrower."""
    if any(environ.get(name) for name in _BREAKING):
        return True
    term = environ.get("TERM", "")
    is_screen = term.startswith("screen") and environ.get("STY")  # else it is tmux of that name
    return not is_screen and term.startswith(_BREAKING_TERMS)


def rows_added(drawn: Drawing, cursor_row: int, cursor_column: int, columns: int) -> int:
    """Count the rows that breaking at so many columns adds above the cursor."""
    added = cursor_column // columns
    for at in range(cursor_row):
        row = drawn.data_buffer[at]
        width = max((x + 1 for x, sign in row.items() if sign.char.strip()), default=0)
        added += max(0, width - 1) // columns
    return added


MENU = 6
"""Maximum number of rows of the menu."""
INPUT = 10
"""Maximum number of rows of the input line; a longer text scrolls."""

STYLE = Style.from_dict(
    {
        "completion-menu": "bg:default fg:default",
        "completion-menu.completion": "bg:default fg:default",
        "completion-menu.completion.current": "reverse",
        "completion-menu.meta.completion": "bg:default fg:default dim",
        "completion-menu.meta.completion.current": "bg:default fg:default",
        "frame": "dim",
        "scrollbar.background": "bg:default",
        "scrollbar.button": "bg:default",
    }
)
"""The background colour of the terminal is not known, so the styles use its defaults."""


class VisibleEscapes(Processor):
    """Shows what acts on a terminal or hides in an input line, such as a file's name, as escapes."""

    def apply_transformation(self, transformation_input: TransformationInput) -> Transformation:
        """Replace each such character; the cursor stays at its own character."""
        given = explode_text_fragments(transformation_input.fragments)
        shown: StyleAndTextTuples = [(style, audited(text)) for style, text, *_ in given]
        starts = [0, *accumulate(len(text) for _, text, *_ in shown)]
        if starts[-1] == len(given):
            return Transformation(transformation_input.fragments)
        return Transformation(
            shown,
            source_to_display=lambda at: starts[min(at, len(given))],
            display_to_source=lambda at: bisect_right(starts, at) - 1,
        )


def make_app(
    screen: Screen,
    buffer: Buffer,
    bindings: KeyBindingsBase,
    environ: Mapping[str, str],
    *,
    is_vi: bool = False,
) -> Application[int]:
    """Make the application; its result is an exit code. `is_vi`: the line has the keys of vi."""
    search = SearchToolbar()

    def line_sign(number: int, wrap: int) -> StyleAndTextTuples:
        sign = ": " if vi_navigation_mode() else "> "
        return [("bold", sign if number == wrap == 0 else "  ")]

    field = Window(
        BufferControl(
            buffer,
            input_processors=[VisibleEscapes()],
            search_buffer_control=search.control,
            preview_search=True,
        ),
        height=Dimension(min=1, max=INPUT),
        dont_extend_height=True,
        wrap_lines=True,
        get_line_prefix=line_sign,
    )
    above = FormattedTextControl(screen.above)
    below = FormattedTextControl(
        lambda: screen.below(
            is_empty=not buffer.text,
            has_menu=buffer.complete_state is not None,
            stop="Ctrl-C" if is_vi else "Esc",
        )
    )
    has_above = Condition(lambda: bool(screen.above()))
    canvas = screen.canvas
    is_tall = Condition(lambda: canvas.lines >= FRAMED)
    rule = screen.appearance.plain("─")
    frame = ConditionalContainer(Window(char=rule, height=1, style="class:frame"), is_tall)
    upper = [
        ConditionalContainer(Window(above, dont_extend_height=True), has_above),
        ConditionalContainer(Window(height=1), is_tall),
        frame,
        field,
        ConditionalContainer(search, Condition(lambda: search.control.is_focusable())),
    ]
    lower = [frame, Window(below, height=1, dont_extend_height=True)]
    menu = CompletionsMenu(max_height=MENU)

    def menu_rows() -> Dimension:  # those that the others leave: none of them moves when it closes
        size = canvas.columns, canvas.lines
        taken = sum(other.preferred_height(*size).preferred for other in (*upper, *lower))
        wanted = menu.preferred_height(*size).preferred
        return Dimension.exact(max(1, min(wanted, canvas.lines - taken)))

    bounded = HSplit([menu], height=menu_rows)
    rows = HSplit([*upper, ConditionalContainer(bounded, has_completions), *lower])
    depth = ColorDepth.DEPTH_1_BIT
    if screen.appearance.has_colour:  # the terminal's own 16, or also the greys of a theme
        is_filled = screen.appearance.theme.is_filled
        depth = ColorDepth.DEPTH_8_BIT if is_filled else ColorDepth.DEPTH_4_BIT
    app = ChatApplication(
        layout=Layout(rows, focused_element=field),
        style=STYLE,
        include_default_pygments_style=False,
        key_bindings=bindings,
        erase_when_done=True,
        color_depth=depth,
        enable_page_navigation_bindings=False,
        terminal_size_polling_interval=None,
        output=screen.canvas.output,
        editing_mode=EditingMode.VI if is_vi else EditingMode.EMACS,
    )
    app.breaks_rows = breaks_rows(environ)
    canvas.erase, app.drawn_ago = app.erase_drawn, lambda: time.monotonic() - canvas.drawn_at
    app.ttimeoutlen = 0.05
    app.timeoutlen = 0.04
    return app
