"""A request to call something otherwise: what it is called now, what it is to be called, and no more.

A small model that prints whole files for that loses lines on the way. Since nothing but the name
changes, it is known what each line may become.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...machines.pattern import lazy_pattern

_OLD, _NEW = (rf"[`'\"]?\b(?P<{name}>\w[\w.-]{{1,60}}\w)[`'\"]?" for name in ("old", "new"))
_SHAPES = (
    lazy_pattern(rf"(?i)\brename\b[^\n]{{0,60}}?{_OLD} (?:to|into|as) {_NEW}"),
    lazy_pattern(
        rf"(?i){_OLD}(?: in [\w./-]{{1,60}})? (?:(?:should|shall|must) be|is now) (?:called|named) {_NEW}"
    ),
    lazy_pattern(rf"(?i)\b(?:is|are|be) (?:now )?{_NEW} instead of {_OLD}"),
)
_CLAUSE = lazy_pattern(r"[,;:!?\n]|\.(?!\w)|\b(?:and|then)\b")
_USUAL = frozenset(
    "rename renamed change update adapt use uses used using do it its the a an all every each everywhere "
    "in of to for that this them where too also please pls thanks file files script scripts code module "
    "modules function class method variable constant column field key option setting docs documentation "
    "readme tests test config project folder place places text texts page pages python javascript".split()
)
"""Words beside a renaming that ask for nothing else."""
_STYLED = (".css", ".html", ".htm", ".scss", ".svg")


def renaming(request: str, files: Mapping[str, str | None]) -> tuple[str, str] | None:
    """Return the old and the new name, if that is all that a request is about.

    The old one is in the files, and names none of them; the new one is not there yet.
    """
    found = next(filter(None, (shape.search(request) for shape in _SHAPES)), None)
    if found is None:
        return None
    old, new = found["old"], found["new"]
    texts = [(path, text or "") for path, text in files.items()]
    is_there = any(_whole(old, path).search(text) for path, text in texts)
    is_new = not any(new in text for _, text in texts)
    is_kind = bool(re.search("[A-Za-z]", old)) == bool(re.search("[A-Za-z]", new))
    if not (is_there and is_new and is_kind) or any(path.endswith(old) for path in files):
        return None
    before = _CLAUSE.split(request[: found.start()])[:-1]  # its own clause may begin as it likes
    known = _USUAL | {word for path in files for word in re.findall(r"\w+", path.lower())}
    rest = " ".join([*before, *_CLAUSE.split(request[found.end() :])])
    is_all = all(word in known for word in re.findall(r"\w+", rest.lower()))
    return (old, new) if is_all else None


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
    return re.compile(rf"(?<!{joins}){re.escape(name)}(?!{joins})")
