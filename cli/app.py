"""The commands, as people type them. Each imports what it needs when it runs."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ..machines.errors import SteersmanError
from .agents_app import agents
from .hooks_app import hooks
from .parameter import Json, Session
from .queue_app import queue, send, stop
from .restore_app import restore
from .routes_app import routes

__all__ = ["app", "run"]

app = typer.Typer(
    name="steersman",
    help="Talk to an agent while it works; nothing you say is lost.\n\n"
    'Example: steersman chat "what is in this folder?"',
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


def _group(name: str, doc: str, example: str) -> typer.Typer:
    """Add a command that has commands of its own."""
    group = typer.Typer(
        help=f"{doc}\n\nExample: {example}", no_args_is_help=True, rich_markup_mode=None
    )
    app.add_typer(group, name=name)
    return group


app.add_typer(queue, name="queue")
app.add_typer(agents, name="agents")
app.add_typer(routes, name="routes")
app.command()(send)
app.command()(stop)
app.add_typer(hooks, name="hooks")
app.add_typer(restore, name="restore")

sessions = _group("sessions", "List, read and resume sessions.", "steersman sessions list")
machines = _group("machines", "Show and check the state machines.", "steersman machines show turn")
config = _group("config", "Show and check the configuration.", "steersman config show")
models = _group("models", "List, check and fetch language models.", "steersman models list")


def run(arguments: list[str]) -> int:
    """Run the command line and return its exit code; a person's mistake is told in two lines."""
    try:
        code = app(arguments, prog_name="steersman", standalone_mode=False)
    except SteersmanError as error:
        return _tell(error)
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        return 130
    except Exception as error:
        return _usage(error)
    return int(code or 0)


def _tell(error: SteersmanError) -> int:
    from ..gateway.terminal import clean
    from .page import warn

    warn(clean(f"steersman: {error}"))
    if error.hint:
        warn(clean(f"  {error.hint}"))
    return error.exit_code


def _usage(error: Exception) -> int:
    """Print what the argument parser says; anything else is a fault of ours and keeps its trace."""
    show = getattr(error, "show", None)
    if show is None:
        raise error
    show()
    return int(getattr(error, "exit_code", 2))


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
) -> None:
    """Take what applies to all commands; `main.py` answers `--version` before this is imported."""


@app.command()
def chat(
    message: Annotated[
        str,
        typer.Argument(
            metavar="MESSAGE",
            help="Say this, print the answer, leave. What is piped in is added to it.",
        ),
    ] = "",
    agent: Annotated[str, typer.Option(metavar="NAME", help="An agent of the configuration.")] = "",
    model: Annotated[
        str, typer.Option(metavar="NAME", help="A model of the configuration, or `local`.")
    ] = "",
    resume_newest: Annotated[
        bool, typer.Option("--continue", help="Take up this folder's newest session.")
    ] = False,
    resume: Annotated[str, typer.Option(metavar="ID", help="Take up this session.")] = "",
    cwd: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder to work in.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines in and out.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="No prompt; lines queue and run.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Allow what would be asked.")] = False,
) -> int:
    """Talk to an agent.

    Example: steersman chat --continue
    """
    from .chat import chat as start
    from .options import ChatOptions

    options = ChatOptions(
        message, agent, model, resume_newest, resume, cwd or Path.cwd(), as_json, plain, yes
    )
    return start(options, os.environ)


@sessions.command("list")
def sessions_list(as_json: Json = False) -> int:
    """List sessions, newest first.

    Example: steersman sessions list --json
    """
    from .sessions import list_sessions

    return list_sessions(os.environ, as_json=as_json)


@sessions.command("show")
def sessions_show(session: Session, as_json: Json = False) -> int:
    """Print a session's conversation.

    Example: steersman sessions show last
    """
    from .sessions import show_session

    return show_session(os.environ, session, as_json=as_json)


@sessions.command("resume")
def sessions_resume(session: Session) -> int:
    """Open a chat on a session; nothing in it runs until you say so.

    Example: steersman sessions resume last
    """
    return chat(resume=session)


@sessions.command("revert")
def sessions_revert(
    session: Session,
    what: Annotated[
        list[str] | None,
        typer.Argument(metavar="[last|undo [PATH]]", help="What; the newest turn if left out."),
    ] = None,
    to: Annotated[
        str, typer.Option("--to", metavar="TURN", help="This turn and all after it.")
    ] = "",
    force: Annotated[
        bool, typer.Option("--force", help="Also what somebody changed since.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be done.")
    ] = False,
    as_json: Json = False,
) -> int:
    """Give back the files that a session changed; what others changed since stays.

    Example: steersman sessions revert last --dry-run
    """
    from .revert import revert_session

    return revert_session(
        os.environ, session, what or [], to, force=force, dry_run=dry_run, as_json=as_json
    )


@sessions.command("prune")
def sessions_prune(as_json: Json = False) -> int:
    """Free what sessions that ended long ago still take.

    Example: steersman sessions prune
    """
    from .prune import prune_sessions

    return prune_sessions(os.environ, as_json=as_json)


@app.command()
def inspect(
    session: Session = "last",
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="tree, toml or json.")
    ] = "tree",
) -> int:
    """Show what every part of a session is doing, or was doing last.

    Example: steersman inspect last --format toml
    """
    from .inspect import inspect_stored

    return inspect_stored(os.environ, session, form)


@machines.command("list")
def machines_list(as_json: Json = False) -> int:
    """List the machines.

    Example: steersman machines list
    """
    from .machines import list_machines

    return list_machines(as_json=as_json)


@machines.command("show")
def machines_show(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A machine; `steersman machines list` names them.")
    ],
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="mermaid or toml.")
    ] = "mermaid",
) -> int:
    """Print a machine as a diagram or as data.

    Example: steersman machines show turn
    """
    from .machines import show_machine

    return show_machine(name, form)


@machines.command("check")
def machines_check() -> int:
    """Check all machines: dead ends, unreachable states, control events that may drop.

    Example: steersman machines check
    """
    from .machines import check_machines

    return check_machines()


@config.command("show")
def config_show(as_json: Json = False) -> int:
    """Print the configuration in force, and where each key comes from.

    Example: steersman config show
    """
    from .config import show_config

    return show_config(os.environ, as_json=as_json)


@config.command("path")
def config_path() -> int:
    """Print the folders and files in use.

    Example: steersman config path
    """
    from .config import show_paths

    return show_paths(os.environ)


@config.command("check")
def config_check() -> int:
    """Check every configuration file that applies here.

    Example: steersman config check
    """
    from .config import check_config

    return check_config(os.environ)


@config.command("schema")
def config_schema() -> int:
    """Print the JSON Schema of the configuration, for editors.

    Example: steersman config schema > steersman.schema.json
    """
    from .config import show_schema

    return show_schema()


@models.command("list")
def models_list(as_json: Json = False) -> int:
    """List configured models and the catalogue, and say which a chat would use.

    Example: steersman models list
    """
    from .models import list_models

    return list_models(os.environ, as_json=as_json)


@models.command("check")
def models_check(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A model; without one, what a chat would use.")
    ] = "",
) -> int:
    """Ask a model for one word, and say what works.

    Example: steersman models check main
    """
    from .models import check_model

    return check_model(os.environ, name)


@models.command("fetch")
def models_fetch(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A model of the catalogue (`models list`).")
    ],
    if_needed: Annotated[
        bool, typer.Option("--if-needed", help="Only if a chat would find no other model.")
    ] = False,
) -> int:
    """Download a model of the catalogue, verified by its hash.

    Example: steersman models fetch smollm2
    """
    from .models import fetch_model

    return fetch_model(os.environ, name, only_if_needed=if_needed)


@app.command()
def trust(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="The folder; the current one if left out."),
    ] = None,
) -> int:
    """Trust a folder's steersman.toml as it is now.

    Example: steersman trust .
    """
    from .config import trust_folder

    return trust_folder(os.environ, folder or Path.cwd())


@app.command()
def doctor(as_json: Json = False) -> int:
    """Look at this machine, and say what to mend.

    Example: steersman doctor
    """
    from .doctor import examine

    return examine(os.environ, as_json=as_json)
