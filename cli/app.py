"""The commands of the command line. Each imports its module when it runs."""

from __future__ import annotations

import os
from collections.abc import Callable
from copy import copy
from inspect import getdoc
from pathlib import Path
from typing import Annotated

import typer
from typer.core import TyperCommand, TyperGroup
from typer.models import CommandInfo

from .apps.agents import agents
from .apps.config import config
from .apps.devices import devices
from .apps.goal import goal
from .apps.home import home
from .apps.hooks import hooks
from .apps.inspect import attach, inspect, why
from .apps.machines import machines
from .apps.models import models
from .apps.node import node
from .apps.permissions import permissions
from .apps.plugins import gateway, people, plugins
from .apps.queue import queue, send, stop
from .apps.restore import restore
from .apps.routes import routes
from .apps.run import run_file
from .apps.schedule import schedule
from .apps.serve import serve
from .apps.sessions import sessions
from .apps.simulate import simulate
from .apps.workflow import workflow
from .options import Json

app = typer.Typer(
    name="steersman",
    help="Talk to an agent while it works; no message is lost. Without a command: a chat, "
    "which takes the options of `chat`.\n\n"
    'Example: steersman chat "what is in this folder?"',
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)

app.add_typer(queue, name="queue")
app.add_typer(goal, name="goal")
app.add_typer(agents, name="agents")
app.add_typer(routes, name="routes")
app.command("run")(run_file)
app.command()(send)
app.command()(stop)
app.command()(attach)
app.command()(inspect)
app.command()(why)
app.add_typer(hooks, name="hooks")
app.add_typer(restore, name="restore")
app.add_typer(sessions, name="sessions")
app.add_typer(machines, name="machines")
app.add_typer(config, name="config")
app.add_typer(models, name="models")
app.add_typer(permissions, name="permissions")
app.add_typer(plugins, name="plugins")
app.add_typer(gateway, name="gateway")
app.add_typer(people, name="people")
app.add_typer(workflow, name="workflow")
app.add_typer(serve, name="serve")
app.add_typer(node, name="node")
app.add_typer(devices, name="devices")
app.add_typer(home, name="home")
app.add_typer(schedule, name="schedule")
app.command()(simulate)


OFTEN = (
    "chat",
    "tour",
    "setup",
    "run",
    "sessions",
    "queue",
    "send",
    "stop",
    "attach",
    "models",
    "doctor",
)
"""The commands that `--help` lists first."""


def dispatch(arguments: list[str]) -> int:
    """Run a command and return its exit code. Raises `SteersmanError`, and what the parser raises."""
    try:
        code = _program(arguments)(arguments, prog_name="steersman", standalone_mode=False)
    except typer.Exit as done:
        return done.exit_code
    except typer.Abort:
        return 130
    return int(code or 0)


def _program(arguments: list[str]) -> Callable[..., int | None]:
    """Return what runs the arguments, with no more of the commands than they need.

    Reading the declarations of all commands takes longer than most of them take.
    """
    if (
        "_STEERSMAN_COMPLETE" in os.environ
    ):  # a shell asks; what is typed so far is not in arguments
        return app
    if arguments == ["--help"]:
        return _listing()
    program = copy(app)
    program.registered_commands = [
        command for command in app.registered_commands if _name(command) == arguments[0]
    ]
    program.registered_groups = [
        group for group in app.registered_groups if group.name == arguments[0]
    ]
    return program if program.registered_commands or program.registered_groups else app


def _listing() -> TyperGroup:
    """Return the program with commands that have a name and a help, and nothing else."""
    bare = copy(app)
    bare.registered_commands, bare.registered_groups = [], []
    listing = typer.main.get_command(bare)
    assert isinstance(listing, TyperGroup)
    found: dict[str, TyperCommand | TyperGroup] = {}
    for command in app.registered_commands:
        name = _name(command)
        found[name] = TyperCommand(name, help=getdoc(command.callback))
    for group in app.registered_groups:
        assert group.typer_instance is not None
        assert group.name is not None
        found[group.name] = TyperGroup(name=group.name, help=group.typer_instance.info.help)
    for name in (*OFTEN, *sorted(found.keys() - set(OFTEN))):
        listing.add_command(found[name])
    return listing


def commands_named(name: str) -> list[str]:
    """Return the commands of groups that have a name: `sessions revert` for `revert`."""
    return [
        f"{group.name} {name}"
        for group in app.registered_groups
        if group.typer_instance is not None
        and name in map(_name, group.typer_instance.registered_commands)
    ]


def _name(command: CommandInfo) -> str:
    assert command.callback is not None
    return command.name or command.callback.__name__


@app.callback()
def main(
    version: Annotated[bool, typer.Option("--version", "-V", help="Print the version.")] = False,
) -> None:
    """Declare the options of all commands; `main.py` answers `--version` before this is imported."""


@app.command()
def chat(
    message: Annotated[
        str,
        typer.Argument(
            metavar="MESSAGE",
            help="Send this message, print the answer, exit. Piped input is added to it.",
        ),
    ] = "",
    agent: Annotated[str, typer.Option(metavar="NAME", help="An agent of the configuration.")] = "",
    model: Annotated[
        str, typer.Option(metavar="NAME", help="A model of the configuration, or `local`.")
    ] = "",
    resume_newest: Annotated[
        bool, typer.Option("--continue", help="Resume this folder's newest session.")
    ] = False,
    resume: Annotated[
        str, typer.Option(metavar="[ID]", help="Resume this session; without an ID, choose one.")
    ] = "",
    cwd: Annotated[Path | None, typer.Option(metavar="DIR", help="The folder to work in.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="JSON lines in and out.")] = False,
    plain: Annotated[bool, typer.Option("--plain", help="No prompt; lines queue and run.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Allow calls that need permission.")] = False,
    mode: Annotated[
        str, typer.Option(metavar="MODE", help="Permission mode: ask, edits, plan or all.")
    ] = "",
    debug: Annotated[
        bool, typer.Option("--debug", help="Log everything, without secrets.")
    ] = False,
) -> int:
    """Talk to an agent.

    Example: steersman chat --continue
    """
    from .chat import chat as start
    from .chat_options import ChatOptions

    options = ChatOptions(
        message=message,
        agent=agent,
        model=model,
        is_newest=resume_newest,
        resume=resume,
        folder=cwd or Path.cwd(),
        is_json=as_json,
        is_plain=plain,
        is_yes=yes,
        mode=mode,
        is_debug=debug,
    )
    return start(options, os.environ)


@app.command()
def acp(
    agent: Annotated[str, typer.Option(metavar="NAME", help="An agent of the configuration.")] = "",
    model: Annotated[
        str, typer.Option(metavar="NAME", help="A model of the configuration, or `local`.")
    ] = "",
) -> int:
    """Serve an editor: the Agent Client Protocol on standard input and output.

    Example: steersman acp --agent assistant
    """
    from .acp import serve_editor

    return serve_editor(os.environ, agent=agent, model=model)


@app.command("mcp")
def serve_mcp(
    cwd: Annotated[
        Path | None, typer.Option(metavar="DIR", help="The folder in which workflows run.")
    ] = None,
    answer: Annotated[
        bool,
        typer.Option("--answer", help="Let the client answer questions about permissions, too."),
    ] = False,
) -> int:
    """Serve an MCP client on standard input and output: it may say, steer, stop, inspect and run.

    Example: steersman mcp --cwd ~/project
    """
    from .chat_options import work_folder
    from .mcp_server import serve_clients

    return serve_clients(os.environ, work_folder(cwd or Path.cwd()), may_answer=answer)


@app.command()
def trust(
    folder: Annotated[
        Path | None,
        typer.Argument(metavar="DIR", help="The folder; if left out, the current one."),
    ] = None,
    is_list: Annotated[bool, typer.Option("--list", help="List the trusted folders.")] = False,
    is_forget: Annotated[
        bool, typer.Option("--forget", help="No longer trust the folder.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask, only show.")] = False,
    as_json: Json = False,
) -> int:
    """Show what a folder's steersman.toml would be allowed, and trust its present content.

    Example: steersman trust .
    """
    from .trust import forget_folder, list_trusted, trust_folder

    if is_list:
        return list_trusted(os.environ, as_json=as_json)
    if is_forget:
        return forget_folder(os.environ, folder or Path.cwd())
    return trust_folder(os.environ, folder or Path.cwd(), is_yes=yes)


@app.command("tour")
def take_tour(
    pace: Annotated[
        float, typer.Option(metavar="FACTOR", help="Scales the pauses: 2 is slower.", min=0.0)
    ] = 1.0,
) -> int:
    """Show in a minute how to queue, steer, stop, revert and resume, in a scratch folder.

    The session is real, its model is scripted, and the keys are pressed for you.

    Example: steersman tour
    """
    from .tour import tour

    return tour(os.environ, pace)


@app.command("setup")
def choose_model(
    provider: Annotated[
        str,
        typer.Option(
            metavar="NAME",
            help="anthropic, openai, openrouter, ollama, llama.cpp, local; compatible.",
        ),
    ] = "",
    base_url: Annotated[
        str, typer.Option(metavar="URL", help="The address, of any server with chat completions.")
    ] = "",
    key_env: Annotated[
        str, typer.Option(metavar="NAME", help="The environment variable that has the key.")
    ] = "",
    key_file: Annotated[
        str, typer.Option(metavar="FILE", help="A file with the key, which is copied.")
    ] = "",
    model: Annotated[
        str, typer.Option(metavar="NAME", help="The server's name of the model.")
    ] = "",
    timeout: Annotated[
        float, typer.Option(help="Time limit for the model's answer in seconds.", min=1.0)
    ] = 60.0,
    yes: Annotated[bool, typer.Option("--yes", help="Ask nothing; replace what is there.")] = False,
    untested: Annotated[
        bool, typer.Option("--untested", help="Write it without trying it.")
    ] = False,
) -> int:
    """Choose a model, try it, and make it the default of new chats.

    In a terminal it asks for what is left out. A key is kept in a private file, never in config.toml.
    Unless the model answers, nothing is written.

    Example: steersman setup --provider openai --key-file key.txt --model gpt-5-mini
    """
    from .setup import SetupOptions, set_up

    options = SetupOptions(
        provider=provider,
        base_url=base_url,
        key_env=key_env,
        key_file=key_file,
        model=model,
        seconds=timeout,
        is_yes=yes,
        is_untested=untested,
    )
    return set_up(os.environ, options)


@app.command()
def doctor(
    as_json: Json = False,
    of_home: Annotated[
        bool, typer.Option("--home", help="check the home instead: the database, nodes, mail")
    ] = False,
) -> int:
    """Check this machine, and report what to repair.

    Example: steersman doctor
    """
    from .doctor import check_up, examine
    from .doctor_home import home_findings

    findings = home_findings(os.environ) if of_home else check_up(os.environ)
    return examine(os.environ, findings, as_json=as_json)
