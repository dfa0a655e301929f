"""What the docs point at is there."""

import re
from pathlib import Path

CODE = re.compile(r"^```[\s\S]*?^```$|^ {4}.*$|`[^`\n]*`", re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]*)\)")
PAGE = re.compile(r"\bdocs/[\w/-]+\.md\b")


def anchors(page: Path) -> set[str]:
    """Return what GitHub makes of the headings of a page."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def broken(page: Path, link: str) -> bool:
    """Whether a link leads to no file of ours, or to no heading in it."""
    name, _, anchor = link.partition("#")
    target = page.parent / name if name else page
    return not target.exists() or bool(anchor and anchor not in anchors(target))


def test_every_link_leads_somewhere(project_files: list[Path], root: Path) -> None:
    """Each relative link of each page names a file that exists, and a heading that it has."""
    found: list[str] = []
    seen = 0
    for page in (path for path in project_files if path.suffix == ".md"):
        text = CODE.sub("", page.read_text(encoding="utf-8"))
        links = [link for link in LINK.findall(text) if "://" not in link]
        seen += len(links)
        found += [f"{page.relative_to(root)}: {link}" for link in links if broken(page, link)]
    assert found == []
    assert seen > 50


def test_every_page_that_is_named_exists(project_files: list[Path], root: Path) -> None:
    """What code, settings, help and tests call a page of docs/ is one."""
    found: list[str] = []
    for path in project_files:
        if path.suffix not in (".py", ".md", ".toml"):
            continue
        names = set(PAGE.findall(path.read_bytes().decode(errors="replace")))
        found += [
            f"{path.relative_to(root)}: {name}" for name in names if not (root / name).exists()
        ]
    assert found == []


def test_the_index_has_every_page(root: Path) -> None:
    """A page that is written is found: by its reader, in the index; and the first page is short."""
    index = (root / "docs" / "README.md").read_text("utf-8")
    pages = {path.name for path in (root / "docs").glob("*.md")} - {"README.md"}
    assert {page for page in pages if f"]({page})" not in index} == set()
    assert len((root / "README.md").read_text("utf-8").splitlines()) <= 150
