"""`steersman hooks …`: steersman's hooks in the configurations of other agents."""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from ...cli.options import Json, group
from ...cli.output import show, show_document, show_table, warn
from ...gateway.wording.redaction import redactor_of
from ...machines.errors import ConfigError, UsageError
from ...ports.process.own_python import INTERPRETER
from ...workflows.agent_definition import AgentDefinition, find_agent, load_agents
from ...workflows.extras import install_command
from ...workflows.paths import Paths
from .installation import Change, Installation

_HEAD = ("AGENT", "HOOKS", "A SESSION ENDS BY", "CONFIGURATION")
_COLUMNS = ("agent", "state", "ends_by", "config")

hooks = group("hooks", "steersman hooks install claude")

Agent = Annotated[
    str, typer.Argument(metavar="AGENT", help="An agent; `steersman hooks list` names them.")
]

Dry = Annotated[bool, typer.Option("--dry-run", help="Only show the change.")]


@hooks.command("list")
def hooks_list(as_json: Json = False) -> int:
    """List the agents, and whether the hooks are installed.

    Example: steersman hooks list
    """
    paths = Paths.of(os.environ)
    views = [
        _view(agent, Installation(agent, _program(), paths.state, os.environ))
        for agent in load_agents(paths).values()
    ]
    if as_json:
        show_document({"hooks": views})
        return 0
    redactor = redactor_of(os.environ)
    cells = [tuple(redactor.line(str(view[key])) for key in _COLUMNS) for view in views]
    show_table(_HEAD, cells)
    for view in views:
        if view["error"]:
            warn(redactor.line(f"{view['agent']}: {view['error']}"))
    return 0


@hooks.command("install")
def hooks_install(agent: Agent, dry_run: Dry = False) -> int:
    """Write the hooks into an agent's own configuration, or update them.

    Example: steersman hooks install claude --dry-run
    """
    definition, installation = _found(agent)
    changes = installation.install()
    if dry_run:
        return _show(changes)
    copies = installation.apply(changes, is_install=True)
    redactor = redactor_of(os.environ)
    for change in changes:
        show(redactor.line(f"Wrote {change.path}"))
    for copy in copies:
        show(redactor.line(f"The previous content is saved: {copy}"))
    if not changes:
        show(redactor.line(f"The hooks are in {installation.path} already."))
    elif definition.hooks.note:
        show(definition.hooks.note)
    return 0


@hooks.command("uninstall")
def hooks_uninstall(agent: Agent, dry_run: Dry = False) -> int:
    """Remove the hooks from an agent's configuration.

    Example: steersman hooks uninstall claude
    """
    _, installation = _found(agent)
    changes = installation.uninstall()
    if dry_run:
        return _show(changes)
    installation.apply(changes, is_install=False)
    redactor = redactor_of(os.environ)
    for change in changes:
        show(redactor.line(f"{'Removed' if change.after is None else 'Wrote'} {change.path}"))
    if not changes:
        show(redactor.line(f"There are no steersman hooks in {installation.path}."))
    return 0


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
    from ...cli.emit import emit

    emit([agent, event])


@hooks.command("tell")
def hooks_tell() -> int:
    """Run your own hooks for events of other agents; `emit` starts this automatically.

    Example: steersman hooks tell
    """
    from ...gateway.host.hook_runner import tell_hooks
    from ...gateway.views.restore_service import RestoreService
    from ...ports.hooks import HookSpec
    from ...workflows.config import load

    paths = Paths.of(os.environ)
    config = load(paths, paths.config, os.environ)
    specs = [HookSpec(on=hook.on, run=hook.run, timeout=hook.timeout) for hook in config.hooks]
    restore_service = RestoreService(paths, config.restore.retention_hours)
    count = tell_hooks(restore_service, paths.state, specs, os.environ)
    show(f"Hooks run: {count}.")
    return 0


def installed_hooks() -> dict[str, Path]:
    """Map each agent that has hooks of this program to its configuration; an unreadable one has none."""
    paths, found = Paths.of(os.environ), dict[str, Path]()
    for agent in load_agents(paths).values():
        installation = Installation(agent, ["steersman"], paths.state, os.environ)
        with suppress(ConfigError):
            if installation.status() != "not installed":
                found[agent.name] = installation.path
    return found


def _found(name: str) -> tuple[AgentDefinition, Installation]:
    paths = Paths.of(os.environ)
    agent = find_agent(load_agents(paths), name)
    return agent, Installation(agent, _program(), paths.state, os.environ)


def _show(changes: list[Change]) -> int:
    for change in changes:
        show(change.diff())
    if not changes:
        warn("Nothing would change.")
    return 0


def _view(agent: AgentDefinition, installation: Installation) -> dict[str, Any]:
    error = ""
    try:
        state = installation.status()
    except ConfigError as problem:
        state, error = "not understood", str(problem)
    return {
        "agent": agent.name,
        "aliases": list(agent.aliases),
        "state": state,
        "error": error or None,
        "config": str(installation.path),
        "is_there": shutil.which(agent.start[0]) is not None,
        "session_end_is_turn_boundary": agent.session_end_is_turn_boundary,
        "ends_by": _ends_by(agent),
        "publishes_stop_notification": agent.publishes_stop_notification,
        "events": dict(agent.events),
    }


def _ends_by(agent: AgentDefinition) -> str:
    """Name what deletes a session's record: an event, or else `forget` and its age."""
    ends = set(agent.events.values())
    if "session-finalize" in ends:
        return "session-finalize"
    is_end = "session-end" in ends and not agent.session_end_is_turn_boundary
    return "session-end" if is_end else "forget, or age"


def _program() -> list[str]:
    """Return the command by which agents call this program: the absolute path of its script."""
    beside = Path(INTERPRETER).parent / "steersman"
    found = shutil.which("steersman")
    for path in (Path(sys.argv[0]).absolute(), beside, *([Path(found)] if found else [])):
        if path.name == "steersman" and os.access(path, os.X_OK) and path.is_file():
            return [str(path)]
    raise UsageError(
        "this program has no command that an agent could call",
        f"install it: {install_command()}",
    )
