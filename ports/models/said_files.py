"""Reads what a model wrote in fenced blocks: files with their paths, scripts and commands.

Small models put a path above a block, in its fence, into its first line, or leave it out; they open
fences twice, and forget to close them. What cannot be read is no file.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

from .fragments import parsed

SAMPLE = 'print("new content")'
"""The script that the prompt shows, which is nobody's answer."""
PROMPT = f"""\
You answer questions about files and change files. You are given files of the folder.
If a file must be changed or created, print its path alone on a line, then its whole new content in a \
fenced block:

hello.py
```python
{SAMPLE}
```

Use the paths as they are given. Print no file that stays as it is. If nothing must be changed, only \
answer in words."""
_FENCE = re.compile(r"^\s*(`{3,}|~{3,})(.*)$")
PATH = re.compile(
    r"(?<![\w.+-])(?:[\w.+-]++/){0,40}"
    r"(?:[\w+-][\w.+-]*\.\w+|Makefile|Dockerfile|LICENSE|\.\w[\w.-]*)"
)
SHELL = ".sh"
_SHELLS = ("sh", "bash", "shell", "console", "zsh")
ENDINGS = {"python": ".py", "markdown": ".md", "javascript": ".js"} | {
    name: f".{name}" for name in ("py", "json", "toml", "yaml", "yml", "csv", "html", "css")
}
_SAME = {".yaml": (".yaml", ".yml"), ".yml": (".yaml", ".yml"), ".html": (".html", ".htm")}
"""The endings that a language has, where it has several."""
Block = tuple[str, str]
"""The path of a fenced block, or the ending that its language has, or nothing; and its content."""


def blocks(lines: Sequence[str], known: Collection[str] = ()) -> list[Block]:
    """Read the whole fenced blocks of a text; what stands above a shell's commands is not their path."""
    found: list[Block] = []
    lines = _without_fenced_paths(lines, known)
    for at, info, body in _fenced(lines, known):
        path = _path_in(info) or _path_above(lines[:at])
        if body and path and body[0].strip() == path:
            body = body[1:]
        is_shell = info.partition(" ")[0].lower() in _SHELLS
        if not (path or is_shell) and len(body) == 1 and _path_in(body[0]):
            continue  # a path alone is no content
        if not path and body and (inside := _path_in(body[0].lstrip("#/*-;<! "))):
            if inside in known and body[0].lstrip()[:1] in "#/*-;<":
                path, body = inside, body[1:]
        if is_shell and not path.endswith(SHELL):
            path = SHELL
        path = path or ENDINGS.get(info.lower(), "")
        found.append((path, "\n".join(body) + "\n" if body else ""))
    return found


def commands_in(text: str) -> list[str]:
    """Return the commands of the shell blocks of a text."""
    shells = [of for _, info, of in _fenced(text.splitlines()) if info.lower() in _SHELLS]
    lines = [[line.removeprefix("$ ") for line in of if line.strip()] for of in shells]
    return ["\n".join(command) for command in lines if command]


def _without_fenced_paths(lines: Sequence[str], known: Collection[str]) -> list[str]:
    """Return the lines without a fence around a path above a block."""
    kept = list(lines)
    for at in range(len(kept) - 3, 0, -1):
        around = (
            _FENCE.match(kept[at - 1]) and _FENCE.match(kept[at + 1]) and _FENCE.match(kept[at + 2])
        )
        if around and kept[at].strip() in known:
            del kept[at + 1], kept[at - 1]
    return kept


def scripts_in(text: str) -> list[Block]:
    """Return the Python scripts of a text that do something when they are run, each with its path."""
    found = ((path, body) for path, body in blocks(text.splitlines()) if _is_script(body))
    return [(path if path.endswith(".py") and path != ".py" else "", body) for path, body in found]


def _is_script(source: str) -> bool:
    tree = parsed(source)
    if tree is None:
        return False
    has_own = any(
        isinstance(node, ast.Import | ast.ImportFrom | ast.With | ast.For) for node in tree.body
    )
    is_call = any(isinstance(getattr(node, "value", None), ast.Call) for node in tree.body)
    return has_own or is_call


def _fenced(
    lines: Sequence[str], known: Collection[str] = ()
) -> Iterator[tuple[int, str, Sequence[str]]]:
    """Yield each whole block: the line of its fence, what stands behind the fence, and its lines."""
    at = 0
    while at < len(lines):
        fence = _FENCE.match(lines[at])
        at += 1
        end = _end_of(lines, at, fence[1], known) if fence else None
        if fence is None or end is None:  # it was cut off, or opened twice
            continue
        yield at - 1, fence[2].strip(), lines[at:end]
        at = end + 1 if _FENCE.match(lines[end]) else end


def _end_of(lines: Sequence[str], start: int, fence: str, known: Collection[str]) -> int | None:
    """Return the line that closes a fence; a fence inside, with a language, is closed before it.

    A known path with a fence below it begins the next file: the fence before was left open.
    """
    depth = 0
    for at in range(start, len(lines)):
        if known and lines[at].strip("*`#: ") in known:
            below = next((line for line in lines[at + 1 : at + 3] if line.strip()), "")
            if _FENCE.match(below):
                return at
        inner = _FENCE.match(lines[at])
        if inner is None or inner[1][0] != fence[0] or len(inner[1]) < len(fence):
            continue
        if inner[2].strip():
            depth += 1
        elif depth:
            depth -= 1
        else:
            return at
    return None


def _path_in(text: str) -> str:
    """Return the path that a heading or an info string is about; empty if it is about none."""
    words = re.split(r"[\s:=\"'()]+", text.strip().strip("*`#: "))
    for word in reversed(words):
        word = word.strip("*`\"',:")
        if word and PATH.fullmatch(word):
            return word
    return ""


def _path_above(lines: Sequence[str]) -> str:
    """Return the path in the line above a block, if the line is a heading or ends with it."""
    above = next((line for line in reversed(lines[-3:]) if line.strip()), "").strip()
    if not above or _FENCE.match(above) or len(above) > 120:
        return ""
    quoted = re.findall(r"`([^`]+)`", above)
    paths = [text for text in quoted if PATH.fullmatch(text)]
    return paths[-1] if paths else _path_in(above) if len(above.split()) <= 6 else ""


_PLAIN = (".txt", ".csv", ".tsv", ".json", ".md", ".log")
_CODE = (".py", ".js", ".ts", ".sh", ".sql", ".html", ".css", ".go", ".rs", ".c")
_DEFINED = re.compile(r"^(?:def|class|function|const|func|fn) (\w+)", re.M)


def placed(
    found: Sequence[Block],
    known: Mapping[str, str | None],
    request: str,
    likely: Sequence[str] = (),
) -> Iterable[Block]:
    """Give each block its path: that of the file whose definitions it has, else its own.

    A definition may have another name if the request has both. One block without a path can be the
    `likely` file, or the one that the request names.
    """
    asked_for = set(re.findall(r"\w+", request))
    ends = ("", SHELL, *ENDINGS.values())
    bare = [path == SHELL for path, _ in found if path in ends]
    named = list(dict.fromkeys(PATH.findall(request)))
    new = [name for name in named if name not in known and name.endswith(".py")]
    for path, body in found:
        if len(new) == 1 and path.endswith(_PLAIN) and _is_script(body):
            path = new[0]  # a script is no text: its heading is about what it reads
        same = [name for name, text in known.items() if text and text.split() == body.split()]
        if path in ends and same:  # what is there already is no other file
            yield same[0], body
            continue
        names = set(_DEFINED.findall(body))
        own = set(_DEFINED.findall(known.get(known_path(path, known)) or ""))
        fits = [
            name
            for name, text in known.items()
            if text and not is_test(name) and (has := set(_DEFINED.findall(text)))
            if has <= names or (len(has) == len(names) and has ^ names <= asked_for)
        ]
        if path not in ends:
            is_other = not own & names and len(fits) == 1 and known_path(path, known) in known
            yield (fits[0] if is_other else path), body
        elif len(fits) == 1:
            yield fits[0], body
        elif like := _most_like(path, body, known):
            yield like, body
        elif bare.count(path == SHELL) == 1:
            asked = [name for name in dict.fromkeys(PATH.findall(request)) if not is_test(name)]
            asked = [name for name in asked if _may_be(name, path)]
            meant = [name for name in asked if name not in known] if len(asked) > 1 else asked
            meant = [*likely] if len(likely) == 1 and _may_be(likely[0], path) else meant
            if len(meant) == 1:
                yield meant[0], body


def _most_like(end: str, body: str, known: Mapping[str, str | None]) -> str:
    """Return the one file of this ending that most lines of a block are of; empty if none is."""
    said = {*filter(None, map(str.strip, body.splitlines()))}
    shares = dict[str, int]()
    for path, text in known.items():
        lines = {*filter(None, map(str.strip, (text or "").splitlines()))}
        common = len(said & lines)
        if _may_be(path, end) and not is_test(path) and 2 * common > max(len(said), len(lines)):
            shares[path] = common
    most = [path for path, share in shares.items() if share == max(shares.values())]
    return most[0] if len(most) == 1 else ""


def _may_be(path: str, end: str) -> bool:
    """Whether a block with the ending of its language can be this file; others name no language well."""
    if end == SHELL:
        return "." not in path.rpartition("/")[2] or path.endswith((SHELL, ".bash"))
    return path.endswith(_SAME.get(end, end))


def known_path(path: str, known: Mapping[str, object]) -> str:
    """Return the path of the one known file that is meant by the end of its path."""
    path = path.removeprefix("./")
    ends = [name for name in known if name.endswith(f"/{path}")]
    return ends[0] if path not in known and len(ends) == 1 else path


def is_code(path: str) -> bool:
    """Whether a path has the name of a file with code."""
    return path.endswith(_CODE)


def is_test(path: str) -> bool:
    """Whether a path has the name of a file with tests."""
    name = path.rpartition("/")[2]
    ends = ("_test.py", "_test.go", ".test.js", ".test.ts")
    return name.startswith("test_") or name.endswith(ends) or name in ("test.sh", "run_tests.sh")
