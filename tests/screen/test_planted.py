"""Escapes planted in every text of every event: no interface passes one on to a terminal."""

import io
import json
import re
import types
import typing
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from steersman.cli.output import document, show
from steersman.cli.plain import PlainInterface
from steersman.cli.printer import Printer
from steersman.cli.runs.screen import RunScreen
from steersman.cli.screen.appearance import Appearance
from steersman.cli.screen.screen import Screen
from steersman.gateway.events import contract

PLANTED = (
    "\x1b[31;8mCSI \x1b]52;c;Q0FO\x07OSC \x1b]8;;http://x\x1b\\LINK \x1bPq\x1b\\DCS \x9b31mC1 "
    "\x00\x08\r\x7fCONTROL \u202e\u2066BIDI \u200b\ufeff\u2060WIDTH \U000e0041TAG \x1bcRESET"
)
ACTS = re.compile(
    "[\x00-\x08\x0b-\x1a\x1c-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060-\u206f\ufeff\U000e0000-\U000e007f]"
    r"|\x1b(?!\[(?:[0-47]|[39][1-6]|90)(?:;(?:[0-47]|[39][1-6]))*m)"
)
MOMENTS = {"time", "last_active", "since"}


def members(kind: Any) -> list[Any]:
    """Return the classes of a union of unions."""
    return [
        found
        for one in typing.get_args(kind)
        for found in ([one] if typing.is_typeddict(one) else members(one))
    ]


KINDS = members(contract.Event)


def planted(kind: Any, name: str = "") -> Any:
    """Return a value of a type whose every text is planted; of a choice of words the first."""
    origin, arguments = typing.get_origin(kind), typing.get_args(kind)
    if typing.is_typeddict(kind):
        hints = typing.get_type_hints(kind)
        return {key: planted(hint, key) for key, hint in hints.items() if key != "parent"}
    if origin is typing.Literal:
        return arguments[0]
    if origin in (typing.Union, types.UnionType):
        return planted(next(one for one in arguments if one is not type(None)), name)
    if origin in (list, tuple, Sequence):
        return [planted(arguments[0])]
    if kind is Any or origin in (dict, Mapping):
        return {PLANTED: PLANTED}
    if name in MOMENTS:
        return "2026-11-23T05:00:00.000Z"
    return {str: PLANTED, int: 1, float: 1.0, bool: True}[kind]


class Pane:
    """A canvas that keeps what is printed."""

    columns, lines = 100, 40

    def __init__(self) -> None:
        self.text = ""

    def print(self, rows: list[str]) -> None:
        """Keep rows."""
        self.text += "".join(f"{row}\n" for row in rows)

    def changed(self) -> None:
        """There is nothing to draw."""


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_no_interface_passes_an_escape_on(kind: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Neither the screen, nor plain text, nor a run's rows hold anything that a terminal obeys."""
    event = planted(kind)
    stream, pane = io.StringIO(), Pane()
    printer = Printer(stream)
    screen = Screen(pane, Appearance())  # type: ignore[arg-type]
    run = RunScreen(printer.write, can_utf8=True)
    for hear in (PlainInterface(printer, printer).hear, screen.hear, run.hear):
        hear(event)
        hear(event)
    printer.write(run.picture())
    printer.close()
    below = "".join(piece[1] for piece in (*screen.above(), *screen.below()))
    show(document(event))
    for text in (stream.getvalue(), pane.text, below, capsys.readouterr().out):
        assert not ACTS.search(text), ascii(text)


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_programs_read_what_was_there(kind: Any) -> None:
    """As JSON, a line holds the same data, and nothing that a terminal obeys."""
    event, stream = planted(kind), io.StringIO()
    printer = Printer(stream)
    printer.write(document(event, None) + "\n")
    printer.close()
    assert json.loads(stream.getvalue()) == event
    assert not ACTS.search(stream.getvalue())
