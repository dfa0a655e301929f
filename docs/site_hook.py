"""What mkdocs.yml cannot say: the order of the pages, links out of docs/, and the recordings.

The first page is the README. A file outside of docs/ that a page names has a page of its own, so that no
link leads out of the site. Players and diagrams load their scripts from the site itself.
"""

import os
import re
import tomllib
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
OWN = {
    ROOT / "README.md": "index.md",
    DOCS / "README.md": "pages.md",
    ROOT / "CONTRIBUTING.md": "contributing.md",
    ROOT / "CHANGELOG.md": "changelog.md",
}
"""Pages that are elsewhere on the site than in the repository."""
CODE = re.compile(r"(^```.*?^```$|^ {4}.*?$|`[^`\n]*`)", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(\]\()(?!\w+:|#)([^)#\s]+)")
PLAYER = '<div class="player" data-cast="{name}"></div>'
PLAY = """
<link rel="stylesheet" href="../assets/asciinema-player.css">
<script src="../assets/asciinema-player.min.js"></script>
<script>
for (const at of document.querySelectorAll(".player"))
  AsciinemaPlayer.create(at.dataset.cast, at, {fit: "width", idleTimeLimit: 2, poster: "npt:3"});
</script>
"""
DIAGRAMS = '\n<script src="assets/mermaid.js"></script>\n'
ASSETS = {
    "assets/asciinema-player.css": "mkdocs_asciinema_player",
    "assets/asciinema-player.min.js": "mkdocs_asciinema_player",
    "assets/mermaid.js": "mermaidx",
}
"""Files of installed packages: `.ci/site.lock` has their hashes."""


def on_config(config: Any) -> Any:
    """Set the version, the names of headings, and the order of the pages."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    config.site_name = f"steersman {project['version']}"
    config.site_description = project["description"]
    config.mdx_configs["toc"] = {"permalink": True, "slugify": anchor}
    nav: list[Any] = [{"Start": "index.md"}]
    group: list[dict[str, str]] = []
    for line in (DOCS / "README.md").read_text("utf-8").splitlines():
        if line.startswith("## "):
            group = []
            nav.append({line[3:]: group})
        elif found := re.match(r"- \[(.+?)\]\((.+?)\)", line):
            group.append({found[1]: address(Path(os.path.normpath(DOCS / found[2])))})
    config.nav = [*nav, {"More": [{"All pages": "pages.md"}, {"Changes": "changelog.md"}]}]
    return config


def anchor(text: str, separator: str) -> str:
    """Name a heading as code hosts do, so that one link works on both."""
    return re.sub(r"[^\w -]", "", text.lower()).replace(" ", separator)


def address(path: Path) -> str:
    """Return where on the site a file of the repository is."""
    path = path / "README.md" if (path / "README.md").exists() else path
    if path in OWN:
        return OWN[path]
    if path.is_relative_to(DOCS) and path.is_file():
        return path.relative_to(DOCS).as_posix()
    return f"source/{path.relative_to(ROOT).as_posix()}.md"


def original(page: str) -> Path:
    """Return the file of the repository that a page is made of."""
    return next((path for path, at in OWN.items() if at == page), DOCS / page)


def links(path: Path) -> list[Path]:
    """List the files that a page names."""
    text = CODE.sub("", path.read_text("utf-8"))
    return [Path(os.path.normpath(path.parent / name)) for _, name in LINK.findall(text)]


def on_files(files: Any, config: Any) -> Any:
    """Add the pages and scripts that docs/ does not have; take out what has another name here."""
    File = import_module("mkdocs.structure.files").File
    files.remove(files.get_file_from_path("README.md"))
    for path, name in OWN.items():
        files.append(File.generated(config, name, content=path.read_text("utf-8")))
    pages = [original(file.src_uri) for file in files.documentation_pages()]
    for path in sorted({target for page in pages for target in links(page)}):
        name = address(path)
        if path.exists() and not files.get_file_from_path(name):
            files.append(File.generated(config, name, content=source(path)))
    for name, package in ASSETS.items():
        spec: Any = find_spec(package)
        found = Path(spec.origin).parent / "assets" / Path(name).name
        files.append(File.generated(config, name, content=found.read_bytes()))
    return files


def source(path: Path) -> str:
    """Write the page of a file, or of a folder, which the search leaves out."""
    name = path.relative_to(ROOT).as_posix()
    if path.is_dir():
        inside = [f"- `{each.name}`" for each in sorted(path.iterdir()) if each.suffix != ".pyc"]
        body = "\n".join(inside)
    else:
        kind = {".py": "python", ".toml": "toml", ".yaml": "yaml"}.get(path.suffix, "text")
        body = f"~~~~~~{kind}\n{path.read_text('utf-8')}\n~~~~~~"
    return f"---\nsearch: {{exclude: true}}\n---\n\n# {name}\n\n{body}\n"


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Turn the links of a page into those of the site, and put the players in."""
    name = page.file.src_uri
    if name.startswith("source/"):
        return markdown
    path = original(name)

    def turned(link: re.Match[str]) -> str:
        target = address(Path(os.path.normpath(path.parent / link[2])))
        return link[1] + os.path.relpath(target, os.path.dirname(name) or ".")

    parts = CODE.split(markdown)  # every other one is code
    parts[::2] = [LINK.sub(turned, part) for part in parts[::2]]
    text = "".join(parts)
    if name == "recordings/README.md":
        text = re.sub(r"^\| `(\S+\.cast)` \| (.*) \|$", _player, text, flags=re.MULTILINE)
        return re.sub(r"^\| file .*\n\|---.*\n", "", text, flags=re.MULTILINE) + PLAY
    return text + DIAGRAMS * ("```mermaid" in text)


def _player(row: re.Match[str]) -> str:
    title = row[1].removesuffix(".cast").replace("-", " ")
    return f"\n## {title}\n\n{row[2]}\n\n{PLAYER.format(name=row[1])}\n"
