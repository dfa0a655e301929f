"""All slash commands: imports every module of this folder, which declares its commands.

`command.py` explains how a command is added.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ...workflows.problem import did_you_mean
from .. import commands
from .command import DECLARED, GROUPS, Command, CommandCall
from .installed import Commands

for _module in iter_modules(commands.__path__):
    if _module.name != "registry":
        import_module(f"{commands.__name__}.{_module.name}")
for _command in sorted(DECLARED.values(), key=lambda declared: declared.name):
    _family, _, _verb = _command.name.partition(" ")
    if _verb:
        DECLARED[_family].verbs[_verb] = _command

COMMANDS = Commands(
    {
        declared.name: declared
        for group in GROUPS
        for declared in sorted(DECLARED.values(), key=lambda known: known.function.__module__)
        if declared.group == group and " " not in declared.name
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
    return command_named(name).call(arguments)


def command_named(name: str) -> Command[...]:
    """Return a command; `name` may have a verb. Raises `ValueError`."""
    found = DECLARED.get(name) or COMMANDS.get(name)
    if found is None:
        near = did_you_mean(name.removeprefix("/"), DECLARED)
        raise ValueError(f"no command `{name}`" + (near and f"; {near}"))
    return found


def needing_approval(call: CommandCall) -> str:
    """Return what of a command is only for those who may also approve; empty for nothing."""
    name = call.command.name
    if call.arguments.get("gates"):  # commands that are run without a question
        return f"/{name} --gate"
    return "" if call.command.is_shared else f"/{name}"
