"""What a small model does by a command or a script: look into data, make something of it, move a file."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from posixpath import dirname

from ...machines.pattern import lazy_pattern
from ..tools.survey import DATA, TABLES
from .failure_text import has_failed, tail_of
from .imports import with_imports
from .said_files import SAMPLE, commands_in, is_code, scripts_in
from .tables import beginning, ending, ragged, with_beginning
from .turn_view import TurnView

_TEXTS = (".json", ".txt", ".md", ".toml", ".yaml", ".yml", ".xml", ".html", ".ini", ".sql")
_SCRIPT = (
    "To look into {names}, or to make something of all its lines, print one short Python script"
    "{imports} in a ```python block, which is run in the folder, and nothing else.\n\n"
)
_WRITES = lazy_pattern(r"['\"]w\+?['\"]|\.write")
_MOVE = (
    "To move or remove a file, print first the one command for it (such as `mv old.txt new.txt`) in a "
    "```sh block, and nothing else.\n\n"
)


class ScriptWork:
    """The part of a turn that commands and scripts do."""

    def __init__(self, view: TurnView) -> None:
        self.view = view

    @property
    def hint(self) -> str:
        """Say what a script or a command is for: data, files that are shown in part, or to move one."""
        view = self.view
        if view.names:
            return ""
        if not view.rounds and view.request.moves:
            return _MOVE
        data = self._data()
        is_whole = all(view.files[path] is not None for path in data)
        results = [result for each in view.rounds for _, result in each.pairs]
        is_in_vain = bool(results) and all(map(has_failed, results))
        if not data or (view.request.is_question and is_whole and is_in_vain):
            return ""  # what is shown whole is answered of what it shows
        names = " and ".join(f"`{path}`" for path in data[:3])
        part = f"Only a part of {names} is shown. " if view.files[data[0]] is None else ""
        is_table = view.request.is_question and all(path.endswith(TABLES) for path in data)
        imports = ", which begins with `import csv`," if is_table else ""
        begins = f"It begins with\n\n{code}\n" if (code := self._beginning(data)) else ""
        new = " and ".join(f"`{name}`" for name in self._new_texts())
        by_hand = new.endswith(".csv`") and not all(path.endswith(TABLES) for path in data)
        how = " with csv.writer" if by_hand else ""
        makes = f"It makes {new}{how}.\n\n" if new and not view.request.is_question else ""
        ends = f"It ends with\n\n{code}\n" if (code := self._ending(data)) else ""
        return f"{part}{_SCRIPT.format(names=names, imports=imports)}{makes}{begins}{ends}"

    def command(self, text: str) -> str:
        """Return the command of an answer, or one that runs its script; empty if it has none."""
        view = self.view
        command = next(iter(commands_in(text)), "")
        if self.hint == _MOVE and view.move:
            folder, new = dirname(view.move[1]), shlex.join(view.move)
            makes = f"mkdir -p {shlex.quote(folder)} && " if folder else ""
            return f"{makes}mv {new}"
        if self.hint == _MOVE:
            return command
        scripts = [body for path, body in scripts_in(text) if path not in view.files]
        scripts = [body for body in scripts if body.strip() != SAMPLE]
        if any(n.endswith(".py") and n not in view.files for n in view.request.paths):
            return "" if scripts else command  # the script is what was asked for
        if not scripts:
            return command
        data = self._data()
        script = with_beginning(scripts[-1].rstrip(), self._beginning(data))
        if (ends := self._ending(data)) and not _WRITES.search(script):
            script = f"{script}\n{ends}"
        return f"python3 - <<'END'\n{with_imports(script).rstrip()}\nEND"

    def missing(self) -> list[str]:
        """Return the files that the request names and the folder has not, if it wants something new."""
        view, request = self.view, self.view.request
        there = [f"/{path}" for path in (*view.files, *view.before)]
        names = request.new_names
        missing = [name for name in names if not any(path.endswith(f"/{name}") for path in there)]
        wants_new = request.makes or "new file" in request.text.lower()
        wants_new = wants_new or any(is_code(name) for name in missing)
        return missing if wants_new and not view.has_others else []

    def owed(self) -> str:
        """Say what the last command has left undone; empty if nothing."""
        view = self.view
        if missing := self.missing():
            return f"There is no {' or '.join(f'`{name}`' for name in missing)} yet."
        for path in self._made:
            if path.endswith(TABLES) and (fault := ragged(view.files[path] or "")):
                return f"In `{path}` {fault}: write it with csv.writer."
        has_printed = any(tail_of(result) for _, result in view.rounds[-1].pairs)
        is_same = view.shown == view.first_shown
        nothing = "Nothing was changed yet." if has_printed else "It printed nothing."
        return nothing if is_same else ""

    def _data(self) -> list[str]:
        """Return the files that a script is to look into: those shown in part, else those with data."""
        view, request = self.view, self.view.request
        named = [path for path in view.files if path.rpartition("/")[2] in request.text]
        named = [path for path in named if path not in self._made] or named
        tables = [path for path in view.files if path.endswith(TABLES)]
        if not (named or request.is_question) and request.is_computed and len(tables) == 1:
            named = tables
        if parts := [path for path in named if view.files[path] is None]:
            return parts
        if any(is_code(name) and not name.endswith(_TEXTS) for name in request.paths):
            return []
        kinds: tuple[str, ...] = DATA
        if request.is_question:
            kinds = (*DATA, ".json") if request.is_computed else TABLES
        elif request.is_chore or request.is_in_place or self._new_texts():
            kinds = (*DATA, ".json", ".txt")
        is_known = (*DATA, *_TEXTS)
        is_other = request.is_chore and not request.is_question
        return [
            path
            for path in named
            if path.endswith(kinds) or (is_other and not (path.endswith(is_known) or is_code(path)))
        ]

    @property
    def _made(self) -> set[str]:
        """The files that were not there at the beginning."""
        return self.view.files.keys() - self.view.before.keys()

    def _new_texts(self) -> list[str]:
        """Return the texts that the request names and the folder has not."""
        new = [name for name in self.view.request.paths if name not in self.view.files]
        return [name for name in new if name.endswith((*DATA, *_TEXTS))]

    def _ending(self, paths: Sequence[str]) -> str:
        """Return the last lines of a script that takes something out of the one table."""
        is_one = len(paths) == 1 and self.view.request.is_in_place and not self._new_texts()
        text = self.view.files[paths[0]] if is_one and self._beginning(paths) else None
        return ending(paths[0], text) if text else ""

    def _beginning(self, paths: Sequence[str]) -> str:
        """Return the first lines of a script that makes something of tables: each is read as a whole."""
        is_made = not self.view.request.is_question
        if not is_made or not paths or not all(path.endswith(TABLES) for path in paths):
            return ""
        return beginning({path: self.view.files[path] or "" for path in paths})
