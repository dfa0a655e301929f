"""Where the sessions of a home are kept, read without the rest of the configuration.

Every command opens the home, also those that need no configuration: they read this one table of the
person's own files. `config.load` reads it with all others, and reports what is wrong with its place.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta

from ..machines.errors import ConfigError
from ..machines.value import Value
from .document import is_table
from .foreign_file import parse_toml, read_text
from .home_folder import expanded
from .paths import Paths, make_private
from .typed_table import Setter, SettingsTable, TypedTable, read_table

URL = "STEERSMAN_HOME_URL"
"""The variable of the environment that goes before the configuration."""
POSTGRES = ("postgresql", "postgres")
"""The schemes of the addresses of homes on PostgreSQL."""


class HomeSettings(SettingsTable, set_by=Setter.PERSON):
    """Where the sessions are kept, and how long a process may be cut off from there, in seconds.

    `url` is empty for SQLite in the state folder. `storage` is the folder of long outputs and copies of
    files; empty: the state folder.
    """

    url: str = ""
    storage: str = ""
    lease: Annotated[float, Meta(ge=1, le=3600)] = 10.0
    fence: Annotated[float, Meta(ge=0.5, le=3600)] = 7.0

    def check(self) -> None:
        """Refuse a process that goes on when others may have its sessions, and a relative folder."""
        if self.storage and not self.storage.startswith(("/", "~")):
            raise ValueError("`storage` must be an absolute path")
        if self.fence >= self.lease:
            raise ValueError("`fence` must be less than `lease`")


class _HomeFile(TypedTable):
    """What is read of a file."""

    home: HomeSettings


def home_place(paths: Paths, environ: Mapping[str, str]) -> HomeSettings:
    """Read where the home is. Raises `ConfigError` for a file that cannot be read or a wrong value.

    Keys that are not known are not looked at.
    """
    files = [paths.config_file]
    if named := environ.get("STEERSMAN_CONFIG"):
        files.append(expanded(named))
    given: dict[str, Any] = {}
    for file in files:
        given |= _table(file)
    if url := environ.get(URL):
        given["url"] = url
    known = {key: given[key] for key in HomeSettings.__struct_fields__ if key in given}
    read, problems = read_table(_HomeFile, {"home": known})
    if read is None:
        said = problems[0].message
        if problems[0].where != ("home",):
            said = f"the table `[home]` has a value of the wrong type or out of bounds: {said}"
        raise ConfigError(said, _HINT)
    return read.home


def without_password(url: str) -> str:
    """Return the address of a home as people may see it."""
    from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

    try:
        parts = urlsplit(url)
        place = parts.netloc.rpartition("@")[2]
        user = (parts.netloc.rpartition("@")[0]).partition(":")[0]
        pairs = [pair for pair in parse_qsl(parts.query) if "pass" not in pair[0].lower()]
    except ValueError:
        return "postgresql:…"
    query = urlencode(pairs, quote_via=quote, safe="/")
    return urlunsplit(
        parts._replace(netloc=f"{user}@{place}" if user else place, query=query, fragment="")
    )


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
