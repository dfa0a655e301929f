"""Parts of the program that can be added: each has a name, and a module that is loaded by that name.

A `Registry` lists the parts of one kind: the providers of models (`providers.py`), the tools
(`tools.py`), the formats of other agents' hooks (`agent_definition.py`). It says where the object
behind a name is, and holds what has to be known of the part without loading it; `load` imports the
module when the part is first used. So a configuration file can be checked, and a program can start,
without importing the parts that it does not use. A package outside this one adds a part with `add`.
"""

from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from ..machines.value import Value


class Part(Value):
    """One part; `place` is where its object is, as entry points write it: `package.module:object`."""

    place: str


AnyPart = TypeVar("AnyPart", bound=Part)


class Registry(Collection[str], Generic[AnyPart]):
    """The parts of one kind by name, in the order in which people see them; `noun` names the kind."""

    def __init__(self, noun: str, parts: Mapping[str, AnyPart]) -> None:
        self.noun = noun
        self._parts = dict(parts)

    def __contains__(self, name: object) -> bool:
        return name in self._parts

    def __iter__(self) -> Iterator[str]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __getitem__(self, name: str) -> AnyPart:
        """Return a part. Raises `KeyError` for an unknown name."""
        return self._parts[name]

    def add(self, name: str, part: AnyPart) -> None:
        """Add a part. Raises `ValueError` if the name is taken."""
        if name in self._parts:
            raise ValueError(f"there is already a {self.noun} `{name}`")
        self._parts[name] = part

    def load(self, name: str) -> Any:
        """Import the module of a part and return its object. Raises `KeyError`, `ImportError`."""
        module, _, attribute = self._parts[name].place.partition(":")
        return getattr(import_module(module), attribute)
