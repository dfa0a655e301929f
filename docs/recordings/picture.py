"""Draw recordings as SVG pictures: a moment of one, and the README's, which moves.

    python docs/recordings/picture.py                                    the two that are kept
    python docs/recordings/picture.py 5-words 'Held: 1 waiting' words.svg    any other moment

The recording is played into a terminal emulator until the text is on its screen, and what is there
is drawn: no picture says what the program did not. One that moves is a strip of all screens, of which CSS
shows one after the other: it needs no script, so that code hosts show it.
"""

import json
import sys
from itertools import groupby
from pathlib import Path
from typing import Any
from xml.sax.saxutils import escape

import pyte
from prompt_toolkit.utils import get_cwidth

__all__ = ["CHAT", "FILM", "drawn", "filmed", "main", "played"]

FOLDER = Path(__file__).resolve().parent
CHAT = ("1-a-long-job", "#2 [PENDING]", "chat.svg")
"""A moment: the recording, the text that is on the screen then, the file."""
FILM = ("4-the-plug-is-pulled", "plug.svg")
HOLDS = (
    ("? keys", 1.0, "a real terminal, a scripted model"),
    ("working 0 s", 1.5, "50 files are to be rewritten"),
    ("Queued #2", 1.5, "said while it works: it waits under a number"),
    ("Queued #3", 1.5, "and one more"),
    ("Killed", 3.0, "another terminal: kill -9"),
    ("$ steersman chat --yes\n  📥", 5.0, "23 minutes later: nothing is lost, nothing runs"),
    ("`/queue discard` deletes.", 2.0, "23 minutes later: nothing is lost, nothing runs"),
    ("Restored 3 items", 2.0, "it goes on with file 24, and repeats none"),
    ("All 50 files", 2.0, "it goes on with file 24, and repeats none"),
    ("Continue with", 5.0, "and then with what waited"),
)
"""What is on the screen when the film rests, for how many seconds, and the line below it from then on."""
GRID = 0.1  # seconds of a recording; what is shown for less is left out
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
    lines = _head(width, height, title)
    for at in range(last + 1):
        lines += _row(screen, at)
    return "\n".join([*lines, "</svg>", ""])


def filmed(path: Path, title: str) -> str:
    """Return a recording as SVG that moves; where no motion is wanted, the longest rest stands still."""
    parts, strip, times, still = dict[str, str](), list[str](), list[float](), 0
    at, holds, caption = 0.0, list(HOLDS), ""
    head, *rows = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    screen = _Screen(head["width"], head["height"])
    stream, height = pyte.Stream(screen), (head["height"] + 1) * DOWN + 2 * EDGE
    shown = ""
    for (began, _, text), (until, *_) in zip(rows, [*rows[1:], [rows[-1][0] + 1]], strict=True):
        stream.feed(text)
        lines = "\n".join(row.rstrip() for row in screen.display)
        hold = 0.0
        if holds and holds[0][0] in lines:
            _, hold, caption = holds.pop(0)
        elif int(began / GRID) == int(until / GRID) or lines == shown:
            at += until - began
            continue
        shown = lines
        still = len(times) if hold == max(of for _, of, _ in HOLDS) and not still else still
        top = len(times) * height
        for row in range(head["height"]):
            drawn_row = "".join(_row(screen, row, EDGE - row * DOWN))
            if drawn_row:
                name = parts.setdefault(drawn_row, f"r{len(parts)}")
                strip.append(f'<use href="#{name}" y="{top + row * DOWN}"/>')
        strip.append(f'<text x="{EDGE}" y="{top + height - EDGE}" fill="#e5c07b">{caption}</text>')
        times.append(at)
        at += until - began + hold
    if holds:
        raise SystemExit(f"`{holds[0][0]}` is never shown in {path.name}")
    width = round(head["width"] * ACROSS + 2 * EDGE)
    moves = "".join(
        f"{100 * time / at:.2f}%{{transform:translateY({-number * height}px)}}"
        for number, time in enumerate(times)
    )
    style = (
        f".film{{animation:film {at:.1f}s steps(1,end) infinite}}@keyframes film{{{moves}}}"
        "@media (prefers-reduced-motion:reduce){.film{animation:none;"
        f"transform:translateY({-still * height}px)}}}}"
    )
    defs = "".join(f'<g id="{name}">{row}</g>' for row, name in parts.items())
    return "\n".join(
        [
            *_head(width, height, title),
            f"<style>{style}</style>\n<defs>{defs}</defs>",
            f'<g class="film">{"".join(strip)}</g>\n</svg>\n',
        ]
    )


def _head(width: int, height: int, title: str) -> list[str]:
    return [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}"'
        f' height="{height}" font-family="ui-monospace, Menlo, Consolas, DejaVu Sans Mono, monospace"'
        f' font-size="14" role="img" aria-label="{escape(title)}">',
        f'<rect width="{width}" height="{height}" rx="8" fill="{PAPER}"/>',
    ]


def _row(screen: pyte.Screen, at: int, edge: int = EDGE) -> list[str]:
    cells = [(column, screen.buffer[at][column]) for column in range(screen.columns)]
    made = list[str]()
    for style, run in groupby(cells, key=lambda cell: _style(cell[1])):
        run = list(run)
        text = "".join(cell.data for _, cell in run)
        if text.strip():
            blanks = len(text) - len(text.lstrip())
            x = EDGE + (run[0][0] + blanks) * ACROSS
            y = edge + (at + 1) * DOWN - 5
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
    if not arguments:
        name, target = FILM
        film = filmed(FOLDER / f"{name}.cast", f"steersman: {name.replace('-', ' ')}")
        Path(FOLDER, target).write_text(film, "utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
