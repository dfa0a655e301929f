"""The folders of this program's files; only their owner can read them."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ..machines.errors import ConfigError
from ..machines.value import Value
from .durability import make_folders, replace_file
from .home_folder import HINT, expanded


class Paths(Value):
    """The three folders; each is created when a file is written into it."""

    config: Path
    state: Path
    cache: Path

    @classmethod
    def of(cls, environ: Mapping[str, str]) -> "Paths":
        """Return the folders below `STEERSMAN_HOME` if it is set, or else the platform's own ones.

        Raises `ConfigError` for an account without a home folder.
        """
        if home := environ.get("STEERSMAN_HOME"):
            folder = expanded(home).absolute()
            return cls(config=folder, state=folder / "state", cache=folder / "cache")
        from platformdirs import PlatformDirs

        places = PlatformDirs("steersman", appauthor=False)
        try:
            return cls(
                config=places.user_config_path,
                state=places.user_state_path,
                cache=places.user_cache_path,
            )
        except RuntimeError as error:
            raise ConfigError("this account has no home folder", HINT) from error

    @property
    def config_file(self) -> Path:
        """The user's own configuration; it need not exist."""
        return self.config / "config.toml"


@cache
def login_name() -> str:
    """Return the name of the account that runs this program; empty if it has none."""
    import getpass

    try:
        return getpass.getuser()
    except (OSError, KeyError):
        return ""


def make_private(folder: Path) -> Path:
    """Create a folder, and its missing parents, durably and with mode 0700; return it.

    Raises `ConfigError` when it can't be made, or belongs to another user.
    """
    try:
        make_folders(folder, 0o700)
        owner = folder.stat().st_uid
    except OSError as error:
        message = f"the folder can't be created: {error.strerror}"
        raise ConfigError(message, HINT, file=str(folder)) from error
    if owner != os.geteuid():
        raise ConfigError(f"the folder belongs to user {owner}", HINT, file=str(folder))
    return folder


def write_private(path: Path, content: bytes) -> None:
    """Replace a file in one step, with mode 0600, durable when this returns. Raises OSError."""
    make_private(path.parent)
    replace_file(path, content, 0o600)
