"""`steersman chat` and `attach`: how they are typed. What they do is used without Typer, too."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from ..options import Agent, Folder, JsonLines, Model, Session, Yes


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


def attach(
    session: Session = "last",
    user: Annotated[
        str, typer.Option(metavar="NAME", help="Your name; if left out, your login name.")
    ] = "",
    as_json: JsonLines = False,
    plain: Annotated[bool, typer.Option("--plain", help="No prompt.")] = False,
) -> int:
    """Follow a session that runs in another terminal, and type into it; leaving leaves it running.

    Example: steersman attach last
    """
    from ..attach import attach as follow

    return follow(os.environ, session, user, is_json=as_json, is_plain=plain)
