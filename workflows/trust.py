"""Which project files may attach tools, permissions and models.

A folder that was downloaded from somewhere may hold a `steersman.toml`. Until its owner says
`steersman trust`, only keys that `settings.py` declares as harmless are applied (`authority.py`).
Trust is given to contents: of that file, of `.mcp.json`, of the prompts, skills and workflows in
`.steersman`, and of each file and folder of the project that a text in them names; where it is not clear
what a command names, of all files of the project (see `_Names`). After any change the folder has to be
trusted again, and the difference is shown. One small record per folder lies in the state folder, so that
two terminals can't undo each other.
"""

import hashlib
import os
import shlex
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Final, Literal

from ..machines.errors import ConfigError, SteersmanError, UsageError
from ..machines.pattern import lazy_pattern
from ..machines.value import Value
from .document import is_list, is_table
from .foreign_file import decoded, parse_toml, read_foreign, read_text
from .foreign_servers import commands_of
from .home_folder import expanded
from .paths import Paths, write_private
from .spelling import spelled
from .typed_table import Setter

PROJECT_FILE = "steersman.toml"
MCP_FILE = ".mcp.json"
BESIDE = ".steersman"
"""The folder of a project that has its prompts, skills and workflows."""
WRITTEN = ("prompts", "skills", "workflows")
"""Folders of what people write: of a project in that folder, their own beside their settings."""
PROJECT_FILES: Final[Mapping[str, tuple[Setter, str]]] = {
    PROJECT_FILE: (Setter.ANY_PROJECT, "settings, of which each says who sets it"),
    "AGENTS.md": (Setter.ANY_PROJECT, "text of the system prompt, with a notice"),
    MCP_FILE: (Setter.TRUSTED_PROJECT, "MCP servers, as other programs write them"),
    BESIDE: (Setter.TRUSTED_PROJECT, "prompts, skills, and workflows by their names"),
}
"""What is looked for in a project, from when on it counts, and what it is."""

_KEY_VARIABLE = lazy_pattern(r"""\bapi_key_env\b["']?\s*=\s*(?:"([^"\n]+)"|'([^'\n]+)')""")

_COMMANDS = frozenset(
    ("call", "command", "env", "gates", "outcome", "run", "script", "shell", "start")
)
"""Keys whose texts are run, or say what is."""
_LARGEST = 64 * 1024  # bytes of a file whose text is kept, to show a difference
_LONGEST = 64 * 1024 * 1024  # bytes of a file, and of the record of a folder
_MOST = 1000  # files that are trusted one by one
_MOST_IN_FOLDER = 5000  # files of a folder that is trusted as a whole
_EMPTY = hashlib.sha256().hexdigest()
_DEEPEST = 4  # shells in shells
_PARTS = lazy_pattern(r"[^\w./+@%~-]+")
_UNCLEAR = lazy_pattern(r"[$`*?\[~\n]|\{[^{}]*[,.]")
"""What makes a word of a shell another one."""
_SHELL = lazy_pattern(r"(?:.*/)?(?:r?ba|da|m?k|t?c|pw|fi|z|a)?sh[\d.]*")
_LINE = lazy_pattern(r"[\s;&|()<>$`]")
_INTERPRETER = lazy_pattern(r"(?:.*/)?(?:pypy|python|node|deno|bun|ruby|perl|php|lua)[\d.]*")
_MOVES = frozenset(("cd", "eval", "popd", "pushd"))
_CHECKERS = frozenset(
    ("biome", "cargo", "eslint", "mypy", "prettier", "pyright", "pytest", "ruff", "tsc")
)
"""Programs that are given folders to look at; those may change."""
_RUNNERS = frozenset(("bunx", "npx", "uvx"))
"""Programs that run a package of a registry."""
_SERVERS = lazy_pattern(r"(?:@modelcontextprotocol/server-|mcp-server-)[\w.@-]+")
"""Packages that work on the files of folders, and run none: the reference servers of MCP."""
_DATA = frozenset(
    (
        *("[", "cat", "date", "echo", "false", "grep", "head", "ls", "mkdir"),
        *("notify-send", "printf", "rm", "rmdir", "sleep", "tail", "test", "touch", "true", "wc"),
    )
)
"""Programs that run nothing of what they are given: it is data, and may come and change."""


class TrustedFile(Value):
    """A file as it was trusted; `text` is empty for one that is no text, or is large."""

    sha256: str
    text: str = ""


Contents = Mapping[str, TrustedFile]
"""What is trusted of a folder: its files, by their path in it."""


def contents_of(folder: Path, read: Mapping[str, bytes] | None = None) -> Contents:
    """Read what a folder's files mean by themselves; `read` are some that were read before. Blocks.

    Raises `OSError` for a file that cannot be read, also where there is none at all.
    """
    root = Path(os.path.realpath(folder))
    found = dict[str, TrustedFile]()
    for name in (PROJECT_FILE, MCP_FILE):
        if read and name in read:
            found[name] = _trusted_file(read[name])
        elif os.path.lexists(root / name):
            found[name] = _read(root / name)
    for place in islice(_beside(root), _MOST + 1):
        found[_text(place.relative_to(root))] = _read(place)
    for path, file in list(found.items()):
        for named in _named(path, file, root):
            key = _text(named.relative_to(root))
            if named.is_dir():
                found.setdefault(f"{key}/", _whole(named))
            else:
                found.setdefault(key, _read(named))
    if not found:
        raise FileNotFoundError("there is no such file")
    if len(found) > _MOST:
        raise OSError(f"there are more than {_MOST} files to trust")
    return found


def counts(paths: Paths, folder: Path, kind: str) -> bool:
    """Whether what a project has of a kind of `PROJECT_FILES` is read there. Blocks."""
    needed, _ = PROJECT_FILES[kind]
    return needed is Setter.ANY_PROJECT or is_trusted(paths, folder)


def unused_beside(paths: Paths, folder: Path) -> str:
    """Say why a folder's prompts, skills and workflows are not used; empty if they are. Blocks."""
    if next(_beside(Path(os.path.realpath(folder))), None) is None or counts(paths, folder, BESIDE):
        return ""
    what = "its prompts, skills and workflows are not used, `steersman trust` uses them"
    return f"{folder / BESIDE} {state_of(paths, folder, BESIDE)}: {what}"


def state_of(paths: Paths, folder: Path, name: str) -> str:
    """Say in words why a file or folder of a project does not count; it follows its name. Blocks.

    The project was never trusted, or this or something else of it has changed.
    """
    before = trusted_contents(paths, folder)
    if not before:
        return "is not trusted"
    try:
        now = contents_of(folder)
    except OSError as error:
        return f"cannot be trusted: {error.strerror or error}"
    changed = sorted(path for path in {*before, *now} if before.get(path) != now.get(path))
    if not changed or any(path == name or path.startswith(f"{name}/") for path in changed):
        return "has changed since it was trusted"
    more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
    return f"is trusted no more, since `{_changed(changed[0], before, now)}`{more} has changed"


def _changed(path: str, before: Contents, now: Contents) -> str:
    """Name what changed; of a folder that is trusted as a whole the first file that did."""
    if not path.endswith("/") or path not in before or path not in now:
        return path
    lines = set(before[path].text.split("\n")) ^ set(now[path].text.split("\n"))
    names = sorted(line.rpartition(" ")[0] for line in lines)
    return f"{path.removeprefix('./')}{names[0]}" if names else path


def is_trusted(paths: Paths, folder: Path, read: Mapping[str, bytes] | None = None) -> bool:
    """Whether the folder is trusted as it is now, `read` being its files that were read. Blocks."""
    before = trusted_contents(paths, folder)
    try:
        return bool(before) and contents_of(folder, read) == before
    except OSError:
        return False


def trusted_contents(paths: Paths, folder: Path) -> Contents:
    """Return what was trusted of a folder; empty if nothing was, or the record cannot be read."""
    try:
        record = parse_toml(read_text(_record(paths, folder), _LONGEST))
        is_meant = record.get("folder") == _text(folder.resolve())
        return {path: TrustedFile(**file) for path, file in record["files"].items() if is_meant}
    except (OSError, ValueError, LookupError, TypeError, AttributeError):
        return {}


def key_variables(paths: Paths, folder: Path, environ: Mapping[str, str]) -> frozenset[str]:
    """Name the environment variables with the keys of models: the `api_key_env` that apply in a folder.

    A file counts also if something else in it is wrong; a project's only if it is trusted.
    """
    files = [paths.config_file, *([folder / PROJECT_FILE] if is_trusted(paths, folder) else [])]
    if named := environ.get("STEERSMAN_CONFIG"):
        files.append(expanded(named))
    names: set[str] = set()
    for file in files:
        try:
            text = read_foreign(file).decode(errors="replace")
        except OSError:
            continue
        names |= {found for pair in _KEY_VARIABLE.findall(text) for found in pair if found}
    return frozenset(names)


class Trusted(Value):
    """A folder that was trusted; `state` is trusted, changed (in force no more) or gone."""

    folder: str
    state: Literal["trusted", "changed", "gone"]


def trusted(paths: Paths) -> list[Trusted]:
    """List the folders that were trusted, by name."""
    found: list[Trusted] = []
    for record in sorted((paths.state / "trusted").glob("*.toml")):
        try:
            folder = Path(str(parse_toml(read_text(record, _LONGEST))["folder"]))
        except (OSError, ValueError, LookupError):
            continue
        is_there = any((folder / name).exists() for name in (PROJECT_FILE, MCP_FILE, BESIDE))
        state: Literal["trusted", "changed", "gone"] = "changed" if is_there else "gone"
        found.append(
            Trusted(folder=str(folder), state="trusted" if is_trusted(paths, folder) else state)
        )
    return sorted(found, key=lambda one: one.folder)


def forget(paths: Paths, folder: Path) -> bool:
    """Withdraw the trust in a folder; False if it was not trusted."""
    record = _record(paths, folder)
    is_there = record.exists()
    record.unlink(missing_ok=True)
    return is_there


def trust(paths: Paths, folder: Path, contents: Contents | None = None) -> Path:
    """Trust these contents of a folder, or its present ones; return its project file.

    Raises `ConfigError` when there are none, or they cannot be read.
    """
    folder = folder.resolve()
    file = folder / PROJECT_FILE
    try:
        contents = contents_of(folder) if contents is None else contents
    except OSError as error:
        raise trust_error(file, error) from error
    import tomli_w
    from msgspec import to_builtins

    record = {"folder": _text(folder.resolve()), "files": to_builtins(dict(contents))}
    write_private(_record(paths, folder), tomli_w.dumps(record).encode())
    return file


def trust_error(file: Path, error: OSError) -> SteersmanError:
    """Say why a folder cannot be trusted."""
    if isinstance(error, FileNotFoundError):
        names = f"`{PROJECT_FILE}`, no `{MCP_FILE}` and nothing in `{BESIDE}`"
        return UsageError(f"there is nothing to trust in {file.parent}: no {names}")
    hint = f"`steersman trust DIR` trusts the {PROJECT_FILE} of a folder."
    return ConfigError(f"can't be trusted: {error.strerror or error}", hint, file=str(file))


def _beside(root: Path) -> Iterator[Path]:
    """Yield the project's prompts, skills and workflows, by name; links lead to what they name."""
    for place in WRITTEN:
        for at, folders, files in os.walk(root / BESIDE / place, followlinks=True):
            folders.sort()
            yield from (Path(at, name) for name in sorted(files))


def _named(path: str, file: TrustedFile, root: Path) -> set[Path]:
    """Return the files and folders that a TOML file or `.mcp.json` names. Raises `OSError`."""
    if not path.endswith(".toml") and path != MCP_FILE:
        return set()
    if not file.text and file.sha256 != _EMPTY:
        raise OSError(f"{path} is no text, or is larger than {_LARGEST // 1024} KiB")
    names = _Names(root, ((root / path).parent,))
    try:
        if path == MCP_FILE:
            for server, is_open in commands_of(decoded(file.text.encode())):
                names.add(server, is_command=False)
                names.found |= {root} if is_open else set()
        else:
            names.add(parse_toml(file.text), is_command=False)
    except ValueError:
        return set()
    return {root} if root in names.found else names.found


class _Names:
    """What a document names of a folder; `near` are the folders in which its words are looked up.

    All that a word could name is `found`, whatever it is for. A command is followed if each of its words
    stands as it is used; what a shell may make of other words, and what an interpreter may find by
    itself, is not guessed: then the whole folder is found.
    """

    def __init__(self, root: Path, near: tuple[Path, ...]) -> None:
        self._root, self._near = root, (root, *near)
        self.found = set[Path]()

    def add(self, value: Any, is_command: bool) -> None:
        """Add what a value of a document names."""
        if is_table(value):
            before = self._near
            if isinstance(place := value.get("cwd"), str):
                self._near = (*before, *self._existing(place))
                if "{" in place:
                    self.found.add(self._root)
            for key, inner in value.items():
                self.add(inner, is_command or key in _COMMANDS)
            self._near = before
        elif is_list(value) and is_command and all(isinstance(word, str) for word in value):
            self._add_command(value, _DEEPEST)
        elif is_list(value):
            for inner in value:
                self.add(inner, is_command)
        elif isinstance(value, str) and is_command:
            self._add_shell(value, _DEEPEST)
        elif isinstance(value, str):
            self.found |= {place for place in self._existing(value) if place.is_file()}

    def _add_shell(self, text: str, depth: int) -> None:
        """Add what a line of a shell names."""
        lexer = shlex.shlex(text.replace("\n", " ; "), posix=True, punctuation_chars=True)
        lexer.commenters = ""
        try:
            words = list(lexer)
        except ValueError:
            words = [""]
        if not depth or _UNCLEAR.search(text.replace("\n", ";")) or not all(words):
            self.found.add(self._root)
        command = list[str]()
        for number, word in enumerate(words):
            if set(word) <= set("();<>|&"):
                if not set(word) & set("<>"):
                    self._add_command(command, depth)
                    command = []
            elif number == 0 or ">" not in words[number - 1] or "<" in words[number - 1]:
                command.append(word)
        self._add_command(command, depth)

    def _add_command(self, words: list[str], depth: int) -> None:
        """Add what the words of a command name."""
        if words and ("{" in words[0] or _MOVES & set(words)):
            self.found.add(self._root)
        if words and words[0] in _DATA:
            return
        looks_at_folders, is_shell = bool(words) and words[0] in _CHECKERS, False
        for number, word in enumerate(words):
            parts = {word, *word.split("=")} - ({"."} if number == 0 else set())
            if is_shell and _LINE.search(word):
                self._add_shell(word, depth - 1)
            else:
                parts |= {*_PARTS.split(word)} - {word}
            parts |= {part[2:] for part in parts if part[:1] == "-"}
            places = {place for part in parts for place in self._existing(part)}
            self.found |= {place for place in places if place.is_file() or not looks_at_folders}
            looks_at_folders |= words[0] in _RUNNERS and bool(_SERVERS.fullmatch(word))
            is_shell = is_shell or bool(_SHELL.fullmatch(word))
            if (_SHELL.fullmatch(word) or _INTERPRETER.fullmatch(word)) and not self._is_clear(
                word, words[number + 1 :]
            ):
                self.found.add(self._root)

    def _is_clear(self, program: str, words: list[str]) -> bool:
        """Whether a shell or an interpreter is given a file, or a line that was looked at."""
        for word in words:
            if word[:1] == "-" and word[:2] != "--":
                if _SHELL.fullmatch(program):
                    if "c" in word:
                        return True
                elif set(word) & set("cemrM"):
                    return False
            elif word[:2] == "--" and word not in ("--", "--version"):
                return False
            elif any(place.exists() for place in self._existing(word)):
                return True
            elif os.path.isabs(word) and os.path.isfile(word):  # it is none of the project's
                return True
        return "--version" in words

    def _existing(self, word: str) -> set[Path]:
        """Return what a word names in the project."""
        if not word or "\0" in word:
            return set()
        places = {Path(os.path.realpath(near / word)) for near in self._near}
        return {
            place for place in places if place.is_relative_to(self._root) and os.path.lexists(place)
        }


def _whole(folder: Path) -> TrustedFile:
    """Read all files of a folder but git's; the text lists their hashes. Raises `OSError`."""
    lines, left = list[str](), _LONGEST
    for at, folders, files in os.walk(folder):
        folders[:] = sorted(set(folders) - {".git"})
        for name in sorted([*files, *(one for one in folders if Path(at, one).is_symlink())]):
            place = Path(at, name)
            if place.is_symlink():
                digest = f"-> {os.readlink(place)}"
            elif place.is_file():
                content = read_foreign(place, max(left, 0))
                digest, left = hashlib.sha256(content).hexdigest(), left - len(content)
            else:
                digest = "special"
            lines.append(spelled(f"{place.relative_to(folder)} {digest}"))
            if len(lines) > _MOST_IN_FOLDER:
                raise OSError(
                    f"a command may run anything in {folder}, which has more than "
                    f"{_MOST_IN_FOLDER} files: name a script by its path in place of it"
                )
    text = "\n".join(lines)
    return TrustedFile(sha256=hashlib.sha256(text.encode()).hexdigest(), text=text)


def _read(path: Path) -> TrustedFile:
    try:
        return _trusted_file(read_foreign(path, _LONGEST))
    except OSError as error:
        raise OSError(f"{path}: {error.strerror or error}") from error


def _trusted_file(content: bytes) -> TrustedFile:
    try:
        text = content.decode() if len(content) <= _LARGEST and b"\0" not in content else ""
    except UnicodeDecodeError:
        text = ""
    return TrustedFile(sha256=hashlib.sha256(content).hexdigest(), text=text)


def _record(paths: Paths, folder: Path) -> Path:
    name = hashlib.sha256(os.fsencode(folder.resolve())).hexdigest()
    return paths.state / "trusted" / f"{name}.toml"


def _text(path: Path) -> str:
    return spelled(str(path))
