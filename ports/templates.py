"""Prompt templates and skills: Markdown files of the person, and of a project that is trusted.

A template is `prompts/NAME.md`: `/NAME ARGUMENTS` sends its text. A skill is `skills/NAME/SKILL.md`: the
system prompt has its name and description, and the model reads the file when a task calls for it. Both
are in the folder of the configuration, and in `.steersman` of the project, whose files come first. A file
may begin with lines between `---`, of which `description: …` (and `name: …`) are read. Blocks: not for
the actors' loop.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from ..machines.errors import ToolError
from ..machines.pattern import lazy_pattern
from ..machines.value import Value
from .instructions import read_within

LARGEST = 64 * 1024
"""Bytes of one file."""
MOST = 100
"""Files of one folder."""
_LISTED = 300  # characters of a description
_NAME = lazy_pattern(r"[A-Za-z][A-Za-z-]{0,39}\Z")
_PLACE = lazy_pattern(r"\$(?:ARGUMENTS|[1-9])")
_FIELD = lazy_pattern(r"([A-Za-z-]+):[ \t]*(.*)")


class Template(Value):
    """A text to send; `description` is one line."""

    name: str
    text: str
    description: str

    def filled(self, arguments: str) -> str:
        """Put arguments in: `$ARGUMENTS` is all of them, `$1` the first word; else they come last."""
        words = arguments.split()

        def value(found: re.Match[str]) -> str:
            number = found[0][1:]
            if number == "ARGUMENTS":
                return arguments
            return words[int(number) - 1] if int(number) <= len(words) else ""

        if arguments and not _PLACE.search(self.text):
            return f"{self.text}\n\n{arguments}"
        return _PLACE.sub(value, self.text)


class Skill(Value):
    """Instructions for one kind of task, in a file that the model reads when it needs them."""

    name: str
    description: str
    file: Path


def templates_in(folders: list[Path]) -> dict[str, Template]:
    """Read the templates by name; of two with a name the first folder's. Never raises."""
    found: dict[str, Template] = {}
    for folder in folders:
        for file in _sorted(folder / "prompts"):
            if file.suffix == ".md" and _NAME.match(file.stem) and file.stem.lower() not in found:
                head, text = _read(file, folder)
                if text:
                    about = head.get("description", "") or text.partition("\n")[0].lstrip("# ")
                    name = file.stem.lower()
                    found[name] = Template(name=name, text=text, description=about[:_LISTED])
    return found


def skills_in(folders: list[Path]) -> dict[str, Skill]:
    """Read the names and descriptions of the skills; those without a description are left out."""
    found: dict[str, Skill] = {}
    for folder in folders:
        for place in _sorted(folder / "skills"):
            file = place / "SKILL.md"
            head, _ = _read(file, folder)
            name = head.get("name", "") or place.name
            if about := head.get("description", ""):
                found.setdefault(name, Skill(name=name, description=about[:_LISTED], file=file))
    return found


def skills_text(skills: dict[str, Skill], folder: Path) -> str:
    """Return what the system prompt says of the skills; empty for none. `folder` is the session's."""
    if not skills:
        return ""
    lines = [
        f"- {skill.name}: {skill.description} ({os.path.relpath(skill.file, folder)})"
        if skill.file.is_relative_to(folder)
        else f"- {skill.name}: {skill.description} ({skill.file})"
        for skill in skills.values()
    ]
    head = (
        "\n\n# Skills\n\nInstructions for single kinds of tasks. If a task fits one, first read its "
        "file with the tool `read`, and go by it; paths in it are relative to that file.\n\n"
    )
    return head + "\n".join(lines)


def _sorted(folder: Path) -> Iterator[Path]:
    """Yield what is in a folder, by name; nothing if it cannot be read."""
    try:
        yield from islice(sorted(folder.iterdir()), MOST)
    except OSError:
        return


def _read(file: Path, root: Path) -> tuple[dict[str, str], str]:
    """Read a file's head, the lines between `---`, and its text; both empty if it cannot be read."""
    try:
        text, _ = read_within(file, root, LARGEST)
    except (OSError, ToolError):
        return {}, ""
    first, _, rest = text.partition("\n")
    if first.strip() != "---" or "\n---" not in f"\n{rest}":
        return {}, text
    head, _, body = f"\n{rest}".partition("\n---")
    fields = (_FIELD.match(line) for line in head.splitlines())
    found = {field[1].lower(): field[2].strip().strip("\"'") for field in fields if field}
    return found, body.partition("\n")[2].strip()
