"""Put pip into a virtual environment whose Python came without `ensurepip`.

Run by that environment's own interpreter. The wheel of pip comes from the package index that the
user has set (`PIP_INDEX_URL`, `UV_DEFAULT_INDEX`, or pip's own configuration files), checked
against the hash that the index gives; or else from Debian's package `python3-pip-whl`, which apt
fetches and checks without root. A wheel of pip can install itself.

With `--probe` it only says whether the index answers.
"""

import configparser
import hashlib
import os
import re
import ssl
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

CONFIGS = (
    "/etc/xdg/pip/pip.conf",
    "/etc/pip.conf",
    "~/.pip/pip.conf",
    "~/.config/pip/pip.conf",
    "~/Library/Application Support/pip/pip.conf",
)
WHEEL = re.compile(r'href="([^"]*/?pip-(\d+(?:\.\d+)*)-py3-none-any\.whl(?:#[^"]*)?)"')


def setting(name: str) -> str:
    """Look up a setting of pip: the environment, then its configuration files, later ones first."""
    if value := os.environ.get("PIP_" + name.upper().replace("-", "_")):
        return value
    own = os.environ.get("PIP_CONFIG_FILE", "")
    parser = configparser.RawConfigParser(strict=False)
    parser.read(Path(path).expanduser() for path in (*CONFIGS, *([own] if own else [])))
    return parser.get("global", name, fallback="") if parser.has_section("global") else ""


def fetch(url: str) -> tuple[bytes, str]:
    """Read an address; return the content, and the address after redirections."""
    trusted = ssl.create_default_context(cafile=setting("cert") or None)
    with urllib.request.urlopen(url, timeout=60, context=trusted) as answer:
        return answer.read(), answer.url


def from_index(index: str, folder: Path) -> Path:
    """Fetch the newest wheel of pip. Raises OSError or ValueError."""
    page, base = fetch(index.rstrip("/") + "/pip/")
    found = WHEEL.findall(page.decode().replace("&amp;", "&"))
    if not found:
        raise ValueError(f"{index} lists no wheel of pip")
    link, _ = max(found, key=lambda item: tuple(int(part) for part in item[1].split(".")))
    address = urllib.parse.urlsplit(urllib.parse.urljoin(base, link))
    content, _ = fetch(address._replace(fragment="").geturl())
    wanted = re.fullmatch(r"sha256=([0-9a-f]{64})", address.fragment)
    if wanted and hashlib.sha256(content).hexdigest() != wanted[1]:
        raise ValueError(f"{link} does not have the hash that {index} gives")
    wheel = folder / Path(address.path).name
    wheel.write_bytes(content)
    return wheel


def from_debian(folder: Path) -> Path:
    """Fetch pip's wheel out of a Debian package, without root. Raises OSError or ValueError."""
    for name in ("lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    apt = ["apt-get", "-q", f"-oDir::State::lists={folder}/lists", f"-oDir::Cache={folder}/cache"]
    subprocess.run([*apt, "-oDebug::NoLocking=1", "update"], cwd=folder, check=True)
    subprocess.run([*apt, "download", "python3-pip-whl"], cwd=folder, check=True)
    package = next(folder.glob("*.deb"))
    subprocess.run(["dpkg-deb", "-x", str(package), str(folder / "package")], check=True)
    wheels = list(folder.glob("package/usr/share/python-wheels/pip-*.whl"))
    if not wheels:
        raise ValueError("Debian's package holds no wheel of pip")
    return wheels[0]


def silence(index: str) -> str:
    """Say why an index does not answer; empty if it does, whatever it says."""
    proxy = setting("proxy")
    proxies = urllib.request.ProxyHandler({"http": proxy, "https": proxy} if proxy else None)
    try:
        urllib.request.build_opener(proxies).open(index.rstrip("/") + "/pip/", timeout=5).close()
    except urllib.error.HTTPError:
        return ""
    except OSError as error:
        reason = getattr(error, "reason", error)
        return (
            "" if isinstance(reason, ssl.SSLError) else str(reason)
        )  # pip has certificates of its own
    return ""


def probe() -> int:
    """Exit 1 with one sentence if pip would wait for an index that does not answer."""
    index = setting("index-url") or "https://pypi.org/simple"
    others = setting("no-index") or setting("find-links") or setting("extra-index-url")
    parts = urllib.parse.urlsplit(index)
    shown = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    if not index.startswith("http") or others or not (reason := silence(shown)):
        return 0
    print(
        f"steersman: no package index answers at {shown} ({reason}): check the network, HTTPS_PROXY and "
        "PIP_INDEX_URL; without a network, PIP_FIND_LINKS names a folder with the wheels",
        file=sys.stderr,
    )
    return 1


def main() -> int:
    """Try the index that is set, then Debian; exit 1 when neither gave a pip."""
    index = os.environ.get("UV_DEFAULT_INDEX") or setting("index-url")
    sources = [lambda folder: from_index(index, folder)] if index else []
    for source in [*sources, from_debian]:
        with tempfile.TemporaryDirectory() as name:
            try:
                wheel = source(Path(name))
            except (OSError, ValueError, subprocess.CalledProcessError) as error:
                print(f"no pip this way: {error}", file=sys.stderr)
                continue
            pip = [sys.executable, f"{wheel}/pip", "install", "--quiet", "--no-index", "--no-deps"]
            return subprocess.run([*pip, str(wheel)]).returncode
    print("set PIP_INDEX_URL to a package index, or install Debian's python3-venv", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(probe() if sys.argv[1:] == ["--probe"] else main())
