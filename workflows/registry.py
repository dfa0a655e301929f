"""Parts of the program that can be added: each has a name, and a module that is loaded by that name.

A `Registry` lists the parts of one kind: the providers of models (`providers.py`), the tools
(`tools.py`), the formats of other agents' hooks (`agent_definition.py`). It says where the object
behind a name is, and holds what has to be known of the part without loading it; `load` imports the
module when the part is first used. So a configuration file can be checked, and a program can start,
without importing the parts that it does not use. A package outside this one adds a part with an entry
point (`plugins.py`), which is looked for when a name is not built in.
"""

from collections.abc import Collection, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from ..machines.value import Value
from .plugins import EntryPoints


class Part(Value):
    """One part; `place` is where its object is, as entry points write it: `package.module:object`."""

    place: str


AnyPart = TypeVar("AnyPart", bound=Part)


class Registry(Collection[str], Generic[AnyPart]):
    """The parts of one kind by name: those that are `built_in`, and those of installed plug-ins.

    They come in the order in which people see them; `noun` names the kind.
    """

    def __init__(
        self, noun: str, parts: Mapping[str, AnyPart], entry_points: EntryPoints | None = None
    ) -> None:
        self.noun = noun
        self.built_in = dict(parts)
        self.entry_points = entry_points or EntryPoints("", noun)

    def __contains__(self, name: object) -> bool:
        return name in self.built_in or name in self.entry_points.by_name

    def __iter__(self) -> Iterator[str]:
        yield from self.built_in
        yield from self.entry_points.by_name

    def __len__(self) -> int:
        return len(self.built_in) + len(self.entry_points.by_name)

    def __getitem__(self, name: str) -> AnyPart:
        """Return a part that is built in. Raises `KeyError` for any other name."""
        return self.built_in[name]

    def load(self, name: str) -> Any:
        """Import a part and return its object. Raises `KeyError`, `ImportError`, `PlugInError`."""
        if name not in self.built_in:
            return self.entry_points.load(name)
        module, _, attribute = self.built_in[name].place.partition(":")
        return getattr(import_module(module), attribute)


EXTENSIONS = Registry(
    "extension",
    {
        "acp": Part(place="steersman.extensions.acp.command:acp"),
        "external agent": Part(place="steersman.extensions.acp.driven_agent:DrivenAgent"),
        "hooks": Part(place="steersman.extensions.agent_hooks.command:hooks"),
        "installed hooks": Part(place="steersman.extensions.agent_hooks.command:installed_hooks"),
        "mcp": Part(place="steersman.extensions.mcp.command:mcp"),
        "mcp servers": Part(place="steersman.extensions.mcp.session_servers:ServerFactory"),
        "opentelemetry": Part(place="steersman.extensions.opentelemetry.feed:Telemetry"),
        "postgres": Part(place="steersman.extensions.postgres.store:PostgresStore"),
        "ray": Part(place="steersman.extensions.ray.placement:RayPlacement"),
        "weights": Part(place="steersman.extensions.embedded.download:fetch"),
    },
)
"""What a session does not need and no entry point adds; the gateways of this package are plug-ins."""
