"""The base of value classes: immutable, compared by their fields, built by keyword.

Creating a class of this kind takes a fiftieth of what a slotted dataclass takes, and there are
hundreds of them. Arguments are given by name, so that two of them cannot be swapped unnoticed.
Source: msgspec's structs, https://jcristharif.com/msgspec/structs.html
"""

from typing import Any, dataclass_transform

from msgspec import Struct, StructMeta, field


class KeywordOnly(StructMeta):
    """Creates struct classes whose constructors take their arguments by name."""

    def __new__(mcls, *parts: Any, kw_only: bool = True, **options: Any) -> Any:
        """Create a class; `kw_only=False` for one that takes its arguments by position, too."""
        return super().__new__(mcls, *parts, kw_only=kw_only, **options)


@dataclass_transform(frozen_default=True, kw_only_default=True, field_specifiers=(field,))
class Value(Struct, metaclass=KeywordOnly, frozen=True):
    """Base of immutable value classes; their constructors take arguments by name."""
