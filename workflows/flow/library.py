"""Which workflows have a name: those of a person, those that are shipped, those of a folder.

A name is looked up in this order, so that a folder from somewhere else can't put its own file in the
place of one that a person knows. A path is always just that file.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from ...machines.errors import UsageError
from ..document import Document, is_table, parse_document
from ..paths import Paths

SHIPPED_WORKFLOWS = Path(__file__).parent.parent / "library"


@dataclass(frozen=True, slots=True)
class NamedWorkflow:
    """One that can be run by its name; `origin` is user, built-in or project.

    `is_hidden`: an earlier one has the same name, and this one is reached by its path alone.
    """

    name: str
    origin: str
    path: Path
    description: str
    is_hidden: bool = False


def list_workflows(paths: Paths, folder: Path) -> list[NamedWorkflow]:
    """List all workflows with a name, in the order in which names are looked up."""
    found: list[NamedWorkflow] = []
    for origin, place in _places(paths, folder):
        for path in sorted(place.glob("*.toml")):
            is_hidden = any(one.name == path.stem for one in found)
            found.append(NamedWorkflow(path.stem, origin, path, _description(path), is_hidden))
    return found


def find_workflow(name: str, paths: Paths, folder: Path) -> Path:
    """Return the file that a name or a path in `folder` means. Raises `UsageError` with the nearest."""
    path = folder / Path(name).expanduser()
    if os.path.isfile(path) or "/" in name or name.endswith(".toml"):
        return path
    known = [one for one in list_workflows(paths, folder) if not one.is_hidden]
    for one in known:
        if one.name == name:
            return one.path
    names = [one.name for one in known]
    near = get_close_matches(name, names, 1)
    meant = f"did you mean `{near[0]}`? " if near else ""
    raise UsageError(
        f"there is no workflow `{name}`", f"{meant}known: {', '.join(names)}; or give a file"
    )


def _places(paths: Paths, folder: Path) -> Iterator[tuple[str, Path]]:
    yield "user", paths.config / "workflows"
    yield "built-in", SHIPPED_WORKFLOWS
    yield "project", folder / ".steersman" / "workflows"


def _description(path: Path) -> str:
    """Read what a file says of itself, whatever else may be wrong in it."""
    try:
        document, _ = parse_document(str(path), path.read_bytes())
    except OSError:
        document = Document(str(path))
    head = document.data.get("workflow")
    description = head.get("description") if is_table(head) else ""
    return description.strip() if isinstance(description, str) else ""
