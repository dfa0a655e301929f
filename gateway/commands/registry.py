"""All slash commands: imports every module of this folder, which declares its commands.

`command.py` explains how a command is added.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from .. import commands
from .command import DECLARED, GROUPS, CommandCall
from .installed import Commands

_MODULES = [
    f"{commands.__name__}.{found.name}"
    for found in iter_modules(commands.__path__)
    if found.name != "registry"
]
for _module in _MODULES:
    import_module(_module)
for _command in sorted(DECLARED.values(), key=lambda declared: declared.name):
    _family, _, _verb = _command.name.partition(" ")
    if _verb:
        DECLARED[_family].verbs[_verb] = _command

COMMANDS = Commands(
    {
        declared.name: declared
        for group in GROUPS
        for module in _MODULES  # whichever was imported first
        for declared in DECLARED.values()
        if (declared.group, declared.function.__module__) == (group, module)
        and " " not in declared.name
    }
)
"""The commands by name, those of a group together; a verb such as `queue edit` is in its command."""
NAMES = Commands(
    {
        **COMMANDS.built_in,
        **{
            alias: declared for declared in COMMANDS.built_in.values() for alias in declared.aliases
        },
    }
)
"""The same with the other names that a command has."""


def parse(name: str, argument: str) -> CommandCall:
    """Read a command that was typed; `name` is in `NAMES`. Raises `UsageError`."""
    return NAMES[name].parse(argument)


def call(name: str, arguments: dict[str, object]) -> CommandCall:
    """Take a command that came as data; `name` may have a verb. Raises `ValueError`."""
    found = DECLARED.get(name) or COMMANDS.get(name)
    if found is None:
        raise ValueError(f"no command `{name}`")
    return found.call(arguments)
