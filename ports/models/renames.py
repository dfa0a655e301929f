"""A request to call something otherwise: what it is called now, what it is to be called, and no more.

A small model that prints whole files for that loses lines on the way, and forgets files. Since nothing
but the name changes, it is known what each line may become, also where a file is moved.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from posixpath import basename, normpath

from ...machines.pattern import lazy_pattern
from ..tools.survey import FOREIGN

_NAME = r"(?-i:[A-Z][\w-]{0,30}(?: [A-Z][\w-]{0,30}){1,3})|(?:--?|[#.@])?\w[\w.-]{1,60}\w"
_OLD, _NEW = (rf"[`'\"]?(?<![\w#-])(?P<{name}>{_NAME})[`'\"]?" for name in ("old", "new"))
_WAS, _IS = (  # a path, or a host
    rf"[`'\"]?(?<![\w./-])(?P<{name}>/?[\w.-][\w./-]{{0,80}}\w)[`'\"]?" for name in ("old", "new")
)
_WHERE = r"(?: (?:in|of|from|on) [\w./-]{1,60})?"
_SHAPES = (
    lazy_pattern(rf"(?i)\brename\b[^\n]{{0,60}}?{_OLD}{_WHERE} (?:to|into|as) {_NEW}"),
    lazy_pattern(rf"(?i)\b(?:is|are|be) (?:now )?(?:called |named )?{_NEW} instead of {_OLD}"),
    lazy_pattern(
        rf"(?i){_OLD}{_WHERE} (?:(?:should|shall|must) be|is now) (?:called|named|spelled|written) {_NEW}"
    ),
    lazy_pattern(
        rf"(?i)\breplace (?:(?:the|all|every|\w{{1,20}}) ){{0,2}}{_OLD} (?:with|by) {_NEW}"
    ),
    lazy_pattern(rf"(?i){_OLD} (?:is|was|gets) replaced (?:with|by) (?:\w{{1,20}} ){{0,2}}{_NEW}"),
    lazy_pattern(
        r"(?i)\bchange (?:the )?(?:colou?r|word|name|domain|address|url|tag|class|label) "
        rf"{_OLD}{_WHERE} (?:to|into) {_NEW}"
    ),
    lazy_pattern(rf"(?i)\bmoved? from {_WAS} (?:to|into) {_IS}"),
)
_MISSPELLED = lazy_pattern(rf"(?i)\b(?:misspell?ed|misspelt|mistyped|misnamed) {_NEW} as {_OLD}")
_FROM, _TO = (
    rf"[`'\"]?(?<![\w./-])(?P<{name}>[\w.-][\w./-]{{0,80}}[\w/])[`'\"]?" for name in ("old", "new")
)
_MOVE = lazy_pattern(
    rf"(?i)\b(?:rename|move)(?: the| file| module| script| page){{0,3}} {_FROM} (?:to|into|as) {_TO}"
)
_CLAUSE = lazy_pattern(r"[,;:!?\n]|\.(?!\w)|\b(?:and|then)\b")
_USUAL = frozenset(
    "rename renamed change update adapt use uses used using do it its the a an all every each everywhere "
    "in of to for that this them where too also please pls thanks file files script scripts code module "
    "modules function class method variable constant column field key option setting docs documentation "
    "readme tests test config project folder place places text texts page pages python javascript fix "
    "js ts html css sql json yaml yml csv toml xml php java table colour color word flag argument "
    "imports links references mentions callers calls called usages paths name still work works pass so "
    "i we you my our can could would correct this both including there reads gets appears stylesheets "
    "image images is getting long big large own new path".split()
)
"""Words beside a renaming that ask for nothing else."""
_LETTER = re.compile("[A-Za-z]")
_USUAL_WORD = re.compile("[A-Za-z][a-z]+")
_DOCUMENTS = (".md", ".txt", ".rst")
_STYLED = (".css", ".html", ".htm", ".scss", ".svg")


def renaming(request: str, files: Mapping[str, str | None]) -> tuple[str, str] | None:
    """Return the old and the new name, if that is all that a request is about.

    The old one is in the files, and names none of them; the new one is not there yet, or misspelled in
    some places.
    """
    spelled = _MISSPELLED.search(request)
    found = spelled or next(filter(None, (shape.search(request) for shape in _SHAPES)), None)
    if found is None:
        return None
    old, new = found["old"], found["new"]
    texts = [(path, text or "") for path, text in files.items()]
    is_there = any(_whole(old, path).search(text) for path, text in texts)
    is_new = bool(spelled) or not any(new in text for _, text in texts)
    kinds = {name[:1] if name[:1] in "#-.@" else bool(_LETTER.search(name)) for name in (old, new)}
    if not (is_there and is_new and len(kinds) == 1) or any(path.endswith(old) for path in files):
        return None
    return (old, new) if asks_no_more(request, found, files) else None


def moving(request: str, files: Mapping[str, str | None]) -> tuple[str, str] | None:
    """Return the path of the file that a request wants elsewhere, and that one, if it wants no more."""
    found = _MOVE.search(request)
    if found is None:
        return None
    ends = [path for path in files if f"/{path}".endswith(f"/{found['old']}")]
    new = found["new"]
    if len(ends) != 1 or not (new.endswith("/") or "." in basename(new)):
        return None
    folder = ends[0].rpartition("/")[0]
    new = f"{new}{basename(ends[0])}" if new.endswith("/") else new
    new = normpath(new if "/" in new or not folder else f"{folder}/{new}")
    is_new = new not in files and not new.startswith(("/", "../"))
    return (ends[0], new) if is_new and asks_no_more(request, found, files) else None


def asks_no_more(request: str, found: re.Match[str], files: Mapping[str, object]) -> bool:
    """Whether a request has no more in it than what was found, and words that ask for nothing else."""
    before = _CLAUSE.split(request[: found.start()])[:-1]  # its own clause may begin as it likes
    named = {word for path in files for word in re.findall(r"\w+", path.lower())}
    known = _USUAL | named | {word.removesuffix("s") for word in named}
    rest = " ".join([*before, *_CLAUSE.split(request[found.end() :])])
    return all(word in known for word in re.findall(r"\w+", rest.lower()))


def with_name(path: str, text: str, names: tuple[str, str]) -> str:
    """Return a file with the new name; a document stays, if the old one is a word like others."""
    old, new = names
    if path.endswith(_DOCUMENTS) and _USUAL_WORD.fullmatch(old):
        return text
    return _whole(old, path).sub(lambda _: new, text)


def in_other_files(names: tuple[str, str], shown: Collection[str]) -> str:
    """Return the command that changes a name in the files of a folder that are not shown."""
    old, new = names
    pattern = _whole(old, ".css" if "-" in old else "").pattern
    kept = _DOCUMENTS if _USUAL_WORD.fullmatch(old) else ()
    return _SCRIPT.format(pattern=pattern, new=new, shown=sorted(shown), kept=kept, foreign=FOREIGN)


_SCRIPT = """\
python3 - <<'END'
import os, re
for folder, below, names in os.walk("."):
    below[:] = [name for name in below if name[0] != "." and name not in {foreign!r}]
    for name in names:
        path = os.path.relpath(os.path.join(folder, name))
        if name[0] == "." or path in {shown!r} or path.endswith({kept!r}):
            continue
        try:
            text = open(path, encoding="utf-8", newline="").read()
        except (OSError, UnicodeDecodeError):
            continue
        changed = re.sub({pattern!r}, lambda _: {new!r}, text)
        if changed != text:
            open(path, "w", encoding="utf-8", newline="").write(changed)
            print(path)
END"""


def after_move(path: str, text: str, old: str, new: str) -> str:
    """Return a file with the new path of another one in it, and with its imports, if both are Python."""
    names = (basename(old), basename(new))
    for was, now in ((old, new), *((names,) if names[0] != names[1] else ())):
        literal = now.replace("\\", r"\\")
        text = re.sub(rf"(?<![\w.-]){re.escape(was)}(?![\w-])", literal, text)
    if not all(name.endswith(".py") for name in (path, old, new)):
        return text
    module, target = (name.removesuffix(".py").replace("/", ".") for name in (old, new))
    return _with_imports(text, module, target)


def _with_imports(text: str, module: str, target: str) -> str:
    """Return a Python file that imports a module under its new name."""
    (package, _, stem), (beside, _, other) = (name.rpartition(".") for name in (module, target))
    names = {module: target, **({stem: other} if package == beside else {})}
    whole = re.compile(rf"(?<![\w.])(?:{'|'.join(map(re.escape, names))})(?!\w)")
    relative = re.compile(rf"(\s*from\s+\.+){re.escape(stem)}\s*")
    lines, is_brought = list[str](), False
    for line in text.splitlines(keepends=True):
        head, imports, brought = line.partition(" import ")
        is_from = bool(imports) and head.lstrip().startswith("from ")
        if is_from and package == beside and (found := relative.fullmatch(head)):
            line = f"{found[1]}{other}{imports}{brought}"
        elif is_from and head.split()[-1].strip(".") not in ("", package):
            line = whole.sub(lambda found: names[found[0]], head) + imports + brought
        elif is_from or line.lstrip().startswith("import "):
            is_brought |= whole.search(line) is not None
            line = whole.sub(lambda found: names[found[0]], line)
        lines.append(line)
    uses = re.compile(rf"{whole.pattern}(?=\.\w)")
    text = "".join(lines)
    return uses.sub(lambda found: names[found[0]], text) if is_brought else text


def only_renamed(path: str, before: str, after: str, names: tuple[str, str]) -> str:
    """Return what a model made of a file; where it changed more than the name, the file with that alone.

    A line that the model left as it was stays.
    """
    old, new = names
    lines, given = before.splitlines(), after.splitlines()
    whole = _whole(old, path)
    renamed = [whole.sub(lambda _: new, line) for line in lines]
    if len(given) == len(lines) and all(
        said.rstrip() in (line.rstrip(), changed.rstrip())
        for said, line, changed in zip(given, lines, renamed, strict=True)
    ):
        return after
    said = {*given}
    kept = [
        line if line in said and changed not in said else changed
        for line, changed in zip(lines, renamed, strict=True)
    ]
    return "\n".join([*kept, ""])


def _whole(name: str, path: str) -> re.Pattern[str]:
    """Return the pattern of a name as a whole; in styles, and of a name with one, a dash joins words."""
    joins = r"[\w-]" if "-" in name or path.endswith(_STYLED) else r"\w"
    case = "(?i)" if name.startswith("#") else ""  # a colour
    return re.compile(rf"{case}(?<!{joins}){re.escape(name)}(?!{joins})")
