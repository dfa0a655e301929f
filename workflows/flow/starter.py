"""The file that `steersman workflow new` writes: explained line by line, and it runs as it is."""

from pathlib import Path

__all__ = ["starter"]

_FILE = Path(__file__).parent.parent / "starter.toml"


def starter(name: str) -> str:
    """Return it for a workflow of this name, in a file that is called after it."""
    return _FILE.read_text(encoding="utf-8").replace("starter", name)
