"""The parts that are installed on request: by which command, from where this package came.

Until there is a release, no command names the package alone: an index has whatever was registered there.
"""

import json
import shlex
from typing import Any
from urllib.parse import unquote, urlsplit

RELEASED: bool = False
"""Whether the package index has a release of ours. Hints and, after `make docs`, pages go by it."""
_RECORD = "direct_url.json"
"""Where installers note the origin: https://packaging.python.org/en/latest/specifications/direct-url/."""


def install_command(extra: str = "") -> str:
    """Return the command that installs the package, with an extra if one is named, for a hint."""
    named = ("steersman" if RELEASED else ".") + f"[{extra}]" * bool(extra)
    return f"`pip install {shlex.quote(named)}`" + " in a clone" * (not RELEASED)


def how_to_install(extra: str) -> str:
    """Return the hint for a missing part: one that is an extra in `pyproject.toml`."""
    from importlib.metadata import PackageNotFoundError, distribution  # it takes long to import

    record: dict[str, Any] = {}
    try:
        record = json.loads(distribution("steersman").read_text(_RECORD) or "{}")
    except (PackageNotFoundError, OSError, ValueError):
        pass
    return _hint(extra, str(record.get("url", "")), is_folder="dir_info" in record)


def _hint(extra: str, url: str, *, is_folder: bool) -> str:
    if not url:
        return f"install it as steersman was, with `[{extra}]`: {install_command(extra)}"
    place = unquote(urlsplit(url).path)
    named = f"{place}[{extra}]" if is_folder else f"steersman[{extra}] @ {url}"
    return f"`pip install {'-e ' * is_folder}{shlex.quote(named)}` installs it"
