"""Names that people give to what they declare."""

import re
from typing import Annotated

from pydantic import AfterValidator

__all__ = ["UserName"]


def _check_name(name: str) -> str:
    if re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", name):
        return name
    raise ValueError("is not a name: use letters, digits, `_`, `-` and `.`, at most 64 characters")


UserName = Annotated[str, AfterValidator(_check_name)]
