"""Makes text from models, tools and queues safe to print: escape sequences removed, or visible."""

import re
from itertools import zip_longest

_SEQUENCE = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, to its end
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI
    r"|\x1b[ -/]*[0-~]?"  # other escapes
    r"|[\x80-\x9f]"  # C1 controls
    r"|[\x00-\x08\x0b-\x1f\x7f]"  # C0 controls but tab and newline
    r"|[\u180e\u200b\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"  # no width, directions
    r"|[\U000e0000-\U000e007f]"  # tags
)
_JOINERS = "\xad\u200c\u200d\u200e\u200f"
_OWN_COLOUR = re.compile(r"\x1b\[(?:[0-47]|[39][1-6]|90)m")

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad"  # controls but tab and newline, soft hyphen
    "\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"  # no width, directions
    "\U000e0000-\U000e007f]"  # tags
)


def exposed(text: str) -> str:
    """Replace each character that a terminal obeys or hides by a readable escape; tabs, newlines stay.

    For what a person consents to: nothing of it may be removed.
    """
    return _INVISIBLE.sub(_escaped, text)


def audited(text: str) -> str:
    """Like `exposed`, but for what joins letters and emoji: for records that people read."""
    return _INVISIBLE.sub(lambda found: found[0] if found[0] in _JOINERS else _escaped(found), text)


def _escaped(found: re.Match[str]) -> str:
    code = ord(found[0])
    if code > 0xFFFF:
        return f"\\U{code:08x}"
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def clean(text: str) -> str:
    """Remove escape sequences, controls (ECMA-48), and characters that hide or turn text.

    Tabs and newlines stay, and what words and emoji are joined by (ZWJ, ZWNJ, LRM, RLM).
    """
    return _SEQUENCE.sub("", text)


def removed(text: str) -> str:
    """Return what `clean` removes from a text, readable."""
    return exposed("".join(_SEQUENCE.findall(text)))


def clean_but_colours(text: str) -> str:
    """Clean a text, but for the colours that this program itself puts around its words."""
    found = _OWN_COLOUR.findall(text)
    if not found:
        return clean(text)
    between = map(clean, _OWN_COLOUR.split(text))
    return "".join(piece for pair in zip_longest(between, found, fillvalue="") for piece in pair)
