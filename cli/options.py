"""What the commands share: the text of each in lists, options and arguments, and groups."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperGroup

from ..machines.errors import SteersmanError

ABOUT = {
    "run": "Run a workflow; Ctrl-C interrupts it, and --resume continues it.",
    "send": "Send a message to a session; if no program has it open, it is queued.",
    "stop": "Stop the running turn of a session and everything that it started.",
    "attach": "Follow a session that runs in another terminal, and type into it; leaving leaves it "
    "running.",
    "inspect": "Show what every part of a session is doing, or was doing at any moment.",
    "why": "Tell the story of one message: what became of it, when, by which rule, and what it waits "
    "for.",
    "simulate": "Play random runs with stops, failures and crashes, and check every promise in each.",
    "chat": "Talk to an agent.",
    "acp": "Serve an editor: the Agent Client Protocol on standard input and output.",
    "mcp": "Serve an MCP client on standard input and output: it may say, steer, stop, inspect and run.",
    "trust": "Show what a folder's steersman.toml would be allowed, and trust its present content.",
    "tour": "Show in a minute how to queue, steer, stop, revert and resume, in a scratch folder.",
    "setup": "Choose a model, try it, and make it the default of new chats.",
    "doctor": "Check this machine, and report what to repair.",
    "docs": "List the pages of the documentation, or show one: on a terminal in your pager.",
    "uninstall": "Show what of steersman is on this machine, and remove what you confirm.",
    "queue": "Show and change a session's queue.",
    "goal": "Show and change the goal of a session.",
    "agents": "Show and end a session's subagents.",
    "routes": "Show, check, compare and choose the routing tables.",
    "hooks": "Install hooks in other agents, so that their sessions can be restored.",
    "restore": "Resume sessions of other agents.",
    "sessions": "List, read and resume sessions.",
    "machines": "Show and check the state machines.",
    "config": "Show and check the configuration.",
    "models": "List, check and fetch language models.",
    "permissions": "Show what tools may do here without asking, and try a call.",
    "plugins": "List what installed packages add.",
    "gateway": "Run a gateway: chat rooms, or what a package brings.",
    "people": "Show who may do what in chat rooms.",
    "workflow": "Check, list and create workflows; `steersman run` runs one.",
    "serve": "Run the home's sessions in a program that outlives terminals, with a page and HTTP.",
    "node": "Run sessions of the home that need an owner, until Ctrl-C or `node drain`.",
    "devices": "Pair devices and programs with `steersman serve`, and shut them out.",
    "home": "Where sessions are kept: SQLite, or a PostgreSQL database for many machines.",
    "schedule": "What `steersman serve` does at planned times.",
}
"""Each command, and the first line of its help."""


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
WAYS = ("auto", "queue", "steer", "interrupt")
Way = Annotated[str, option("WAY", "auto, queue, steer or interrupt.", "--as")]
Json = Annotated[bool, flag("--json", "Print one JSON document.")]


def _begun(incomplete: str) -> list[tuple[str, str]]:
    """Complete the id of a session: the newest of the home, with their titles."""
    from ..gateway.wording.redaction import redactor_of
    from ..journal.store import RowFilter
    from .stored import stored

    try:
        with stored(os.environ) as store:
            found = store.sessions(RowFilter(begins=incomplete, is_top=True, most=_COMPLETED))
    except SteersmanError:
        return []
    redactor = redactor_of(os.environ)
    return [(row.session, redactor.line(row.name or row.title)) for row in found if row.seq]


_COMPLETED = 50
"""Sessions that the completion of a shell offers."""
Session = Annotated[
    str,
    argument("ID", "A session's id, a unique prefix of one, or `last`.", autocompletion=_begun),
]
Of = Annotated[
    str,
    option(
        "ID",
        "A session; if left out, the one of this folder: open, or the newest.",
        "--session",
        autocompletion=_begun,
    ),
]

Options = TypeVar("Options")


class CommandGroup(TyperGroup):
    """A group whose help says of each command all of its first sentence, on more lines if need be."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """Write the list of commands into a help."""
        found = ((name, self.get_command(ctx, name)) for name in self.list_commands(ctx))
        rows = [(name, command.get_short_help_str(1000)) for name, command in found if command]
        with formatter.section("Commands"):
            formatter.write_dl(rows)


def group(name: str, example: str, *, is_command: bool = False) -> typer.Typer:
    """Return the group of a name with its help; `is_command`: without a command it acts itself."""
    return typer.Typer(
        cls=CommandGroup,
        help=f"{ABOUT[name]}\n\nExample: {example}",
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
