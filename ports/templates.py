"""Prompt templates and skills: Markdown files of the person, and of a project that is trusted.

A template is `prompts/NAME.md`: `/NAME ARGUMENTS` sends its text. A skill is `skills/NAME/SKILL.md`: the
system prompt has its name and description, and the model reads the file when a task calls for it. Both
are in the folder of the configuration, and in `.steersman` of the project, whose files come first. A file
may begin with fields between `---`: those of https://agentskills.io/specification. Blocks: not for the
actors' loop.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

from ..machines.errors import ToolError
from ..machines.pattern import lazy_pattern
from ..machines.value import Value
from ..workflows.tools import REMOTE, TOOLS
from .instructions import read_within
from .tools.permission import Rule

LARGEST = 64 * 1024
"""Bytes of one file."""
MOST = 100
"""Files of one folder."""
_LISTED = 1024  # characters of a description
_NEEDS = 500  # characters of what a skill needs
_NAME = lazy_pattern(r"[A-Za-z][A-Za-z-]{0,39}\Z")
_PLACE = lazy_pattern(r"\$(?:ARGUMENTS|[1-9])")
_FIELD = lazy_pattern(r"([A-Za-z_-]+):[ \t]*(?:[>|][+-]?\s*$)?(.*)")
_ALLOWED = lazy_pattern(r"([^\s,()\[\]\"']+)(?:\(([^()]*)\))?")
_TOOLS = {
    "Bash": "shell",
    "Edit": "edit",
    "Glob": "list",
    "Grep": "search",
    "LS": "list",
    "MultiEdit": "edit",
    "Read": "read",
    "WebFetch": "fetch",
    "Write": "write",
}
"""The tools that skills name, as they are called here; other names stay."""


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
    """Instructions for one kind of task, in a file that the model reads when it needs them.

    `needs` is what its author says of the environment, `rules` what it allows in a turn that has read it.
    """

    name: str
    description: str
    file: Path
    needs: str = ""
    rules: tuple[Rule, ...] = ()


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


def skills_in(folders: list[Path]) -> tuple[Skill, ...]:
    """Read what the skills say of themselves; those without a description are left out."""
    found: dict[str, Skill] = {}
    for folder in folders:
        for place in _sorted(folder / "skills"):
            file = place / "SKILL.md"
            head, _ = _read(file, folder)
            name = head.get("name", "") or place.name
            if about := head.get("description", ""):
                skill = Skill(
                    name=name,
                    description=about[:_LISTED],
                    file=file,
                    needs=head.get("compatibility", "")[:_NEEDS],
                    rules=_rules(head.get("allowed-tools", ""), f"skill {name}"),
                )
                found.setdefault(name, skill)
    return tuple(found.values())


def skill_faults(folders: Sequence[Path]) -> Iterator[str]:
    """Say which skills are left out, and why."""
    for folder in folders:
        for place in _sorted(folder / "skills"):
            file = place / "SKILL.md"
            if not file.exists():
                yield f"{place} has no SKILL.md"
            elif not _read(file, folder)[0].get("description", ""):
                yield f"{file} has no `description` in its head, or cannot be read"


def _rules(allowed: str, source: str) -> tuple[Rule, ...]:
    """Read the tools that a skill allows: `Read Bash(git:*)`, separated by blanks or commas.

    Only single tools: neither a pattern of names nor the way out of the sandbox.
    """
    pairs = [(_TOOLS.get(found[1], found[1]), found[2]) for found in _ALLOWED.finditer(allowed)]
    return tuple(
        Rule(tool, (match or "*").replace(":*", " *"), "allow", source)
        for tool, match in pairs
        if tool in TOOLS.built_in or (tool.startswith(REMOTE) and not set("*?[") & {*tool})
    )


def skills_text(skills: Sequence[Skill], folder: Path) -> str:
    """Return what the system prompt says of the skills; empty for none. `folder` is the session's."""
    if not skills:
        return ""
    lines = list[str]()
    for skill in skills:
        is_here = skill.file.is_relative_to(folder)
        file = os.path.relpath(skill.file, folder) if is_here else skill.file
        needs = f" Needs: {skill.needs}" if skill.needs else ""
        lines.append(f"- {skill.name}: {skill.description}{needs} ({file})")
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
    return _fields(head), body.partition("\n")[2].strip()


def _fields(head: str) -> dict[str, str]:
    """Read the fields of a head: the part of YAML that such files use; lines of one become a line."""
    found: dict[str, list[str]] = {}
    name = ""
    for line in head.splitlines():
        if field := _FIELD.match(line):
            name = field[1].lower()
            found[name] = [field[2].strip()]
        elif name and line.strip():
            found[name].append(line.strip().removeprefix("- "))
    return {name: " ".join(filter(None, lines)).strip("\"'") for name, lines in found.items()}
