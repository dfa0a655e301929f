"""Which project files may attach tools, permissions and models.

A folder that was downloaded from somewhere may hold a `steersman.toml`. Until its owner says
`steersman trust`, only keys that `settings.py` declares as harmless are applied (`authority.py`).
Trust is given to contents: of that file, of the prompts, skills and workflows in `.steersman`, and of
each file of the folder that a command in them names. After any change the folder has to be trusted
again, and the difference is shown. One small record per folder lies in the state folder, so that two
terminals can't undo each other.
"""

import hashlib
import os
from collections.abc import Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any, Literal

from ..machines.errors import ConfigError
from ..machines.pattern import lazy_pattern
from ..machines.value import Value
from .document import is_list, is_table
from .foreign_file import parse_toml, read_foreign, read_text
from .home_folder import expanded
from .paths import Paths, write_private
from .spelling import spelled

PROJECT_FILE = "steersman.toml"
BESIDE = ".steersman"
"""The folder of a project that has its prompts, skills and workflows."""

_KEY_VARIABLE = lazy_pattern(r"""\bapi_key_env\b["']?\s*=\s*(?:"([^"\n]+)"|'([^'\n]+)')""")

_COMMANDS = frozenset(("call", "command", "gates", "run", "script", "shell", "start"))
"""Keys whose texts are run, or are read in place of a program."""
_LARGEST = 64 * 1024  # bytes of a file whose text is kept, to show a difference
_LONGEST = 64 * 1024 * 1024  # bytes of a file, and of the record of a folder
_MOST = 1000  # files of a folder that are trusted
_EMPTY = hashlib.sha256().hexdigest()
_PIECES = lazy_pattern(r"[;&|()`{}\n]+")
_WORDS = lazy_pattern(r"[^\s<>'\"=$]+")
_INTERPRETER = lazy_pattern(
    r"(?:.*/)?(?:[a-z]*sh|source|\.|python|node|deno|bun|ruby|perl|php|lua)[\d.]*"
)
_SCRIPT = lazy_pattern(
    r".*\.(?:[cm]?[jt]s|lua|mk|php|pl|py|rb|(?:ba|z|k)?sh)|(?i:.*makefile|justfile)"
)


class TrustedFile(Value):
    """A file as it was trusted; `text` is empty for one that is no text, or is large."""

    sha256: str
    text: str = ""


Contents = Mapping[str, TrustedFile]
"""What is trusted of a folder: its files, by their path in it."""


def contents_of(folder: Path, content: bytes | None = None) -> Contents:
    """Read what a folder's project file (or one with the given content) means by itself. Blocks.

    Raises `OSError` for a file that cannot be read, also where there is none at all.
    """
    root = Path(os.path.realpath(folder))
    found = dict[str, TrustedFile]()
    if content is not None:
        found[PROJECT_FILE] = _trusted_file(content)
    elif os.path.lexists(root / PROJECT_FILE):
        found[PROJECT_FILE] = _read(root / PROJECT_FILE)
    for place in islice(_beside(root), _MOST + 1):
        found[_text(place.relative_to(root))] = _read(place)
    for path, file in list(found.items()):
        for named in _named(path, file, root):
            found.setdefault(_text(named.relative_to(root)), _read(named))
    if not found:
        raise FileNotFoundError("there is no such file")
    if len(found) > _MOST:
        raise OSError(f"there are more than {_MOST} files to trust")
    return found


def is_trusted(paths: Paths, folder: Path, content: bytes | None = None) -> bool:
    """Whether the folder is trusted as it is now (or with this content of its project file). Blocks."""
    before = trusted_contents(paths, folder)
    try:
        return bool(before) and contents_of(folder, content) == before
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
        is_there = (folder / PROJECT_FILE).exists() or (folder / BESIDE).exists()
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


def trust_error(file: Path, error: OSError) -> ConfigError:
    """Say why a folder cannot be trusted."""
    hint = f"`steersman trust DIR` trusts the {PROJECT_FILE} of a folder."
    return ConfigError(f"can't be trusted: {error.strerror or error}", hint, file=str(file))


def _beside(root: Path) -> Iterator[Path]:
    """Yield the project's prompts, skills and workflows, by name; links lead to what they name."""
    for place in ("prompts", "skills", "workflows"):
        for at, folders, files in os.walk(root / BESIDE / place, followlinks=True):
            folders.sort()
            yield from (Path(at, name) for name in sorted(files))


def _named(path: str, file: TrustedFile, root: Path) -> Iterator[Path]:
    """Yield the files of a folder that the commands in a TOML file name. Raises `OSError`."""
    if not path.endswith(".toml"):
        return
    if not file.text and file.sha256 != _EMPTY:
        raise OSError(f"{path} is no text, or is larger than {_LARGEST // 1024} KiB")
    try:
        data = parse_toml(file.text)
    except ValueError:
        return
    for command in _commands(data):
        for word, is_program in _words(command):
            for near in (root, (root / path).parent):
                place = Path(os.path.realpath(os.path.join(near, word)))
                if place.is_relative_to(root) and _may_run(place, is_program):
                    yield place


def _commands(value: Any, is_command: bool = False) -> Iterator[list[str]]:
    """Yield the commands in a document: their words, or one text."""
    if is_table(value):
        for key, inner in value.items():
            yield from _commands(inner, is_command or key in _COMMANDS)
    elif is_list(value):
        if is_command and all(isinstance(word, str) for word in value):
            yield value
        else:
            for inner in value:
                yield from _commands(inner, is_command)
    elif isinstance(value, str) and is_command:
        yield [value]


def _words(command: list[str]) -> Iterator[tuple[str, bool]]:
    """Yield every word that may name a file, and whether a program or its script stands there."""
    command = [word for word in command if "\0" not in word]  # no command can have one
    yield from ((word, number == 0) for number, word in enumerate(command))
    for piece in _PIECES.split(" ".join(command)):
        is_program = True
        for word in _WORDS.findall(piece):
            yield word, is_program
            is_program = bool(_INTERPRETER.fullmatch(word)) or (is_program and word[0] == "-")


def _may_run(place: Path, is_program: bool) -> bool:
    """Whether a file is one that a command runs, not one that it only reads or writes."""
    if not os.path.isfile(place):
        return False
    return is_program or os.access(place, os.X_OK) or bool(_SCRIPT.fullmatch(place.name))


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
