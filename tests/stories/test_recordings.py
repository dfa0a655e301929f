"""The recordings that are checked in."""

import importlib.util
import json
import re
from itertools import pairwise
from pathlib import Path
from types import ModuleType
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


@pytest.fixture(scope="module")
def picture() -> ModuleType:
    """The module that draws recordings, which is in no package."""
    spec = importlib.util.spec_from_file_location("picture", FOLDER / "picture.py")
    assert spec is not None
    assert spec.loader is not None
    picture = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(picture)
    return picture


def test_the_picture_is_of_a_recording(picture: ModuleType) -> None:
    """A still is a drawing of what the recording shows."""
    name, until, target = picture.CHAT
    screen = picture.played(FOLDER / f"{name}.cast", until)
    drawn = picture.drawn(screen, f"steersman: {name.replace('-', ' ')}")
    assert (FOLDER / target).read_text("utf-8") == drawn
    texts = [one.text for one in ElementTree.fromstring(drawn).iter() if one.text]
    assert any(until in text for text in texts)


def test_the_readme_has_a_film_of_a_recording(picture: ModuleType) -> None:
    """It is what is drawn of the recording, moves without a script, loads nothing, and is small.

    In it are a task, messages that wait, the kill, and what came of all of them.
    """
    name, target = picture.FILM
    film = (FOLDER / target).read_text("utf-8")
    assert film == picture.filmed(FOLDER / f"{name}.cast", f"steersman: {name.replace('-', ' ')}")
    assert len(film) < 300_000
    readme = (FOLDER.parents[1] / "README.md").read_text("utf-8")
    assert readme.count("![") == readme.count(f"](docs/recordings/{target})") == 1
    tags = {one.tag.rpartition("}")[2] for one in ElementTree.fromstring(film).iter()}
    assert tags == {"svg", "rect", "style", "defs", "g", "text", "use"}
    assert "http" not in film.replace("http://www.w3.org/2000/svg", "").replace(
        "at http://127.0", ""
    )
    assert "prefers-reduced-motion" in film
    at = -1
    for text in (
        "rewrite all 50",
        "Queued #2",
        "Queued #3",
        "Killed",
        "[INTERRUPTED]",
        "All 50 files",
    ):
        at = film.find(text, at + 1)
        assert at > 0, text
    shown = re.findall(r'<text x="14" y="\d+" fill="#e5c07b">([^<]+)</text>', film)
    assert list(dict.fromkeys(shown)) == list(dict.fromkeys(line for *_, line in picture.HOLDS))
