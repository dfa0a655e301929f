"""The commands of the command line. A module of `commands/` is imported when its command is used.

To import all of them takes longer than most commands take, so what `--help` lists is in `options.py`.
"""

from __future__ import annotations

import functools
from importlib import import_module
from typing import Annotated, Any, cast

import typer
import typer.main
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo

from .exit_codes import INTERRUPTED, in_words
from .options import ABOUT, CommandGroup

PLACES = {
    **{name: f"talk:{name}" for name in ("chat", "attach")},
    **{name: f"queue:{name}" for name in ("send", "stop", "agents", "goal")},
    "why": "inspect:why",
    "trust": "config:trust_files",
    **{name: f"gateways:{name}" for name in ("gateway", "plugins")},
    "people": "devices:people",
    "permissions": "config:permissions",
    "schedule": "serve:schedule",
}
"""Where a command is, below `commands/`, if its module and its name there are not its own name."""
EXTENSIONS = ("acp", "hooks", "mcp")
"""The commands that extensions have, which are loaded by these names."""
OFTEN = (
    *("chat", "tour", "setup", "run", "sessions", "queue", "send", "stop", "attach", "models"),
    "doctor",
)
"""The commands that `--help` lists first."""


@functools.cache
def command_named(name: str) -> TyperCommand | TyperGroup:
    """Import a command or a group."""
    if name in EXTENSIONS:
        registry = import_module("..workflows.registry", __package__)
        found = registry.EXTENSIONS.load(name)
    else:
        module, _, place = PLACES.get(name, f"{name}:{name}").partition(":")
        found = getattr(import_module(f".commands.{module}", __package__), place)
    if isinstance(found, typer.Typer):
        made = typer.main.get_group(found)
        made.name = name
        return made
    command = typer.main.get_command_from_info(
        CommandInfo(name, callback=found), pretty_exceptions_short=False, rich_markup_mode=None
    )
    return cast("TyperCommand", command)


class Program(CommandGroup):
    """The program: what it lists has a name and a help only; what is used is imported."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the usual commands first."""
        return [*self.commands] or [*OFTEN, *sorted(ABOUT.keys() - set(OFTEN))]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command to be listed."""
        about = ABOUT.get(cmd_name)
        bare = TyperCommand(cmd_name, help=about) if about else None
        return self.commands.get(cmd_name, bare)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Return the command that is used."""
        name, _, rest = super().resolve_command(ctx, args)
        return name, command_named(name) if name else None, rest


app = typer.Typer(
    name="steersman",
    cls=Program,
    help="Talk to an agent while it works; no message is lost. Without a command: a chat, "
    "which takes the options of `chat`.\n\n"
    'Example: steersman chat "what is in this folder?"',
    no_args_is_help=True,
    epilog=f"Exit codes: {in_words()}.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
) -> None:
    """Declare the options of all commands; `main.py` answers `--version` before this is imported."""


def dispatch(arguments: list[str]) -> int:
    """Run a command and return its exit code. Raises `SteersmanError`, and what the parser raises."""
    try:
        code = _program()(arguments, prog_name="steersman", standalone_mode=False)
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        return INTERRUPTED
    return int(code or 0)


def _program() -> Program:
    return cast("Program", typer.main.get_command(app))


def whole_program() -> TyperGroup:
    """Return the program with all its commands, imported."""
    program, found = _program(), dict[str, Any]()
    for name in ABOUT:
        found[name] = command_named(name)
    program.commands = found
    return program


def commands_named(name: str) -> list[str]:
    """Return the commands of groups that have a name: `sessions revert` for `revert`."""
    groups = whole_program().commands.items()
    return [f"{group} {name}" for group, found in groups if name in getattr(found, "commands", {})]
