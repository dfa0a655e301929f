"""How the pages say that the package is installed: from a clone, or by its name once an index has it."""

from pathlib import Path

from steersman.workflows.extras import RELEASED

__all__ = ["FORMS", "installing", "pages"]

DOCS = Path(__file__).resolve().parent
FORMS = (
    (
        "`pipx install .` or `uv tool install .` in the clone, or with the file of a wheel,",
        "`pipx install steersman` or `uv tool install steersman`",
    ),
    ("`pipx install .`", "`pipx install steersman`"),
    ("`pip install .` in a clone", "`pip install steersman`"),
    ("pip install '.[", "pip install 'steersman["),
)
"""What stands for the same thing before a release and after it; what has another in it comes first."""


def installing(page: str, *, is_released: bool = RELEASED) -> str:
    """Return a page with the form of each command that works now."""
    for clone, index in FORMS:
        page = page.replace(clone, index) if is_released else page.replace(index, clone)
    return page


def pages() -> list[Path]:
    """List the pages that may name such a command: the README, and those beside this file."""
    return [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))]
