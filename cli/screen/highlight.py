"""Colours for code, by Pygments, a few lines at a time as they stream.

The library and each language's lexer are loaded in a thread of their own, so that nothing waits for
them: what comes before they are there has one colour. A line is read with some lines before it, which
bounds the work for a line and is right for all but long comments and strings.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .appearance import CODE, Piece

if TYPE_CHECKING:
    from pygments.lexer import Lexer

LANGUAGES = frozenset(
    "bash c c++ cpp cs csharp css diff docker dockerfile go html http ini java javascript js json "
    "jsx kotlin lua make makefile markdown md nix php powershell py python rb rs ruby rust scala scss "
    "sh shell sql swift toml ts tsx typescript xml yaml yml zsh".split()
)
"""Names behind a fence that are highlighted; lexers that are widely used, since a lexer can be slow."""
USUAL = ("python", "bash", "json")
CONTEXT = 30
"""Lines before a line that are read again for it."""
LONGEST_LINE = 500
"""Characters of a line that is highlighted, in a block without longer ones before it."""

_STYLES = {
    "Comment": "dim italic",
    "Keyword": "ansimagenta",
    "Name.Builtin": "ansicyan",
    "Name.Class": "ansiblue",
    "Name.Decorator": "ansicyan",
    "Name.Function": "ansiblue",
    "Name.Tag": "ansiblue",
    "Name.Attribute": "ansicyan",
    "Literal.String": "ansigreen",
    "Literal.Number": "ansiyellow",
    "Generic.Deleted": "ansired",
    "Generic.Inserted": "ansigreen",
    "Generic.Heading": "bold",
    "Generic.Subheading": "ansicyan",
}
"""Styles by the beginning of a token's type, in the terminal's own colours."""


class _Loader:
    """Loads lexers in threads; one for the program."""

    def __init__(self) -> None:
        self._lexers: dict[str, Lexer | None] = {}
        self._threads: dict[str, threading.Thread] = {}

    def lexer(self, language: str) -> Lexer | None:
        """Return a language's lexer, or begin to load it; none while it is not there."""
        if language not in self._lexers and language not in self._threads:
            thread = threading.Thread(target=self._load, args=(language,), daemon=True)
            self._threads[language] = thread
            thread.start()
        return self._lexers.get(language)

    def prepare(self) -> None:
        """Begin to load the languages that models write most, before the first code comes."""
        for language in USUAL:
            self.lexer(language)

    def wait(self, language: str) -> None:
        """Wait until a language is loaded."""
        self.lexer(language)
        self._threads[language].join()

    def _load(self, language: str) -> None:
        from pygments.lexers import (
            get_lexer_by_name,  # pyright: ignore[reportUnknownVariableType]
        )
        from pygments.util import ClassNotFound

        try:
            lexer: Lexer = get_lexer_by_name(language)
        except ClassNotFound:  # a name that this version of the library does not have
            self._lexers[language] = None
            return
        list(lexer.get_tokens_unprocessed("x = 1\n"))  # it prepares itself at the first use
        self._lexers[language] = lexer


LOADER = _Loader()


class Highlighter:
    """Colours the lines of one code block, in order."""

    def __init__(self, language: str) -> None:
        self._language = language.lower() if language.lower() in LANGUAGES else ""
        self._context: list[str] = []
        if self._language:
            LOADER.lexer(self._language)

    def take(self, lines: Sequence[str]) -> list[list[Piece]]:
        """Return the pieces of complete lines; the next lines follow them."""
        pieces = self._read([*self._context, *lines])[len(self._context) :]
        self._context = [*self._context, *lines][-CONTEXT:]
        return pieces

    def show(self, line: str) -> list[Piece]:
        """Return the pieces of a line that may still grow."""
        return self._read([line])[0]

    def _read(self, lines: Sequence[str]) -> list[list[Piece]]:
        lexer = LOADER.lexer(self._language) if self._language else None
        if any(len(line) > LONGEST_LINE for line in lines):
            lexer = None
        plain: list[list[Piece]] = [[(CODE, line)] if line else [] for line in lines]
        if lexer is None:
            return plain
        read: list[list[Piece]] = [[]]
        for _, token, text in lexer.get_tokens_unprocessed("\n".join(lines) + "\n"):
            # The style of the token's type, or of the nearest type above it.
            types = (".".join(token[:length]) for length in range(len(token), 0, -1))
            style = next((_STYLES[name] for name in types if name in _STYLES), "")
            first, *others = text.split("\n")
            read[-1].append((style, first))
            read += [[(style, other)] for other in others]
        shown = [[piece for piece in line if piece[1]] for line in read[: len(lines)]]
        is_whole = ["".join(text for _, text in line) for line in shown] == list(lines)
        return shown if is_whole else plain
