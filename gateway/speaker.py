"""Who speaks to a session now, and with what rights."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from contextvars import ContextVar

from msgspec.structs import replace

from ..machines import protocol as m
from ..machines.people import FromPerson
from ..machines.value import Value


class Speaker(Value):
    """Who speaks: `may` are their rights, none for a person who may do everything.

    `editor` is the client in which they do, for the messages that are edited there.
    """

    user: str = ""
    may: tuple[str, ...] | None = None
    editor: str = ""

    def signed(self, message: m.Message) -> m.Message:
        """Add their name where a message takes one, and their rights unless they may do all."""
        if self.user and getattr(message, "user", None) == "":
            message = replace(message, user=self.user)
        if self.may is None:
            return message
        return FromPerson(message=message, user=self.user, may=self.may)


_ANYBODY = Speaker()
_SPEAKER = ContextVar("speaker", default=_ANYBODY)


def speaker() -> Speaker:
    """Return who speaks now: the sender of the command that is carried out, in this thread."""
    return _SPEAKER.get()


@contextmanager
def spoken_by(user: str, may: tuple[str, ...] | None = None, editor: str = "") -> Generator[None]:
    """Let what is done within be the word of this user; empty: of who speaks already.

    `may` are the user's rights; none: those that hold already, at first everything. `editor` is their
    client; empty: the one that holds already.
    """
    before = _SPEAKER.get()
    rights = before.may if may is None else may
    speaks = Speaker(user=user or before.user, may=rights, editor=editor or before.editor)
    token = _SPEAKER.set(speaks)
    try:
        yield
    finally:
        _SPEAKER.reset(token)
