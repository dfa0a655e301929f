"""What `make site` builds: the walk finds each fault, and pages and files have their places."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


def loaded(name: str) -> ModuleType:
    """Import a module of docs/, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """A site of four pages without a fault."""
    (tmp_path / "search").mkdir()
    (tmp_path / "a").mkdir()
    pages = {
        "index.html": '<a href="b.html#two">b</a> <a href="https://example.org/">elsewhere</a>',
        "b.html": '<h2 id="two">x</h2> <a href="a/">a</a> <img src="data:image/png;base64,x">',
        "a/index.html": '<link rel="stylesheet" href="../s.css"><a href="../index.html#">start</a>',
        "404.html": "nothing",
        "s.css": "p { background: url(data:x) } q { background: url('a/p.png') }",
    }
    for name, text in pages.items():
        (tmp_path / name).write_text(text, "utf-8")
    docs = [{"location": name, "text": "x"} for name in pages]
    (tmp_path / "search" / "search_index.json").write_text(json.dumps({"docs": docs}), "utf-8")
    return tmp_path


FAULTS = [
    ("b.html", '<a href="c.html">x</a>', "b.html: dead link c.html"),
    ("b.html", '<a href="index.html#no">x</a>', "b.html: dead anchor index.html#no"),
    ("b.html", '<script src="https://cdn.example/x.js">', "b.html: loads https://cdn.example/x.js"),
    ("b.html", '<link rel="preconnect" href="//fonts.example">', "b.html: loads //fonts.example"),
    (
        "b.html",
        '<p style="background: url(http://x.example/y)">',
        "b.html: loads http://x.example/y",
    ),
    ("b.html", '<img src="p.svg">', "b.html: nothing at p.svg"),
    ("s.css", "@import 'https://x.example/y.css';", "s.css: loads https://x.example/y.css"),
    (
        "p.svg",
        "<style>@import url(https://x.example/f)</style>",
        "p.svg: loads https://x.example/f",
    ),
    ("x.cast", "{}", "x.cast: no page plays it"),
    ("new.html", "", "new.html: no number of clicks from the start"),
    ("a/index.html", '<a href="../new.html">x</a>', "new.html: 3 clicks from the start"),
]


def test_a_site_without_a_fault(site: Path) -> None:
    """Nothing is found in it."""
    assert [*loaded("site_check").faults(site)] == []


@pytest.mark.parametrize(("name", "text", "fault"), FAULTS, ids=[fault for *_, fault in FAULTS])
def test_the_walk_finds_a_fault(site: Path, name: str, text: str, fault: str) -> None:
    """Each kind of fault is named with its page."""
    if "3 clicks" in fault:
        (site / "new.html").touch()
    with (site / name).open("a", encoding="utf-8") as file:
        file.write(text)
    found = [*loaded("site_check").faults(site)]
    assert fault in found
    assert all(line == fault or line.startswith("new.html: not in the search") for line in found)


def test_the_pages_have_their_place(root: Path) -> None:
    """A page, a folder with a README, one without, and a file outside of docs/."""
    hook = loaded("site_hook")
    places = {
        "README.md": "index.md",
        "docs/README.md": "pages.md",
        "docs/revert.md": "revert.md",
        "docs/recordings": "recordings/README.md",
        "config.toml": "source/config.toml.md",
        "tests/web": "source/tests/web.md",
    }
    assert {name: hook.address(root / name) for name in places} == places
    assert [
        hook.original(hook.address(root / name)) for name in ("README.md", "docs/revert.md")
    ] == [
        root / "README.md",
        root / "docs" / "revert.md",
    ]
