"""The keys of the chat, in one place: the bindings, `?` and the docs are made from this."""

from __future__ import annotations

from dataclasses import dataclass

from .look import Look

__all__ = ["KEYS", "Key", "keys_text"]


@dataclass(frozen=True, slots=True)
class Key:
    """A key: as people write it, as prompt_toolkit binds it, what it does, the method that does it.

    Without an action it is one of the editor's own, named here because people look for it.
    """

    name: str
    bound: tuple[tuple[str, ...], ...]
    what: str
    action: str = ""


KEYS = (
    Key("Enter", (("enter",),), "send; during a turn, as `/busy` says", "send"),
    Key("Tab", (("tab",),), "put it into the queue; with a menu open, take its entry", "queue"),
    Key("Alt-Enter", (("escape", "enter"),), "steer: the running turn takes it in", "steer"),
    Key("Esc", (("escape",),), "stop the turn; first close a menu, or give back an edit", "escape"),
    Key("Ctrl-C", (("c-c",),), "clear the line; else stop the turn; else leave", "control_c"),
    Key("Ctrl-D", (("c-d",),), "leave, on an empty line; everything is saved", "control_d"),
    Key("Up", (("up",),), "edit the last message that waits; else what was typed before", "up"),
    Key("Down", (("down",),), "the next one again", "down"),
    Key("Ctrl-J", (("c-j",),), "a new line; so does a backslash before Enter", "newline"),
    Key("Ctrl-R", (), "search what was typed before"),
    Key("Ctrl-X Ctrl-E", (), "write in your editor ($VISUAL, $EDITOR)"),
    Key("Ctrl-O", (("c-o",),), "unfold the last tool call; again, the one before", "unfold"),
    Key("Ctrl-L", (("c-l",),), "clear the screen", "clear"),
    Key("Ctrl-Z", (("c-z",),), "suspend; `fg` brings it back", "suspend"),
    Key("Right", (("right",),), "with a menu open, take its entry", "right"),
    Key("y, a, n", (), "and Enter: answer the question that is open"),
    Key("?", (("?",),), "on an empty line: these keys", "help"),
)


def keys_text(look: Look, width: int) -> str:
    """Return the table for a terminal."""
    broad = max(len(one.name) for one in KEYS)
    rows = [f"{one.name:<{broad}}  {one.what}" for one in KEYS]
    if width < 60:
        rows = [f"{one.name}: {one.what}" for one in KEYS]
    begins = "/ commands   @ files, subagents   # the queue   \\ at the end: a new line"
    return look.plain("\n".join([*rows, begins]))
