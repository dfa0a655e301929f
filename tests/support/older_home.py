"""Homes as earlier versions of the program left them."""

from pathlib import Path

import apsw

_BEFORE_PLACES = """
    ALTER TABLE sessions DROP COLUMN head;
    ALTER TABLE entries DROP COLUMN hash;
    DROP INDEX sessions_hour;
    DROP INDEX sessions_folder;
    DROP INDEX sessions_name;
    DROP INDEX sessions_work;
    ALTER TABLE sessions DROP COLUMN folder;
    ALTER TABLE sessions DROP COLUMN name;
    ALTER TABLE sessions DROP COLUMN hour;
    ALTER TABLE sessions DROP COLUMN has_work;
    DROP INDEX sessions_root;
    DROP INDEX sessions_node;
    DROP INDEX inbox_settled;
    ALTER TABLE sessions DROP COLUMN root;
    ALTER TABLE sessions DROP COLUMN place;
    ALTER TABLE inbox DROP COLUMN reply;
    ALTER TABLE inbox DROP COLUMN settled;
    DROP TABLE nodes;
"""


def make_older(
    file: Path, *statements: tuple[str, tuple[str | int, ...]], version: int = 4
) -> None:
    """Give a closed database the tables of before sessions had places; run further statements."""
    connection = apsw.Connection(str(file))
    connection.execute(_BEFORE_PLACES)
    connection.execute(f"PRAGMA user_version = {version}")
    for statement, values in statements:
        connection.execute(statement, values)
    connection.close()
