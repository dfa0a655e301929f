"""Whether a folder can be looked at as a whole, and the looker for it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path

from .blob_store import BlobStore
from .looker import Looker
from .repository import Repository, find_repository
from .seed import is_whole
from .shadow_git import GitFault, ShadowGit, find_git

__all__ = ["NotCovered", "folds_case", "make_looker"]


class NotCovered(Exception):
    """The folder is not looked at as a whole; the text says why."""


def make_looker(
    place: Path, folder: Path, session: str, blobs: BlobStore, environ: Mapping[str, str]
) -> Looker:
    """Make a session's looker, whose files lie in `place`. Raises `NotCovered`, `OSError`."""
    program = find_git(environ)
    _check(program, folder, place)
    repository = find_repository(folder)
    index = place / f"index-{session}"
    if repository is not None and _is_ignored(program, place, folder, repository):
        repository = None  # the folder is no part of it
    top = repository.top if repository else folder
    prefix = f"{folder.relative_to(top)}/" if top != folder else ""
    borrowed = repository if repository and repository.can_be_borrowed_from else None
    git = ShadowGit(program, place / "git", top, index)
    git.create(
        ignores_case=folds_case(os.listdir(folder), lambda one: os.path.lexists(folder / one)),
        exclude=repository.exclude if repository else "",
        borrow=borrowed.objects if borrowed else None,
    )
    blobs.fetch = git.fetch
    lender = borrowed.objects if borrowed else None
    looker = Looker(git, blobs, prefix, place / f"side-{session}.json", lender)
    try:
        looker.begin(borrowed, _earlier(place, index))
    except (
        GitFault,
        ValueError,
    ):  # an index that is torn, or of a kind we can't read: begin with none
        index.unlink(missing_ok=True)
        looker = Looker(git, blobs, prefix, place / f"side-{session}.json")
        looker.begin(None, None)
    return looker


def folds_case(names: Iterable[str], is_there: Callable[[str], bool]) -> bool:
    """Whether a folder with these names takes `a` and `A` for one, as far as they tell."""
    listed = set(names)
    other = next((one.swapcase() for one in listed if one.swapcase() not in listed), "")
    return bool(other) and is_there(other)


def _check(program: str, folder: Path, place: Path) -> None:
    if not program:
        raise NotCovered("git is not installed")
    home = Path(os.path.realpath(os.path.expanduser("~")))
    if folder in (home, *home.parents):
        raise NotCovered(f"`{folder}` is the home folder, or holds it")
    if place.is_relative_to(folder):
        raise NotCovered(f"`{folder}` holds our own files")


def _is_ignored(program: str, place: Path, folder: Path, repository: Repository) -> bool:
    """Whether the repository ignores the whole folder."""
    if folder == repository.top:
        return False
    git = ShadowGit(program, place / "git", repository.top, place / "index-none")
    git.create(ignores_case=False, exclude=repository.exclude, borrow=None)
    return bool(git.ignored([f"{folder.relative_to(repository.top)}/"], repository.top))


def _earlier(place: Path, own: Path) -> Path | None:
    """Return the newest index of another session here: it knows most."""
    others = [one for one in place.glob("index-*") if one != own and one.suffix != ".lock"]
    others = [one for one in others if is_whole(one)]
    return max(others, key=lambda one: one.stat().st_mtime_ns, default=None)
