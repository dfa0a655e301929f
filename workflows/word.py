"""Words of the routing tables as keys of a file take them: one, or one or more, each a known one.

What is known comes from the tables themselves, so that it is written down once.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import (
    AfterValidator,
    Field,
    GetCoreSchemaHandler,
    GetJsonSchemaHandler,
    WrapValidator,
)

from .fault import UnknownWord

__all__ = ["OneOf", "OneOrMany"]


@dataclass(frozen=True)
class OneOf:
    """Annotates a text that is one of the known words; `prefix` begins words that anybody makes."""

    known: tuple[str, ...]
    prefix: str = ""

    def check(self, word: str) -> str:
        """Return the word. Raises what becomes a fault that names the nearest one."""
        if word in self.known or (self.prefix and word.startswith(self.prefix)):
            return word
        raise UnknownWord(word, self.known)

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        return handler.generate_schema(Annotated[str, AfterValidator(self.check)])

    def __get_pydantic_json_schema__(
        self, schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        return {"type": "string"} if self.prefix else {"type": "string", "enum": list(self.known)}


@dataclass(frozen=True)
class OneOrMany(OneOf):
    """Annotates a tuple of known words; a single word may stand without brackets."""

    def take(self, value: Any, take_list: Callable[[Any], tuple[str, ...]]) -> tuple[str, ...]:
        """Return the one word, or what the list holds, as a tuple."""
        if isinstance(value, str):
            return (self.check(value),)
        words = take_list(value)
        if not words:
            raise ValueError("is empty: name at least one")
        return words

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> Any:
        words = tuple[Annotated[str, AfterValidator(self.check)], ...]
        return handler.generate_schema(
            Annotated[words, Field(strict=False), WrapValidator(self.take)]
        )

    def __get_pydantic_json_schema__(
        self, schema: Any, handler: GetJsonSchemaHandler
    ) -> dict[str, Any]:
        word = OneOf.__get_pydantic_json_schema__(self, schema, handler)
        words = {"type": "array", "items": word, "minItems": 1}
        return {"type": ["string", "array"], "anyOf": [word, words]}
