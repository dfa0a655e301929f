"""The command line of `steersman hooks …`; `emit.py` answers agents before this is imported."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from ..options import Json

hooks = typer.Typer(
    help="Install hooks in other agents, so that their sessions can be restored.\n\n"
    "Example: steersman hooks install claude",
    no_args_is_help=True,
    rich_markup_mode=None,
)

Agent = Annotated[
    str, typer.Argument(metavar="AGENT", help="An agent; `steersman hooks list` names them.")
]
Dry = Annotated[bool, typer.Option("--dry-run", help="Only show the change.")]


@hooks.command("list")
def hooks_list(as_json: Json = False) -> int:
    """List the agents, and whether the hooks are installed.

    Example: steersman hooks list
    """
    from ..hooks import list_hooks

    return list_hooks(os.environ, as_json=as_json)


@hooks.command("install")
def hooks_install(agent: Agent, dry_run: Dry = False) -> int:
    """Write the hooks into an agent's own configuration, or update them.

    Example: steersman hooks install claude --dry-run
    """
    from ..hooks import install_hooks

    return install_hooks(os.environ, agent, is_dry=dry_run)


@hooks.command("uninstall")
def hooks_uninstall(agent: Agent, dry_run: Dry = False) -> int:
    """Remove the hooks from an agent's configuration.

    Example: steersman hooks uninstall claude
    """
    from ..hooks import uninstall_hooks

    return uninstall_hooks(os.environ, agent, is_dry=dry_run)


@hooks.command("emit")
def hooks_emit(
    agent: Agent,
    event: Annotated[
        str,
        typer.Argument(
            metavar="EVENT",
            help="session-start, prompt-submit, agent-response, session-end, session-finalize or"
            " notification.",
        ),
    ],
) -> int:
    """Record an event of an agent: JSON on standard input, `{}` as the answer in any case.

    Example: steersman hooks emit hermes session-end
    """
    from ..emit import emit

    emit([agent, event])


@hooks.command("tell")
def hooks_tell() -> int:
    """Run your own hooks for events of other agents; `emit` starts this automatically.

    Example: steersman hooks tell
    """
    from ..hooks import tell

    return tell(os.environ)
