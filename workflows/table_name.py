"""The names of the routing tables that are shipped; light, since every start checks one."""

from pathlib import Path

__all__ = ["DEFAULT_TABLE", "TABLES", "table_names"]

DEFAULT_TABLE = "steersman"
TABLES = Path(__file__).parent / "routes"
"""Where the files of the others are."""


def table_names() -> tuple[str, ...]:
    """List the tables that are shipped, the default first."""
    return (DEFAULT_TABLE, *sorted(path.stem for path in TABLES.glob("*.toml")))
