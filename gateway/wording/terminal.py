"""Makes text from models, tools, files and people safe to print: nothing in it acts on the terminal.

Answers of models and outputs of tools are `clean`: without their codes, which colour and move. All
other text is `audited`: what acts or hides is shown as an escape that can be read. Every writer to a
terminal does that last, so that a text which was not looked at loses nothing either.
"""

import re
from itertools import zip_longest

from ...machines.pattern import lazy_pattern

_SEQUENCE = lazy_pattern(
    r"\x1b\][^\x00-\x1f\x7f-\x9f]*(?:\x07|\x1b\\)"  # OSC
    r"|\x1b[PX^_][^\x00-\x1f\x7f-\x9f]*\x1b\\"  # DCS, SOS, PM, APC
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI
    r"|\x1b[ -/]*[0-~]?"  # other escapes, and the begin of a string that has no end on its line
    r"|[\x80-\x9f]"  # C1 controls
    r"|[\x00-\x08\x0b-\x1f\x7f]"  # C0 controls but tab and newline
    r"|[\u180e\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"  # no width, directions
    r"|[\U000e0000-\U000e007f]"  # tags
)
_OWN_COLOUR = lazy_pattern(r"\x1b\[(?:[0-47]|[39][1-6]|90)m")

HIDDEN = (
    "\u061c\u180e\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # no width, directions
    "\U000e0000-\U000e007f"  # tags
)
"""Characters that hide or turn text, as a part of a set in a regular expression."""
_ACTING = f"\x00-\x08\x0b-\x1f\x7f-\x9f{HIDDEN}"  # and controls but tab and newline
_JOINING = (  # what words, emoji and their variants are joined by; also blank letters
    "\xad\u034f\u115f\u1160\u200c-\u200f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
)
_AUDITED = lazy_pattern(f"[{_ACTING}]")
_EXPOSED = lazy_pattern(f"[{_ACTING}{_JOINING}]")


def exposed(text: str) -> str:
    """Replace each character that a terminal obeys or hides by a readable escape; tabs, newlines stay.

    For what a person consents to: nothing of it may be removed.
    """
    return _EXPOSED.sub(_escaped, text)


def audited(text: str) -> str:
    """Like `exposed`, but for what joins letters and emoji: for all other text that people read."""
    return _AUDITED.sub(_escaped, text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def clean(text: str) -> str:
    """Remove escape sequences, controls (ECMA-48), and characters that hide or turn text.

    Tabs and newlines stay, and what words and emoji are joined by (ZWJ, ZWNJ, LRM, RLM). Of a string
    sequence that does not end on its line only the controls are removed, so that no text behind it is.
    """
    return _SEQUENCE.sub("", text)


def removed(text: str) -> str:
    """Return what `clean` removes from a text, readable."""
    return exposed("".join(_SEQUENCE.findall(text)))


def audited_but_colours(text: str) -> str:
    """Audit a text that this program has coloured, but for its own colours.

    What comes from outside has to be audited before it is coloured, or its colours stay as well.
    """
    found = _OWN_COLOUR.findall(text)
    between = map(audited, _OWN_COLOUR.split(text))
    return "".join(piece for pair in zip_longest(between, found, fillvalue="") for piece in pair)
