"""Entry points of installed distributions: how their metadata is read, and whose counts."""

import importlib
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from steersman.gateway.plugins import GROUPS
from steersman.machines.errors import PlugInError, UsageError
from steersman.workflows import plugins
from steersman.workflows.plugins import EntryPoints, PlugIn

DOCS = Path(__file__).parents[2] / "docs" / "plugins.md"
METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"

Put = Callable[..., Path]


@pytest.fixture
def put(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Put:
    """Install a distribution into a folder of Python's path, which is read again."""

    def install(
        points: str | bytes, *, name: str = "acme", version: str = "1.0", folder: str = "site"
    ) -> Path:
        site = tmp_path / folder
        info = site / f"{name}-{version}.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(METADATA.format(name=name, version=version))
        data = points if isinstance(points, bytes) else points.encode()
        (info / "entry_points.txt").write_bytes(data)
        if str(site) not in sys.path:
            monkeypatch.syspath_prepend(site)
        plugins._rows.cache_clear()
        return site

    return install


@pytest.fixture(autouse=True)
def _fresh() -> Any:
    yield
    plugins._rows.cache_clear()


def rows(group: str = "steersman.tests") -> list[tuple[str, str, str, str]]:
    """Read a group as name, place, origin and fault."""
    found = EntryPoints(group, "part", called_with=("x",)).plug_ins
    return [(one.name, one.place, one.origin, one.fault) for one in found]


def test_lines_are_read_as_installers_write_them(put: Put) -> None:
    """Comments, other groups and extras are left out; a line without a place is a fault, not an end."""
    put(
        "[console_scripts]\nsteersman-x = a:b\n# no\n; no\n[steersman.tests]\n"
        "b=pkg.mod:thing.part\n a = pkg : thing [extra]\nodd\nc = 1:x\n\n[steersman.more]\nd = e:f\n"
    )
    bad = "it is not of the form `name = package.module:object`"
    assert rows() == [
        ("a", "pkg:thing", "acme 1.0", ""),
        ("b", "pkg.mod:thing.part", "acme 1.0", ""),
        ("c", "1:x", "acme 1.0", bad),
        ("odd", "", "acme 1.0", bad),
    ]


def test_the_distribution_that_python_imports_is_the_one_that_counts(put: Put) -> None:
    """Of two versions on the path the first; text that is no UTF-8 hides no other package."""
    put("[steersman.tests]\nold = a:b\n", version="0.9", folder="later")
    put("[steersman.tests]\nnew = a:b\n", version="2.0", folder="first")
    put(b"[steersman.tests]\n\xff = a:b\n", name="latin")
    assert rows() == [("new", "a:b", "acme 2.0", "")]


def test_a_distribution_in_an_archive_counts(
    put: Put, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where it is the only one, and where the group is written with spaces."""
    site = put("[ steersman.tests ]\na = b:c\n")
    assert rows() == [("a", "b:c", "acme 1.0", "")]
    archive = shutil.make_archive(str(tmp_path / "packed"), "zip", site)
    monkeypatch.setattr(sys, "path", [archive])
    plugins._rows.cache_clear()
    assert rows() == [("a", "b:c", "acme 1.0", "")]


def test_the_current_folder_and_relative_ones_do_not_count(
    put: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A distribution is found elsewhere, not where the program was started, under whatever name."""
    site = put("[steersman.tests]\na = b:c\n")
    assert len(rows()) == 1
    monkeypatch.chdir(site)
    monkeypatch.setattr(sys, "path", [*sys.path, "", ".", str(site)])
    plugins._rows.cache_clear()
    assert rows() == []
    link = site.with_name("link")
    link.symlink_to(site)
    monkeypatch.setattr(sys, "path", [*sys.path, str(link)])
    plugins._rows.cache_clear()
    assert rows() == []


def test_a_name_that_is_given_twice_is_nobodys(put: Put) -> None:
    """In one package or in two; where names may be shared, it is no fault."""
    put("[steersman.tests]\na = b:c\na = b:d\nz = os:getcwd\n")
    put("[steersman.tests]\nz = os:getpid\n", name="brand")
    found = EntryPoints("steersman.tests", "part")
    assert [one.fault for one in found.plug_ins] == [
        "acme 1.0 has a part of this name, too",
        "acme 1.0 has a part of this name, too",
        "brand 1.0 has a part of this name, too",
        "acme 1.0 has a part of this name, too",
    ]
    with pytest.raises(PlugInError, match="has a part of this name, too"):
        found.load("z")
    shared = EntryPoints("steersman.tests", "part", is_many=True)
    assert [one.fault for one in shared.plug_ins] == [""] * 4


def test_errors_of_others_are_told_in_one_line() -> None:
    """Any exception becomes the sentence; a signal's and the errors that may pass are left alone."""
    plug_in = PlugIn(noun="tool", name="a", place="b:c", distribution="acme", version="1")
    for error, told in (
        (ValueError("one\n  two"), "ValueError: one two"),
        (RuntimeError(), "RuntimeError"),
        (SystemExit(2), "SystemExit: 2"),
        (UsageError("no type"), "UsageError: no type"),
        (ValueError("x" * 1000), "ValueError: " + "x" * 300 + "…"),
    ):
        with pytest.raises(PlugInError) as caught, plug_in.guarded():
            raise error
        assert caught.value.fault == told or caught.value.fault.startswith(
            f"{told} (test_plugins.py"
        )
        assert caught.value.exit_code == 2
    with pytest.raises(UsageError, match="no type"), plug_in.guarded(passes=UsageError):
        raise UsageError("no type")

    class Signal(SystemExit):
        """What asks the program to leave."""

    with pytest.raises(Signal), plug_in.guarded():
        raise Signal(143)
    with pytest.raises(KeyboardInterrupt), plug_in.guarded():
        raise KeyboardInterrupt


def test_every_group_is_documented() -> None:
    """docs/plugins.md has a row for each group, and names only what `steersman` has."""
    text = DOCS.read_text("utf-8")
    assert re.findall(r"^\| `(steersman\.\w+)` \|", text, re.MULTILINE) == [
        group.group for group in GROUPS
    ]
    public = importlib.import_module("steersman").__all__
    assert set(re.findall(r"\bsteersman\.([A-Z]\w+)", text)) <= set(public)
