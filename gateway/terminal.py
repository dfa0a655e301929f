"""Text from models, tools and queues, made safe to print: no escape sequence gets through raw."""

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
    """Take out escape sequences and control characters; tabs and newlines stay (ECMA-48)."""
    return _SEQUENCE.sub("", text)
