"""The first hour: the tour, and what is said of a model that cannot work."""

import re
from pathlib import Path

import pytest
from stories.terminal import Terminal
from support.driver import Place


@pytest.mark.checks_data("tour")
def test_the_tour_shows_what_it_says(place: Place) -> None:
    """Queue, steer, stop, revert, leave, resume: each causes its event, and nothing of it stays."""
    terminal = Terminal(
        (*place.command, "tour", "--pace", "0.02"),
        place.folder,
        place.environ | {"LANG": "C.UTF-8"},
        (100, 40),
    )
    try:
        for shown in (
            "Only the model is not real",
            "[tour] A message, and Enter:",
            'Queued #2: "then write down what you did"'[:20],
            "Steering with #3",
            "[Steered] #3",
            "[tour] Esc stops the turn",
            "Ended: process",
            "Reverted 2 files",
            "Saved, with 1 interrupted and 1 waiting",
            "#1 [INTERRUPTED]: make all the files blue",
            "#2 [PENDING]: then write down what you did",
            "Restored 2 items",
            "All the files are green.",
            "Done: I painted the files.",
            "That was the tour.",
        ):
            terminal.shows(shown)
        terminal.presses("\x04")
        assert terminal.ended() == 0
    finally:
        terminal.abandon()
    scratch = re.search(r"The scratch folder (\S+) is\s+deleted", "\n".join(terminal.rows))
    assert scratch is not None
    assert not Path(scratch[1]).exists()
    assert not any("Continue with" in row for row in terminal.rows)  # no command finds it
    assert not (place.home / "state").exists()


def test_the_tour_needs_a_terminal(place: Place) -> None:
    """It says so, and begins nothing."""
    ran = place.run("tour")
    assert (ran.returncode, ran.stdout) == (2, "")
    assert "the tour needs a terminal" in ran.stderr
