"""Walk a built site: `python docs/site_check.py build/site` says what it found, and exits 1 for a fault.

No link and no anchor is dead, no page is more than two clicks from the start, nothing is loaded from
another host, every page can be searched, and every recording has a player.
"""

import json
import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

__all__ = ["Page", "faults", "main"]

MOST_CLICKS = 2
LOADED = {
    *(("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("video", "src")),
    *(("audio", "src"), ("embed", "src"), ("object", "data"), ("image", "href"), ("use", "href")),
}
"""The attributes by which a page loads something."""
KINDS = {"stylesheet", "icon", "preload", "prefetch", "modulepreload", "preconnect", "dns-prefetch"}
"""What a `<link>` may say that makes a browser ask for it."""
CSS = re.compile(r"url\(\s*['\"]?([^)'\"]+)|@import\s+['\"]([^'\"]+)")


class Page(HTMLParser):
    """What a page has and names: its ids, its links, what it loads, and its recordings."""

    def __init__(self, text: str) -> None:
        """Read a page."""
        super().__init__()
        self.ids, self.links, self.loads = set[str](), list[str](), list[str]()
        self.casts = list[str]()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note what a tag has."""
        given = {name: value or "" for name, value in attrs}
        self.ids |= {given[name] for name in ("id", "name") if name in given}
        self.loads += [given[name] for of, name in LOADED if of == tag and name in given]
        self.loads += [found[0] or found[1] for found in CSS.findall(given.get("style", ""))]
        if tag == "link" and KINDS & set(given.get("rel", "").split()):
            self.loads.append(given.get("href", ""))
        if tag == "a" and "href" in given:
            self.links.append(given["href"])
        if "data-cast" in given:
            self.casts.append(given["data-cast"])


def is_local(address: str) -> bool:
    """Whether an address is of this site."""
    parts = urlsplit(address)
    return not parts.scheme and not parts.netloc


def target(site: Path, page: Path, address: str) -> Path:
    """Return the file that an address of a page names."""
    path = unquote(urlsplit(address).path)
    found = site / path.lstrip("/") if path.startswith("/") else page.parent / path
    found = found.resolve() if path else page
    return found / "index.html" if found.is_dir() else found


def faults(site: Path) -> Iterator[str]:
    """Say what is wrong with a site."""
    site = site.resolve()
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(site.rglob("*.html"))}
    clicks, ahead = {site / "index.html": 0}, [site / "index.html"]
    for here in ahead:  # which grows
        for link in filter(is_local, pages[here].links):
            there = target(site, here, link)
            if there in pages and there not in clicks:
                clicks[there] = clicks[here] + 1
                ahead.append(there)
    searched = json.loads((site / "search" / "search_index.json").read_text("utf-8"))["docs"]
    found = {site / entry["location"].partition("#")[0] for entry in searched if entry["text"]}
    found |= {site / "index.html"} if site in found else set()
    for path, page in pages.items():
        name = path.relative_to(site).as_posix()
        for link in filter(is_local, page.links):
            there, part = target(site, path, link), unquote(urlsplit(link).fragment)
            if not there.is_file():
                yield f"{name}: dead link {link}"
            elif part and there in pages and part not in pages[there].ids | {"__top"}:
                yield f"{name}: dead anchor {link}"
        for address in page.loads + page.casts:
            if address.startswith("data:"):
                continue
            if not is_local(address):
                yield f"{name}: loads {address}"
            elif not target(site, path, address).is_file():
                yield f"{name}: nothing at {address}"
        if name != "404.html" and clicks.get(path, sys.maxsize) > MOST_CLICKS:
            yield f"{name}: {clicks.get(path, 'no number of')} clicks from the start"
        if name != "404.html" and not name.startswith("source/") and path not in found:
            yield f"{name}: not in the search"
    for path in [*site.rglob("*.css"), *site.rglob("*.svg")]:
        for first, second in CSS.findall(path.read_text("utf-8")):
            if not is_local(first or second) and not (first or second).startswith("data:"):
                yield f"{path.relative_to(site)}: loads {first or second}"
    played = {target(site, path, cast) for path, page in pages.items() for cast in page.casts}
    for path in {*site.rglob("*.cast")} - played:
        yield f"{path.relative_to(site)}: no page plays it"
    links = sum(len(page.links) for page in pages.values())
    deepest = max(clicks.values())
    print(f"{len(pages)} pages, {links} links, {len(played)} recordings, {deepest} clicks at most")


def main(arguments: list[str]) -> int:
    """Print the faults of a site; 1 if it has any."""
    found = list(faults(Path(*arguments)))
    print("\n".join(found), file=sys.stderr, end="\n" * bool(found))
    return int(bool(found))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
