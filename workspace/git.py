"""Git for checkpoints: the person's repository, read only, and a shadow repository of our own.

The files of the person's repository are read directly: to run git inside it would obey its
configuration, which may name programs. `ShadowGit` runs git on a repository that only this program uses,
with a configuration that it sets itself: no hook, filter, attribute, file system monitor or configuration
of the person or of the folder has a say. Of the folder's own `.git` it gets the objects, which are read.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from ..machines.pattern import lazy_pattern
from ..machines.value import Value
from ..workflows.durability import replace_file
from ..workflows.foreign_file import read_foreign
from ..workflows.home_folder import home_folder

_CONVERTS = lazy_pattern(r"autocrlf|\beol\b|attributesfile|\[include", re.IGNORECASE)


class Repository(Value):
    """A work tree (`top`), its own git folder, and the one that it shares with other work trees."""

    top: Path
    folder: Path
    common: Path

    @property
    def index(self) -> Path:
        """The index of this work tree."""
        return self.folder / "index"

    @property
    def objects(self) -> Path:
        """The folder of its objects."""
        return self.common / "objects"

    @property
    def exclude(self) -> str:
        """Its ignore rules outside the work tree."""
        return _text(self.common / "info" / "exclude")

    @property
    def can_be_borrowed_from(self) -> bool:
        """Whether its index names objects as we do."""
        is_sha256 = "sha256" in _text(self.common / "config").lower()
        return self.index.is_file() and self.objects.is_dir() and not is_sha256

    def may_convert(self) -> bool:
        """Whether a setting may make files differ between work tree and repository."""
        home = home_folder()
        configs = (
            self.common / "config",
            self.folder / "config.worktree",
            home / ".gitconfig",
            home / ".config" / "git" / "config",
            Path("/etc/gitconfig"),
        )
        attributes = self.common / "info" / "attributes", home / ".config" / "git" / "attributes"
        has_attributes = any(map(os.path.exists, attributes))  # false where we may not look
        return has_attributes or any(_CONVERTS.search(_text(config)) for config in configs)


def find_repository(folder: Path) -> Repository | None:
    """Find the work tree that a folder lies in, if it lies in one."""
    for top in (folder, *folder.parents):
        mark = top / ".git"
        if mark.is_dir():
            return (
                Repository(top=top, folder=mark, common=mark) if (mark / "HEAD").exists() else None
            )
        if mark.is_file():
            return _linked(top, mark)
    return None


def _linked(top: Path, mark: Path) -> Repository | None:
    """Read the file `.git` of a linked work tree or a submodule."""
    said = _text(mark)
    if not said.startswith("gitdir:"):
        return None
    folder = top / said.removeprefix("gitdir:").strip()
    shared = _text(folder / "commondir").strip()
    common = (folder / shared) if shared else folder
    return (
        Repository(top=top, folder=folder.resolve(), common=common.resolve())
        if folder.is_dir()
        else None
    )


def _text(file: Path) -> str:
    with suppress(OSError):
        return read_foreign(file).decode(errors="replace")
    return ""


# The shadow repository ----------------------------------------------------------------------------


CONFIG = """\
[core]
	repositoryformatversion = 0
	bare = false
	filemode = true
	symlinks = true
	ignorecase = {ignorecase}
	autocrlf = false
	safecrlf = false
	fsmonitor = false
	untrackedCache = false
	preloadIndex = true
	trustctime = true
	sparseCheckout = true
	protectHFS = false
	protectNTFS = false
	hooksPath = /dev/null
	excludesFile = /dev/null
	attributesFile = /dev/null
	looseCompression = 0
	bigFileThreshold = 4m
[index]
	threads = true
[gc]
	auto = 0
[advice]
	addEmbeddedRepo = false
"""
ATTRIBUTES = "* -text -eol -crlf -filter -ident -working-tree-encoding -diff -merge\n"
EXCLUDE = ("node_modules/", ".venv/", "__pycache__/", ".steersman-*")
"""Names that are not copied unless tracked: large, and can be made again from other files."""
TIMEOUT = 600.0


PINS: Mapping[str, str | None] = {"config.worktree": "", "commondir": ".\n", "hooks": None}
"""What the sandbox makes in a git folder where it is missing, and means nothing: files, or a folder."""


def is_pin(path: str) -> bool:
    """Whether something in a git folder is only what the sandbox has made there."""
    name = os.path.basename(path)
    if name not in PINS:
        return False
    try:
        if (content := PINS[name]) is None:
            return not os.listdir(path)
        with open(path, "rb") as file:
            return file.read(8) == content.encode()
    except OSError:
        return False


class GitFault(Exception):
    """Git failed; the text is its own first line."""


def find_git(environ: Mapping[str, str]) -> str:
    """Return git's place, empty if it is not installed."""
    return shutil.which("git", path=environ.get("PATH")) or ""


class ShadowGit:
    """Runs git on a repository of ours (`folder`) over a work tree (`top`), with an `index`."""

    def __init__(self, program: str, folder: Path, top: Path, index: Path) -> None:
        self._program = program
        self.folder, self.top, self.index = folder, top, index
        self._environ = {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(folder),
            "LC_ALL": "C",
            "GIT_DIR": str(folder),
            "GIT_WORK_TREE": str(top),
            "GIT_INDEX_FILE": str(index),
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_SYSTEM": os.devnull,
            "GIT_ATTR_NOSYSTEM": "1",
            "GIT_TERMINAL_PROMPT": "0",
            "GIT_LITERAL_PATHSPECS": "1",
            "GIT_NO_REPLACE_OBJECTS": "1",
            "GIT_NO_LAZY_FETCH": "1",
        }

    def over(self, index: Path) -> ShadowGit:
        """Return one that reads another index, such as the person's."""
        return ShadowGit(self._program, self.folder, self.top, index)

    def create(self, *, ignores_case: bool, exclude: str, borrow: Path | None) -> None:
        """Make the repository, or bring what it borrows up to date. Raises `OSError`.

        Commands of other sessions may use it at this moment.
        """
        for name in ("info", "objects/info", "objects/pack", "refs/heads"):
            (self.folder / name).mkdir(mode=0o700, parents=True, exist_ok=True)
        ignored = "\n".join((*EXCLUDE, exclude))
        config = CONFIG.format(ignorecase="true" if ignores_case else "false")
        self._write("HEAD", b"ref: refs/heads/none\n")
        self._write("config", config.encode())
        self._write("info/attributes", ATTRIBUTES.encode())
        self._write("info/exclude", f"{ignored}\n".encode())
        alternates = "objects/info/alternates"
        if borrow is None:
            (self.folder / alternates).unlink(missing_ok=True)
        else:
            self._write(alternates, os.fsencode(borrow) + b"\n")

    def _write(self, name: str, content: bytes) -> None:
        """Replace a file of the repository in one step, if it has another content."""
        file = self.folder / name
        if not file.exists() or file.read_bytes() != content:
            replace_file(file, content)

    def start(self, *arguments: str) -> subprocess.Popen[bytes]:
        """Start a command whose output is wanted."""
        return self._popen(arguments, subprocess.DEVNULL)

    def finish(self, process: subprocess.Popen[bytes], said: bytes | None = None) -> bytes:
        """Wait for a command; return its output. Raises `GitFault`."""
        with process:
            try:
                out, err = process.communicate(said, timeout=TIMEOUT)
            except subprocess.TimeoutExpired as late:
                process.kill()
                raise GitFault(f"git took more than {TIMEOUT:g} seconds") from late
        if process.returncode:
            text = err.decode(errors="replace").strip().splitlines()
            raise GitFault(text[0] if text else f"git ended with {process.returncode}")
        return out

    def run(self, *arguments: str, said: bytes | None = None) -> bytes:
        """Run a command with `said` as its input; return its output. Raises `GitFault`."""
        source = subprocess.DEVNULL if said is None else subprocess.PIPE
        return self.finish(self._popen(arguments, source), said)

    def _popen(self, arguments: Sequence[str], source: int) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            (self._program, *arguments),
            cwd=self.top,
            env=self._environ,
            stdin=source,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            process_group=0,  # a Ctrl-C in the terminal is not for it
        )

    def fetch(self, names: list[str]) -> dict[str, bytes]:
        """Return the bytes of blobs, wherever they lie; those that are gone are missing."""
        said = "".join(f"{name}\n" for name in names).encode()
        try:
            out = self.run("cat-file", "--batch", "--buffer", said=said)
        except GitFault:
            return {}
        found: dict[str, bytes] = {}
        at = 0
        while at < len(out):
            line = out.index(b"\n", at)
            name, kind, *size = out[at:line].split()
            at = line + 1
            if kind == b"blob" and size:
                end = at + int(size[0])
                found[name.decode()] = out[at:end]
                at = end + 1
        return found

    def sizes(self, names: Iterable[str]) -> dict[str, int]:
        """Return the sizes of blobs; of those that are gone there is none."""
        said = "".join(f"{name}\n" for name in names).encode()
        form = "--batch-check=%(objectname) %(objectsize)"
        rows = self.run("cat-file", form, "--buffer", said=said).split(b"\n")
        return {row[:40].decode(): int(row[41:]) for row in rows if row[41:].isdigit()}

    def ignored(self, paths: Iterable[str], top: Path) -> set[str]:
        """Return which of these paths below `top` are ignored, whether or not they are there."""
        environ = self._environ | {"GIT_WORK_TREE": str(top)}
        del environ["GIT_LITERAL_PATHSPECS"]  # this command takes no pathspecs, and says so
        ran = subprocess.run(
            (self._program, "check-ignore", "-z", "--stdin", "--no-index"),
            cwd=top,
            env=environ,
            input=b"".join(b"./" + os.fsencode(path) + b"\0" for path in paths),
            capture_output=True,
            timeout=TIMEOUT,
            check=False,  # it says 1 where nothing is ignored
        )
        return {os.fsdecode(path)[2:] for path in ran.stdout.split(b"\0") if path}

    def update(self, paths: Iterable[str], gone: Iterable[str] = ()) -> None:
        """Bring these paths of the index up to date; drop those that are `gone`."""
        self.index.with_name(f"{self.index.name}.lock").unlink(missing_ok=True)
        if dropped := b"".join(os.fsencode(path) + b"\0" for path in gone):
            self.run("update-index", "--force-remove", "-z", "--stdin", said=dropped)
        if there := b"".join(os.fsencode(path) + b"\0" for path in paths):
            way = ("--add", "--remove", "--replace", "-z", "--stdin")
            self.run("update-index", *way, said=there)


# Indexes ------------------------------------------------------------------------------------------
# A session's first index is copied from the person's, if there is one, so that nothing is hashed again.
# The objects that it names lie in the person's repository: they are borrowed until a file changes.


Entry = tuple[str, str, str, str]
"""Tag, mode, name of the blob, path."""


def take_from(git: ShadowGit, repository: Repository) -> bytes:
    """Copy the person's index, and return what is `staged`. Raises `OSError`, `GitFault`."""
    copy_index(repository.index, git.index)
    for shared in repository.folder.glob("sharedindex.*"):
        copy_index(shared, git.folder / shared.name)
    return staged(git)


def staged(git: ShadowGit) -> bytes:
    """Return all that an index says of paths, without what it remembers of the files on the disk."""
    return git.run("ls-files", "-z", "-s", "-v")


def entries(git: ShadowGit) -> list[Entry]:
    """Return the entries of an index."""
    return list(read_entries(staged(git)))


def copy_index(source: Path, target: Path) -> None:
    """Copy an index with its time: by that git knows which entries may be out of date."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    found = source.stat()
    os.chmod(target, 0o600)
    os.utime(target, ns=(found.st_atime_ns, found.st_mtime_ns))


def is_whole(index: Path) -> bool:
    """Whether an index is as git left it; a power cut may tear one. It ends with its own hash."""
    data = index.read_bytes()
    return (
        data[:4] == b"DIRC"
        and hashlib.sha1(data[:-20], usedforsecurity=False).digest() == data[-20:]
    )


def read_entries(out: bytes) -> Iterator[Entry]:
    """Read what is `staged`; the tag of a conflict is `M`."""
    for row in out.split(b"\0"):
        if row:
            about, _, path = row.partition(b"\t")
            tag, mode, name, stage = about.decode().split()
            yield "M" if stage != "0" else tag, mode, name, os.fsdecode(path)
