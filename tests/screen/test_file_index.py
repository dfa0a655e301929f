"""The files that `@` completes: fuzzy, without what is ignored, bounded; and pasted pictures."""

from pathlib import Path

import pytest
from support.until import until

from steersman.cli.screen import file_index
from steersman.cli.screen.file_index import FileIndex, ranked, walked
from steersman.cli.screen.input_line import picture_named

FILES = (
    "README.md",
    "src/a.py",
    "src/parser/main.py",
    "src/parser/main.log",
    "src/parser/keep.log",
    "build/out.js",
    "node_modules/x/index.js",
    ".github/ci.yml",
    "manual/build/page.md",
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A small tree with ignored files."""
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    (tmp_path / ".gitignore").write_text("# made\n/build/\n*.log\n")
    (tmp_path / "src" / "parser" / ".gitignore").write_text("!keep.log\n")
    (tmp_path / "loop").symlink_to(tmp_path)
    return tmp_path


def test_ignored_files_are_left_out(folder: Path) -> None:
    """By the `.gitignore` above, which a nearer one can take back; links are not followed."""
    found = {path for path in walked(folder) if not path.endswith("/")}
    assert found == {
        ".github/ci.yml",
        ".gitignore",
        "README.md",
        "manual/build/page.md",
        "loop",
        "src/a.py",
        "src/parser/.gitignore",
        "src/parser/keep.log",
        "src/parser/main.py",
    }


@pytest.mark.parametrize(
    ("typed", "best"),
    [
        ("a.p", "src/a.py"),
        ("spm", "src/parser/main.py"),
        ("MAIN", "src/parser/main.py"),
        ("src/", "src/"),
        (".git", ".github/"),
        ("page", "manual/build/page.md"),
    ],
)
def test_letters_find_a_path_anywhere(folder: Path, typed: str, best: str) -> None:
    """In their order; a beginning of a name is better than letters that are strewn about."""
    assert ranked(list(walked(folder)), typed, 5)[0] == best


def test_letters_that_are_not_there_find_nothing(folder: Path) -> None:
    """And hidden files only after a dot."""
    paths = list(walked(folder))
    assert ranked(paths, "zzz", 5) == []
    assert not any(path.startswith(".") for path in ranked(paths, "ci", 50))


def test_the_index_is_bounded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It stops at so many paths, the nearest first."""
    monkeypatch.setattr(file_index, "MOST", 3)
    index = FileIndex(folder)
    paths = until(index.paths)
    assert len(paths) == 3
    assert all("/" not in path.rstrip("/") for path in paths)


def test_a_pasted_path_of_a_picture_names_it(tmp_path: Path) -> None:
    """As a dropped file makes it: quoted, with escaped blanks, or as an address."""
    picture = tmp_path / "my shot.png"
    picture.write_bytes(b"x")
    escaped = str(picture).replace(" ", "\\ ")
    address = picture.as_uri()
    for pasted in (str(picture), f"'{picture}'", escaped, address, f"{picture}\n"):
        assert picture_named(pasted) == f'@"{picture}" '
    for pasted in ("", "a.png", f"see {picture}", str(tmp_path / "none.png"), f"{picture}\nx"):
        assert picture_named(pasted) == ""
