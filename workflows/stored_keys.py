"""Keys of models that this program keeps, as environment variables of their own: `<state>/keys.toml`.

The file is private, in a folder that no sandbox shows. Its keys join the environment of the process,
where a variable of the person's own goes first: what hides or withholds keys knows them there.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from typing import Any

from ..machines.errors import ConfigError
from ..machines.pattern import lazy_pattern
from .foreign_file import decoded, parse_toml, read_foreign
from .paths import Paths, write_private

NAME = "keys.toml"
_VARIABLE = lazy_pattern(r"[A-Z][A-Z0-9_]*_API_KEY")


def add_stored_keys(environ: MutableMapping[str, str]) -> None:
    """Set the variables that are stored and not set yet. Blocks. Raises `ConfigError`."""
    try:
        paths = Paths.of(environ)
    except ConfigError:  # whoever needs the home says so
        return
    for name, key in _stored(paths).items():
        environ.setdefault(name, key)


def store_key(paths: Paths, name: str, key: str) -> str:
    """Keep a key as the variable `name`; return the path of the file. Raises `ConfigError`, `OSError`."""
    import tomli_w

    write_private(paths.state / NAME, tomli_w.dumps({**_stored(paths), name: key}).encode())
    return str(paths.state / NAME)


def _stored(paths: Paths) -> dict[str, str]:
    file = paths.state / NAME
    try:
        found = os.lstat(file)
    except OSError:
        return {}
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise ConfigError(
            "others may read or have written it",
            f"`chmod 600 {NAME}` there, or remove it",
            file=str(file),
        )
    try:
        data: dict[str, Any] = parse_toml(decoded(read_foreign(file, follows_links=False)))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"cannot be read: {error}",
            "`steersman setup` writes it anew once it is removed",
            file=str(file),
        ) from error
    return {
        name: key
        for name, key in data.items()
        if _VARIABLE.fullmatch(name) and isinstance(key, str)
    }
