"""Options and arguments that several commands share."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperGroup


def option(metavar: str, about: str, *names: str, **more: Any) -> Any:
    """Declare an option with a value; without `names` it is called as its parameter."""
    return typer.Option(*names, metavar=metavar, help=about, **more)


def flag(name: str, about: str) -> Any:
    """Declare an option that stands alone."""
    return typer.Option(name, help=about)


def argument(metavar: str, about: str, **more: Any) -> Any:
    """Declare an argument."""
    return typer.Argument(metavar=metavar, help=about, **more)


JsonLines = Annotated[bool, flag("--json", "JSON lines in and out.")]
Yes = Annotated[bool, flag("--yes", "Allow calls that need permission.")]
Folder = Annotated[Path | None, option("DIR", "The folder to work in.")]
Agent = Annotated[str, option("NAME", "An agent of the configuration.")]
Model = Annotated[str, option("NAME", "A model of the configuration, or `local`.")]
Way = Annotated[str, option("WAY", "auto, queue, steer or interrupt.", "--as")]
Json = Annotated[bool, flag("--json", "Print one JSON document.")]
Session = Annotated[str, argument("ID", "A session's id, a unique prefix of one, or `last`.")]
Of = Annotated[str, option("ID", "A session; if left out, the newest of this folder.", "--session")]

Options = TypeVar("Options")


class CommandGroup(TyperGroup):
    """A group whose help says of each command all of its first sentence, on more lines if need be."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands into a help."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, command.get_short_help_str(1000)) for name, command in found if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def group(about: str, example: str, *, is_command: bool = False) -> typer.Typer:
    """Return a group of commands with its help; `is_command`: without one of them it acts itself."""
    return typer.Typer(
        cls=CommandGroup,
        help=f"{about}\n\nExample: {example}",
        no_args_is_help=not is_command,
        rich_markup_mode=None,
        add_completion=False,
    )


def taking(
    options: type[Options],
) -> Callable[[Callable[[Options], int | None]], Callable[..., int | None]]:
    """Make a command of a function of one value: its fields are the options and arguments."""

    def made(function: Callable[[Options], int | None]) -> Callable[..., int | None]:
        def command(**given: Any) -> int | None:
            return function(options(**given))

        command.__signature__ = inspect.signature(options)  # type: ignore[attr-defined]
        command.__annotations__ = get_type_hints(options, include_extras=True)
        command.__doc__, command.__module__ = function.__doc__, function.__module__
        return command

    return made
