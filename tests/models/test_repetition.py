"""A model that says the same over and over is noticed; text that only looks so is not."""

import random

import pytest

from steersman.ports.models.repetition import RepetitionGuard

LISTING = "README.md\nsrc/main.py\nsrc/other.py\ntests/test_main.py\n"


def loops(text: str, size: int = 7) -> bool:
    """Feed a text in pieces of a size; whether a loop is found."""
    guard = RepetitionGuard()
    return any(guard.feed(text[at : at + size]) for at in range(0, len(text), size))


@pytest.mark.parametrize(
    "piece",
    [LISTING, "python -m unittest.online.run ", "I can help you with that. What is it?\n\n", "na "],
)
@pytest.mark.parametrize("size", [1, 7, 400])
def test_a_loop_is_found_behind_any_beginning(piece: str, size: int) -> None:
    """Lines, a sentence without an end of line, two letters; in pieces of any size."""
    assert loops("Here it is:\n" + piece * (4_000 // len(piece)), size)


ROWS = "".join(f"| {n} | ok |\n" for n in range(400))
CODE = "".join(f"    if value == {n}:\n        return {n * n}\n" for n in range(200))
NOISE = "".join(random.Random(1).choices("abcdef \n", k=8_000))


@pytest.mark.parametrize("text", [ROWS, CODE, NOISE, "=" * 200 + "\n", LISTING * 3, " " * 5_000])
def test_what_only_looks_like_a_loop_is_left_alone(text: str) -> None:
    """Tables, code, noise, a ruler, three times the same, and blanks."""
    assert not loops(text)
