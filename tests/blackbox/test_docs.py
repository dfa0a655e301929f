"""`steersman docs`: the pages are there without a network and a checkout."""

from pathlib import Path

import pytest
from stories.terminal import Terminal
from support.driver import Place

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.checks_data("docs")
def test_every_page_is_listed_and_shown(place: Place) -> None:
    """The list has each page with one line; a page is the text of its file, however it is named."""
    listed = place.data("docs")["docs"]
    assert {page["topic"] for page in listed} == {path.stem for path in DOCS.glob("*.md")} - {
        "README"
    }
    assert all(page["title"] and page["about"] and page["group"] for page in listed)
    rows = place.run("docs").stdout.splitlines()
    assert [row.split()[0] for row in rows[1:-1]] == [page["topic"] for page in listed]
    text = (DOCS / "revert.md").read_text("utf-8")
    for name in ("revert", "Revert", "revert.md", "docs/revert.md"):
        assert place.run("docs", name).stdout == text


@pytest.mark.parametrize(
    ("topic", "hint"),
    [
        ("worklows", "did you mean `workflows`?"),
        ("queue", "most about it is in `"),
        ("cost", "`\n  most about it is in `models`, "),
        ("backup", "`\n  most about it is in `operations`, "),
        ("xyzzy", "`steersman docs` lists them"),
        ("../README", "lists them"),
    ],
)
def test_a_wrong_topic_names_the_nearest(place: Place, topic: str, hint: str) -> None:
    """By its name, or by what the pages are about; nothing outside of the folder is read."""
    ran = place.run("docs", topic)
    assert (ran.returncode, ran.stdout) == (2, "")
    assert f"there is no page `{topic}`" in ran.stderr
    assert hint in ran.stderr


def test_a_terminal_has_its_pager(place: Place) -> None:
    """The page goes through $PAGER there."""
    environ = {**place.environ, "PAGER": "sed s/^/paged:/", "LANG": "C.UTF-8", "MANPAGER": ""}
    terminal = Terminal((*place.command, "docs", "revert"), place.folder, environ, (100, 40))
    try:
        terminal.shows("paged:# Revert: restoring files")
        assert terminal.ended() == 0
    finally:
        terminal.abandon()
