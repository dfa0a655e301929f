"""The recordings that are checked in."""

import importlib.util
import json
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "recordings"


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.cast")), ids=lambda path: path.stem)
def test_a_recording_plays_anywhere(path: Path) -> None:
    """It is asciicast v2, its times rise, it is small, and nothing of one machine is in it."""
    head, *rows = (json.loads(line) for line in path.read_text("utf-8").splitlines())
    assert (head["version"], head["width"], head["height"]) == (2, 100, 28)
    times = [row[0] for row in rows]
    assert times == sorted(times)
    assert max(later - at for at, later in pairwise(times)) < 2
    text = "".join(row[2] for row in rows)
    assert not [word for word in ("/tmp", "/home", "/root", "\x1b[6n") if word in text]
    assert path.stat().st_size < 200_000


def test_the_picture_is_of_a_recording() -> None:
    """The README's picture is a drawing of what the recording shows."""
    spec = importlib.util.spec_from_file_location("picture", FOLDER / "picture.py")
    assert spec is not None
    assert spec.loader is not None
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    name, until, target = picture.CHAT
    screen = picture.played(FOLDER / f"{name}.cast", until)
    drawn = picture.drawn(screen, f"steersman: {name.replace('-', ' ')}")
    assert (FOLDER / target).read_text("utf-8") == drawn
    texts = [one.text for one in ElementTree.fromstring(drawn).iter() if one.text]
    assert any(until in text for text in texts)
