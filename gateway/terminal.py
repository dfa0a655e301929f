"""Makes text from models, tools and queues safe to print: removes escape sequences."""

import re

_SEQUENCE = re.compile(
    r"\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?"  # OSC, to its end
    r"|\x1b[PX^_][^\x1b]*(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b\[[0-?]*[ -/]*[@-~]?"  # CSI
    r"|\x1b[ -/]*[0-~]?"  # other escapes
    r"|[\x80-\x9f]"  # C1 controls
    r"|[\x00-\x08\x0b-\x1f\x7f]"  # C0 controls but tab and newline
)


def clean(text: str) -> str:
    """Remove escape sequences and control characters (ECMA-48); tabs and newlines stay."""
    return _SEQUENCE.sub("", text)
