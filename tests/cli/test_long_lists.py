"""Long lists are written while they are read: JSON, TOML, lines, and files of exported sessions."""

import io
import json
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from steersman.cli.output import show_lines, toml_lines, without_nulls
from steersman.gateway.views.session_file import write_new
from steersman.gateway.wording.formats import document_lines

ROWS: list[dict[str, Any]] = [
    {"seq": 1, "text": "two\nlines \x1b[31m", "arguments": {"path": "a", "deep": [{"n": None}]}},
    {"seq": 2},
    {"seq": 3, "messages": [{"role": "user", "text": "x" * 300}, {"role": "tool", "text": "é"}]},
]


class Counted(Iterator[dict[str, Any]]):
    """Rows that note how many were read."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows, self.read = iter(rows), 0

    def __next__(self) -> dict[str, Any]:
        row = next(self.rows)
        self.read += 1
        return row


@pytest.mark.parametrize("head", [{}, {"session": "s1", "name": 'a"b'}])
@pytest.mark.parametrize("count", [0, 1, 3])
def test_a_list_is_the_same_document(head: dict[str, Any], count: int) -> None:
    """What is written line by line reads back as the whole: JSON, also in ASCII alone, and TOML."""
    data = {**head, "events": ROWS[:count]}
    for is_ascii in (False, True):
        text = "\n".join(document_lines(head, "events", iter(ROWS[:count]), is_ascii=is_ascii))
        assert json.loads(text) == data
        assert len(text.splitlines()) == count + 2
        assert text.isascii() or not is_ascii
    read = tomllib.loads("\n".join(toml_lines(head, "events", iter(ROWS[:count]))))
    assert read == without_nulls(data)


@pytest.mark.parametrize("lines", [document_lines, toml_lines])
def test_a_row_is_written_before_the_next_but_one_is_read(lines: Any) -> None:
    """No list is gathered: each line is there when at most one more row has been read."""
    rows = Counted([{"seq": number} for number in range(100)])
    for number, _ in enumerate(lines({"session": "s1"}, "events", rows)):
        assert rows.read <= number + 1


def test_the_first_line_is_printed_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Others are gathered for a program that reads them, and all of them arrive."""
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    seen: list[str] = []

    def lines() -> Iterator[str]:
        for number in range(20_000):
            yield f"line {number} \x1b[2J"
            seen.append(out.getvalue()) if number < 3 else None

    show_lines(lines())
    assert seen[0] == seen[2] == "line 0 \\x1b[2J\n"
    assert out.getvalue().splitlines() == [f"line {number} \\x1b[2J" for number in range(20_000)]
    show_lines([])
    assert out.getvalue().endswith("line 19999 \\x1b[2J\n")


def test_a_file_that_cannot_be_finished_is_not_there(tmp_path: Path) -> None:
    """A journal that turns out to be damaged leaves no half of an export; a file there stays."""

    def damaged() -> Iterator[str]:
        yield "begin"
        raise ValueError("damaged")

    place = tmp_path / "export.json"
    with pytest.raises(ValueError, match="damaged"):
        write_new(place, damaged())
    assert not place.exists()
    write_new(place, ["a", "b"])
    assert place.read_text() == "a\nb\n"
    with pytest.raises(FileExistsError):
        write_new(place, ["c"])
    assert place.read_text() == "a\nb\n"
