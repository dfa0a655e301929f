"""A name that a person gives never means a file of the current folder: only a path does."""

import os
import re
import shlex
import typing
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.echo import walk

NAMES = {"[FILE]", "FILE", "NAME|FILE", "TABLE|FILE", "NAME", "TABLE", "A", "B", "AGENT", "RUN"}
NAMES |= {"CLUSTER", "NODE"}
"""What names a thing of the program or of its configuration, or else is a path."""
OTHERS = {
    *("ID", "[ID]", "N|ID", "ITEM", "SESSION", "TURN", "[TURN|OTHER]"),  # of the home's sessions
    *("SEQ|TIME", "A B", "MESSAGE", "last|undo [PATH]", "@NAME", "QUESTION"),  # inside a session
    "[restore ID|empty]",  # of the trash
    "[TOPIC]",  # a page
    "[WHAT]",  # a path of the configuration
    *("TEXT", "COMMAND", "URL", "CHOICES", "NAME=VALUE", "Q=CHOICE", "TIME"),  # taken as it is
    *("PATTERN", "WHAT MATTERS", "allow|always|deny|change|ANSWER"),
    "PATTERN|REASON|JSON",
    *("FORMAT", "WAY", "MODE", "STATE", "CAUSE", "EVENT", "KIND", "S", "X", "SCOPE"),  # of a list
    *("TOOL", "TOOL|off", "ask|edits|plan|all", "interrupt|steer|queue", "more"),
}
APART = {  # their words are no names that are looked up
    "acp": "an editor's session looks them up, as `chat` does",
    "hooks emit": "it is answered before the command line is read",
    "devices pair": "it makes the name",
    "sessions import": "it is a path, or with `--from` a transcript's",
    "workflow new": "it makes the name; `--from` is among `KNOWN`",
}
BAIT = "bait"
WORKFLOW = '[workflow]\nname = "job"\n[[step]]\nid = "a"\nrun = ["echo", "bait"]\n'
TABLE = '[[route]]\nname = "bait"\nevent = "bait"\n'


def words() -> Iterator[tuple[str, str, str, bool]]:
    """Give the words of the command line: command, option or nothing, metavar, whether it is needed."""
    for name, command in walk():
        hints = typing.get_type_hints(command.callback, include_extras=True)
        for parameter, hint in hints.items():
            for info in getattr(hint, "__metadata__", ()):
                if info.metavar and "str" in str(hint.__origin__):
                    option, *_ = getattr(info, "param_decls", None) or [f"--{parameter}"]
                    is_place = type(info).__name__ == "ArgumentInfo"
                    yield name, "" if is_place else option.replace("_", "-"), info.metavar, is_place


WORDS = list(words())


def lines() -> Iterator[str]:
    """Give a command line for each name, with the bait in its place and in each that is needed."""
    for name, option, metavar, is_place in WORDS:
        if metavar in NAMES and name not in APART:
            places = [BAIT for other, _, _, needed in WORDS if other == name and needed]
            yield shlex.join([*name.split(), *places, *([] if is_place else [option, BAIT])])


def test_every_word_is_of_a_kind() -> None:
    """A new kind of word has to be said to be a name or not."""
    assert {metavar for _, _, metavar, _ in WORDS} == NAMES | OTHERS


def lay(folder: Path, word: str, text: str) -> None:
    """Put files in a folder that a search for a name might find, in the folder and beside programs."""
    for place in (folder, folder / ".steersman" / "workflows"):
        place.mkdir(parents=True, exist_ok=True)
        (place / word).write_text(text)
    (folder / ".steersman" / "workflows" / f"{word}.toml").write_text(text)


@pytest.fixture(autouse=True)
def no_input(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Let a command that reads its input find the end of it."""
    with open(os.devnull) as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        yield


@pytest.mark.parametrize("line", sorted(set(lines())))
@pytest.mark.parametrize("text", [WORKFLOW, TABLE], ids=["workflow", "table"])
def test_a_file_of_that_name_changes_nothing(
    command: Any, folder: Path, line: str, text: str
) -> None:
    """A name that nothing has is as unknown where a file has it."""
    before = command(*shlex.split(line))
    assert before.code, "a command that does not look for its name"
    lay(folder, BAIT, text)
    after = command(*shlex.split(line))
    assert (after.code, after.out) == (before.code, before.out)
    # of a workflow that has a path alone
    said = f"`.steersman/workflows/{BAIT}.toml`, which is not trusted: `steersman trust`"
    assert after.err.replace(said, f"`./{BAIT}`") == before.err


def without_time(text: str) -> str:
    """Leave out how long a simulation took."""
    return re.sub(r"in \d+\.\d s", "", text)


KNOWN = [
    *(("workflow check {}", name) for name in ("review", "codemod", "research", "fix-tests")),
    *(("workflow new mine --from {}", name) for name in ("review",)),
    *(("routes show {}", name) for name in ("steersman", "never-cancel")),
    ("routes check {}", "never-cancel"),
    ("simulate {} --seeds 1", "review"),
    ("simulate {} --seeds 1", "steersman"),
    ("machines show {}", "queue"),
]


@pytest.mark.parametrize(("line", "name"), KNOWN)
def test_a_known_name_stays_what_it_is(command: Any, folder: Path, line: str, name: str) -> None:
    """A file of that name is reached by its path alone."""
    line = line.format(name)
    before = command(*shlex.split(line))
    (folder / "mine.toml").unlink(missing_ok=True)
    lay(folder, name, WORKFLOW)
    after = command(*shlex.split(line))
    assert (after.code, without_time(after.out)) == (before.code, without_time(before.out))
