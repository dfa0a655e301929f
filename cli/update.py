"""`steersman update`: says how this program is updated, and, only if it is asked to, what is newest.

Nothing else in the program asks a package index for its version. The index is that of pip, or of uv, if
a variable of the environment names one; proxies are those of the environment.
Source of the format: https://packaging.python.org/en/latest/specifications/simple-repository-api/.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, cast
from urllib.parse import urlsplit

from .. import __version__
from ..machines.errors import SteersmanError, UsageError
from ..machines.json_shape import parse_json
from ..workflows.document import is_table
from .output import show, show_document, warn

PYPI = "https://pypi.org/simple"
VARIABLES = ("UV_DEFAULT_INDEX", "UV_INDEX_URL", "PIP_INDEX_URL")
INDEX_TIMEOUT = 10.0
"""Seconds that the index has."""
LARGEST = 4 << 20
"""Bytes of an answer."""
HOW = "`pipx upgrade steersman`, `uv tool upgrade steersman`, or in a clone `git pull`"
_JSON = "application/vnd.pypi.simple.v1+json"


def update(environ: Mapping[str, str], *, is_check: bool, as_json: bool) -> int:
    """Print how to update; with `is_check` ask the index first. Raises `SteersmanError`."""
    if not is_check:
        show(f"steersman {__version__}. Update it by {HOW}.")
        show("`steersman update --check` asks the package index what is newest.")
        return 0
    index = index_of(environ)
    host = urlsplit(index).hostname or ""
    warn(f"asking {host} for the newest version")
    newest = newest_of(_asked(index, host))
    is_newer = newest is not None and numbers(newest) > numbers(__version__)
    if as_json:
        show_document(
            {"version": __version__, "newest": newest, "is_newer": is_newer, "index": host}
        )
    elif newest is None:
        show(f"steersman {__version__}; {host} has no released version.")
    elif is_newer:
        show(f"steersman {__version__}; {host} has {newest}. Update by {HOW}.")
    else:
        show(f"steersman {__version__} is the newest; {host} has {newest}.")
    return 0


def index_of(environ: Mapping[str, str]) -> str:
    """Return the address of the package index. Raises `UsageError` for one that is no web address."""
    name = next((name for name in VARIABLES if environ.get(name)), "")
    index = environ.get(name, PYPI).rstrip("/")
    if urlsplit(index).scheme not in ("http", "https") or not urlsplit(index).hostname:
        raise UsageError(f"`{name}` is not a web address", f"unset it, or set it to {PYPI}")
    return index


def newest_of(answer: Mapping[str, Any]) -> str | None:
    """Return the newest released version in an index's answer; none if there is none."""
    versions = _list(answer.get("versions"))
    if not versions:  # older servers name only the files
        files = [file for file in _list(answer.get("files")) if is_table(file)]
        names = [str(file.get("filename", "")) for file in files]
        found = (re.match(r"steersman-([0-9][0-9.]*[0-9])(-|\.tar)", name) for name in names)
        versions = [match[1] for match in found if match]
    released = [
        version for version in map(str, versions) if re.fullmatch(r"[0-9]+(\.[0-9]+)*", version)
    ]
    return max(released, key=numbers, default=None)


def _list(value: object) -> list[object]:
    return cast("list[object]", value) if isinstance(value, list) else []


def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, to compare them."""
    return tuple(int(part) for part in re.findall(r"[0-9]+", version))


def _asked(index: str, host: str) -> Mapping[str, Any]:
    """Ask the index for this program. Raises `SteersmanError`."""
    import httpx2

    try:
        with (
            httpx2.Client(timeout=INDEX_TIMEOUT, follow_redirects=True) as client,
            client.stream("GET", f"{index}/steersman/", headers={"accept": _JSON}) as response,
        ):
            if response.status_code == 404:
                return {}
            response.raise_for_status()
            content = b""
            for piece in response.iter_bytes():
                content += piece
                if len(content) > LARGEST:
                    raise ValueError("its answer is too long")
        answer = _parsed(content)
    except (httpx2.HTTPError, httpx2.InvalidURL, ValueError, OSError) as error:
        why = str(error) or type(error).__name__
        hint = "check the network and the proxy (HTTPS_PROXY), or look again later"
        raise SteersmanError(
            f"the package index at {host} could not be asked: {why}", hint
        ) from error
    return answer


def _parsed(content: bytes) -> Mapping[str, Any]:

    answer: Any = parse_json(content)
    if is_table(answer):
        return answer
    raise ValueError("its answer is not understood")
