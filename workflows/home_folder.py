"""The home folder of a person, which an account may lack: one of a container often has no entry.

Imports nothing but `os`, since hooks of other agents use it.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path

HINT = "set STEERSMAN_HOME to a folder that you own"


def home_of_account() -> str:
    """Return an absolute path: that of HOME, else that of the account; empty if there is none."""
    home = os.environ.get("HOME", "")
    if os.path.isabs(home):
        return home
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def home_folder() -> "Path":
    """Return the home folder, in which what belongs to no project runs; without one, the root."""
    from pathlib import Path

    return Path(home_of_account() or "/")


def expanded(written: "str | Path") -> "Path":
    """Return a path in which `~` is replaced. Raises `ConfigError` if there is no such home folder."""
    from pathlib import Path

    text = str(written)
    if not text.startswith("~"):
        return Path(text)
    home = home_of_account()
    is_own = text[1:2] in ("", "/")
    found = (
        os.path.join(home, text[2:].lstrip("/")) if is_own and home else os.path.expanduser(text)
    )
    if not os.path.isabs(found):
        from ..machines.errors import ConfigError

        raise ConfigError(f"`{text}`: there is no such home folder", "write the whole path")
    return Path(found)
