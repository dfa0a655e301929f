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
    about: dict[str, Any] | None = record.get("dir_info")
    is_editable = about is not None and bool(about.get("editable"))
    url = str(record.get("url", ""))
    return _hint(extra, url, is_folder=about is not None, is_editable=is_editable)


def _hint(extra: str, url: str, *, is_folder: bool, is_editable: bool) -> str:
    if not url:
        return f"install it as steersman was, with `[{extra}]`: {install_command(extra)}"
    place = unquote(urlsplit(url).path)
    named = f"{place}[{extra}]" if is_folder else f"steersman[{extra}] @ {url}"
    return f"`pip install {'-e ' * is_editable}{shlex.quote(named)}` installs it"
