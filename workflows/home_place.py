"""Where the sessions of a home are kept, read without the rest of the configuration.

Every command opens the home, also those that need no configuration: they read this one table of the
person's own files. `config.load` reads it with all others, and reports what is wrong with its place.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..machines.errors import ConfigError
from ..machines.value import Value
from .document import is_table
from .foreign_file import parse_toml, read_text
from .home_folder import expanded
from .paths import Paths, make_private

URL = "STEERSMAN_HOME_URL"
"""The variable of the environment that goes before the configuration."""


class HomePlace(Value):
    """The table `[home]`; `url` is empty for SQLite in the state folder. Times in seconds."""

    url: str = ""
    storage: str = ""
    lease: float = 10.0
    fence: float = 7.0


def home_place(paths: Paths, environ: Mapping[str, str]) -> HomePlace:
    """Read where the home is. Raises `ConfigError` for a file that cannot be read or a wrong value."""
    files = [paths.config_file]
    if named := environ.get("STEERSMAN_CONFIG"):
        files.append(expanded(named))
    given: dict[str, Any] = {}
    for file in files:
        given |= _table(file)
    if url := environ.get(URL):
        given["url"] = url
    times = {key: given[key] for key in ("lease", "fence") if key in given}
    url, storage = given.get("url", ""), given.get("storage", "")
    are_texts = isinstance(url, str) and isinstance(storage, str)
    if not are_texts or not all(type(time) in (int, float) for time in times.values()):
        raise ConfigError("the table `[home]` has a value of the wrong type", _HINT)
    place = HomePlace(url=url, storage=storage, **{key: float(time) for key, time in times.items()})
    if not 0 < place.fence < place.lease:
        raise ConfigError("`home.fence` must be more than 0 and less than `home.lease`", _HINT)
    return place


class Storage(Value):
    """Where the large things of sessions are: long outputs of tools, and copies of files for `/revert`.

    `name` is how journals name it; empty where every program of the home has the same one.
    """

    folder: Path
    name: str = ""

    @property
    def outputs(self) -> Path:
        """The folder of the long outputs, in which each session has one."""
        return self.folder / "output"

    @property
    def copies(self) -> Path:
        """The folder of the copies of files."""
        return self.folder / "workspaces"

    def make(self) -> None:
        """Make the folder. Raises `ConfigError`."""
        try:
            make_private(self.folder)
        except ConfigError as fault:
            hint = "name a folder that you own as `home.storage`"
            raise ConfigError(fault.message, hint, file=str(self.folder)) from fault


def storage_of(paths: Paths, environ: Mapping[str, str]) -> Storage:
    """Return where the large things of a home are. Raises `ConfigError`."""
    place = home_place(paths, environ)
    if place.storage:
        folder = expanded(place.storage)
        if not folder.is_absolute():
            raise ConfigError(f"`home.storage` is no absolute path: `{folder}`", _HINT)
        return Storage(folder=folder, name=str(folder))
    name = f"{os.uname().nodename}:{paths.state}" if place.url else ""
    return Storage(folder=paths.state, name=name)


_HINT = "`steersman config check` shows where"


def _table(file: Path) -> dict[str, Any]:
    try:
        text = read_text(file)
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"cannot be read: {error}", file=str(file)) from error
    if "home" not in text:
        return {}
    try:
        table = parse_toml(text).get("home", {})
    except ValueError as error:
        raise ConfigError(f"is not TOML: {error}", _HINT, file=str(file)) from error
    return table if is_table(table) else {}
