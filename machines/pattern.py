"""Regular expressions that are compiled at their first use.

There are many of them, compiling them is slow, and a start of the program uses few.
"""

import re
from typing import Any, cast


def lazy_pattern(text: str, flags: int = 0) -> re.Pattern[str]:
    """Return what can be used as `re.compile(text, flags)`; a mistake in `text` shows when it is used."""
    return cast("re.Pattern[str]", _Pattern(text, flags))


class _Pattern:
    def __init__(self, text: str, flags: int) -> None:
        self.pattern = text
        self.flags = flags

    def __getattr__(self, name: str) -> Any:
        found = getattr(re.compile(self.pattern, self.flags), name)
        setattr(self, name, found)  # so that it is not looked up again
        return found
