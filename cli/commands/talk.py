"""The commands that open an interface: to an agent, a session, a workflow, an editor or a program."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ..options import Agent, Folder, Json, JsonLines, Model, Session, Yes


def chat(
    message: Annotated[
        str,
        typer.Argument(
            metavar="MESSAGE",
            help="Send this message, print the answer, exit. Piped input is added to it.",
        ),
    ] = "",
    agent: Agent = "",
    model: Model = "",
    resume_newest: Annotated[
        bool, typer.Option("--continue", help="Resume this folder's newest session.")
    ] = False,
    resume: Annotated[
        str, typer.Option(metavar="[ID]", help="Resume this session; without an ID, choose one.")
    ] = "",
    cwd: Folder = None,
    as_json: JsonLines = False,
    plain: Annotated[
        bool, typer.Option("--plain", help="Print only; what is piped in queues.")
    ] = False,
    yes: Yes = False,
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
    from ..chat import chat as start
    from ..chat_options import ChatOptions

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


def take_tour(
    pace: Annotated[
        float, typer.Option(metavar="FACTOR", help="Scales the pauses: 2 is slower.", min=0.0)
    ] = 1.0,
) -> int:
    """Show in a minute how to queue, steer, stop, revert and resume, in a scratch folder.

    The session is real, its model is scripted, and the keys are pressed for you.

    Example: steersman tour
    """
    from ..tour import tour

    return tour(os.environ, pace)


def run_file(
    file: Annotated[
        str, typer.Argument(metavar="[FILE]", help="A workflow's file, or the name of one.")
    ] = "",
    var: Annotated[
        list[str] | None,
        typer.Option("--var", metavar="NAME=VALUE", help="Set a variable; may be repeated."),
    ] = None,
    resume: Annotated[
        str,
        typer.Option("--resume", metavar="RUN", help="Resume this run, or the `last`."),
    ] = "",
    again: Annotated[
        list[str] | None,
        typer.Option("--again", metavar="ITEM", help="Repeat this work of unknown outcome."),
    ] = None,
    done: Annotated[
        list[str] | None,
        typer.Option("--done", metavar="ITEM", help="Treat this work as done."),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be done.")
    ] = False,
    on: Annotated[
        str,
        typer.Option(
            metavar="CLUSTER",
            help="Where remote steps run: `ray`, `ray:HOST:PORT` or `ray://HOST:PORT`.",
        ),
    ] = "",
    cwd: Folder = None,
    model: Annotated[str, typer.Option(metavar="NAME", help="A model for all agents.")] = "",
    as_json: JsonLines = False,
    yes: Yes = False,
) -> int:
    """Run a workflow; Ctrl-C interrupts it, and --resume continues it.

    Example: steersman run codemod.toml --var find=old_name
    """
    from ..runs.run import RunOptions, run_workflow

    options = RunOptions(
        file=file,
        variables=tuple(var or ()),
        resume=resume,
        again=tuple(again or ()),
        done=tuple(done or ()),
        cluster=on,
        folder=cwd or Path.cwd(),
        model=model,
        is_json=as_json,
        is_dry=dry_run,
        is_yes=yes,
    )
    return run_workflow(options, os.environ)


def inspect(
    session: Session = "last",
    form: Annotated[
        str,
        typer.Option("--format", metavar="FORMAT", help="tree, toml, json, mermaid or svg."),
    ] = "tree",
    at: Annotated[
        str,
        typer.Option(
            "--at",
            metavar="SEQ|TIME",
            help="A past moment: 48, 14:03, yesterday 14:03, tue 14:03, 5m ago, 2026-11-17T14:03.",
        ),
    ] = "",
    watch: Annotated[bool, typer.Option("--watch", help="Update the output until Ctrl-C.")] = False,
    diff: Annotated[
        tuple[str, str] | None,
        typer.Option("--diff", metavar="A B", help="Show the changes between two moments."),
    ] = None,
    events: Annotated[bool, typer.Option("--events", help="List the journal.")] = False,
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", metavar="KIND", help="Events of a kind, or `tool_*`; repeatable."),
    ] = None,
    since: Annotated[
        str, typer.Option("--since", metavar="SEQ|TIME", help="Events from then on.")
    ] = "",
    until: Annotated[
        str, typer.Option("--until", metavar="SEQ|TIME", help="Events up to then.")
    ] = "",
    turn: Annotated[str, typer.Option("--turn", metavar="ID", help="Events of a turn.")] = "",
    item: Annotated[str, typer.Option("--item", metavar="ID", help="Events of a message.")] = "",
    last: Annotated[int, typer.Option("--last", metavar="N", help="The last N events.")] = 0,
) -> int:
    """Show what every part of a session is doing, or was doing at any moment.

    Mermaid is the last turn as a sequence diagram, SVG the tree as a picture. A path, such as
    ./dump.json, opens a dump that was saved as JSON.

    Example: steersman inspect last --at "5m ago"
    """
    from ..inspection.inspect import inspect_session
    from ..inspection.view import InspectOptions

    options = InspectOptions(
        session=session,
        form=form,
        at=at,
        diff=diff,
        watches=watch,
        lists_events=events,
        kinds=tuple(kind or ()),
        since=since,
        until=until,
        turn=turn,
        item=item,
        last=last,
    )
    return inspect_session(os.environ, options)


def why(
    session: Session = "last",
    message: Annotated[
        str,
        typer.Argument(
            metavar="MESSAGE", help="Its number, id or receipt; if left out, the newest."
        ),
    ] = "last",
    form: Annotated[
        str, typer.Option("--format", metavar="FORMAT", help="text, json, toml or mermaid.")
    ] = "text",
    as_json: Json = False,
) -> int:
    """Tell the story of one message: what became of it, when, by which rule, and what it waits for.

    Example: steersman why last 2
    """
    from ..inspection.inspect import tell_why

    return tell_why(os.environ, session, message, "json" if as_json else form)


def attach(
    session: Session = "last",
    user: Annotated[
        str, typer.Option("--user", metavar="NAME", help="Your name; if left out, your login name.")
    ] = "",
    as_json: JsonLines = False,
    plain: Annotated[bool, typer.Option("--plain", help="No prompt.")] = False,
) -> int:
    """Follow a session that runs in another terminal, and type into it; leaving leaves it running.

    Example: steersman attach last
    """
    from ..attach import attach as follow

    return follow(os.environ, session, user, is_json=as_json, is_plain=plain)
