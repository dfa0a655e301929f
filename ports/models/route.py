"""Where a request to a model server goes: to its address or to a proxy, and which certificates count.

The proxies are those of the environment (`HTTPS_PROXY`, `NO_PROXY`, …), on macOS and Windows also those
of the system. The certificates are the system's; `SSL_CERT_FILE` and `SSL_CERT_DIR` replace them.
"""

import ipaddress
import os
import ssl
import sys
from base64 import b64encode
from urllib.parse import quote, unquote, urlsplit

from ...machines.value import Value

_HAS_SETTINGS = sys.platform in ("darwin", "win32")  # for proxies and certificates
_PORTS = {"http": 80, "https": 443}
_PATH = "/%:@!$&'()*+,;="  # besides letters and digits, what a path may contain as it is


class ConnectTimeout(TimeoutError):
    """The server did not accept a connection in time."""


class ResponseHead(Value):
    """The header of an answer; the names in `headers` are lower case."""

    status: int
    headers: dict[str, str]


class Address(Value):
    """The server in a URL; `login` is an authorization header, empty without a user in the URL."""

    scheme: str
    host: str
    port: int
    login: str = ""

    @classmethod
    def of(cls, url: str) -> "Address":
        """Read a URL with a host. Raises `ValueError`."""
        parts = urlsplit(url)
        host = parts.hostname or ""
        name = host if host.isascii() else host.encode("idna").decode()
        port = parts.port or _PORTS.get(parts.scheme, 0)
        pair = f"{unquote(parts.username or '')}:{unquote(parts.password or '')}"
        login = "" if parts.username is None else f"Basic {b64encode(pair.encode()).decode()}"
        return cls(scheme=parts.scheme, host=name, port=port, login=login)

    @property
    def is_encrypted(self) -> bool:
        """Whether TLS is spoken there."""
        return self.scheme == "https"

    @property
    def is_literal(self) -> bool:
        """Whether the host is an address itself, and no name that may have several."""
        try:
            ipaddress.ip_address(self.host)
        except ValueError:
            return False
        return True

    @property
    def place(self) -> str:
        """Host and port, as the request for a tunnel names them."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    @property
    def header(self) -> str:
        """The header `Host`: without the port if it is the usual one."""
        usual = f":{_PORTS[self.scheme]}"
        return self.place.removesuffix(usual) if self.port == _PORTS[self.scheme] else self.place


def target_of(url: str) -> str:
    """Return the path and the query of a URL, as a request line contains them."""
    parts = urlsplit(url)
    path = quote(parts.path or "/", safe=_PATH)
    return f"{path}?{quote(parts.query, safe=_PATH + '?')}" if parts.query else path


def proxy_of(address: Address) -> Address | None:
    """Return the proxy for an address; none if it is reached directly."""
    if not _HAS_SETTINGS and not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # takes a while, and few need it

    proxies = getproxies()
    url = proxies.get(address.scheme) or proxies.get("all")
    if not url or proxy_bypass(address.place) or _is_in(address.host, proxies.get("no", "")):
        return None
    return Address.of(url if "://" in url else f"http://{url}")


def trusted_certificates() -> ssl.SSLContext:
    """Make the context of TLS connections; takes some 20 ms, so not for the loop."""
    paths = ssl.get_default_verify_paths()
    if _HAS_SETTINGS or not (paths.cafile or paths.capath):
        if not (os.environ.get("SSL_CERT_FILE") or os.environ.get("SSL_CERT_DIR")):
            import truststore

            return truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    return ssl.create_default_context()


def _is_in(host: str, networks: str) -> bool:
    """Whether a host is an IP address in one of the networks of `NO_PROXY`, like `10.0.0.0/8`."""
    try:
        found = ipaddress.ip_address(host)
        parts = [part.strip() for part in networks.split(",") if "/" in part]
        return any(found in ipaddress.ip_network(part, strict=False) for part in parts)
    except ValueError:
        return False
