"""Draw a moment of a recording as an SVG picture: the README's is one of a real session.

    python docs/recordings/picture.py                                    the README's
    python docs/recordings/picture.py 5-words 'Held: 1 waiting' words.svg    any other

The recording is played into a terminal emulator until the text is on its screen, and what is there
is drawn: no picture says what the program did not.
"""

import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pyte
from prompt_toolkit.utils import get_cwidth

__all__ = ["CHAT", "drawn", "main", "played"]

FOLDER = Path(__file__).resolve().parent
CHAT = ("1-a-long-job", "#2 [PENDING]", "chat.svg")
"""The README's picture: the recording, the text that is on the screen then, the file."""
ACROSS, DOWN, EDGE = 8.4, 18, 14
INK, PAPER = "#d8dee9", "#1b1f27"
COLOURS = {
    "default": INK,
    "red": "#e06c75",
    "green": "#98c379",
    "brown": "#e5c07b",
    "blue": "#61afef",
    "magenta": "#c678dd",
    "cyan": "#56b6c2",
}


class _Screen(pyte.Screen):
    """A screen that knows dim letters, which pyte leaves out, and signs without a width."""

    def select_graphic_rendition(self, *attributes: int, **kinds: Any) -> None:
        """Draw dim letters as italic ones are marked: by `strikethrough`, which nothing else uses."""
        super().select_graphic_rendition(
            *(9 if attribute == 2 else attribute for attribute in attributes), **kinds
        )

    def draw(self, data: str) -> None:
        """Draw; pyte would drop all that follows a variation selector."""
        super().draw(data.replace("\ufe0f", ""))


def played(path: Path, until: str) -> pyte.Screen:
    """Play a recording until a text is on the screen, and a little on, until that is at rest."""
    head, *rows = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    screen = _Screen(head["width"], head["height"])
    stream = pyte.Stream(screen)
    found = -1.0
    for at, _, text in rows:
        if found >= 0 and at > found + 0.3:
            return screen
        stream.feed(text)
        if found < 0 and any(until in row for row in screen.display):
            found = at
    if found < 0:
        raise SystemExit(f"`{until}` is never shown in {path.name}")
    return screen


def drawn(screen: pyte.Screen, title: str) -> str:
    """Return the screen as SVG; rows that are empty at its end are left out."""
    last = max(at for at, row in enumerate(screen.display) if row.strip())
    height = (last + 1) * DOWN + 2 * EDGE
    width = round(screen.columns * ACROSS + 2 * EDGE)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace"'
        f' font-size="14" role="img" aria-label="{escape(title)}">',
        f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>',
    ]
    for at in range(last + 1):
        lines += _row(screen, at)
    return "\n".join([*lines, "</svg>", ""])


def _row(screen: pyte.Screen, at: int) -> list[str]:
    cells = [(column, screen.buffer[at][column]) for column in range(screen.columns)]
    made = list[str]()
    for style, run in groupby(cells, key=lambda cell: _style(cell[1])):
        run = list(run)
        text = "".join(cell.data for _, cell in run)
        if text.strip():
            blanks = len(text) - len(text.lstrip())
            x = EDGE + (run[0][0] + blanks) * ACROSS
            y = EDGE + (at + 1) * DOWN - 5
            shown = escape(text.strip())
            broad = get_cwidth(text.strip()) * ACROSS
            place = f'x="{x:.1f}" y="{y}" textLength="{broad:.1f}"'
            made.append(f'<text {place} xml:space="preserve" {style}>{shown}</text>')
    return made


def _style(cell: Any) -> str:
    marks = [f'fill="{COLOURS.get(cell.fg, INK)}"']
    marks += ['font-weight="bold"'] if cell.bold else []
    marks += ['font-style="italic"'] if cell.italics else []
    marks += ['opacity="0.6"'] if cell.strikethrough else []
    return " ".join(marks)


def main(arguments: list[str]) -> None:
    """Draw what is asked for."""
    name, until, target = arguments or CHAT
    screen = played(FOLDER / f"{name}.cast", until)
    Path(FOLDER, target).write_text(drawn(screen, f"steersman: {name.replace('-', ' ')}"), "utf-8")
    print("\n".join(row.rstrip() for row in screen.display))


if __name__ == "__main__":
    main(sys.argv[1:])
