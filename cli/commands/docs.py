"""`steersman docs`: the pages of docs/, as they were installed with this version."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

from msgspec.structs import asdict

from ...machines.errors import UsageError
from ...machines.value import Value
from ...workflows.problem import did_you_mean
from ..options import Json, argument
from ..output import show, show_document, show_table

FOLDER = Path(__file__).parents[2] / "docs"
_LINE = re.compile(r"^## (.+)$|^- \[(.+?)\]\(([\w-]+)\.md\): (.+)$", re.MULTILINE)


class Page(Value):
    """A page as docs/README.md lists it; `group` is the heading above it."""

    topic: str
    title: str
    about: str
    group: str


def pages() -> Iterator[Page]:
    """Yield the pages in the order of docs/README.md."""
    group = ""
    for heading, title, topic, about in _LINE.findall((FOLDER / "README.md").read_text("utf-8")):
        group = heading or group
        if topic:
            yield Page(topic=topic, title=title, about=about, group=group)


def docs(
    topic: Annotated[str, argument("[TOPIC]", "A page; if left out, all are listed.")] = "",
    as_json: Json = False,
) -> None:
    """List the pages of the documentation, or show one: on a terminal in your pager.

    Example: steersman docs revert
    """
    there = {page.topic: page for page in pages()}
    if not topic:
        if as_json:
            show_document({"docs": [asdict(page) for page in there.values()]})
        else:
            rows = [(page.topic, page.about) for page in there.values()]
            show_table(("TOPIC", "WHAT"), rows)
            show("`steersman docs TOPIC` shows one.")
        return
    name = topic.lower().removeprefix("docs/").removesuffix(".md")  # as messages name a page
    if name not in there:
        raise UsageError(f"there is no page `{topic[:80]}`", _instead_of(name, there))
    text = (FOLDER / f"{name}.md").read_text("utf-8")
    if as_json:
        show_document({**asdict(there[name]), "text": text})
    elif sys.stdout.isatty() and sys.stdin.isatty():
        from pydoc import pager  # it knows $PAGER, and what to do where there is none

        pager(text)
    else:
        show(text.rstrip("\n"))


def _instead_of(word: str, there: dict[str, Page]) -> str:
    """Return where a word is explained: in pages with a heading that has it, else by the nearest name."""
    texts = {name: (FOLDER / f"{name}.md").read_text("utf-8").lower() for name in there}
    about = re.compile(rf"^#+ (?:(.*)\b)?{re.escape(word)}s?\b", re.MULTILINE)
    leads = {name: about.findall(text) for name, text in texts.items()}
    most = sorted(
        texts, key=lambda name: ("" not in leads[name], not leads[name], -texts[name].count(word))
    )[:3]
    named = ", ".join(f"`{name}`" for name in most if word in texts[name])
    also = f"most about it is in {named}" if named else "`steersman docs` lists them"
    return also if any(leads.values()) else did_you_mean(word, there, also)
