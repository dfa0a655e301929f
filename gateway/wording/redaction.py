"""Removes secrets from everything that is shown of a session, and makes terminal escapes visible.

A secret is a text that looks like a key of a well-known kind, the value of an environment variable with
a telling name, such as `API_KEY`, or the password of an address in any variable (`DATABASE_URL`), unless
it is just the user's name. Each secret becomes `…`. Texts are redacted whole, before they are cut, since
a part of a secret is not recognized.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard
from urllib.parse import unquote

from msgspec.structs import replace

from ...machines.pattern import lazy_pattern
from ...workflows.document import is_table
from ...workflows.paths import Paths
from ...workflows.trust import key_variables
from .secret_kind import COVER, covered, is_field
from .terminal import audited, clean, removed

if TYPE_CHECKING:
    from ...journal.store import StoredEntry

_NAME = r"[A-Z0-9_]*(?:API_?KEY|ACCESS_KEY|TOKEN|SECRET|PASSWORD|PASSWD|PASSPHRASE|_PASS|_PWD)"
_VARIABLE = lazy_pattern(_NAME, re.IGNORECASE)
_DEEPEST = 100
"""Tables and lists inside each other that are shown: what draws them needs some stack for each."""
_SHORTEST = 6  # characters; a shorter value would blank ordinary words
_LOGIN = lazy_pattern(r"://([^\s/@:]*):([^\s/]+)@")


class Redactor:
    """Redacts texts and data; `environ` is searched once for secret values.

    `names` are further variables whose values are secret.
    """

    def __init__(self, environ: Mapping[str, str], names: Collection[str] = ()) -> None:
        values = {
            value for name, value in environ.items() if name in names or _VARIABLE.fullmatch(name)
        }
        for user, password in _LOGIN.findall("\n".join(environ.values())):
            values |= {password, unquote(password)} - {user}
        longest_first = sorted(
            (value for value in values if len(value) >= _SHORTEST), key=len, reverse=True
        )
        self._values = longest_first

    def text(self, text: str) -> str:
        """Return a text that is safe to print and to share; newlines and tabs stay."""
        if len(text) < _SHORTEST and text.isalnum() and text.isascii():
            return text
        if text.isascii() and text.isprintable():  # as most are: nothing in it acts or hides
            return self._covered(text)
        text = text.encode("utf-8", "replace").decode()
        shown, bare = audited(text), clean(text)
        shown = self._covered(shown)
        if shown != bare and (joined := self._covered(bare)).count(COVER) > shown.count(COVER):
            # a secret was taken apart by what a terminal does not show, which must not vanish either
            return f"{joined} [removed from it: {self._covered(removed(text))}]"
        return shown

    def _covered(self, text: str) -> str:
        for value in self._values:
            text = text.replace(value, COVER)
        return covered(text)

    def line(self, text: str) -> str:
        """Return a text as one line."""
        return " ".join(self.text(text).split())

    def data(self, value: Any, depth: int = 0) -> Any:
        """Return data that JSON can hold, with redacted texts and keys, down to a certain depth."""
        if isinstance(value, str):
            return self.text(value)
        if is_table(value) or _is_sequence(value):
            if depth == _DEEPEST:
                return f"{COVER} nested too deeply to be shown"
            if is_table(value):
                return {
                    self.text(key): COVER
                    if isinstance(item, str) and item and is_field(key)
                    else self.data(item, depth + 1)
                    for key, item in value.items()
                }
            return [self.data(item, depth + 1) for item in value]
        if isinstance(value, float) and not math.isfinite(value):
            return str(value)
        return value

    def entry(self, stored: StoredEntry) -> StoredEntry:
        """Return a journal entry with redacted data, which can be decoded as before."""
        return replace(stored, data=self.data(stored.data))


def redactor_of(environ: Mapping[str, str], folder: str = "") -> Redactor:
    """Return a redactor that knows the keys of the models that are configured for a folder.

    Without one, it is the current folder. A configuration that cannot be used is no obstacle.
    """
    here = Path(folder or os.curdir).absolute()
    return Redactor(environ, key_variables(Paths.of(environ), here, environ))


def _is_sequence(value: object) -> TypeGuard[Sequence[Any]]:
    return isinstance(value, list | tuple)
