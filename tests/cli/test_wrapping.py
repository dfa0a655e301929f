"""Rows as wide as a terminal, broken between words."""

import pytest

from steersman.cli.wrapping import wrapped


@pytest.mark.parametrize(
    ("text", "width", "rows"),
    [
        ("", 10, [""]),
        ("it fits", 7, ["it fits"]),
        ("ends with a blank ", 80, ["ends with a blank "]),
        ("Held: 1 waiting. /queue resume", 20, ["Held: 1 waiting.", "/queue resume"]),
        ("one\ntwo three", 5, ["one", "two", "three"]),
        ("aaaaaaaaaaaa bb", 5, ["aaaaa", "aaaaa", "aa bb"]),
        ("    indented words go on", 16, ["    indented", "    words go on"]),
        ("k  some words go on", 14, ["k  some words", "   go on"]),
        ("  key  and words go on", 16, ["  key  and words", "       go on"]),
        ("a wide column  words", 14, ["a wide column", "words"]),
        ("全角文字がある", 6, ["全角文", "字があ", "る"]),
    ],
)
def test_rows(text: str, width: int, rows: list[str]) -> None:
    """Nothing is wider than a row, no word is lost, and what fits is left alone."""
    assert wrapped(text, width) == rows


def test_any_indent_ends() -> None:
    """An indent that is wider than the row is broken like a word."""
    assert "".join(wrapped("        deep", 6)).split() == ["deep"]
